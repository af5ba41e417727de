"""Whether every language has gates, and whether they can be passed."""

from collections.abc import Iterator, Mapping

from cases.dataset import Dataset, Threshold
from cases.tools.check.findings import Note, Subject, warning
from evaluators.statistics.metrics import DROP
from evaluators.statistics.paired import smallest_n


def ungated(dataset: Dataset, subjects: Mapping[str, Subject]) -> Iterator[Note]:
    """Yield the declared languages without a gate of their own: nothing there stops an upgrade."""
    for code in subjects:
        if code in dataset.slices and not dataset.slices[code].rules:
            yield warning(0, f"language {code!r} has no gates; add 'gates:' with a measure and bar")


def narrow_margins(dataset: Dataset, subjects: Mapping[str, Subject]) -> Iterator[Note]:
    """Yield the drop gates that so few items can never pass, even if no answer changes."""
    counts = {code: len(own.cases) for code, own in subjects.items() if code in dataset.slices}
    for code, count in counts.items():
        for rule in dataset.slices[code].rules:
            yield from _too_narrow(f"{dataset.name}:{code}", rule, count)
    for rule in dataset.pooled:
        yield from _too_narrow(f"{dataset.name}:*", rule, sum(counts.values()))


def _too_narrow(where: str, rule: Threshold, count: int) -> Iterator[Note]:
    margin = rule.max or 0.0
    if rule.measure != DROP or rule.evidence != "confident" or margin >= 1:
        return
    if margin == 0:
        yield warning(0, f"{where}: no number of items can show a drop of 0; give a margin")
    elif count < smallest_n(margin):
        yield warning(
            0,
            f"{where}: {count} items can never show a drop below {margin:g}; "
            f"it takes {smallest_n(margin):,}, or widen the margin",
        )
