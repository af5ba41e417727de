"""What gates can decide with a given number of items: forecasts before a run, warnings after it."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from cases.dataset import Dataset, Slice, Threshold
from cases.thresholds import ranges_of
from evaluators.kinds import Cluster
from evaluators.output import plural
from evaluators.statistics.betting import expected_units
from evaluators.statistics.intervals import figure
from evaluators.statistics.metrics import DROP, RATE, RISE
from evaluators.statistics.paired import ENOUGH, confirmed_margin, smallest_n
from reports.judge.errors import JudgeScale, expected_scale
from reports.run.evidence import Calibration
from reports.run.report import GateResult

DISCORDANCES = (0.1, 0.2, 0.3)
"""Assumed shares of pairs that differ between two runs of one model, where none is known."""

CEILING = 0.9
"""The share of its range above which the lower end of a metric has no room left to gain."""
FEW_ITEMS = 20
"""The fewest items of a gate on the estimate: with fewer, a 95 % interval spans 0.4 and more."""
WIDE = 0.25
"""The share of its range by which a lower end may be above its bar before the bar says little."""

Clusters = Mapping[str, AbstractSet[Cluster]]
"""The clusters of a data set's items by language: the number of independent items."""


def _scopes(
    dataset: Dataset, clusters: Clusters
) -> Iterator[tuple[str, int, tuple[Threshold, ...]]]:
    """Yield each slice's and at last the pool's name, number of independent items, and gates."""
    for language, own in clusters.items():
        slice_ = dataset.slices[language]
        yield slice_.name, len(own), slice_.thresholds
    yield f"{dataset.name}:*", len(set[Cluster]().union(*clusters.values())), dataset.pooled


def power_lines(
    dataset: Dataset, clusters: Clusters, *, baseline: bool, discordances: Sequence[float]
) -> Iterator[str]:
    """Yield the smallest drop that each paired gate excludes if such shares of pairs differ."""
    undecided = "" if baseline else "; without --baseline it is not decided"
    for name, count, thresholds in _scopes(dataset, clusters):
        for one in thresholds if count else ():
            if one.paired:
                said = _paired(one, count, discordances)
                yield f"{name} {one.name} {one.bar}: {said}{undecided}"


def _paired(threshold: Threshold, count: int, discordances: Sequence[float]) -> str:
    """Return the smallest drop that a gate on a share can exclude for an unchanged model."""
    margin, pairs = threshold.max or 0.0, plural(count, "independent pair")
    shares = listed(f"{100 * share:.2g}" for share in discordances)
    if threshold.evidence == "audited":
        return "no forecast: people decide it, with `qagate review … --until-decided`"
    if threshold.evidence == "sequential":
        needed = [units_needed(threshold, count, share) for share in discordances]
        units, open_ = listed(f"{n:,}" for n, _ in needed), [f"{100 * n:.0f}" for _, n in needed]
        return (
            f"--until-decided takes about {units} of {pairs} for an unchanged model if {shares} % "
            f"differ, and leaves {listed(open_)} % of such runs open"
        )
    if not threshold.of_share or threshold.evidence == "estimate" or not 0 < margin < 1:
        return "no forecast for this gate alone; see the odds of all gates"
    if count < (fewest := smallest_n(margin)):
        return f"can never pass with {pairs}; it takes {fewest:,} even if none differs"
    margins = listed(figure(confirmed_margin(count, share) or 1.0) for share in discordances)
    return (
        f"{pairs} exclude a drop of {margins} with a chance of {ENOUGH:g} if {shares} % of them "
        "differ"
    )


