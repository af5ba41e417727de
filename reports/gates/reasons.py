"""The sentence that explains a gate's verdict: the figure, its bar, and what would decide it."""

from cases.dataset import Threshold
from evaluators.output import plural
from evaluators.statistics.estimate import Estimate, figure, span_of
from evaluators.statistics.intervals import Interval
from reports.report import Counts, GateState


def reason(
    threshold: Threshold, state: GateState, estimate: Estimate, bounds: Interval, counts: Counts
) -> str:
    """Return a verdict's sentence.

    ``bounds`` are the extremes over all worst cases of ungraded items: of the metric, or of the
    ends of its interval where the threshold asks for ``confident`` evidence.
    """
    value = estimate.value or 0.0
    stem = f"{threshold.measure} {figure(value, threshold.min, threshold.max)}"
    stem += f" is {_side(threshold, value)}"
    size = f"n={estimate.n}" + (f", {counts.ungraded} ungraded" if counts.ungraded else "")
    if threshold.evidence == "confident":
        interval = f"95 % interval, {span_of(bounds)}"
        if state != "INCONCLUSIVE":
            return f"{stem} with its whole {interval} ({size})"
        needed = items_to_decide(threshold, estimate, counts.passed + counts.failed)
        items = f"about {plural(needed, 'item')} would decide it" if needed else ""
        remedy = items or "no number can be named"
        return f"{stem}, but its {interval}, does not clear the bar; {remedy} ({size})"
    if state == "INCONCLUSIVE":
        ungraded = plural(counts.ungraded, "ungraded item")
        range_ = f"{ungraded} could bring it anywhere from {span_of(bounds)}"
        return f"{stem}, but {range_}; grade them to decide ({size})"
    return f"{stem} ({size}{_extreme(threshold, state, bounds) if counts.ungraded else ''})"


def _side(threshold: Threshold, value: float) -> str:
    """Return on which side of its bars a value lies, for instance ``below 0.35``."""
    if threshold.min is not None and value < threshold.min - 1e-12:
        return f"below {threshold.min:g}"
    if threshold.max is not None and value > threshold.max + 1e-12:
        return f"above {threshold.max:g}"
    bars = [("at least", threshold.min), ("at most", threshold.max)]
    return " and ".join(f"{word} {bar:g}" for word, bar in bars if bar is not None)


def _extreme(threshold: Threshold, state: GateState, bounds: Interval) -> str:
    """Return the value in the worst case of the ungraded items; of a FAIL, in the best case."""
    if threshold.min is not None and threshold.max is not None:
        return f"; {span_of(bounds)} whatever became of them"
    lowest = (state == "PASS") == (threshold.min is not None)
    value = figure(bounds[0 if lowest else 1], threshold.min, threshold.max)
    return f"; at {'worst' if state == 'PASS' else 'best'} {value}"


def items_to_decide(threshold: Threshold, estimate: Estimate, graded: int) -> int | None:
    """Return about how many graded items would bring the interval clear of the nearest bar.

    An interval shrinks with the square root of the number of items. None where no number would:
    the estimate lies on the bar, or there is no interval.
    """
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return None
    bars = (bar for bar in (threshold.min, threshold.max) if bar is not None)
    gap = min(abs(estimate.value - bar) for bar in bars)
    half = max(estimate.high - estimate.value, estimate.value - estimate.low)
    if gap < 1e-9:
        return None
    leading = float(f"{graded * (half / gap) ** 2:.1e}")  # two digits: it should not look exact
    return max(graded + 1, int(leading))
