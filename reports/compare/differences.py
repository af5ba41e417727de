"""How far each metric moved between two runs over the same items, by a paired bootstrap."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from typing import TYPE_CHECKING

from evaluators.statistics.count_table import CountTable
from evaluators.statistics.estimate import Estimate
from evaluators.statistics.intervals import percentile, resample
from evaluators.statistics.metrics import Metric, metrics_of
from evaluators.statistics.sample import count_patterns
from reports.compare.pairs import PairedSlice
from reports.summary import axes_of, gold_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]


def differences(side: PairedSlice) -> dict[str, Estimate]:
    """Return new - old of each metric over the pairs graded in both runs; empty without a pair.

    Items are drawn with both their answers and all their repeats, so that what is common to the
    two runs cancels out. Without an interval where no draw differs.
    """
    import numpy as np

    tables, items, pairs = _tables(side)
    if not pairs:
        return {}
    drawn = replace(tables, counts=resample(tables.counts, items))
    whole = replace(tables, counts=(tables.counts.T @ items).T)
    found = {}
    for name, row in metrics_of(side.slice_.kind, whole).items():
        value, _ = _gap(row, whole)
        if row.compared and np.isfinite(value):
            found[name] = Estimate.of(float(value), percentile(*_gap(row, drawn)), pairs)
    return found


def _tables(side: PairedSlice) -> tuple[CountTable, Array, int]:
    """Return the different tables of an item, how many items have each, and the number of pairs.

    The first axis of the counts is that of the tables, the second that of the runs, old and new.
    A baseline over a dataset that was of another kind then has no pair.
    """
    kind = side.slice_.kind
    records = [record for pair in side.graded for record in (pair.old, pair.new)]
    _, known = axes_of(records, side.slice_)
    pairs = [pair for pair in side.graded if pair.old.result in known]
    records = [record for pair in pairs for record in (pair.old, pair.new)]
    golds, outcomes = axes_of(records, side.slice_)
    clusters: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for number, record in enumerate(records):
        cell = (number % 2, golds.index(gold_of(record, kind)), outcomes.index(record.result))
        clusters[record.id].append(cell)
    counts, items = count_patterns(clusters.values(), (2, len(golds), len(outcomes)))
    table = CountTable(
        counts=counts,
        golds=golds,
        outcomes=outcomes,
        pass_bar=side.slice_.pass_bar,
        penalty=side.slice_.penalty,
        scores=side.slice_.rubric.scores if side.slice_.rubric else {},
        passing=side.slice_.passing,
    )
    return table, items, len(pairs)


def _gap(row: Metric, tables: CountTable) -> tuple[Array, Array]:
    """Return new - old with 1 as denominator, 0 where it is undefined on either side."""
    import numpy as np

    (old_top, old_bottom), (new_top, new_bottom) = (
        row.parts(replace(tables, counts=tables.counts[..., run, :, :])) for run in (0, 1)
    )
    defined = (old_bottom != 0) & (new_bottom != 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = new_top / new_bottom - old_top / old_bottom
    return np.where(defined, gap, np.nan), defined.astype(np.float64)
