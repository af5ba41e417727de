"""Counted items: their metrics with intervals, and what ungraded items could make of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING

from evaluators.statistics.count_table import RATINGS, CountTable
from evaluators.statistics.estimate import Estimate
from evaluators.statistics.intervals import (
    Interval,
    clustered_rate,
    percentile,
    resample,
    unseen_share,
    wilson,
)
from evaluators.statistics.metrics import Metric, metrics_of
from evaluators.statistics.youden import incorrect_label, passing_labels

if TYPE_CHECKING:
    from evaluators.statistics.intervals import Array

Fill = Mapping[str, str]
"""The outcome that ungraded items are taken to have come to, by their gold label."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Counted items: ``items[i]`` of them have the count table ``patterns.counts[i]``.

    ``clustered`` says that some item was asked more than once.
    """

    kind: str
    patterns: CountTable
    items: Array
    clustered: bool

    @property
    def whole(self) -> CountTable:
        """All items in one table."""
        import numpy as np

        return replace(self.patterns, counts=np.tensordot(self.items, self.patterns.counts, 1))

    def value(self, name: str) -> float | None:
        """Return one metric without interval, None where it is undefined."""
        whole = self.whole
        return metrics_of(self.kind, whole)[name].value(whole)

    def estimates(self, names: Collection[str] = ()) -> dict[str, Estimate]:
        """Return the metrics of the sample with their intervals: all of them, or those named."""
        whole = self.whole
        rows = metrics_of(self.kind, whole)
        wanted = {name: row for name, row in rows.items() if not names or name in names}
        drawn = None
        if len(self.items) and not all(row.rate or row.interval for row in wanted.values()):
            counts = resample(self.patterns.counts, self.items)
            drawn = replace(self.patterns, counts=counts)
        return {name: self._estimate(row, whole, drawn) for name, row in wanted.items()}

    def _estimate(self, row: Metric, whole: CountTable, drawn: CountTable | None) -> Estimate:
        value = row.value(whole)
        top, bottom = row.parts(whole)
        n = int(bottom if row.rate else whole.total)
        if value is None:
            return Estimate.of(None, None, n)
        if row.interval:
            interval = row.interval(self.patterns, self.items)
        elif row.rate and self.clustered:
            interval = clustered_rate(*row.parts(self.patterns), self.items)
        elif row.rate:
            interval = wilson(float(top), float(bottom))
        else:
            sizes = float(self.items.sum()), float(whole.total)
            interval = percentile(*row.parts(drawn), *sizes) if drawn else None
            interval = interval or self.unvaried_interval(row, whole, value)
        return Estimate.of(value, interval, n)

    def unvaried_interval(self, row: Metric, whole: CountTable, value: float) -> Interval:
        """Return the interval of a bounded metric that no resample moved.

        All items of the sample may have come out alike although a share of all items there are
        (``unseen_share``) would not: the metric lies between what the worst and the best case of
        that share would make of it.
        """
        share = unseen_share(float(self.items.sum()))
        ends = [row.value(_mixed(whole, fill, share)) for fill in self.worst_case_bounds()]
        known = [value, *(end for end in ends if end is not None)]
        return min(known), max(known)

    def worst_case_bounds(self) -> tuple[Fill, ...]:
        """Return the fills of ungraded items among which every bounded metric has its extremes.

        Each metric is a ratio of two sums over items, hence monotone between any two outcomes of
        any group of items: its extremes over all mixtures lie where all ungraded items of one gold
        label have one outcome. (``macro_f1`` is a mean of two such ratios; an ungraded item moves
        only one of them at a time, and each of them in one direction.) Ratings count through their
        sum or their place above the bar, so that 1 and 10 suffice. Against given labels agreement
        counts right and not right, and J on which side of the pass mark, or of INCORRECT, a wrong
        verdict lies: all are wrong on the other side, of either.
        """
        golds, outcomes = self.patterns.golds, self.patterns.outcomes
        if golds == outcomes:
            sides = (passing_labels(self.patterns), incorrect_label(self.patterns))
            return dict(zip(golds, golds, strict=True)), *(_crossed(golds, one) for one in sides)
        ends = (outcomes[0], outcomes[-1]) if outcomes == RATINGS else outcomes
        fills = product(ends, repeat=len(golds))
        return tuple(dict(zip(golds, fill, strict=True)) for fill in fills)

    def self_agreement(self) -> Estimate:
        """Return how often two judgements of one answer agree, over items judged more than once.

        The share is over pairs of judgements of one item, its interval clustered by item.
        """
        counts = self.patterns.counts
        asked = counts.sum(axis=(-2, -1))
        hits = (counts * (counts - 1) / 2).sum(axis=(-2, -1))
        sizes = asked * (asked - 1) / 2
        pairs = float((self.items * sizes).sum())
        agreed = float((self.items * hits).sum()) / pairs
        return Estimate.of(agreed, clustered_rate(hits, sizes, self.items), round(pairs))


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
