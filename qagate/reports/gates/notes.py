"""What a reader should know of gates beside their verdicts: few items, loose bars, early stops."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet

from qagate.cases.dataset import Dataset, Slice, Threshold
from qagate.cases.thresholds import ranges_of
from qagate.evaluators.kinds import Cluster
from qagate.evaluators.output import plural
from qagate.evaluators.statistics.metrics import DROP, RATE, RISE
from qagate.evaluators.statistics.paired import smallest_n
from qagate.reports.run.report import GateResult, SliceSummary

CEILING = 0.9
"""The share of its range above which the lower end of a metric has no room left to gain."""
FEW_ITEMS = 20
"""The fewest items of a gate on the estimate: with fewer, a 95 % interval spans 0.4 and more."""
WIDE = 0.25
"""The share of its range by which a lower end may be above its bar before the bar says little."""

Clusters = Mapping[str, AbstractSet[Cluster]]
"""The clusters of a data set's items by language: the number of independent items."""


def scoped_gates(
    dataset: Dataset, clusters: Clusters
) -> Iterator[tuple[str, int, tuple[Threshold, ...]]]:
    """Yield each slice's and at last the pool's name, number of independent items, and gates."""
    for language, own in clusters.items():
        slice_ = dataset.slices[language]
        yield slice_.name, len(own), slice_.thresholds
    yield (
        f"{dataset.name}:*",
        len(set[Cluster]().union(*clusters.values())),
        dataset.pooled,
    )


def margin_warnings(dataset: Dataset, clusters: Clusters) -> Iterator[str]:
    """Yield a warning for each paired gate that can never pass with so few items."""
    every = (
        (name, n, bar)
        for name, n, bars in scoped_gates(dataset, clusters)
        for bar in bars
    )
    for name, count, bar in every:
        margin = bar.max or 0.0
        decides = bar.of_share and bar.evidence == "confident" and 0 < margin < 1
        if decides and count < (fewest := smallest_n(margin)):
            yield (
                f"{name}: a {bar.measure} of {margin:g} can never be excluded with "
                f"{plural(count, 'independent item')}; it takes {fewest:,} even if none changes"
            )


def small_notes(
    gates: Sequence[GateResult], independent: Mapping[str, int]
) -> Iterator[str]:
    """Yield which slices have too few independent items for a gate on the estimate alone."""
    own = (
        one for one in gates if one.estimate.n and one.threshold.evidence == "estimate"
    )
    sizes = ((one.slice, independent.get(one.slice, one.estimate.n)) for one in own)
    if found := dict.fromkeys(f"{name} ({n})" for name, n in sizes if n < FEW_ITEMS):
        yield (
            f"few items: {', '.join(found)}: their gates go by the estimate alone, which chance "
            "moves widely; add items, or write `evidence: confident`"
        )


def ceiling_notes(
    gates: Sequence[GateResult], slices: Mapping[str, Slice]
) -> Iterator[str]:
    """Yield the bars that a large loss would still pass, where no paired gate looks for one."""
    watched = {gate.slice for gate in gates if gate.threshold.paired}
    found: dict[str, list[str]] = defaultdict(list)
    for gate in gates:
        bar, interval, slice_ = (
            gate.threshold,
            gate.estimate.interval,
            slices.get(gate.slice),
        )
        is_watched = (
            bar.paired or bar.of_usage or watched & {gate.slice, f"{gate.dataset}:*"}
        )
        if slice_ is None or interval is None or is_watched or gate.state != "PASS":
            continue
        ranges = ranges_of(slice_)
        low, high = ranges.get(bar.measure, RATE)
        changes = (
            (DROP, "fall", bar.min, interval[0] - low, (bar.min or 0.0) - low),
            (RISE, "rise", bar.max, high - interval[1], high - (bar.max or 0.0)),
        )
        for gate_name, change, limit, shown, required in (
            changes if DROP in ranges else ()
        ):
            loose = shown > CEILING * (high - low) or shown - required > WIDE * (
                high - low
            )
            if limit is not None and loose:
                still = f"a {change} to {limit:g} would still pass this bar"
                paired = any(one.paired for one in slice_.thresholds)
                advice = (
                    "give --baseline"
                    if paired
                    else f"set `{gate_name}` with a baseline"
                )
                seen = f"{bar.measure} {gate.estimate.value or 0.0:.3f}"
                found[f"{seen}: {still}; {advice}"].append(gate.slice)
    for note, names in found.items():
        yield f"{', '.join(names)} {note}"


def settled_notes(
    slices: Iterable[SliceSummary], gates: Sequence[GateResult]
) -> Iterator[str]:
    """Yield how much was asked of each slice that was stopped early, and why."""
    for summary in slices:
        counts = summary.counts
        if not counts.stopped:
            continue
        asked = f"{counts.planned - counts.stopped:,} of {counts.planned:,} items"
        open_gate = _open_gate(summary, gates)
        if open_gate is None:
            yield (
                f"{summary.name}: settled after {asked}, and the others were not asked; all its "
                "figures, parity too, are over these and lean to the side of the verdict"
            )
        else:
            yield (
                f"{summary.name}: stopped after {asked}, as no further item could decide "
                f"{open_gate.name} {open_gate.bar}: {open_gate.reason}"
            )


def _open_gate(summary: SliceSummary, gates: Sequence[GateResult]) -> GateResult | None:
    """Return the first INCONCLUSIVE gate of a slice, its own or a pooled one."""
    for gate in gates:
        is_of_slice = gate.dataset == summary.dataset and gate.language in (
            "",
            summary.language,
        )
        if is_of_slice and gate.state == "INCONCLUSIVE":
            return gate
    return None
