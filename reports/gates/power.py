"""What gates can tell with so many items: forecasts before a run, warnings after it."""

import math
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from cases.dataset import Dataset, Slice, Threshold
from evaluators.kinds import Cluster
from evaluators.output import plural
from evaluators.statistics.estimate import figure
from evaluators.statistics.intervals import wilson
from evaluators.statistics.metrics import DROP, METRICS, RATE
from evaluators.statistics.paired import detectable_drop, smallest_n

DISCORDANCE = 0.1
"""The share of pairs that a forecast takes to differ between two runs."""


Clusters = Mapping[str, AbstractSet[Cluster]]
"""The clusters of a dataset's items, by language: so many of its items are independent at least."""


def power_lines(dataset: Dataset, clusters: Clusters, *, baseline: bool) -> Iterator[str]:
    """Yield a sentence for each gate of a dataset, with as many items as it has clusters."""
    for language, own in clusters.items():
        slice_, count = dataset.slices[language], len(own)
        for threshold in slice_.thresholds:
            if threshold.measure == DROP:
                power = _drop(threshold, count, baseline=baseline)
            else:
                power = _interval(threshold, slice_, count)
            yield f"{slice_.name} {_bar(threshold)}: {power}"
    for threshold in dataset.pooled if clusters else ():
        power = _drop(threshold, _together(clusters), baseline=baseline)
        yield f"{dataset.name}:* {_bar(threshold)}: {power}"


def _bar(threshold: Threshold) -> str:
    return f"{threshold.name} {threshold.bar}"


def _interval(threshold: Threshold, slice_: Slice, count: int) -> str:
    """Return how wide the interval will be at the bar, and what that means for the verdict."""
    metric = METRICS[slice_.kind].get(threshold.measure)
    bar = threshold.max if threshold.min is None else threshold.min
    if metric and metric.spread:
        half = 1.96 * metric.spread / math.sqrt(count)
        given = f" (if ratings have a standard deviation of {metric.spread:g})"
    elif metric and metric.range == RATE and bar is not None:
        low, high = wilson(bar * count, count) or RATE
        half = (high - low) / 2
        given = "" if metric.every_item else " at best, as not every item counts in it"
    else:
        return "no forecast for this measure"
    size = figure(half)
    meaning = (
        f"only a value {size} or more beyond the bar passes or fails"
        if threshold.evidence == "confident"
        else f"a value within {size} of the bar may be chance"
    )
    return f"95 % interval ± {size} with {plural(count, 'item')}; {meaning}{given}"


def _drop(threshold: Threshold, count: int, *, baseline: bool) -> str:
    margin = threshold.max or 0.0
    smallest = detectable_drop(count, DISCORDANCE)
    if not 0 < margin < 1 or smallest is None:
        return "no forecast for this margin"
    fewest = smallest_n(margin)
    missing = "" if baseline else "; without --baseline it is not decided"
    if threshold.evidence == "confident" and count < fewest:
        return (
            f"can never pass with {plural(count, 'pair')}; it takes {fewest:,} even if none "
            f"differs{missing}"
        )
    return (
        f"{plural(count, 'pair')} confirm a margin of {figure(smallest)} or more (80 % power if "
        f"nothing changed and {DISCORDANCE:.0%} of the pairs differ){missing}"
    )


def _together(clusters: Clusters) -> int:
    return len(set[Cluster]().union(*clusters.values()))


def margin_warnings(dataset: Dataset, clusters: Clusters) -> Iterator[str]:
    """Yield a warning for each drop gate that too few independent items keep from ever passing."""
    scopes = [
        (language, len(own), dataset.slices[language].thresholds)
        for language, own in clusters.items()
    ]
    scopes.append(("*", _together(clusters), dataset.pooled))
    for language, count, thresholds in scopes:
        for bar in thresholds:
            margin = bar.max or 0.0
            if bar.measure != DROP or bar.evidence != "confident" or not 0 < margin < 1:
                continue
            if count < (fewest := smallest_n(margin)):
                yield (
                    f"{dataset.name}:{language}: a drop of {margin:g} can never be excluded with "
                    f"{plural(count, 'independent item')}; it takes {fewest:,} even if none changes"
                )


def no_baseline_note(dataset: Dataset, slices: Sequence[Slice]) -> str:
    """Return what to say where a run has no baseline: its drop gates do not exist, or nothing."""
    where = [one.name for one in slices if DROP in {bar.measure for bar in one.thresholds}]
    where += [f"{dataset.name}:*" for bar in dataset.pooled if bar.measure == DROP]
    return f"no baseline: no drop gate for {', '.join(where)}" if where else ""
