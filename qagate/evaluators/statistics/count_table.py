"""Counts of outcomes by gold label, and the ratios over them that metrics are made of.

A ratio is a numerator and a denominator; denominator 0 means undefined. Here are also the intervals
of ratios that a few items decide, and the extremes that unseen items allow.

Youden's J, how well a judge tells two classes of answers apart, is sensitivity + specificity - 1: 1
for a judge without errors, 0 for one that guesses. With equal errors on two runs, a judge shows J
times the true difference of their rates.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from qagate.evaluators.core import CORRECT, INCORRECT, NO, NOT_ATTEMPTED, YES
from qagate.evaluators.statistics import intervals
from qagate.evaluators.statistics.intervals import (
    UNDEFINED,
    Array,
    Count,
    Estimate,
    Interval,
)

Parts = tuple[Array, Array]
Ratio = Callable[["CountTable"], Parts]

RATINGS = tuple(str(rating) for rating in range(1, 11))
PREMISE = "premise"
"""The gold label of questions on a false premise, or without an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountTable:
    """Counts of outcomes (last axis) by gold label (last axis but one)."""

    counts: Array
    """Axes before the last two are separate tables, one for each resample or kind of item."""
    golds: tuple[str, ...]
    """The empty one for graded and rated items, and ``PREMISE``."""
    outcomes: tuple[str, ...]
    pass_bar: int = 6
    """The lowest rating that passes."""
    penalty: float = 1.0
    """What an incorrect answer costs in ``penalised``."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """From 0 to 1, by grade."""
    passing: tuple[str, ...] = (CORRECT,)
    """The grades of a right answer."""
    attacks: bool = False
    """Whether the answers try to fool the judge."""

    def of(self, outcome: str, gold: str | None = None) -> Array:
        """Return how many items with this gold label, or with any, have this outcome."""
        counts = self.counts[..., self.outcomes.index(outcome)]
        return (
            counts.sum(axis=-1) if gold is None else counts[..., self.golds.index(gold)]
        )

    def with_gold(self, gold: str) -> Array:
        """Return how many items have this gold label."""
        return self.sum(self.of(outcome, gold) for outcome in self.outcomes)

    def summed(self, items: Array) -> CountTable:
        """Return all items in one table, if ``items[i]`` clusters have the table ``counts[i]``."""
        return replace(self, counts=(self.counts.T @ items).T)

    def sum(self, counts: Iterable[Array]) -> Array:
        """Return the sum of these counts; of no counts, zeros in the shape of the tables."""
        return sum(counts, start=0 * self.total)

    @property
    def total(self) -> Array:
        """The number of items."""
        total: Array = self.counts.sum(axis=(-2, -1))
        return total


def count_patterns(
    clusters: Iterable[Sequence[tuple[int, ...]]], shape: tuple[int, ...]
) -> tuple[Array, Array]:
    """Return the distinct tables of clusters, given as cells, and how many clusters have each."""
    import numpy as np

    items = sorted(Counter(tuple(sorted(cells)) for cells in clusters).items())
    patterns = np.zeros((len(items), *shape))
    for place, (cells, _) in enumerate(items):
        for cell in cells:
            patterns[(place, *cell)] += 1
    return patterns, np.array([count for _, count in items], dtype=np.float64)


def share(*outcomes: str) -> Ratio:
    """Return the function for the share of items, of any gold label, with these outcomes."""

    def parts(table: CountTable) -> Parts:
        return table.sum(map(table.of, outcomes)), table.total

    return parts


def f_score(table: CountTable) -> Parts:
    """Return 2c / (2c + 2i + n), the SimpleQA paper's F (arXiv 2411.04368, appendix B)."""
    right, wrong = table.of(CORRECT), table.of(INCORRECT)
    return 2 * right, 2 * right + 2 * wrong + table.of(NOT_ATTEMPTED)


def mean_score(table: CountTable) -> Parts:
    """Return the mean of the rubric's scores; undefined if a grade in use has no score."""
    import numpy as np

    points = table.sum(worth * table.of(grade) for grade, worth in table.scores.items())
    unscored = table.sum(
        table.of(outcome) for outcome in table.outcomes if outcome not in table.scores
    )
    return points, np.where(unscored == 0, table.total, 0.0)


def mean_rating(table: CountTable) -> Parts:
    """Return the mean rating, 1 to 10."""
    return table.sum(int(r) * table.of(r) for r in table.outcomes), table.total


