"""What an answer takes, as gates see it: seconds, tokens and USD over all planned items."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cases.dataset import Slice, Threshold
from evaluators.output import plural
from evaluators.statistics.intervals import Estimate, Interval, figure, span_of
from evaluators.statistics.metrics import USAGE
from reports.run.record import Record
from reports.run.report import GateState, SliceSummary
from reports.run.usage_summary import lacking, usage_estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageInputs:
    """A slice as its gates on what answers take see it; ``records`` holds every planned item.

    An item of which it is not known may have taken nothing, or no end of time and money. A judge
    has no part in it, so that nothing can be said against that one.
    """

    slice_: Slice
    records: Sequence[Record]
    summary: SliceSummary
    distrust: str = ""

    def _ends(self, name: str) -> Iterator[Estimate]:
        for unknown in (0.0, math.inf):
            yield usage_estimate(self.records, self.slice_, USAGE[name], unknown)

    def obstacle(self, name: str) -> str:
        """Return why the figures cannot decide a gate on a metric, or nothing."""
        if name in self.summary.measures:
            return ""
        why = "recorded answers take no call, servers may name no tokens, and a cost needs a price"
        return f"{name} is not known of any of {plural(len(self.records), 'item')}: {why}"

    def values(self, name: str) -> Interval | None:
        """Return a metric's lowest and highest value, whatever is not known came to."""
        if name not in self.summary.measures:
            return None
        low, high = (one.value for one in self._ends(name))
        return low or 0.0, math.inf if high is None else high

    def ends(self, name: str) -> Interval | None:
        """Return the lowest and the highest end of its 95 % intervals, None where one lacks."""
        low, high = (one.interval for one in self._ends(name))
        return (low[0], high[1]) if low and high else None

    def sentence(
        self, threshold: Threshold, state: GateState, estimate: Estimate, bounds: Interval
    ) -> str:
        """Return a verdict's sentence; ``bounds`` are as ``gate.reason`` has them."""
        name, unknown = threshold.measure, lacking(self.records, USAGE[threshold.measure])
        stem = f"{name} {figure(estimate.value or 0.0, threshold.min, threshold.max)}"
        words = {"PASS": "keeps to", "FAIL": "does not keep to"}
        said = f"{words.get(state, 'is not shown to keep to')} {threshold.bar}"
        basis = [f"n={estimate.n}"]
        if threshold.evidence == "confident":
            basis.append(f"95 % interval {_span(bounds)}")
        elif unknown:
            basis.append(f"{_span(bounds)} whatever those came to")
        if unknown:
            basis.insert(1, f"not known of {plural(unknown, 'item')}")
        return f"{stem} {said} ({', '.join(basis)})"


def _span(bounds: Interval) -> str:
    if math.isfinite(bounds[1]):
        return span_of(bounds)
    return f"{figure(bounds[0])} or any more"
