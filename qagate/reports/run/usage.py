"""What answers took: seconds, tokens and cost, by the metrics of usage."""

from collections.abc import Callable, Mapping, Sequence

from qagate.cases.dataset import Slice
from qagate.evaluators.statistics.intervals import Estimate
from qagate.evaluators.statistics.usage_estimates import UsageMetric
from qagate.reports.run.record import Record

USAGE_FIELDS: Mapping[str, Callable[[Record], float | None]] = {
    "answer_seconds": lambda record: record.answer_seconds,
    "answer_tokens_in": lambda record: record.answer_tokens_in,
    "answer_tokens_out": lambda record: record.answer_tokens_out,
    "answer_cost": lambda record: record.answer_cost,
}
"""What an answer took, by the ``field`` that a usage metric names."""


def taken(record: Record | None, metric: UsageMetric) -> float | None:
    """Return what an answer took; None where nobody knows, or there is no answer."""
    if record is None or record.answer is None:
        return None
    return USAGE_FIELDS[metric.field](record)


def usage_estimate(
    records: Sequence[Record],
    slice_: Slice,
    metric: UsageMetric,
    unknown: float | None = None,
) -> Estimate:
    """Return one metric. Unknown values count as ``unknown``; None leaves them out."""
    values = []
    clusters = []
    for record in records:
        value = taken(record, metric)
        if value is None:
            value = unknown
        if value is not None:
            values.append(value)
            clusters.append(slice_.cluster_of(record))
    return metric.estimate(values, clusters)