def pass_rate(table: CountTable) -> Parts:
    """Return the share of ratings at or above the language's bar."""
    return table.sum(
        table.of(r) for r in table.outcomes if int(r) >= table.pass_bar
    ), table.total


def f1(table: CountTable, label: str = YES) -> Parts:
    """Return the F1 of a label; an unanswered item is a false negative."""
    answered = table.of(label, YES) + table.of(label, NO)
    return 2 * table.of(label, label), table.with_gold(label) + answered


def macro_f1(table: CountTable) -> Parts:
    """Return the mean of the F1 of "yes" and of "no"; undefined if either is undefined."""
    (yes_top, yes_bottom), (no_top, no_bottom) = f1(table), f1(table, NO)
    return yes_top * no_bottom + no_top * yes_bottom, 2 * yes_bottom * no_bottom


def pass_agreement(table: CountTable) -> Parts:
    """Return the share of items whose rating and label lie on the same side of the pass bar."""
    sides = {rating: int(rating) >= table.pass_bar for rating in table.outcomes}
    same = ((r, g) for r in table.outcomes for g in table.golds if sides[r] == sides[g])
    return table.sum(table.of(rating, gold) for rating, gold in same), table.total


def mean_difference(table: CountTable) -> Parts:
    """Return the mean of rating less label, in points of the scale from 1 to 10."""
    points = (
        (int(r) - int(g)) * table.of(r, g) for r in table.outcomes for g in table.golds
    )
    return table.sum(points), table.total


def passing_labels(table: CountTable) -> tuple[str, ...]:
    """Return the labels of a right answer: the rubric's, or the ratings from the bar on."""
    rated = table.outcomes == RATINGS
    return (
        tuple(one for one in RATINGS if int(one) >= table.pass_bar)
        if rated
        else table.passing
    )


def incorrect_label(_: CountTable) -> tuple[str, ...]:
    """Return the one label of a wrong answer."""
    return (INCORRECT,)


Fill = Mapping[str, str]
"""The outcome that ungraded items are assumed to have, by gold label."""


def worst_case_fills(table: CountTable) -> tuple[Fill, ...]:
    """Return the fills of ungraded items among which every bounded metric has its extremes.

    Each metric is a ratio of two sums over items, hence monotone between any two outcomes of any
    group of items: it has its extremes where all ungraded items of one gold label have one outcome.
    (Of ``macro_f1`` an ungraded item moves only one ratio at a time, in one direction.) Of ratings
    1 and 10 suffice. Against given labels there is a fill with all verdicts right, and one with all
    wrong for each side that agreement and J count: of the pass mark, and of INCORRECT.
    """
    golds, outcomes = table.golds, table.outcomes
    ends = (outcomes[0], outcomes[-1]) if outcomes == RATINGS else outcomes
    if golds == outcomes:
        sides = (passing_labels(table), incorrect_label(table))
        same = (dict.fromkeys(golds, one) for one in ends if outcomes == RATINGS)
        return (
            dict(zip(golds, golds, strict=True)),
            *(_crossed(golds, one) for one in sides),
            *same,
        )
    return tuple(
        dict(zip(golds, fill, strict=True)) for fill in product(ends, repeat=len(golds))
    )


def _crossed(labels: Sequence[str], side: Collection[str]) -> Fill:
    """Return a wrong outcome for every label, on the other side if there is one."""
    fill = {}
    for label in labels:
        wrong = [one for one in labels if one != label]
        other_side = [one for one in wrong if (one in side) != (label in side)]
        fill[label] = next(iter(other_side or wrong), label)
    return fill


def unvaried_interval(parts: Ratio, whole: CountTable, clusters: float) -> Interval:
    """Return the span of a bounded, defined metric that the share of unseen items allows."""
    share, tables = intervals.unseen_share(clusters), [whole]
    for fill in worst_case_fills(whole):
        counts = whole.counts * (1 - share)
        for place, gold in enumerate(whole.golds):
            if gold in fill:
                counts[place, whole.outcomes.index(fill[gold])] += (
                    share * whole.counts[place].sum()
                )
        tables.append(replace(whole, counts=counts))
    known = [float(top / bottom) for top, bottom in map(parts, tables) if bottom]
    return min(known), max(known)


