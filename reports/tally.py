"""Records counted into tables, and measures with their intervals taken from the tables."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cases.slices import Slice
from evaluators.core import GRADES, NO, YES, Kind, QAError
from evaluators.statistics.agreement import PERFECT, perfect_interval
from evaluators.statistics.intervals import (
    Interval,
    clustered_rate,
    percentile,
    resample,
    unseen_share,
    wilson,
)
from reports.measures import ANSWERS, RATINGS, Measure, Table, measures_for
from reports.record import Record
from reports.report import Estimate

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

Fill = Mapping[str, str]
"""What an ungraded item is taken to have come to, by its gold label."""

Axes = tuple[tuple[str, ...], tuple[str, ...]]
Cell = tuple[int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Counted items. ``items[i]`` of them have the count table ``patterns.counts[i]``.

    ``clustered`` says that some item was asked more than once.
    """

    kind: Kind
    patterns: Table
    items: Array
    clustered: bool

    @property
    def whole(self) -> Table:
        """All items in one table."""
        import numpy as np

        return replace(self.patterns, counts=np.tensordot(self.items, self.patterns.counts, 1))


def is_graded(record: Record) -> bool:
    """Whether the item came to a grade, rather than to an ERROR or MISSING."""
    return record.outcome in ("passed", "failed")


def gold_of(record: Record, kind: Kind) -> str:
    """Return the label that the outcome is held against, empty where there is none."""
    return (record.label or "") if kind in ("yes_no", "judged") else ""


def outcome_of(record: Record) -> str:
    """Return the grade, or the rating in digits."""
    return str(record.rating) if record.rating is not None else record.grade or ""


def axes_of(records: Sequence[Record], kind: Kind) -> Axes:
    """Return the gold labels and the outcomes to count, in the order to show them."""
    if kind == "graded":
        return ("",), GRADES
    if kind == "rated":
        return ("",), RATINGS
    if kind == "yes_no":
        return (YES, NO), ANSWERS
    labels = {gold_of(record, kind) for record in records}
    if labels and labels <= set(RATINGS):
        return RATINGS, RATINGS
    seen = labels | {outcome_of(record) for record in records if is_graded(record)}
    square = (*GRADES, *sorted(seen.difference(GRADES)))
    return square, square


def tabulate(records: Sequence[Record], slice_: Slice, fill: Fill | None = None) -> Sample:
    """Count the graded records; with ``fill``, the ungraded too, as it says.

    Raises QAError for a record whose label or grade does not belong to the slice's kind.
    """
    axes = axes_of(records, slice_.kind)
    clusters = _clusters(records, slice_.kind, axes, fill)
    patterns, items = _patterns(clusters, (len(axes[0]), len(axes[1])))
    table = Table(
        counts=patterns,
        golds=axes[0],
        outcomes=axes[1],
        pass_bar=slice_.pass_bar,
        penalty=slice_.penalty,
        scores=_scores(records, slice_),
    )
    clustered = any(len(cells) > 1 for cells in clusters)
    return Sample(kind=slice_.kind, patterns=table, items=items, clustered=clustered)


def _clusters(
    records: Sequence[Record], kind: Kind, axes: Axes, fill: Fill | None
) -> list[list[Cell]]:
    """Return the cells of each item, all its repeats together."""
    golds, outcomes = ({label: place for place, label in enumerate(axis)} for axis in axes)
    clusters: dict[str, list[Cell]] = defaultdict(list)
    for record in records:
        if fill is None and not is_graded(record):
            continue
        gold = gold_of(record, kind)
        outcome = outcome_of(record) if is_graded(record) else (fill or {}).get(gold, "")
        if gold not in golds or outcome not in outcomes:
            msg = f"{record.key}: label {gold!r} with {outcome!r} makes no sense for kind {kind}"
            raise QAError(msg)
        clusters[record.id].append((golds[gold], outcomes[outcome]))
    return list(clusters.values())


def _patterns(clusters: list[list[Cell]], shape: Cell) -> tuple[Array, Array]:
    """Return the different count tables of an item, and how many items have each."""
    import numpy as np

    kinds = sorted(Counter(tuple(sorted(cells)) for cells in clusters).items())
    patterns = np.zeros((len(kinds), *shape))
    for place, (cells, _) in enumerate(kinds):
        for cell in cells:
            patterns[(place, *cell)] += 1
    return patterns, np.array([count for _, count in kinds], dtype=np.float64)


