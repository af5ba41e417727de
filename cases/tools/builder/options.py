"""The command line of ``python -m cases build``, as values."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cases.tools.builder.arguments import (
    ALL,
    DATASET,
    make_parser,
    named,
    pair,
    shares,
    whole,
)
from cases.tools.builder.folder import Values
from evaluators.core import UsageError


@dataclass(frozen=True, slots=True, kw_only=True)
class Calling:
    """How models are asked, for the whole command."""

    ledger: Path
    concurrency: int
    rpm: int | None
    max_cost: float | None
    deadline: float | None
    replay: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluating:
    """Which models are compared on which items. ``data`` None is the frozen set."""

    data: Path | None
    runs: tuple[tuple[str, Path], ...]
    predictions: tuple[tuple[str, Path], ...]
    allow_missing: bool
    out: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What the user asked for. ``given`` holds the steps' own options, None where not given.

    ``files`` are those that reviewers sent back.
    """

    language: str
    recipe: Path | None
    folder: Path
    step: str
    contact: str
    given: Values
    calling: Calling
    files: tuple[Path, ...]
    evaluating: Evaluating
    leave_out_failed: bool
    force: bool


def read_options(argv: Sequence[str], steps: Mapping[str, str]) -> Options:
    """Return the options of a command line; ``steps`` maps the known steps to their help.

    Raises UsageError for anything wrong.
    """
    found = make_parser(steps).parse_intermixed_args(argv)
    if found.step_word and found.step and found.step_word != found.step:
        msg = f"build: {found.step_word!r} and --step {found.step!r}; name one step"
        raise UsageError(msg)
    step = found.step or found.step_word or ALL
    if found.files and step != "accept":
        msg = f"build: {step} takes no files, got {found.files[0]}; accept does"
        raise UsageError(msg)
    folder = found.folder or Path(f".qa/build/{DATASET}-{found.language}")
    return Options(
        language=found.language,
        recipe=found.recipe,
        folder=folder,
        step=step,
        contact=found.contact,
        given=_given(found),
        calling=Calling(
            ledger=found.ledger,
            concurrency=found.concurrency,
            rpm=found.rpm,
            max_cost=found.max_cost,
            deadline=found.deadline,
            replay=found.replay,
        ),
        files=tuple(found.files),
        evaluating=_evaluating(found, folder),
        leave_out_failed=found.leave_out_failed,
        force=found.force,
    )


def _evaluating(found: argparse.Namespace, folder: Path) -> Evaluating:
    return Evaluating(
        data=found.data,
        runs=tuple(map(named("--run"), found.run)),
        predictions=tuple(map(named("--predictions"), found.predictions)),
        allow_missing=found.allow_missing,
        out=found.out or folder / "evaluation",
    )


def _given(found: argparse.Namespace) -> Values:
    groups: dict[str, list[str]] = {}
    for group, where in map(pair("--source"), found.source):
        groups.setdefault(group, []).append(where)
    counts = {
        group: whole("--count", number, 1, 1_000_000)
        for group, number in map(pair("--count"), found.count)
    }
    return {
        "sources": groups or None,
        "counts": counts or None,
        "licences": dict(map(pair("--licence"), found.licence)) or None,
        "oversample": found.oversample,
        "seed": found.seed,
        "generator": found.generator,
        "plain": found.plain,
        "validator": found.validator,
        "blind": found.blind,
        "same_provider": found.same_provider,
        "reviewers": found.reviewer,
        "share": found.share,
        "overlap": found.overlap,
        "unreviewed": found.unreviewed,
        "to": found.to,
        "splits": None if found.splits is None else shares(found.splits),
    }
