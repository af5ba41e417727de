"""What the user asked of a run: the options of its command line, read into one record.

``option_table.py`` has the options with their help, and ``option_values.py`` what the text
of each kind of value must look like.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from qagate.cases.dataset import Plan, Selection, Shards, parse_shard
from qagate.evaluators.command_line import CommandParser
from qagate.evaluators.core import LEXICAL, RECORDED, UsageError
from qagate.evaluators.ledger.place import LedgerPlace, read_place
from qagate.evaluators.models.keys import read_key_names
from qagate.evaluators.reading import project_settings
from qagate.reports.doors import FEATURES
from qagate.reports.plugin.option_table import declare, given_options
from qagate.reports.plugin.option_values import (
    OFF,
    read_amount,
    read_deadline,
    read_limit,
    read_name,
    read_seconds,
    read_slice_files,
    read_whole,
)
from qagate.reports.run.accepted import Accepted, read_accepted
from qagate.reports.run.baselines import find_run

DEFAULT_JUDGE = "lexical"
DEFAULT_LEDGER = ".qa/ledger.sqlite3"
DEFAULT_CONCURRENCY = 16
REPORT_DIR = "reports/out"
NO_BASELINE = "none"
"""The value of ``--baseline`` that wants none."""
T = TypeVar("T")
D = TypeVar("D")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """What the user asked for, checked as far as the words alone allow."""

    here: Path
    """The working folder."""
    choice: Selection
    model: str
    answers: Path | None
    """The run whose answers are judged anew; None where a model is asked, or the data has them."""
    models: Path | None
    judges: tuple[str, ...]
    allow_self_judge: bool
    judge_is_named: bool
    """Whether ``--judge`` was given."""
    adjudications: Path | None
    adjudications_off: bool
    key_names: Mapping[str, str]
    """Names of environment variables with keys, by base URL."""
    baseline: Path | None
    anchor: Path | None
    accepted: Accepted
    """What changed since the baseline and need not hold the verdict up."""
    monitor: bool
    """Whether the run only looks at the baseline's own model."""
    gates_off: bool
    ledger: LedgerPlace
    fresh: str
    no_transcripts: bool
    replay: bool
    shards_at_once: int
    """How many of the run's shards run at a time: they share its limits on calls."""
    concurrency: int
    """Calls in flight; like ``rpm`` and ``max_cost`` this shard's share of what was given."""
    rpm: int | None
    """Requests a minute."""
    max_cost: float | None
    """USD."""
    deadline: float | None
    """Seconds for the whole run."""
    batch: bool
    batch_wait: float | None
    """Seconds; None waits to the end."""
    report_dir: Path
    features: tuple[str, ...]
    """The features of the plugin that were asked for, by the names of their options."""


def read_words(words: Sequence[str], here: Path) -> tuple[RunOptions, list[str]]:
    """Return the options of a command line without pytest, and the words that are not ours."""
    parser = CommandParser(prog="qagate run", allow_abbrev=False, add_help=False)
    declare(parser.add_argument)
    ours, others = parser.parse_known_args(words)
    return read_options(partial(getattr, ours), here), others


def read_options(value_of: Callable[[str], Any], here: Path) -> RunOptions:
    """Return the options of this run, with paths from ``here``.

    ``value_of`` is that of ``given_options``. Raises UsageError naming the option.
    """
    given = given_options(value_of)
    _refuse_empty(given)
    _refuse_conflicts(given)

    def value(name: str, read: Callable[[str, str], T], default: D) -> T | D:
        return read(name, given[name]) if name in given else default

    def path(name: str) -> Path | None:
        return here / given[name] if name in given else None

    def run(name: str) -> Path | None:
        return find_run(given[name], here) if name in given else None

    def share(limit: int) -> int:
        return limit if shard is None else shard.share(limit, shards_at_once)

    no_baseline = given.get("baseline") == NO_BASELINE
    selection = _selection(given, here)
    shard = selection.shard
    shards_at_once = _shards_at_once(given, shard)
    max_cost = value("max-cost", read_amount, None)
    if max_cost is not None and shard is not None:
        max_cost /= shard.of
    model: str = given.get("model", RECORDED)
    answers = None
    if model.startswith(f"{RECORDED}:"):
        answers = find_run(model.removeprefix(f"{RECORDED}:"), here)
        model = RECORDED
    return RunOptions(
        here=here,
        choice=selection,
        model=model,
        answers=answers,
        models=path("models"),
        judges=tuple(given.get("judge", [DEFAULT_JUDGE])),
        allow_self_judge="allow-self-judge" in given,
        judge_is_named="judge" in given,
        adjudications=path("adjudications"),
        adjudications_off=given.get("adjudications") == OFF,
        key_names=read_key_names(given.get("key-env", ())),
        baseline=None if no_baseline else run("baseline"),
        anchor=run("anchor"),
        accepted=read_accepted(
            given.get("accept-changed", ()), no_baseline=no_baseline
        ),
        monitor="monitor" in given,
        gates_off=given.get("gates") == OFF,
        ledger=read_place(given.get("ledger", DEFAULT_LEDGER), here),
        fresh=value("fresh", read_name, ""),
        no_transcripts="no-transcripts" in given,
        replay="replay" in given,
        shards_at_once=shards_at_once,
        concurrency=share(value("concurrency", read_whole, DEFAULT_CONCURRENCY)),
        rpm=share(read_whole("rpm", given["rpm"])) if "rpm" in given else None,
        max_cost=max_cost,
        deadline=value("deadline", read_deadline, None),
        batch="batch" in given,
        batch_wait=value("batch-wait", read_seconds, None),
        report_dir=here / given.get("report-dir", REPORT_DIR),
        features=tuple(name for name in FEATURES if name in given),
    )


