"""Intervals of metrics that a few items decide, and the extremes that unseen items allow."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import TYPE_CHECKING

from evaluators.statistics.count_table import RATINGS, CountTable
from evaluators.statistics.intervals import (
    ROUNDS,
    SEED,
    Interval,
    percentile,
    resample,
    unseen_share,
)
from evaluators.statistics.youden import incorrect_label, passing_labels

if TYPE_CHECKING:
    from evaluators.statistics.intervals import Array

    Parts = Callable[[CountTable], tuple[Array, Array]]

Fill = Mapping[str, str]
"""The outcome that ungraded items are assumed to have, by gold label."""


def worst_case_fills(table: CountTable) -> tuple[Fill, ...]:
    """Return the fills of ungraded items among which every bounded metric has its extremes.

    Each metric is a ratio of two sums over items, hence monotone between any two outcomes of any
    group of items: it has its extremes where all ungraded items of one gold label have one outcome.
    (``macro_f1`` is a mean of two such ratios; an ungraded item moves only one of them at a time,
    in one direction.) Ratings count by their sum or their side of the bar, so that 1 and 10
    suffice. Against given labels, agreement counts right and wrong verdicts, and J those on the
    wrong side of the pass mark, or of INCORRECT; so there is a fill with all verdicts wrong for
    each of the two. Against given ratings, 1 and 10 bound the mean difference.
    """
    golds, outcomes = table.golds, table.outcomes
    ends = (outcomes[0], outcomes[-1]) if outcomes == RATINGS else outcomes
    if golds == outcomes:
        sides = (passing_labels(table), incorrect_label(table))
        same = (dict.fromkeys(golds, one) for one in ends if outcomes == RATINGS)
        return dict(zip(golds, golds, strict=True)), *(_crossed(golds, one) for one in sides), *same
    return tuple(dict(zip(golds, fill, strict=True)) for fill in product(ends, repeat=len(golds)))


def _crossed(labels: Sequence[str], side: Collection[str]) -> Fill:
    """Return a wrong outcome for every label, on the other side if there is one."""
    return {
        label: min(
            (one for one in labels if one != label),
            key=lambda one: (one in side) == (label in side),
            default=label,
        )
        for label in labels
    }


def _mixed(whole: CountTable, fill: Fill, share: float) -> CountTable:
    """Return the table with this share of each gold label's items moved to the fill's outcome."""
    counts = whole.counts * (1 - share)
    for place, gold in enumerate(whole.golds):
        if gold in fill:
            moved = share * whole.counts[place].sum()
            counts[place, whole.outcomes.index(fill[gold])] += moved
    return replace(whole, counts=counts)


def unvaried_interval(parts: Parts, whole: CountTable, clusters: float) -> Interval:
    """Return the interval that unseen items allow for a bounded metric, defined in the sample.

    Even if all clusters of the sample are alike, a share of the population (``unseen_share``) may
    differ: the interval spans the worst and the best case of that share.
    """
    share = unseen_share(clusters)
    mixed = (_mixed(whole, fill, share) for fill in worst_case_fills(whole))
    ratios = (parts(table) for table in (whole, *mixed))
    known = [float(top / bottom) for top, bottom in ratios if bottom]
    return min(known), max(known)


def mean_interval(parts: Parts, clusters: CountTable, items: Array) -> Interval | None:
    """Return the interval of a mean that a few items may decide, such as that of ratings.

    ``items[i]`` clusters have the table ``clusters.counts[i]``. It is a bootstrap with the width
    for a small sample, at least as wide as ``unvaried_interval``: the few ratings of 1 among many 9
    may be missing from the sample. None without items.
    """
    if not len(items):
        return None
    total = float(items.sum())
    drawn = replace(clusters, counts=resample(clusters.counts, items))
    found = percentile(*parts(drawn), total, math.inf)
    return _hull([found, unvaried_interval(parts, _whole(clusters, items), total)])


def class_interval(parts: Parts, clusters: CountTable, items: Array) -> Interval | None:
    """Return the interval of a metric of classes, of which one may be rare, such as macro-F1.

    It spans a bootstrap's interval and the middle 95 % of the posterior with half an item more in
    each cell: Goutte and Gaussier (2005), ECIR, LNCS 3408:345, with Jeffreys' prior. The bootstrap
    alone has no misses that the few items of a class did not show. None without items.
    """
    if not len(items):
        return None
    drawn = replace(clusters, counts=resample(clusters.counts, items))
    possible = replace(clusters, counts=_possible(clusters.counts, items))
    found = percentile(*parts(drawn))
    if found is None:
        found = unvaried_interval(parts, _whole(clusters, items), float(items.sum()))
    return _hull([found, percentile(*parts(possible))])


def _possible(patterns: Array, items: Array) -> Array:
    """Return ``ROUNDS`` tables: clusters with gamma weights (Rubin's bootstrap), and every cell.

    A cell's half item counts as much as half a cluster. The seed is fixed.
    """
    import numpy as np

    flat = patterns.reshape(len(patterns), -1)
    size = float((flat.sum(axis=1) * items).sum() / items.sum())
    cells = np.eye(flat.shape[1]) * size
    weights = np.concatenate([items, np.full(len(cells), 0.5)])
    drawn = np.random.default_rng(SEED).gamma(weights, size=(ROUNDS, len(weights)))
    tables: Array = drawn @ np.concatenate([flat, cells])
    return tables.reshape(ROUNDS, *patterns.shape[1:])


def _whole(clusters: CountTable, items: Array) -> CountTable:
    return replace(clusters, counts=(clusters.counts.T @ items).T)


def _hull(intervals: Iterable[Interval | None]) -> Interval:
    """Return the span of these intervals, of which at least one is known."""
    known = [one for one in intervals if one]
    return min(low for low, _ in known), max(high for _, high in known)