def _scores(records: Sequence[Record], slice_: Slice) -> dict[str, float]:
    """Return what each grade is worth; empty where no record carries a score."""
    seen = {r.grade: r.score for r in records if r.grade in GRADES and r.score is not None}
    declared = slice_.rubric.scores if seen and slice_.rubric else {}
    return {str(grade): score for grade, score in {**declared, **seen}.items()}


def worst_case_bounds(sample: Sample) -> tuple[Fill, ...]:
    """Return the fates of ungraded items among which every bounded measure has its extremes.

    Each measure is a ratio of two sums over items, hence monotone between any two fates of any
    group of items: its extremes over all mixtures lie where all ungraded items of one gold label
    share one fate. (``macro_f1`` is a mean of two such ratios; an ungraded item moves only one of
    them at a time, and each of them in one direction.) Ratings count through their sum or their
    place above the bar, so that 1 and 10 suffice; agreement through right or not right.
    """
    if sample.kind == "graded":
        return tuple({"": grade} for grade in GRADES)
    if sample.kind == "rated":
        return ({"": RATINGS[0]}, {"": RATINGS[-1]})
    if sample.kind == "yes_no":
        return tuple({YES: first, NO: second} for first in ANSWERS for second in ANSWERS)
    labels = sample.patterns.golds
    other = dict(zip(labels, (*labels[1:], labels[0]), strict=True))
    return ({label: label for label in labels}, other)


def estimates(sample: Sample, names: Sequence[str] = ()) -> dict[str, Estimate]:
    """Return the measures of the sample with their intervals: all of them, or those named."""
    whole = sample.whole
    rows = measures_for(sample.kind, whole)
    wanted = {name: row for name, row in rows.items() if not names or name in names}
    drawn = _drawn(sample) if any(not row.rate for row in wanted.values()) else None
    return {name: _estimate(row, sample, whole, drawn) for name, row in wanted.items()}


def value(sample: Sample, name: str) -> float | None:
    """Return one measure without interval, None where it is undefined."""
    whole = sample.whole
    return _ratio(measures_for(sample.kind, whole)[name], whole)


def _ratio(row: Measure, table: Table) -> float | None:
    numerator, denominator = row.parts(table)
    return float(numerator / denominator) if denominator else None


def _drawn(sample: Sample) -> Table | None:
    if not len(sample.items):
        return None
    counts = resample(sample.patterns.counts, sample.items)
    return replace(sample.patterns, counts=counts)


def _estimate(row: Measure, sample: Sample, whole: Table, drawn: Table | None) -> Estimate:
    figure = _ratio(row, whole)
    n = int(row.parts(whole)[1] if row.rate else whole.total)
    interval = None
    if figure is not None:
        interval = _rate_interval(row, sample, whole) if row.rate else _drawn_interval(row, drawn)
        interval = interval or _unvaried_interval(row, sample, whole)
    low, high = interval or (None, None)
    return Estimate(value=figure, low=low, high=high, n=n)


def _rate_interval(row: Measure, sample: Sample, whole: Table) -> Interval | None:
    if sample.clustered:
        return clustered_rate(*row.parts(sample.patterns), sample.items)
    hits, trials = row.parts(whole)
    return wilson(float(hits), float(trials))


def _drawn_interval(row: Measure, drawn: Table | None) -> Interval | None:
    return percentile(*row.parts(drawn)) if drawn is not None else None


def _unvaried_interval(row: Measure, sample: Sample, whole: Table) -> Interval | None:
    """Return the interval of a measure that no resample moved, None where it cannot be given.

    So many items as the sample has may all have come out alike although a share of all items
    (``unseen_share``) does not; a bounded measure lies between what the worst and the best fate of
    that share would make of it. For the others see ``perfect_interval``.
    """
    items = float(sample.items.sum())
    figure = _ratio(row, whole)
    if figure is None or (not row.bounded and figure < PERFECT):
        return None
    if not row.bounded:
        return perfect_interval(whole.counts, items)
    share = unseen_share(items)
    ends = [_ratio(row, _mixed(whole, fill, share)) for fill in worst_case_bounds(sample)]
    known = [figure, *(end for end in ends if end is not None)]
    return min(known), max(known)


def _mixed(whole: Table, fill: Fill, share: float) -> Table:
    """Return the table as it would be had this share of each gold's items met that fate."""
    counts = whole.counts * (1 - share)
    for place, gold in enumerate(whole.golds):
        if gold in fill:
            moved = share * whole.counts[place].sum()
            counts[place, whole.outcomes.index(fill[gold])] += moved
    return replace(whole, counts=counts)
