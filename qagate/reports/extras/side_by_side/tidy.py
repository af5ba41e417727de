"""Every figure of several runs as a row of its own: for spreadsheets and notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING

from qagate.evaluators.core import UsageError
from qagate.evaluators.optional import not_installed
from qagate.evaluators.statistics.intervals import Estimate
from qagate.reports.extras.side_by_side.counting import (
    RunFigures,
    SideBySide,
    SliceOfRuns,
    count_runs,
)
from qagate.reports.render import words
from qagate.reports.run.baseline import load_baseline
from qagate.reports.run.baselines import find_run

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, slots=True, kw_only=True)
class FigureRow:
    """One figure of one run in one slice."""

    run: str
    model: str
    dataset: str
    language: str
    """``*`` for all languages of the data set together."""
    figure: str
    """``right``, ``grade GRADE``, ``score SCORE``, ``mean``, ``difference`` (to the first run);
    of nights ``verdicts changed`` and ``wordings changed``."""
    value: float | None
    """Shares go from 0 to 1, means by the ratings' or scores' own scale."""
    low: float | None
    """The ends of the 95 % interval."""
    high: float | None
    count: int | None
    """The items that a share counts; None of other figures."""
    unknown: int | None
    """The items that count as wrong, because nobody knows; None of nights."""
    items: int
    p_holm: float | None
    """Of a difference, adjusted over all differences of these runs."""
    finding: str
    """What a difference shows; empty for other figures."""


FIELDS = tuple(field.name for field in fields(FigureRow))


def figure_rows(runs: SideBySide) -> Iterator[FigureRow]:
    """Yield a row for each figure, in the order of the tables."""
    models = {named.name: words.model(named.run.report) for named in runs.runs}
    for part in runs.slices:
        for run in part.runs:
            yield from _rows_of_run(part, run, models[run.run])
        if part.asked_again is None:
            continue
        night = runs.nights[-1]
        for figure, estimate in (
            ("verdicts changed", part.asked_again.verdicts),
            ("wordings changed", part.asked_again.wordings),
        ):
            yield _row(part, night, models[night], figure, estimate)


def _rows_of_run(part: SliceOfRuns, run: RunFigures, model: str) -> Iterator[FigureRow]:
    unknown = run.segments.unknown

    def row(figure: str, estimate: Estimate, count: int | None = None) -> FigureRow:
        return _row(
            part, run.run, model, figure, estimate, count=count, unknown=unknown
        )

    yield row("right", run.right, run.segments.right)
    for name, grade in run.grades.items():
        yield row(f"grade {name}", grade.share, grade.count)
    for name, score in run.scores.items():
        yield row(f"score {name}", score.share, score.count)
    if run.mean.value is not None:
        yield row("mean", run.mean)
    if run.change is not None:
        yield _row(
            part,
            run.run,
            model,
            "difference",
            run.change.difference,
            unknown=unknown,
            p_holm=run.change.adjusted,
            finding=run.change.finding,
        )


def _row(
    part: SliceOfRuns,
    run: str,
    model: str,
    figure: str,
    estimate: Estimate,
    *,
    count: int | None = None,
    unknown: int | None = None,
    p_holm: float | None = None,
    finding: str = "",
) -> FigureRow:
    dataset, _, language = part.name.partition(":")
    return FigureRow(
        run=run,
        model=model,
        dataset=dataset,
        language=language,
        figure=figure,
        value=estimate.value,
        low=estimate.low,
        high=estimate.high,
        count=count,
        unknown=unknown,
        items=estimate.n,
        p_holm=p_holm,
        finding=finding,
    )


def frame(*paths: str | Path) -> pd.DataFrame:
    """Return the figures of these runs as a pandas frame, a row a figure, columns ``FIELDS``.

    A path is a report folder, its ``run.json`` or the name of a promoted run; the first is what
    others are compared with. Raises UsageError for fewer than two runs, or one that cannot be
    read; ImportError without pandas.
    """
    try:
        import pandas as pd
    except ImportError:
        raise ImportError(not_installed("pandas", "a frame")) from None
    if len(paths) < 2:
        raise UsageError(
            "give two runs or more; the others are compared with the first"
        )
    runs = [load_baseline(find_run(str(path))) for path in paths]
    rows = [astuple(row) for row in figure_rows(count_runs(runs))]
    numbers = {"count": "Int64", "unknown": "Int64", "p_holm": "float64"}
    return pd.DataFrame(rows, columns=list(FIELDS)).astype(numbers)
