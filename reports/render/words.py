"""The words and numbers that every report for people shares."""

import math
from collections import Counter

from reports.report import Estimate, GateResult, Report

UNDEFINED = "undefined"
_VERDICTS = {0: "PASS", 1: "FAIL", 2: "INCOMPLETE", 6: "INCONCLUSIVE"}
_URGENCY = {"FAIL": 0, "INCONCLUSIVE": 1, "PASS": 2}


def verdict(report: Report) -> str:
    """Return PASS, FAIL, INCONCLUSIVE or INCOMPLETE; NO GATES or ERROR where none of them fits.

    A run that was cut short is INCOMPLETE whatever its gates say.
    """
    if not report.complete:
        return "INCOMPLETE"
    word = _VERDICTS.get(report.decision.code, "ERROR")
    return "NO GATES" if word == "PASS" and not report.decision.gates else word


def number(value: float | None) -> str:
    """Return a measure with three decimals, or ``undefined`` (also for NaN and infinities)."""
    if value is None or not math.isfinite(value):
        return UNDEFINED
    return f"{round(value, 3) + 0.0:.3f}"  # adding 0.0 turns a negative zero into zero


def interval(estimate: Estimate) -> str:
    """Return a 95 % interval as ``low to high``, or a dash where there is none."""
    if estimate.low is None or estimate.high is None:
        return "–"
    return f"{number(estimate.low)} to {number(estimate.high)}"


def bounds(gate: GateResult) -> str:
    """Return a gate's measure with every ungraded item against it, and with every one for it."""
    ends = number(gate.worst), number(gate.best)
    return " to ".join(dict.fromkeys(ends))


def money(cost: float | None) -> str:
    """Return a sum in USD, or ``unknown`` where a price is missing."""
    return "unknown" if cost is None or not math.isfinite(cost) else f"${cost:,.4f}"


def bar(gate: GateResult) -> str:
    """Return a gate's threshold in words; for ``drop`` the margin below the baseline."""
    if gate.rule.measure == "drop" and gate.rule.max is not None:
        return f"not below -{gate.rule.max:g}"
    return gate.bar


def by_urgency(gates: tuple[GateResult, ...]) -> list[GateResult]:
    """Return the gates, FAIL first, then INCONCLUSIVE, then PASS, each in the order given."""
    return sorted(gates, key=lambda gate: _URGENCY[gate.state])


def ungraded(report: Report) -> list[tuple[str, str, int]]:
    """Return how often each kind of error or gap occurred: (outcome, kind, items), most first."""
    kinds = Counter(
        (record.outcome, record.error.partition(":")[0] or "unknown")
        for record in report.records
        if record.outcome in ("error", "missing")
    )
    return [(*pair, count) for pair, count in sorted(kinds.items(), key=lambda e: (-e[1], e[0]))]
