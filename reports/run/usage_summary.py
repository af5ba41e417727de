"""What answers took, slice by slice: seconds, tokens and USD, now and in an earlier run."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from cases.dataset import Slice
from evaluators.kinds import Cluster
from evaluators.statistics.intervals import Estimate
from evaluators.statistics.metrics import USAGE
from evaluators.statistics.usage_estimates import UsageMetric
from reports.run.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageShift:
    """A metric of what answers took ``before`` and ``now``, over the pairs where both are known.

    ``factor`` is now / before, with the interval of the paired change.
    """

    before: Estimate
    now: Estimate
    factor: Estimate


def taken(record: Record | None, row: UsageMetric) -> float | None:
    """Return what an answer took; None where nobody knows, or there is no answer."""
    return getattr(record, row.field) if record and record.answer is not None else None


def lacking(records: Iterable[Record], row: UsageMetric) -> int:
    """Return of how many items it is not known what their answer took."""
    return sum(taken(record, row) is None for record in records)


def usage_estimates(
    records: Sequence[Record], slice_: Slice, names: Iterable[str] = USAGE
) -> dict[str, Estimate]:
    """Return the metrics of what answers took, over the answers with known figures.

    Items without a grade count too: a judge has no part in it.
    """
    rows = [USAGE[name] for name in names] if slice_.kind.answered else []
    found = {row.name: usage_estimate(records, slice_, row) for row in rows}
    return {name: one for name, one in found.items() if one.n}


def usage_estimate(
    records: Sequence[Record], slice_: Slice, row: UsageMetric, unknown: float | None = None
) -> Estimate:
    """Return one metric. Unknown values count as ``unknown``; None leaves them out."""
    values = [(record, taken(record, row)) for record in records]
    known = [(one, unknown if value is None else value) for one, value in values]
    pairs = [(slice_.cluster_of(one), value) for one, value in known if value is not None]
    return row.estimate([value for _, value in pairs], [cluster for cluster, _ in pairs])


Pairs = Sequence[tuple[Cluster, float | None, float | None]]
"""Items by cluster: what their answer took then and takes now, None where that is not known."""


Unknown = tuple[float | None, float | None]
"""The values to assume for unknown old and new figures; None leaves the pair out."""

WORST: Unknown = (0.0, math.inf)
BEST: Unknown = (math.inf, 0.0)
"""The bounds of a change where a rise is harmful: unknown figures at their worst and best."""


def usage_change(
    pairs: Pairs,
    row: UsageMetric,
    *,
    relative: bool,
    unknown: Unknown = (None, None),
) -> Estimate:
    """Return new - old of a metric over pairs, or new / old - 1 where it is ``relative``."""
    clusters, old, new = _sides(pairs, unknown)
    return row.change(old, new, clusters, relative=relative)


def _sides(
    pairs: Pairs, unknown: Unknown = (None, None)
) -> tuple[list[Cluster], list[float], list[float]]:
    """Return cluster, old and new figure of the pairs that are known on both sides."""
    known = []
    for cluster, before, now in pairs:
        old = unknown[0] if before is None else before
        new = unknown[1] if now is None else now
        if old is not None and new is not None:
            known.append((cluster, old, new))
    return [one[0] for one in known], [one[1] for one in known], [one[2] for one in known]


def usage_shift(pairs: Pairs, row: UsageMetric) -> UsageShift | None:
    """Return a metric then and now; None where no pair is known on both sides."""
    clusters, old, new = _sides(pairs)
    if not clusters:
        return None
    found = row.change(old, new, clusters, relative=True)
    value, low, high = (None if x is None else x + 1 for x in (found.value, found.low, found.high))
    return UsageShift(
        before=row.estimate(old, clusters),
        now=row.estimate(new, clusters),
        factor=replace(found, value=value, low=low, high=high),
    )
