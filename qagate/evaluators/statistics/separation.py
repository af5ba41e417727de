"""How well a judge tells two classes of labelled answers apart, and what follows from it.

Labels divide answers into a positive class, for instance those that are correct, and all others. A
judge's *sensitivity* is the share of the positive class that it puts there, its *specificity* the
share of the others that it keeps out. Youden's J is sensitivity + specificity - 1: 1 for a judge
without errors, 0 for one that guesses. With equal errors on two runs, a judge shows J times the
true difference of their rates, so that a difference is corrected by dividing by J.

Youden (1950), Cancer 3:32. All rates and J are shares, not percentages.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from qagate.evaluators.statistics import intervals
from qagate.evaluators.statistics.count_table import CountTable, Parts
from qagate.evaluators.statistics.intervals import (
    UNDEFINED,
    Array,
    Count,
    Estimate,
    Interval,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassCounts:
    """The items of one class, in each table."""

    hits: Array
    """Those whose verdict is of the class too."""
    items: Array


def classes_of(
    table: CountTable, positive: Collection[str]
) -> tuple[ClassCounts, ClassCounts]:
    """Return the counts of the class with ``positive`` labels, and of the class of all others."""
    return _class_counts(table, positive, True), _class_counts(table, positive, False)


def _class_counts(
    table: CountTable, positive: Collection[str], is_positive: bool
) -> ClassCounts:
    rows = [
        place
        for place, label in enumerate(table.golds)
        if (label in positive) is is_positive
    ]
    columns = [
        place
        for place, verdict in enumerate(table.outcomes)
        if (verdict in positive) is is_positive
    ]
    of_class = table.counts[..., rows, :]
    return ClassCounts(
        hits=of_class[..., columns].sum(axis=(-2, -1)),
        items=of_class.sum(axis=(-2, -1)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRate:
    """The share of items of one class that a judge judged right."""

    hits: int
    trials: int
    """At least 1."""
    size: float
    """The number of independent items with the same information (``effective_size``)."""

    @property
    def value(self) -> float:
        """The sensitivity or specificity."""
        return self.hits / self.trials

    @property
    def independent(self) -> Count:
        """The same rate over independent items: hits, trials."""
        return self.value * self.size, self.size


def class_rate(hits: Array, sizes: Array, items: Array) -> ClassRate | None:
    """Return the rate of ``hits`` in ``sizes``, of ``items`` clusters each; None if 0."""
    all_hits = float((items * hits).sum())
    trials = float((items * sizes).sum())
    if not trials:
        return None
    rate = all_hits / trials
    size = intervals.effective_size(
        hits - rate * sizes, sizes, items, rate * (1 - rate)
    )
    return ClassRate(hits=round(all_hits), trials=round(trials), size=size)


def class_rates(
    clusters: CountTable, items: Array, positive: Collection[str]
) -> tuple[ClassRate, ...]:
    """Return sensitivity and specificity; nothing where a class has no item.

    ``items[i]`` clusters have the table ``clusters.counts[i]``.
    """
    rates = []
    for counts in classes_of(clusters, positive):
        rate = class_rate(counts.hits, counts.items, items)
        if rate is None:
            return ()
        rates.append(rate)
    return tuple(rates)


@dataclass(frozen=True, slots=True, kw_only=True)
class Separation:
    """How well a judge tells one class of labelled answers from the others."""

    youden: Estimate
    """J in the worst case of ungraded answers; its interval spans those of all cases."""
    rates: tuple[ClassRate, ...]
    """Sensitivity and specificity over graded answers; empty if a class has none."""

    @property
    def fewest(self) -> int:
        """The number of graded labels of the smaller class."""
        return min((rate.trials for rate in self.rates), default=0)


def youden_parts(table: CountTable, positive: Collection[str]) -> Parts:
    """Return J as a ratio; undefined where the positive or the other class is empty."""
    inside, outside = classes_of(table, positive)
    both = inside.items * outside.items
    hits = inside.hits * outside.items + outside.hits * inside.items
    return hits - both, both


def youden_interval(
    clusters: CountTable, items: Array, positive: Collection[str]
) -> Interval | None:
    """Return the 95 % interval of J, within -1 to 1; None where J is undefined.

    ``items[i]`` clusters have the table ``clusters.counts[i]``. Wilson's intervals of both rates,
    combined by MOVER: Zou and Donner (2008), Stat. Med. 27:1693; without clusters it is method 10
    of Newcombe (1998), Stat. Med. 17:873. A correlation of the two rates within clusters counts
    where it widens the interval.
    """
    rates = class_rates(clusters, items, positive)
    if not rates:
        return None
    below = []
    above = []
    residuals = []
    for rate, counts in zip(rates, classes_of(clusters, positive), strict=True):
        interval = intervals.clustered_rate(counts.hits, counts.items, items)
        low, high = interval or (0.0, 1.0)
        below.append(rate.value - low)
        above.append(high - rate.value)
        residuals.append(counts.hits - rate.value * counts.items)
    correlation = _correlation(residuals[0], residuals[1], items)
    value = sum(rate.value for rate in rates) - 1
    low = value - _mover(below, correlation)
    high = value + _mover(above, correlation)
    return max(-1.0, low), min(1.0, high)


def _correlation(first: Array, second: Array, items: Array) -> float:
    """Return the correlation of two residuals over ``items`` clusters each; a negative one is 0."""
    variances = float((items * first**2).sum()) * float((items * second**2).sum())
    if not variances:
        return 0.0
    covariance = float((items * first * second).sum())
    return max(0.0, covariance / math.sqrt(variances))


def _mover(distances: Sequence[float], correlation: float = 0.0) -> float:
    """Return how far an end of a sum is from the sum, from the distances of its summands' ends.

    MOVER, the method of variance estimates recovery: Zou and Donner (2008), Stat. Med. 27:1693. A
    ``correlation`` is that of two summands.
    """
    squares = math.fsum(distance**2 for distance in distances)
    return math.sqrt(squares + 2 * correlation * math.prod(distances))


def corrected_difference(difference: Estimate, youden: Estimate) -> Estimate:
    """Return a difference of two rates, corrected for the judge's errors.

    It is difference / J. Each end is divided by the end of J that takes it farther from 0, so that
    the interval contains the truth if both intervals do. Undefined if J is, or may be 0.
    """
    if difference.value is None or difference.interval is None:
        return UNDEFINED
    if not youden.value or youden.interval is None:
        return UNDEFINED
    low, high = difference.interval
    smallest_gain, largest_gain = youden.interval
    if smallest_gain <= 0:
        return UNDEFINED
    low /= largest_gain if low > 0 else smallest_gain
    high /= largest_gain if high < 0 else smallest_gain
    value = difference.value / youden.value
    return Estimate.of(value, (max(-1.0, low), min(1.0, high)), difference.n)


def weighted_mean(parts: Sequence[tuple[Estimate, float]]) -> Estimate:
    """Return the weighted mean of independent estimates with its interval, by MOVER.

    ``parts`` holds each estimate, which has an interval, and its weight. Undefined without any.
    """
    total = sum(weight for _, weight in parts)
    if not total:
        return UNDEFINED
    mean = 0.0
    below = []
    above = []
    for estimate, weight in parts:
        share = weight / total
        value = estimate.value or 0.0
        low, high = estimate.interval or (-1.0, 1.0)
        mean += share * value
        below.append(share * (value - low))
        above.append(share * (high - value))
    interval = (mean - _mover(below), mean + _mover(above))
    return Estimate.of(mean, interval, sum(estimate.n for estimate, _ in parts))
