"""What a session shows of its report at the end of pytest's output."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pytest

from qagate.reports.render import console, words, worst_first
from qagate.reports.render.missed_items import missed_items
from qagate.reports.run import clean
from qagate.reports.run.report import Report, SliceSummary
from qagate.reports.run.report_folder import previous

COLOURS = {"PASS": "green", "FAIL": "red", "INCONCLUSIVE": "yellow"}
INDENT = "    "
BREAKDOWN_WIDTH = 40
"""Characters for the name of a part of a slice, such as ``topic = history``."""


def show_report(
    reporter: pytest.TerminalReporter, report: Report, folder: Path
) -> None:
    """Write gates, misses, what broke, notes and the path; ``-v`` adds slices and every note."""
    is_verbose = reporter.config.option.verbose > 0
    if is_verbose:
        reporter.write_sep("=", "qa slices")
        for line in slice_lines(report.slices):
            reporter.write_line(line)
    if report.decision.gates:
        reporter.write_sep("=", "qa gates")  # unlike section() it ends the line before
    for gate in worst_first.gates(report):
        colour = {COLOURS[gate.state]: True}
        reporter.write(f"{gate.state:<{console.STATE}}", **colour)
        for line in console.gate_lines(gate, folder):
            reporter.write_line(line)
    health_lines = list(console.health_lines(report))
    if health_lines:
        reporter.write_sep("=", "qa health")
    for line in health_lines:
        reporter.write_line(line)
    lines = [
        *missed_items(report),
        *console.warnings(report.comparison),
        *(console.notes(report) if is_verbose else console.brief(report)),
        *_last_lines(report, folder),
        *ci_lines(report, os.environ),
    ]
    for line in lines:
        reporter.write_line(line)


def _last_lines(report: Report, folder: Path) -> list[str]:
    """Return where the replies come from, the totals, where the report is, and what to do."""
    lines = [*console.wrapped(words.origin(report.run)), *console.totals(report)]
    lines += console.verdict_lines(report)
    lines.append(f"report: {folder / 'report.html'}")
    page_before = previous(folder) / "report.html"
    if report.verdict not in ("PASS", "FAIL") and page_before.is_file():
        lines.append(f"the last one that decided: {page_before}")
    lines += console.next_step(report, folder)
    return lines


def ci_lines(report: Report, environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the commands that annotate a GitHub run; none elsewhere."""
    if environment.get("GITHUB_ACTIONS") == "true":
        yield from console.annotations(report)


def slice_lines(slices: Iterable[SliceSummary]) -> list[str]:
    """Return counts and metrics of each slice, and its headline by its breakdowns."""
    lines = []
    for summary in slices:
        lines.append(_count_line(summary))
        lines += _rows(_parts(summary))
        lines += _breakdown_lines(summary)
    return lines


def _count_line(summary: SliceSummary) -> str:
    counts = summary.counts
    line = (
        f"{summary.name:<20} {counts.planned:>6} planned {counts.passed:>6} right"
        f" {counts.failed:>6} missed {counts.error:>5} error {counts.missing:>5} missing"
    )
    return f"{line}  PARTIAL" if summary.partial else line


def _parts(summary: SliceSummary) -> list[str]:
    """Return what is said of a slice below its counts; no part is to be broken."""
    parts = []
    if summary.sample:
        parts.append(f"sample: {summary.sample.text}")
    if summary.counts.stopped:
        parts.append(f"{summary.counts.stopped:,} stopped: decided without them")
    for name, estimate in words.headline(summary).items():
        parts.append(f"{name} {estimate.text()}")
    return parts


def _rows(parts: Iterable[str]) -> list[str]:
    """Return as many parts in a row as fit into the terminal with the indent."""
    width = console.width() - len(INDENT)
    rows = [""]
    for part in parts:
        longer = f"{rows[-1]}  {part}" if rows[-1] else part
        if len(longer) <= width or not rows[-1]:
            rows[-1] = longer
        else:
            rows.append(part)
    return [f"{INDENT}{row}" for row in rows]


def _breakdown_lines(summary: SliceSummary) -> Iterator[str]:
    """Yield the headline metric of each part of a slice, where it is known."""
    metric = next(iter(words.headline(summary)), "")
    for field, parts in summary.breakdowns.items():
        for value, estimates in parts.items():
            estimate = estimates.get(metric)
            if estimate:
                name = clean.cut(clean.line(f"{field} = {value}"), BREAKDOWN_WIDTH)
                text = f"{metric} {estimate.text()} (n={estimate.n})"
                yield f"{INDENT}{INDENT}{name:<{BREAKDOWN_WIDTH}} {text}"
