"""Figures and thresholds in the plain sentences of gate verdicts."""

from cases.dataset import Threshold
from evaluators.output import plural
from evaluators.statistics.estimate import Estimate, figure, span_of
from evaluators.statistics.intervals import Interval
from reports.report import Counts, GateState


def _relation(rule: Threshold, number: float) -> str:
    """Return on which side of its bars a number lies, for instance ``is below 0.35``."""
    if rule.min is not None and number < rule.min - 1e-12:
        return f"is below {rule.min:g}"
    if rule.max is not None and number > rule.max + 1e-12:
        return f"is above {rule.max:g}"
    bounds = [("at least", rule.min), ("at most", rule.max)]
    return "is " + " and ".join(f"{word} {bar:g}" for word, bar in bounds if bar is not None)


def reason(
    rule: Threshold, state: GateState, estimate: Estimate, span: Interval, counts: Counts
) -> str:
    """Return a verdict's sentence: the figure, its bar, and what stands in the way.

    ``span`` holds the extremes over all fates of ungraded items: of the measure, or of the ends
    of its interval where the rule asks for ``confident`` evidence.
    """
    number = estimate.value or 0.0
    stem = f"{rule.measure} {figure(number, rule.min, rule.max)} {_relation(rule, number)}"
    ungraded = counts.error + counts.missing
    size = f"n={estimate.n}" + (f", {ungraded} ungraded" if ungraded else "")
    if rule.evidence == "confident":
        graded = counts.passed + counts.failed
        return f"{stem}{_evidence(rule, state, estimate, span, graded)} ({size})"
    if state == "INCONCLUSIVE":
        fates = f"{plural(ungraded, 'ungraded item')} could bring it anywhere from {span_of(span)}"
        return f"{stem}, but {fates}; grade them to decide ({size})"
    return f"{stem} ({size}{_extreme(rule, state, span) if ungraded else ''})"


def _extreme(rule: Threshold, state: GateState, span: Interval) -> str:
    if rule.min is not None and rule.max is not None:
        return f"; {span_of(span)} whatever became of them"
    word, towards_low = ("worst", True) if state == "PASS" else ("best", False)
    place = 0 if towards_low == (rule.min is not None) else 1
    return f"; at {word} {figure(span[place], rule.min, rule.max)}"


def _evidence(
    rule: Threshold, state: GateState, estimate: Estimate, span: Interval, graded: int
) -> str:
    interval = f"95 % interval, {span_of(span)}"
    if state != "INCONCLUSIVE":
        return f" with its whole {interval}"
    needed = items_to_decide(rule, estimate, graded)
    remedy = (
        f"about {plural(needed, 'item')} would decide it" if needed else "no number can be named"
    )
    return f", but its {interval}, does not clear the bar; {remedy}"


def items_to_decide(rule: Threshold, estimate: Estimate, graded: int) -> int | None:
    """Return about how many graded items would bring the interval clear of the nearest bar.

    An interval shrinks with the square root of the number of items. None where no number would:
    the estimate lies on the bar, or there is no interval.
    """
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return None
    gap = min(abs(estimate.value - bar) for bar in (rule.min, rule.max) if bar is not None)
    half = max(estimate.high - estimate.value, estimate.value - estimate.low)
    if gap < 1e-9:
        return None
    return max(graded + 1, _rounded(graded * (half / gap) ** 2))


def _rounded(number: float) -> int:
    """Return two leading digits: an estimate should not look exact."""
    return int(float(f"{number:.1e}"))
