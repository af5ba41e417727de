"""Counts of outcomes by gold label, and the intervals of ratios over such counts.

Items are counted in a table: a row for each gold label, a column for each outcome. A metric is a
ratio of two sums over the table (``ratios.py``). Its numerator and denominator are kept apart as
``Parts``, so that a denominator of 0 means undefined and not a number.

One ``CountTable`` may hold many tables at once, on axes before the last two: one for each resample
of a bootstrap, or one for each cluster of items. A function written for one table serves all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product

from qagate.evaluators.core import CORRECT, INCORRECT
from qagate.evaluators.statistics import intervals
from qagate.evaluators.statistics.intervals import Array, Interval

MOST_CROSSED = 2
"""Gold labels up to which every outcome is tried for each of them."""

Parts = tuple[Array, Array]
"""A ratio's numerator and denominator, for each table."""

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
        if gold is None:
            total: Array = counts.sum(axis=-1)
            return total
        return counts[..., self.golds.index(gold)]

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
    """Return the distinct tables of clusters, and how many clusters have each.

    A cluster is given as the cells of its items, as (gold label, outcome) by number. Many clusters
    have the same table, so that a bootstrap over tables is much faster than one over clusters.
    """
    import numpy as np

    cells_of_clusters = Counter(tuple(sorted(cells)) for cells in clusters)
    distinct = sorted(cells_of_clusters.items())
    tables = np.zeros((len(distinct), *shape))
    for place, (cells, _) in enumerate(distinct):
        for cell in cells:
            tables[(place, *cell)] += 1
    frequencies = np.array([count for _, count in distinct], dtype=np.float64)
    return tables, frequencies


def passing_labels(table: CountTable) -> tuple[str, ...]:
    """Return the labels of a right answer: the rubric's, or the ratings from the bar on."""
    if table.outcomes != RATINGS:
        return table.passing
    return tuple(rating for rating in RATINGS if int(rating) >= table.pass_bar)


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

    Of options all outcomes crossed with all labels would be too many. Their metrics count what is
    right, and how often one outcome was given: these have their extremes where all ungraded items
    are right, or have one outcome in common.
    """
    extremes = table.outcomes
    if table.outcomes == RATINGS:
        extremes = (RATINGS[0], RATINGS[-1])
    if len(table.golds) > MOST_CROSSED and table.golds != table.outcomes:
        all_right = {label: label for label in table.golds}
        alike = [dict.fromkeys(table.golds, outcome) for outcome in table.outcomes]
        return all_right, *alike
    if table.golds != table.outcomes:
        return tuple(
            dict(zip(table.golds, outcomes, strict=True))
            for outcomes in product(extremes, repeat=len(table.golds))
        )
    all_right = {label: label for label in table.golds}
    fills = [
        all_right,
        _all_wrong(table.golds, passing_labels(table)),
        _all_wrong(table.golds, incorrect_label(table)),
    ]
    if table.outcomes == RATINGS:
        fills.extend(dict.fromkeys(table.golds, rating) for rating in extremes)
    return tuple(fills)


def _all_wrong(labels: Sequence[str], side: Collection[str]) -> Fill:
    """Return a wrong outcome for every label, on the other side if there is one."""
    fill = {}
    for label in labels:
        wrong = [outcome for outcome in labels if outcome != label]
        on_other_side = [
            outcome for outcome in wrong if (outcome in side) != (label in side)
        ]
        candidates = on_other_side or wrong or [label]
        fill[label] = candidates[0]
    return fill


def unvaried_interval(
    parts: Ratio, whole: CountTable, clusters: float, tail: float = intervals.TAIL
) -> Interval:
    """Return the span of a bounded, defined metric that the share of unseen items allows.

    It serves samples without variation, of which a bootstrap has no width. So many ``clusters`` may
    have missed a share of the population (``intervals.unseen_share``). That share of the items gets
    each worst case in turn.
    """
    share = intervals.unseen_share(clusters, tail)
    tables = [whole]
    for fill in worst_case_fills(whole):
        tables.append(_with_unseen(whole, fill, share))
    values = []
    for table in tables:
        top, bottom = parts(table)
        if bottom:
            values.append(float(top / bottom))
    return min(values), max(values)


def _with_unseen(whole: CountTable, fill: Fill, share: float) -> CountTable:
    """Return the table if a share of the items of each gold label had the outcomes of a fill."""
    counts = whole.counts * (1 - share)
    for row, gold in enumerate(whole.golds):
        if gold in fill:
            column = whole.outcomes.index(fill[gold])
            counts[row, column] += share * whole.counts[row].sum()
    return replace(whole, counts=counts)


def mean_interval(parts: Ratio, clusters: CountTable, items: Array) -> Interval | None:
    """Return the interval of a mean that a few items may decide, such as that of ratings.

    ``items[i]`` clusters have the table ``clusters.counts[i]``. It is a bootstrap with the width
    for a small sample, at least as wide as ``unvaried_interval``. None without items.
    """
    if not len(items):
        return None
    total = float(items.sum())
    drawn = replace(clusters, counts=intervals.resample(clusters.counts, items))
    resampled = intervals.percentile(*parts(drawn), total, math.inf)
    unvaried = unvaried_interval(parts, clusters.summed(items), total)
    return _hull(resampled, unvaried)


def class_interval(parts: Ratio, clusters: CountTable, items: Array) -> Interval | None:
    """Return the interval of a metric of classes, of which one may be rare, such as macro-F1.

    ``items[i]`` clusters have the table ``clusters.counts[i]``. It spans two intervals:

    - a bootstrap's, which lacks the misses that the few items of a class did not show;
    - the middle 95 % of the posterior with half an item more in each cell: Goutte and Gaussier
      (2005), ECIR, LNCS 3408:345, with Jeffreys' prior. In tables of the posterior clusters have
      gamma weights (Rubin (1981), Ann. Stat. 9:130), drawn with a fixed seed.

    None without items.
    """
    if not len(items):
        return None
    drawn = replace(clusters, counts=intervals.resample(clusters.counts, items))
    resampled = intervals.percentile(*parts(drawn))
    if resampled is None:
        whole = clusters.summed(items)
        resampled = unvaried_interval(parts, whole, float(items.sum()))
    posterior = replace(clusters, counts=_posterior_tables(clusters.counts, items))
    return _hull(resampled, intervals.percentile(*parts(posterior)))


def _posterior_tables(patterns: Array, items: Array) -> Array:
    """Return ``ROUNDS`` tables of the posterior of ``class_interval``, each up to a factor.

    Besides the observed clusters there is half a cluster of the usual size in each cell.
    """
    import numpy as np

    observed = patterns.reshape(len(patterns), -1)
    cells = observed.shape[1]
    mean_size = float((observed.sum(axis=1) * items).sum() / items.sum())
    added = np.eye(cells) * mean_size
    weights = np.concatenate([items, np.full(cells, 0.5)])
    random = np.random.default_rng(intervals.SEED)
    drawn_weights = random.gamma(weights, size=(intervals.ROUNDS, len(weights)))
    tables: Array = drawn_weights @ np.concatenate([observed, added])
    return tables.reshape(-1, *patterns.shape[1:])


def _hull(first: Interval | None, second: Interval | None) -> Interval:
    """Return the interval that spans both, of which one may be missing."""
    given = [interval for interval in (first, second) if interval is not None]
    return min(low for low, _ in given), max(high for _, high in given)
