"""What this process knows of its run: the run's name, and which shards it asks.

The name is made of what is asked and of whom. What only limits a run, distributes it or shows
it is no part of it: the same command with more money goes on with the same run.
"""

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from qagate.cases.dataset import Plan, Shards
from qagate.evaluators.ledger.runs import (
    QA_RUN,
    WHOLE,
    RunPart,
    RunProcess,
    run_name,
)
from qagate.evaluators.text import canonical, digest
from qagate.reports.plugin.options import RunOptions

if TYPE_CHECKING:
    from qagate.reports.run.baseline import Baseline

SPENDING = "QA_SPENDING"
"""The variable that names processes whose spending adds up, where they have no other name."""


def run_process(
    options: RunOptions, plan: Plan, earlier: Iterable["Baseline | None"]
) -> RunProcess:
    """Return what tells the run of this process from others; it is none of the ``earlier`` runs."""
    choice = options.choice
    asked = {
        "datasets": [dataset.name for dataset in plan.datasets],
        "model": options.model,
        "answers": _relative(options.answers, options.here),
        "judges": options.judges,
        "models": _relative(options.models, options.here),
        "items": _files(choice.items, options.here),
        "prompts": _files(choice.prompts, options.here),
        "languages": choice.languages,
        "limit": [choice.limit, choice.tests_per_slice, choice.seed],
        "repeats": choice.repeats,
        "fresh": options.fresh,
    }
    name = run_name([canonical(asked)], os.environ)
    compared_with: set[str] = set()
    for baseline in earlier:
        if baseline is not None:
            compared_with.update(record.asked_by for record in baseline.records)
    return RunProcess(
        name=name,
        parts=_parts(choice.shard),
        compared_with=frozenset(compared_with),
    )


def _parts(shards: Shards | None) -> tuple[RunPart, ...]:
    if shards is None:
        return WHOLE
    return tuple(RunPart(number, shards.of) for number in shards.held)


def _relative(path: Path | None, here: Path) -> str:
    """Return a path as it reads in any copy of the working folder; empty for none."""
    if path is None:
        return ""
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def _files(files: Mapping[tuple[str, str], Path], here: Path) -> list[list[str]]:
    """Return data set, language and file of each slice that has a file of its own."""
    return [[*slice_, _relative(path, here)] for slice_, path in sorted(files.items())]


def spending_name(process: RunProcess, shards: Shards | None) -> str:
    """Return the name by which a run's spending adds up; empty where it stands alone.

    A repeated shard, and a repeated task of a run that the user named, goes on with the money
    that it has left.
    """
    given = os.environ.get(SPENDING, "")
    if shards is None and not given and not os.environ.get(QA_RUN):
        return ""
    return digest([given, process.name.key, [part.number for part in process.parts]])
