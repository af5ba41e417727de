"""How far each measure moved between two runs over the same items, by a paired bootstrap."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from cases.slices import Slice
from evaluators.core import Kind
from evaluators.statistics.intervals import percentile, resample
from reports.compare import Pair, right
from reports.contrast import PairedSlice
from reports.evidence import Estimate
from reports.measures import Measure, Table, measures_for
from reports.tally import axes_of, gold_of, outcome_of

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

HEADLINE: Mapping[Kind, frozenset[str]] = {
    "graded": frozenset({"correct"}),
    "rated": frozenset({"pass_rate", "normalised"}),
    "yes_no": frozenset({"accuracy", "majority_baseline"}),
    "judged": frozenset({"agreement"}),
}
"""Measures left out: the share that passes has Tango's interval, others say nothing more."""

Cells = tuple[tuple[int, int, int], ...]


def differences(side: PairedSlice) -> dict[str, Estimate]:
    """Return new - old of each measure over the pairs graded in both runs; empty without a pair.

    Items are drawn with both their answers and all their repeats, so that what is common to the
    two runs cancels out. Without an interval where no draw differs.
    """
    pairs = _comparable(side)
    if not pairs:
        return {}
    tables, items = _tables(pairs, side.slice_)
    drawn = replace(tables, counts=resample(tables.counts, items))
    whole = replace(tables, counts=(tables.counts.T @ items).T)
    rows = measures_for(side.slice_.kind, _side(whole, 0))
    found = {
        name: _difference(row, whole, drawn, len(pairs))
        for name, row in rows.items()
        if name not in HEADLINE[side.slice_.kind]
    }
    return {name: estimate for name, estimate in found.items() if estimate}


def _comparable(side: PairedSlice) -> list[Pair]:
    """Return the graded pairs; a run of a dataset that was of another kind then has none."""
    graded = [pair for pair in side.pairing.pairs if right(pair.new) is not None]
    records = [record for pair in graded for record in (pair.old, pair.new)]
    _, outcomes = axes_of(records, side.slice_.kind)
    return [pair for pair in graded if outcome_of(pair.old) in outcomes]


def _tables(pairs: list[Pair], slice_: Slice) -> tuple[Table, Array]:
    """Return the different tables of an item, of its old and its new run, and how many have each.

    Their first axis is that of the tables, the second that of the runs.
    """
    import numpy as np

    records = [record for pair in pairs for record in (pair.old, pair.new)]
    golds, outcomes = axes_of(records, slice_.kind)
    places = ({label: n for n, label in enumerate(axis)} for axis in (golds, outcomes))
    patterns = Counter(_cells(pairs, slice_.kind, *places))
    counts = np.zeros((len(patterns), 2, len(golds), len(outcomes)))
    for number, cells in enumerate(patterns):
        for cell in cells:
            counts[(number, *cell)] += 1
    table = Table(
        counts=counts,
        golds=golds,
        outcomes=outcomes,
        pass_bar=slice_.pass_bar,
        penalty=slice_.penalty,
        scores=slice_.rubric.scores if slice_.rubric else {},
    )
    return table, np.array(list(patterns.values()), dtype=np.float64)


def _cells(
    pairs: list[Pair], kind: Kind, golds: Mapping[str, int], outcomes: Mapping[str, int]
) -> list[Cells]:
    """Return the cells of each item, of both runs and of all its repeats."""
    clusters: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
    for pair in pairs:
        for run, record in enumerate((pair.old, pair.new)):
            cell = (run, golds[gold_of(record, kind)], outcomes[outcome_of(record)])
            clusters[pair.new.id].append(cell)
    return sorted(tuple(sorted(cells)) for cells in clusters.values())


def _side(tables: Table, run: int) -> Table:
    return replace(tables, counts=tables.counts[..., run, :, :])


def _difference(row: Measure, whole: Table, drawn: Table, n: int) -> Estimate | None:
    import numpy as np

    values, _ = _gap(row, whole)
    if not np.isfinite(values):
        return None
    low, high = percentile(*_gap(row, drawn)) or (None, None)
    return Estimate(value=float(values), low=low, high=high, n=n)


def _gap(row: Measure, tables: Table) -> tuple[Array, Array]:
    """Return new - old with 1 as denominator, 0 where it is undefined on either side."""
    import numpy as np

    (old_top, old_bottom), (new_top, new_bottom) = (row.parts(_side(tables, n)) for n in (0, 1))
    defined = (old_bottom != 0) & (new_bottom != 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        gap = new_top / new_bottom - old_top / old_bottom
    return np.where(defined, gap, np.nan), defined.astype(np.float64)