def mean_interval(parts: Ratio, clusters: CountTable, items: Array) -> Interval | None:
    """Return the interval of a mean that a few items may decide, such as that of ratings.

    ``items[i]`` clusters have the table ``clusters.counts[i]``. It is a bootstrap with the width
    for a small sample, at least as wide as ``unvaried_interval``. None without items.
    """
    if not len(items):
        return None
    total = float(items.sum())
    drawn = replace(clusters, counts=intervals.resample(clusters.counts, items))
    found = intervals.percentile(*parts(drawn), total, math.inf)
    return _hull([found, unvaried_interval(parts, clusters.summed(items), total)])


def class_interval(parts: Ratio, clusters: CountTable, items: Array) -> Interval | None:
    """Return the interval of a metric of classes, of which one may be rare, such as macro-F1.

    It spans a bootstrap's interval and the middle 95 % of the posterior with half an item more in
    each cell: Goutte and Gaussier (2005), ECIR, LNCS 3408:345, with Jeffreys' prior. The bootstrap
    alone has no misses that the few items of a class did not show. In tables of the posterior
    clusters have gamma weights (Rubin's bootstrap), drawn with a fixed seed. None without items.
    """
    if not len(items):
        return None
    import numpy as np

    patterns, drawn = clusters.counts, intervals.resample(clusters.counts, items)
    found = intervals.percentile(*parts(replace(clusters, counts=drawn)))
    if found is None:
        found = unvaried_interval(parts, clusters.summed(items), float(items.sum()))
    flat = patterns.reshape(len(patterns), -1)
    cells = np.eye(flat.shape[1]) * (
        float((flat.sum(axis=1) * items).sum() / items.sum())
    )
    weights = np.concatenate([items, np.full(len(cells), 0.5)])
    random = np.random.default_rng(intervals.SEED)
    shares = random.gamma(weights, size=(intervals.ROUNDS, len(weights)))
    tables = (shares @ np.concatenate([flat, cells])).reshape(-1, *patterns.shape[1:])
    return _hull(
        [found, intervals.percentile(*parts(replace(clusters, counts=tables)))]
    )


def _hull(every: Iterable[Interval | None]) -> Interval:
    known = [one for one in every if one]
    return min(low for low, _ in known), max(high for _, high in known)


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
    size = intervals.effective_size(
        hits - rate * sizes, sizes, items, rate * (1 - rate)
    )
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
    """Return J (Youden 1950, Cancer 3:32); undefined where the positive or other class is empty."""
    (passed, right), (refused, wrong) = _classes(table, positive)
    return passed * wrong + refused * right - right * wrong, right * wrong


def class_rates(
    clusters: CountTable, items: Array, positive: Collection[str]
) -> tuple[ClassRate, ...]:
    """Return sensitivity and specificity, as ``clustered``; nothing where a class has no item."""
    found = [clustered(*one, items) for one in _classes(clusters, positive)]
    return tuple(one for one in found if one) if all(found) else ()


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
        hits - rate.value * sizes
        for rate, (hits, sizes) in zip(rates, classes, strict=True)
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
    return math.sqrt(
        math.fsum(part**2 for part in parts) + 2 * correlation * math.prod(parts)
    )


def _classes(table: CountTable, positive: Collection[str]) -> list[Parts]:
    """Return the items judged right and all items, of the positive class and of the other."""
    found = []
    for wanted in (True, False):
        rows, columns = (
            [
                place
                for place, label in enumerate(labels)
                if (label in positive) is wanted
            ]
            for labels in (table.golds, table.outcomes)
        )
        items = table.counts[..., rows, :]
        found.append((items[..., columns].sum(axis=(-2, -1)), items.sum(axis=(-2, -1))))
    return found


def corrected_difference(difference: Estimate, youden: Estimate) -> Estimate:
    """Return a difference of two rates, corrected for the judge's errors.

    It is difference / J. Each end is divided by the end of J that takes it farther from 0, so that
    the interval contains the truth if both intervals do. Undefined if J is, or may be 0.
    """
    ends, gains = difference.interval, youden.interval
    if (
        not (ends and gains and difference.value is not None and youden.value)
        or gains[0] <= 0
    ):
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
        share, centre, (low, high) = (
            weight / total,
            one.value or 0.0,
            one.interval or (-1.0, 1.0),
        )
        value += share * centre
        below.append(share * (centre - low))
        above.append(share * (high - centre))
    ends = value - _reach(below), value + _reach(above)
    return Estimate.of(value, ends, sum(one.n for one, _ in parts))