def expected_shares(
    dataset: Dataset,
    clusters: Clusters,
    *,
    baseline: bool,
    discordance: float,
    calibrations: Sequence[Calibration] = (),
) -> dict[str, float]:
    """Return the share of each slice asked until decided, if unchanged; a bar needs all items."""
    sizes = [(dataset.slices[language], len(own)) for language, own in clusters.items()]

    def most(gates: Sequence[Threshold], count: int, parts: Sequence[tuple[Slice, int]]) -> float:
        shares = [0.0 if all(gate.paired for gate in gates) else 1.0]
        for gate in (gate for gate in gates if gate.paired and baseline):
            scale = expected_scale(parts, calibrations, gate.of)
            units, _ = units_needed(gate, count, discordance, scale)
            shares.append(units / max(count, 1))
        return max(shares)

    *_, (_, together, pooled) = _scopes(dataset, clusters)
    shared = most(pooled, together, sizes)
    return {one.name: max(shared, most(one.thresholds, n, [(one, n)])) for one, n in sizes}


def units_needed(
    threshold: Threshold, count: int, discordance: float, scale: JudgeScale | None = None
) -> tuple[int, float]:
    """Return how many of ``count`` pairs a sequential margin takes, and the share left open."""
    margin = threshold.max or 0.0
    limit = margin if threshold.fail == "margin" else 0.0
    allowed = scale.shrunk(margin, confident=True) if scale else margin
    units, left = expected_units(max(allowed, 0.0), limit, discordance, count)
    return round(units), left


def listed(words: Iterable[str]) -> str:
    """Return words with an ``or`` before the last."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def margin_warnings(dataset: Dataset, clusters: Clusters) -> Iterator[str]:
    """Yield a warning for each paired gate that can never pass with so few items."""
    every = ((name, n, bar) for name, n, bars in _scopes(dataset, clusters) for bar in bars)
    for name, count, bar in every:
        margin = bar.max or 0.0
        decides = bar.of_share and bar.evidence == "confident" and 0 < margin < 1
        if decides and count < (fewest := smallest_n(margin)):
            yield (
                f"{name}: a {bar.measure} of {margin:g} can never be excluded with "
                f"{plural(count, 'independent item')}; it takes {fewest:,} even if none changes"
            )


def small_notes(gates: Sequence[GateResult]) -> Iterator[str]:
    """Yield which slices are too small for a gate on the estimate alone."""
    few = (one for one in gates if 0 < one.estimate.n < FEW_ITEMS)
    own = (one for one in few if one.threshold.evidence == "estimate")
    if found := dict.fromkeys(f"{one.slice} ({one.estimate.n})" for one in own):
        yield (
            f"few items: {', '.join(found)}: their gates go by the estimate alone, which chance "
            "moves widely; add items, or write `evidence: confident`"
        )


def ceiling_notes(gates: Sequence[GateResult], slices: Mapping[str, Slice]) -> Iterator[str]:
    """Yield the bars that a large loss would still pass, where no paired gate looks for one."""
    watched = {gate.slice for gate in gates if gate.threshold.paired}
    found: dict[str, list[str]] = defaultdict(list)
    for gate in gates:
        bar, interval, slice_ = gate.threshold, gate.estimate.interval, slices.get(gate.slice)
        is_watched = bar.paired or bar.of_usage or watched & {gate.slice, f"{gate.dataset}:*"}
        if slice_ is None or interval is None or is_watched or gate.state != "PASS":
            continue
        low, high = ranges_of(slice_).get(bar.measure, RATE)
        changes = (
            (DROP, "fall", bar.min, interval[0] - low, (bar.min or 0.0) - low),
            (RISE, "rise", bar.max, high - interval[1], high - (bar.max or 0.0)),
        )
        for gate_name, change, limit, sure, asked in changes if DROP in ranges_of(slice_) else ():
            loose = sure > CEILING * (high - low) or sure - asked > WIDE * (high - low)
            if limit is not None and loose:
                still = f"a {change} to {limit:g} would still pass this bar"
                paired = any(one.paired for one in slice_.thresholds)
                advice = "give --baseline" if paired else f"set `{gate_name}` with a baseline"
                seen = f"{bar.measure} {gate.estimate.value or 0.0:.3f}"
                found[f"{seen}: {still}; {advice}"].append(gate.slice)
    for said, names in found.items():
        yield f"{', '.join(names)} {said}"
