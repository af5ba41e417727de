"""What the terminal shows when a run is over: slices, gates, and where the report is."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from cases.tasks import calls_of
from evaluators.engine import Task
from reports.report import Estimate, GateResult, Report, SliceSummary

WIDTH = 100
_COLOURS = {"PASS": "green", "FAIL": "red", "INCONCLUSIVE": "yellow"}
_HEADLINE = {
    "graded": ("correct", "incorrect", "not_attempted", "f_score"),
    "rated": ("mean_rating", "pass_rate"),
    "yes_no": ("accuracy", "f1", "unanswered"),
    "judged": ("agreement", "kappa"),
}


def show_report(reporter: pytest.TerminalReporter, report: Report, folder: Path) -> None:
    """Write the slice table, the gate table, the notes and the report's path."""
    reporter.section("qa slices")
    for line in slice_lines(report.slices):
        reporter.write_line(line)
    if report.decision.gates:
        reporter.section("qa gates")
    for gate in report.decision.gates:
        reporter.write(f"{gate.state:<13}", **{_COLOURS[gate.state]: True})
        for line in gate_lines(gate):
            reporter.write_line(line)
    for note in report.notes:
        reporter.write_line(f"note: {note}")
    reporter.write_line(f"report: {folder / 'report.html'}")


def slice_lines(slices: Iterable[SliceSummary]) -> list[str]:
    """Return a line of counts and a line of measures for each slice, at most 100 columns wide."""
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
    return lines


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


def show_plan(reporter: pytest.TerminalReporter, tasks: Sequence[Task]) -> None:
    """Write how many items and calls each slice would take; for a dry run."""
    reporter.section("qa plan: nothing is called")
    for line in plan_lines(tasks):
        reporter.write_line(line)


def plan_lines(tasks: Sequence[Task]) -> list[str]:
    """Return a line for each slice and one for all; calls are those of a run without retries."""
    items: Counter[str] = Counter()
    calls: Counter[str] = Counter()
    for task in tasks:
        for name in (f"{task.case.dataset}:{task.case.language}", "all"):
            items[name] += 1
            calls[name] += calls_of(task)
    names = [*(name for name in items if name != "all"), *(["all"] if tasks else [])]
    return [f"{name:<20} {items[name]:>6} items {calls[name]:>6} calls" for name in names]
