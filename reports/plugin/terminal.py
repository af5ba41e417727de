"""What the terminal shows when a run is over: slices, gates, and where the report is."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pytest

from reports.render import clean, console, words
from reports.report import GateResult, Report, SliceSummary

_COLOURS = {"PASS": "green", "FAIL": "red", "INCONCLUSIVE": "yellow"}


def show_report(reporter: pytest.TerminalReporter, report: Report, folder: Path) -> None:
    """Write the slice table, the gate table (FAIL first), the notes and the report's path.

    Under ``-q`` the gate table alone; under ``-v`` the slices' breakdowns too.
    """
    verbosity = reporter.config.option.verbose
    if verbosity >= 0:
        reporter.section("qa slices")
        for line in slice_lines(report.slices, breakdowns=verbosity > 0):
            reporter.write_line(line)
    _show_gates(reporter, words.by_urgency(report.decision.gates))
    if verbosity < 0:
        return
    for line in console.notes(report):
        reporter.write_line(line)
    reporter.write_line(f"report: {folder / 'report.html'}")


def _show_gates(reporter: pytest.TerminalReporter, gates: Sequence[GateResult]) -> None:
    if gates:
        reporter.section("qa gates")
    for gate in gates:
        reporter.write(f"{gate.state:<{console.STATE}}", **{_COLOURS[gate.state]: True})
        for line in console.gate_lines(gate):
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
        shown = [f"{name} {found.text()}" for name, found in words.headline(one).items()]
        lines.extend("    " + line for line in _wrapped(shown))
        lines.extend(_breakdown_lines(one) if breakdowns else ())
    return lines


def _breakdown_lines(one: SliceSummary) -> Iterator[str]:
    measure = next(iter(words.headline(one)), "")
    for field, values in one.breakdowns.items():
        for value, measures in values.items():
            if measure in measures:
                estimate = measures[measure]
                name = clean.cut(clean.line(f"{field} = {value}"), 40)
                yield f"        {name:<40} {measure} {estimate.text()} (n={estimate.n})"


def _wrapped(parts: Sequence[str]) -> list[str]:
    """Return the parts on lines that leave room for an indent, none of them broken."""
    lines = [""]
    for part in parts:
        longer = f"{lines[-1]}  {part}" if lines[-1] else part
        if len(longer) > console.WIDTH - 4 and lines[-1]:
            lines.append(part)
        else:
            lines[-1] = longer
    return lines