def _shards_at_once(given: Mapping[str, Any], shard: Shards | None) -> int:
    """Return how many shards run at a time: all of them, unless the user says otherwise."""
    parts = 1 if shard is None else shard.of
    if "shards-at-once" not in given:
        return parts
    return min(parts, read_whole("shards-at-once", given["shards-at-once"]))


def _refuse_empty(given: Mapping[str, Any]) -> None:
    """Raise UsageError for an option whose value says nothing."""
    for name, value in given.items():
        texts = value if isinstance(value, list) else [value]
        for text in texts:
            if isinstance(text, str) and not text.strip(" ,"):
                raise UsageError(
                    f"--{name}: empty; give a value or leave the option out"
                )


def _refuse_conflicts(given: Mapping[str, Any]) -> None:
    """Raise UsageError for options that cannot be given together."""
    for name, feature in FEATURES.items():
        for other, why in feature.conflicts.items():
            if name in given and other in given:
                raise UsageError(f"--{name}: {why}")
    if "monitor" in given and given.get("baseline") in (None, NO_BASELINE):
        raise UsageError("--monitor: compares with a baseline; give --baseline=PATH")
    if "recorded" in given and given.get("model", RECORDED) != RECORDED:
        raise UsageError(
            "--recorded: the answers are those of the file, and --model would be asked for "
            "others; leave one out"
        )
    if "shards-at-once" in given and "shard" not in given:
        raise UsageError(
            "--shards-at-once: does nothing without --shard; add it, or leave this out"
        )
    if "batch-wait" in given and "batch" not in given:
        raise UsageError(
            "--batch-wait: does nothing without --batch; add it, or leave this out"
        )


def _selection(given: Mapping[str, Any], here: Path) -> Selection:
    """Return which items the user wants to run. Raises UsageError."""
    limit: int | None = None
    tests_per_slice: int | None = None
    if "limit" in given:
        count, are_first_ones = read_limit("limit", given["limit"])
        if are_first_ones:  # first:N, not N items picked at random
            tests_per_slice = count
        else:
            limit = count
    gates = given.get("gates", OFF)
    return Selection(
        items=read_slice_files("items", given.get("items", ()), here),
        prompts=read_slice_files("prompt", given.get("prompt", ()), here),
        recorded=read_slice_files("recorded", given.get("recorded", ()), here),
        languages=_names_in(given.get("languages", "")),
        shard=parse_shard(given["shard"]) if "shard" in given else None,
        seed=read_whole("seed", given.get("seed", "0"), low=0),
        repeats=read_whole("repeats", given.get("repeats", "1")),
        gates_file=None if gates == OFF else here / gates,
        limit=limit,
        tests_per_slice=tests_per_slice,
        baseline_required="baseline" in project_settings(here).values,
    )


def _names_in(text: str) -> tuple[str, ...]:
    """Return the names in a text that parts them by commas."""
    names = [name.strip() for name in text.split(",")]
    return tuple(name for name in names if name)


def shard_header(options: RunOptions) -> list[str]:
    """Return a line that says which part of the run's limits a shard has; none for a run."""
    shard = options.choice.shard
    if shard is None:
        return []
    limits = {
        "--concurrency": options.concurrency,
        "--rpm": options.rpm,
        "--max-cost": options.max_cost,
    }
    given = [f"{name} {limit:.12g}" for name, limit in limits.items() if limit]
    header = f"shard {shard.held[0]} of {shard.of}: {', '.join(given)}"
    if options.shards_at_once < shard.of:
        header += f"; {options.shards_at_once} at a time share the limits on calls"
    return [header]


def check_judge_is_named(options: RunOptions, plan: Plan) -> None:
    """Raise UsageError where a live model would be judged by rules that nobody asked for."""
    if options.model == RECORDED or options.judge_is_named or options.answers:
        return
    for item in plan.items.values():
        if item.slice.kind.by_rubric:
            raise UsageError(
                f"{item.slice.name} needs a judge: name a model (--judge SPEC), or say "
                f"--judge {LEXICAL} for rules"
            )
