"""What gates can tell with so many items: forecasts before a run, warnings after it."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from cases.dataset import Dataset, Slice, Threshold
from evaluators.kinds import Cluster
from evaluators.output import plural
from evaluators.statistics.betting import expected_units
from evaluators.statistics.estimate import figure
from evaluators.statistics.intervals import wilson
from evaluators.statistics.metrics import METRICS, RATE
from evaluators.statistics.paired import smallest_n
from evaluators.statistics.paired_power import ENOUGH, confirmed_margin, power
from reports.judge.judge_scale import JudgeScale, expected_scale
from reports.run.evidence import Calibration

DISCORDANCES = (0.1, 0.2, 0.3)
"""Shares of pairs that may differ between two runs, shown where none is known."""

NO_BASELINE = "; without --baseline it is not decided"

Clusters = Mapping[str, AbstractSet[Cluster]]
"""The clusters of a dataset's items, by language: so many of its items are independent at least."""


def power_lines(
    dataset: Dataset,
    clusters: Clusters,
    *,
    baseline: bool,
    discordances: Sequence[float] = DISCORDANCES,
    calibrations: Sequence[Calibration] = (),
) -> Iterator[str]:
    """Yield a sentence for each gate of a dataset, with as many items as it has clusters.

    ``discordances`` are the shares of pairs that may differ between two runs of one model,
    ``calibrations`` what the baseline says of the judge.
    """
    scopes = [(dataset.slices[language], len(own)) for language, own in clusters.items()]
    for slice_, count in scopes:
        for threshold in slice_.thresholds:
            if threshold.paired:
                said = _paired(threshold, count, discordances)
                scale = expected_scale([(slice_, count)], calibrations, threshold.of)
                said += _scaled(threshold, count, discordances, scale)
                said += "" if baseline else NO_BASELINE
            else:
                said = _interval(threshold, slice_, count)
            yield f"{slice_.name} {_bar(threshold)}: {said}"
    for threshold in dataset.pooled if clusters else ():
        said = _paired(threshold, _together(clusters), discordances)
        scale = expected_scale(scopes, calibrations, threshold.of)
        said += _scaled(threshold, _together(clusters), discordances, scale)
        yield f"{dataset.name}:* {_bar(threshold)}: {said}{'' if baseline else NO_BASELINE}"


def expected_shares(
    dataset: Dataset,
    clusters: Clusters,
    *,
    baseline: bool,
    discordance: float,
    calibrations: Sequence[Calibration] = (),
) -> dict[str, float]:
    """Return which share of a slice, by its name, is asked until all its gates are settled.

    Nothing changed but a share of ``discordance``. A bar is taken to need all items: how far the
    model will be from it is not known.
    """
    scopes = [(dataset.slices[language], len(own)) for language, own in clusters.items()]

    def share(gate: Threshold, count: int, parts: Sequence[tuple[Slice, int]]) -> float:
        scale = expected_scale(parts, calibrations, gate.of)
        return units_needed(gate, count, discordance, scale) / max(count, 1)

    pooled = [share(one, _together(clusters), scopes) for one in dataset.pooled if baseline]
    return {
        slice_.name: max(
            [
                0.0,
                *pooled,
                *(
                    share(one, count, [(slice_, count)]) if one.paired else 1.0
                    for one in slice_.thresholds
                    if baseline or not one.paired
                ),
            ]
        )
        for slice_, count in scopes
    }


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
    size, items = figure(half), plural(count, "independent item")
    meaning = (
        f"only a value {size} or more beyond the bar passes or fails"
        if threshold.evidence == "confident"
        else f"a value within {size} of the bar may be chance"
    )
    if threshold.evidence == "sequential":
        return f"decided by at most {items}, by fewer the further from the bar"
    return f"95 % interval ± {size} with {items}; {meaning}{given}"


