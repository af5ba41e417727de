"""How well a judge tells two classes of answers apart: Youden's J, and the two rates behind it.

J is sensitivity + specificity - 1: 1 for a judge without errors, 0 for one that guesses. With equal
errors on two runs, a judge shows J times the true difference of their rates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluators.statistics import intervals
from evaluators.statistics.count_table import CountTable, passing_labels
from evaluators.statistics.intervals import UNDEFINED, Count, Estimate, Interval

if TYPE_CHECKING:
    from evaluators.statistics.count_table import Parts, Ratio
    from evaluators.statistics.intervals import Array


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


def clustered(hits: Array, sizes: Array, items: Array) -> ClassRate | None:
    """Return the rate of ``hits`` in ``sizes``, of ``items`` clusters each; None if 0."""
    right, trials = float((items * hits).sum()), float((items * sizes).sum())
    if not trials:
        return None
    rate = right / trials
    size = intervals.effective_size(hits - rate * sizes, sizes, items, rate * (1 - rate))
    return ClassRate(hits=round(right), trials=round(trials), size=size)


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
        return min((one.trials for one in self.rates), default=0)


def of_classes(parts: Callable[[Array, Array, Array, Array], Parts]) -> Ratio:
    """Return a ratio of right answers let pass, right ones, wrong ones let fail, wrong ones."""

    def of_table(table: CountTable) -> Parts:
        (passed, right), (refused, wrong) = _classes(table, passing_labels(table))
        return parts(passed, right, refused, wrong)

    return of_table


def youden_parts(table: CountTable, positive: Collection[str]) -> Parts:
    """Return J as a ratio; the labels ``positive`` are one class, all others the other.

    Youden (1950), Cancer 3:32. Undefined where either class has no item.
    """
    (passed, right), (refused, wrong) = _classes(table, positive)
    return passed * wrong + refused * right - right * wrong, right * wrong


def class_rates(
    clusters: CountTable, items: Array, positive: Collection[str]
) -> tuple[ClassRate, ...]:
    """Return sensitivity and specificity, as ``clustered``; nothing where a class has no item."""
    found = [clustered(*one, items) for one in _classes(clusters, positive)]
    known = tuple(one for one in found if one)
    return known if len(known) == len(found) else ()


def youden_interval(
    clusters: CountTable, items: Array, positive: Collection[str]
) -> Interval | None:
    """Return the 95 % interval of J, from the same as ``class_rates``; None where J is undefined.

    Wilson's intervals of both rates, combined by MOVER: Zou and Donner (2008), Stat. Med. 27:1693;
    without clusters it is method 10 of Newcombe (1998), Stat. Med. 17:873. A correlation of the
    two rates within clusters counts where it widens the interval.
    """
    rates = class_rates(clusters, items, positive)
    if not rates:
        return None
    classes = _classes(clusters, positive)
    residuals = [
        hits - rate.value * sizes for rate, (hits, sizes) in zip(rates, classes, strict=True)
    ]
    spread = math.prod(float((items * one**2).sum()) for one in residuals)
    common = float((items * residuals[0] * residuals[1]).sum())
    correlation = max(0.0, common / math.sqrt(spread)) if spread else 0.0
    ends = [intervals.clustered_rate(*one, items) or (0.0, 1.0) for one in classes]
    value = sum(one.value for one in rates) - 1
    below = [one.value - low for one, (low, _) in zip(rates, ends, strict=True)]
    above = [high - one.value for one, (_, high) in zip(rates, ends, strict=True)]
    low, high = value - _reach(below, correlation), value + _reach(above, correlation)
    return max(-1.0, low), min(1.0, high)


def _reach(parts: Sequence[float], correlation: float = 0.0) -> float:
    """Return the distance of a sum's end from the sum, from the distances of its parts' ends."""
    squares = math.fsum(part**2 for part in parts)
    return math.sqrt(squares + 2 * correlation * math.prod(parts)) if correlation else squares**0.5


def _classes(table: CountTable, positive: Collection[str]) -> list[Parts]:
    """Return the items judged right and all items, of the positive class and of the other."""
    import numpy as np

    golds, outcomes = (
        np.array([label in positive for label in labels])
        for labels in (table.golds, table.outcomes)
    )
    found = []
    for wanted in (True, False):
        items = table.counts[..., golds == wanted, :]
        hits = items[..., outcomes == wanted].sum(axis=(-2, -1))
        found.append((hits, items.sum(axis=(-2, -1))))
    return found


def corrected_difference(difference: Estimate, youden: Estimate) -> Estimate:
    """Return a difference of two rates, corrected for the judge's errors.

    It is difference / J. Each end is divided by the end of J that takes it farther from 0, so that
    the interval contains the truth if both intervals do. Undefined if J is, or may be 0.
    """
    ends, gains = difference.interval, youden.interval
    if not (ends and gains and difference.value is not None and youden.value) or gains[0] <= 0:
        return UNDEFINED
    low, high = ends[0] / gains[ends[0] > 0], ends[1] / gains[ends[1] < 0]
    value = difference.value / youden.value
    return Estimate.of(value, (max(-1.0, low), min(1.0, high)), difference.n)


def weighted_mean(parts: Sequence[tuple[Estimate, float]]) -> Estimate:
    """Return the weighted mean of independent estimates with its interval, by MOVER.

    ``parts`` holds each estimate, which has an interval, and its weight. Undefined without any.
    """
    total = sum(weight for _, weight in parts)
    if not total:
        return UNDEFINED
    value, below, above = 0.0, [], []
    for one, weight in parts:
        share, centre, (low, high) = weight / total, one.value or 0.0, one.interval or (-1.0, 1.0)
        value += share * centre
        below.append(share * (centre - low))
        above.append(share * (high - centre))
    ends = value - _reach(below), value + _reach(above)
    return Estimate.of(value, ends, sum(one.n for one, _ in parts))
