"""What the terminal shows when a run is over: slices, gates, and where the report is."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from reports.report import Estimate, GateResult, Report, SliceSummary

WIDTH = 100
_COLOURS = {"PASS": "green", "FAIL": "red", "INCONCLUSIVE": "yellow"}
_HEADLINE = {
    "graded": ("correct", "incorrect", "not_attempted", "f_score"),
    "rated": ("mean_rating", "pass_rate"),
    "yes_no": ("accuracy", "f1", "unanswered"),
    "judged": ("agreement", "kappa", "self_agreement"),
}


def show_report(reporter: pytest.TerminalReporter, report: Report, folder: Path) -> None:
    """Write the slice table, the gate table, the notes and the report's path.

    Under ``-q`` the gate table alone; under ``-v`` the slices' breakdowns too.
    """
    verbosity = reporter.config.option.verbose
    if verbosity >= 0:
        reporter.section("qa slices")
        for line in slice_lines(report.slices, breakdowns=verbosity > 0):
            reporter.write_line(line)
    _show_gates(reporter, report.decision.gates)
    if verbosity < 0:
        return
    for note in report.notes:
        for line in wrapped(f"note: {note}"):
            reporter.write_line(line)
    reporter.write_line(f"report: {folder / 'report.html'}")


def _show_gates(reporter: pytest.TerminalReporter, gates: Sequence[GateResult]) -> None:
    if gates:
        reporter.section("qa gates")
    for gate in gates:
        reporter.write(f"{gate.state:<13}", **{_COLOURS[gate.state]: True})
        for line in gate_lines(gate):
            reporter.write_line(line)


def slice_lines(slices: Iterable[SliceSummary], *, breakdowns: bool = False) -> list[str]:
    """Return counts and measures of each slice, in lines at most 100 columns wide.

    With ``breakdowns`` the first measure also by each value of a metadata field.
    """
    lines = []
    for one in slices:
        counts = one.counts
        partial = "  PARTIAL" if one.partial else ""
        lines.append(
            f"{one.name:<20} {counts.planned:>6} planned {counts.passed:>6} passed"
            f" {counts.failed:>6} failed {counts.error:>5} error {counts.missing:>5} missing"
            f"{partial}"
        )
        shown = [
            f"{name} {estimate_text(one.measures[name])}"
            for name in _HEADLINE[one.kind]
            if name in one.measures
        ]
        lines.extend("    " + line for line in _wrapped(shown, WIDTH - 4))
        lines.extend(_breakdown_lines(one) if breakdowns else ())
    return lines


def _breakdown_lines(one: SliceSummary) -> Iterator[str]:
    measure = _HEADLINE[one.kind][0]
    for field, values in one.breakdowns.items():
        for value, measures in values.items():
            if measure in measures:
                estimate = measures[measure]
                name = f"{field} = {value}"[:40]
                yield f"        {name:<40} {measure} {estimate_text(estimate)} (n={estimate.n})"


def gate_lines(gate: GateResult) -> list[str]:
    """Return what the gate asked and got; the first line follows the verdict's 13 columns."""
    rule = f"{gate.slice:<20} {gate.rule.measure} {gate.bar}"
    return [rule, *("    " + line for line in _wrapped(gate.reason.split(" "), WIDTH - 4, " "))]


def estimate_text(estimate: Estimate) -> str:
    """Return a measure with its interval, for instance ``0.412 [0.35, 0.48]``."""
    if estimate.value is None:
        return "undefined"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.3f}"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _wrapped(parts: Sequence[str], width: int, joint: str = "  ") -> list[str]:
    lines = [""]
    for part in parts:
        longer = f"{lines[-1]}{joint}{part}" if lines[-1] else part
        if len(longer) > width and lines[-1]:
            lines.append(part)
        else:
            lines[-1] = longer
    return lines


def wrapped(text: str) -> list[str]:
    """Return a sentence on lines of at most 100 columns; all but the first are indented."""
    first, *rest = _wrapped(text.split(" "), WIDTH - 4, " ")
    return [first, *("    " + line for line in rest)]
