"""Extra measures over items: their mean with its interval, and of how many they are missing."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from cases.slices import Slice
from evaluators.core import Outcome
from evaluators.output import plural
from evaluators.statistics.intervals import Interval, percentile, resample, unseen_share
from reports.evidence import Estimate
from reports.record import Record

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]


def extra_names(records: Iterable[Record]) -> tuple[str, ...]:
    """Return the names of all extra measures that some item has or should have."""
    return tuple(dict.fromkeys(name for record in records for name in record.measures))


def untaken(records: Sequence[Record]) -> dict[str, int]:
    """Return how many items lack each extra measure, those that came to no grade included."""
    return {
        name: sum(record.measures.get(name) is None for record in records)
        for name in extra_names(records)
    }


def extra_estimates(records: Sequence[Record]) -> dict[str, Estimate]:
    """Return the mean of each extra measure over the items that have it.

    The interval is a bootstrap over items, all repeats of one together.
    """
    return {name: _estimate(records, name) for name in extra_names(records)}


def _estimate(records: Sequence[Record], name: str) -> Estimate:
    items: dict[str, list[float]] = defaultdict(list)
    for record in records:
        value = record.measures.get(name)
        if value is not None:
            items[record.id].append(value)
    n = sum(map(len, items.values()))
    if not n:
        return Estimate(value=None, low=None, high=None, n=0)
    mean = sum(map(sum, items.values())) / n
    low, high = _interval(list(items.values()), mean)
    return Estimate(value=mean, low=low, high=high, n=n)


def _interval(items: Sequence[Sequence[float]], mean: float) -> Interval:
    """Return the bootstrap's interval; where no resample differs, what unseen items leave open."""
    import numpy as np

    sums: Array = np.array([[sum(values), len(values)] for values in items], dtype=np.float64)
    drawn = resample(sums, np.ones(len(items)))
    found = percentile(drawn[:, 0], drawn[:, 1])
    share = unseen_share(len(items))
    return found or (mean * (1 - share), mean * (1 - share) + share)


def extra_notes(slices: Iterable[Slice], outcomes: Iterable[Outcome], judge: str) -> list[str]:
    """Return what a reader must know of extra measures that were not taken.

    ``slices`` are those that were run; ``judge`` is named where it asks no model, else empty.
    """
    named = {one.name: ", ".join(metric.name for metric in one.metrics) for one in slices}
    if judge:
        return [
            f"{name}: {metrics} not measured: --judge {judge} asks no model"
            for name, metrics in named.items()
            if metrics
        ]
    first: dict[str, str] = {}
    counts: Counter[str] = Counter()
    for outcome in outcomes:
        for name, why in outcome.unmeasured.items():
            counts[name] += 1
            first.setdefault(name, why)
    return [
        f"{name}: {plural(n, 'item')} not measured: {first[name]}" for name, n in counts.items()
    ]
