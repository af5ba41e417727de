"""A metric of a slice as a number, then and now: for what is shown beside a verdict.

Intervals and worst cases are elsewhere: here a value is all that is asked for.
"""

from collections.abc import Iterable, Sequence

from qagate.cases.dataset import Slice
from qagate.evaluators.statistics.metrics import (
    ANSWER_STATES,
    USAGE,
    is_repeated,
    metrics_of,
)
from qagate.reports.compare.sides import Sides, passes
from qagate.reports.compare.tables import count_pairs
from qagate.reports.metrics.summary import repeat_estimate, tabulate
from qagate.reports.run.columns import UNKNOWN
from qagate.reports.run.record import Record
from qagate.reports.run.usage import usage_estimate


def value_of(name: str, slice_: Slice, records: Sequence[Record]) -> float | None:
    """Return a metric over these records; None where it is undefined."""
    if name in USAGE:
        return usage_estimate(records, slice_, USAGE[name]).value
    if name in ANSWER_STATES:
        return _mean_of([record.is_in_state(name) for record in records])
    if is_repeated(name):
        return repeat_estimate(records, slice_, name).value
    sample = tabulate(records, slice_)
    if name in metrics_of(sample.kind, sample.whole):
        return sample.value(name)
    return _mean_measure(name, records)


def before_and_now(name: str, sides: Sides) -> tuple[float | None, float | None]:
    """Return a metric over the pairs of both runs; no name is the share that passes."""
    if not name:
        return _passing_before_and_now(sides)
    pairs = [pair for side in sides for pair in side.graded]
    if not pairs:
        return None, None
    slice_ = sides[0].slice_
    if name in USAGE or name in ANSWER_STATES:
        return (
            value_of(name, slice_, [pair.old for pair in pairs]),
            value_of(name, slice_, [pair.new for pair in pairs]),
        )
    counted = count_pairs(sides)
    if name in metrics_of(counted.kind, counted.patterns):
        return counted.run(0).value(name), counted.run(1).value(name)
    return (
        _mean_measure(name, [pair.old for pair in pairs]),
        _mean_measure(name, [pair.new for pair in pairs]),
    )


def _passing_before_and_now(sides: Sides) -> tuple[float | None, float | None]:
    """Return the share that passes, then and now."""
    right_before = 0
    right_now = 0
    known = 0
    for side in sides:
        before, now = side.results(passes)
        are_known = (before != UNKNOWN) & (now != UNKNOWN)
        right_before += int(before[are_known].sum())
        right_now += int(now[are_known].sum())
        known += int(are_known.sum())
    if not known:
        return None, None
    return right_before / known, right_now / known


def _mean_measure(name: str, records: Iterable[Record]) -> float | None:
    """Return the mean of an extra metric; None where no record has it."""
    return _mean_of([record.measures.get(name) for record in records])


def _mean_of(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