def _paired(threshold: Threshold, count: int, discordances: Sequence[float]) -> str:
    """Return how often a gate on the change since the baseline passes a model that did not change.

    Shares of all items change pair by pair, as the passing share does; the spread of other metrics
    is not known before the run.
    """
    if threshold.evidence == "audited":
        return "no forecast: people decide it, with `python -m reports review … --until-decided`"
    margin = threshold.max or 0.0
    if threshold.evidence == "sequential":
        return _in_sequence(threshold, count, discordances)
    if not threshold.of_share or threshold.evidence == "estimate":
        return "no forecast for this gate alone; see the chances of all gates"
    if not 0 < margin < 1 or not count:
        return "no forecast for this margin"
    pairs = plural(count, "independent pair")
    if count < (fewest := smallest_n(margin)):
        return f"can never pass with {pairs}; it takes {fewest:,} even if none differs"
    chances = _chances(count, margin, discordances)
    margins = _listed(figure(confirmed_margin(count, share) or 1.0) for share in discordances)
    shares = _listed(f"{100 * share:.2g}" for share in discordances)
    return (
        f"passes an unchanged model with {chances} if {shares} % of {pairs} differ; "
        f"{ENOUGH:.2f} takes a margin of {margins}"
    )


def _chances(count: int, margin: float, discordances: Sequence[float]) -> str:
    return _listed(f"{power(count, -margin, share):.2f}" for share in discordances)


def _scaled(
    threshold: Threshold, count: int, discordances: Sequence[float], scale: JudgeScale | None
) -> str:
    """Return what becomes of the same figures where the judge's errors count, if it is known."""
    low = scale.youden.low if scale else None
    known = threshold.of_share and threshold.evidence in ("confident", "sequential")
    if scale is None or low is None or not known:
        return ""
    margin = scale.shrunk(threshold.max or 0.0, confident=True)
    with_it = f"once the judge's errors count (J at least {figure(low)} in the baseline)"
    if threshold.evidence == "sequential":
        needed = (units_needed(threshold, count, share, scale) for share in discordances)
        return f"; after {_listed(f'{one:,}' for one in needed)} {with_it}"
    if not 0 < margin < 1 or count < smallest_n(margin):
        return f"; never {with_it}"
    return f"; with {_chances(count, margin, discordances)} {with_it}"


def _in_sequence(threshold: Threshold, count: int, discordances: Sequence[float]) -> str:
    """Return after how many items a gate that is decided in sequence settles."""
    found = _listed(f"{units_needed(threshold, count, share):,}" for share in discordances)
    shares = _listed(f"{100 * share:.2g}" for share in discordances)
    return (
        f"--until-decided settles an unchanged model after about {found} of "
        f"{plural(count, 'independent pair')} if {shares} % differ"
    )


def units_needed(
    threshold: Threshold, count: int, discordance: float, scale: JudgeScale | None = None
) -> int:
    """Return after how many of so many independent pairs a margin is decided, on average.

    The model is unchanged, and evidence is sequential.
    """
    margin = threshold.max or 0.0
    limit = margin if threshold.fail == "margin" else 0.0
    allowed = scale.shrunk(margin, confident=True) if scale else margin
    return round(expected_units(max(allowed, 0.0), limit, discordance, count))


def _listed(words: Iterable[str]) -> str:
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _together(clusters: Clusters) -> int:
    return len(set[Cluster]().union(*clusters.values()))


def margin_warnings(dataset: Dataset, clusters: Clusters) -> Iterator[str]:
    """Yield a warning for each gate on a change that too few items keep from ever passing."""
    scopes = [
        (language, len(own), dataset.slices[language].thresholds)
        for language, own in clusters.items()
    ]
    scopes.append(("*", _together(clusters), dataset.pooled))
    for language, count, thresholds in scopes:
        for bar in thresholds:
            margin = bar.max or 0.0
            if not bar.of_share or bar.evidence != "confident" or not 0 < margin < 1:
                continue
            if count < (fewest := smallest_n(margin)):
                yield (
                    f"{dataset.name}:{language}: a {bar.measure} of {margin:g} can never be "
                    f"excluded with {plural(count, 'independent item')}; it takes {fewest:,} even "
                    "if none changes"
                )


def no_baseline_note(dataset: Dataset, slices: Sequence[Slice]) -> str:
    """Return which gates a run without a baseline does not have, or nothing."""
    scopes = [(one.name, one.thresholds) for one in slices]
    scopes.append((f"{dataset.name}:*", dataset.pooled))
    found = [(bar.measure, where) for where, bars in scopes for bar in bars if bar.paired]
    if not found:
        return ""
    measures, places = (dict.fromkeys(words) for words in zip(*found, strict=True))
    return f"no baseline: no {' or '.join(measures)} gate for {', '.join(places)}"
