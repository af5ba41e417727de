"""Intervals of metrics that a few items decide, and the extremes that unseen items could bring."""

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
"""The outcome that ungraded items are taken to have come to, by their gold label."""


def worst_case_fills(table: CountTable) -> tuple[Fill, ...]:
    """Return the fills of ungraded items among which every bounded metric has its extremes.

    Each metric is a ratio of two sums over items, hence monotone between any two outcomes of any
    group of items: its extremes over all mixtures lie where all ungraded items of one gold label
    have one outcome. (``macro_f1`` is a mean of two such ratios; an ungraded item moves only one of
    them at a time, and each of them in one direction.) Ratings count through their sum or their
    place above the bar, so that 1 and 10 suffice. Against given labels agreement counts right and
    not right, and J on which side of the pass mark, or of INCORRECT, a wrong verdict lies: all are
    wrong on the other side, of either. Against given ratings 1 and 10 bound the mean difference.
    """
    golds, outcomes = table.golds, table.outcomes
    ends = (outcomes[0], outcomes[-1]) if outcomes == RATINGS else outcomes
    if golds == outcomes:
        sides = (passing_labels(table), incorrect_label(table))
        same = (dict.fromkeys(golds, one) for one in ends if outcomes == RATINGS)
        return dict(zip(golds, golds, strict=True)), *(_crossed(golds, one) for one in sides), *same
    fills = product(ends, repeat=len(golds))
    return tuple(dict(zip(golds, fill, strict=True)) for fill in fills)


def _crossed(labels: Sequence[str], side: Collection[str]) -> Fill:
    """Return a wrong outcome for every label, on the other side where there is one."""
    return {
        label: min(
            (one for one in labels if one != label),
            key=lambda one: (one in side) == (label in side),
            default=label,
        )
        for label in labels
    }


def _mixed(whole: CountTable, fill: Fill, share: float) -> CountTable:
    """Return the table as it would be had this share of each gold's items come out so."""
    counts = whole.counts * (1 - share)
    for place, gold in enumerate(whole.golds):
        if gold in fill:
            moved = share * whole.counts[place].sum()
            counts[place, whole.outcomes.index(fill[gold])] += moved
    return replace(whole, counts=counts)


def unvaried_interval(parts: Parts, whole: CountTable, clusters: float) -> Interval:
    """Return what unseen items leave open of a bounded metric that is defined in the sample.

    All clusters of the sample may have come out alike although a share of all that there are
    (``unseen_share``) would not: the metric lies between what the worst and the best case of that
    share would make of it.
    """
    share = unseen_share(clusters)
    mixed = (_mixed(whole, fill, share) for fill in worst_case_fills(whole))
    ratios = (parts(table) for table in (whole, *mixed))
    known = [float(top / bottom) for top, bottom in ratios if bottom]
    return min(known), max(known)


def mean_interval(parts: Parts, clusters: CountTable, items: Array) -> Interval | None:
    """Return the interval of a mean that a few items may decide, such as that of ratings.

    ``items[i]`` clusters have the table ``clusters.counts[i]``. It is a bootstrap's, as wide as a
    small sample asks for, and never narrower than ``unvaried_interval``: of "mostly 9, a few 1" the
    few may all be missing from the sample. None without items.
    """
    if not len(items):
        return None
    total = float(items.sum())
    drawn = replace(clusters, counts=resample(clusters.counts, items))
    found = percentile(*parts(drawn), total, math.inf)
    return _hull([found, unvaried_interval(parts, _whole(clusters, items), total)])


def class_interval(parts: Parts, clusters: CountTable, items: Array) -> Interval | None:
    """Return the interval of a metric of classes, of which one may be rare, such as macro-F1.

    It spans a bootstrap's and the middle 95 % of what the sample leaves possible where each cell of
    the table had half an item more: Goutte and Gaussier (2005), ECIR, LNCS 3408:345, with
    Jeffreys' prior. The bootstrap alone knows no miss that the few items of a class did not show.
    None without items.
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
    """Return what these intervals span together, of which one is known."""
    known = [one for one in intervals if one]
    return min(low for low, _ in known), max(high for _, high in known)
