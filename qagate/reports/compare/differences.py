"""How far each metric moved between two runs: what gates decide and comparisons show."""

from collections.abc import Iterator

from qagate.cases.dataset import Dataset, Threshold
from qagate.evaluators.statistics.intervals import TAIL, Estimate
from qagate.evaluators.statistics.metrics import ANSWER_STATES, DROP, USAGE, metrics_of
from qagate.reports.compare.change import MetricChange
from qagate.reports.compare.means import mean_change, mean_difference
from qagate.reports.compare.shares import share_difference
from qagate.reports.compare.sides import Sides, state_hit
from qagate.reports.compare.tables import (
    are_alike,
    blank_table,
    count_pairs,
    extra_names,
    hit_of,
    metric_change,
    share_change,
    share_hit,
)
from qagate.reports.compare.usage_changes import usage_change


def scopes(dataset: Dataset, sides: Sides) -> Iterator[tuple[Threshold, Sides]]:
    """Yield every threshold on a change with its slices; those that pool languages last."""
    for side in sides:
        for threshold in side.slice_.thresholds:
            if threshold.paired:
                yield threshold, [side]
    if sides:
        for threshold in dataset.pooled:
            if threshold.paired:
                yield threshold, sides


def harm_sign(threshold: Threshold) -> int:
    """Return the factor from new - old to harm: -1 where a drop harms, 1 where a rise does."""
    return -1 if threshold.measure == DROP else 1


def change_for(
    threshold: Threshold, sides: Sides, tail: float = TAIL
) -> MetricChange | str:
    """Return the change that a threshold is about, or why it is unknown."""
    name = threshold.of
    if threshold.of_usage:
        row = USAGE[name]
        return usage_change(sides, row, relative=threshold.relative, tail=tail)
    if name in extra_names(sides):
        return mean_change(sides, name, tail)
    if name in ANSWER_STATES:
        return share_change(sides, state_hit(name), tail)
    hit = share_hit(name, sides)
    if hit is not None:
        return share_change(sides, hit, tail)
    metric = metrics_of(sides[0].slice_.kind, blank_table(sides)).get(name)
    if metric is None:
        return f"{name} is not measured on {sides[0].slice_.name}"
    return metric_change(sides, metric, tail)


def differences(sides: Sides) -> dict[str, Estimate]:
    """Return new - old of each defined metric but the share that passes, over graded pairs."""
    changes = {}
    counted = count_pairs(sides) if are_alike(sides) else None
    if counted and counted.pairs:
        blank = blank_table(sides)
        for name, row in metrics_of(counted.kind, blank).items():
            if not row.compared:
                continue
            if row.every_item:
                hit = hit_of(row, sides, blank)
                changes[name] = share_difference(sides, hit).estimate
            else:
                changes[name] = counted.difference(row)
    for name in extra_names(sides):
        changes[name] = mean_difference(sides, name)
    return {
        name: estimate
        for name, estimate in changes.items()
        if estimate.value is not None
    }
