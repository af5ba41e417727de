"""Tables for a terminal, as wide as it is: gates, and a comparison of two runs."""

import re
import shutil
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluators.output import plural
from evaluators.statistics.intervals import number
from reports.gates.sequential import REVIEW
from reports.render import words
from reports.run import clean
from reports.run.evidence import Comparison
from reports.run.report import WARNING, GateResult, Report

WIDTH = 100  # where no terminal says its own
STATE = 13  # columns of a verdict
LISTED = 10  # changed items named
_FEWER = "repeats left out, as the baseline has fewer"
_ROW = "{:<16} {:>6} {:>6} {:>6}  {:<24} {:>9}  {:<20}"


def gates(report: Report, folder: Path | None = None) -> Iterator[str]:
    """Yield the gates, FAIL first, with why, and notes; commands name the report's ``folder``."""
    for gate in words.by_urgency(report.decision.gates):
        title, *why = gate_lines(gate, folder)
        yield f"{gate.state:<{STATE}}{title}"
        yield from why
    yield from warnings(report.comparison)
    yield from wrapped(words.origin(report.run))
    yield from notes(report)


def gate_lines(gate: GateResult, folder: Path | None = None) -> list[str]:
    """Return a gate's line, to stand behind its verdict, and why; not if it surely passes."""
    value = words.signed(gate.estimate) if gate.threshold.paired else gate.estimate.text()
    title = f"{gate.slice:<14} {gate.name} {value}, bar {words.bar(gate)}"
    title = ", ".join(filter(None, [title, gate.pairs, gate.needs]))
    if gate.state == "PASS" and gate.worst == gate.best:
        return [title]
    reason = gate.reason.replace(REVIEW, f"qagate review {folder}") if folder else gate.reason
    return [title, *wrapped(clean.line(reason), "    ")]


def warnings(compared: Comparison | None) -> Iterator[str]:
    """Yield whole what else than the model may be why two runs differ."""
    for warning in compared.warnings if compared else ():
        yield from wrapped(f"WARNING: {clean.line(warning)}")


def notes(report: Report) -> Iterator[str]:
    """Yield the notes on a run, those that touch the verdict first; a note's lines are indented."""
    for note in sorted(report.notes, key=_urgency):
        text = clean.line(note)
        yield from wrapped(text if text.startswith(WARNING) else f"note: {text}")


NOTED = 3  # notes that a terminal shows besides those that touch the verdict
FLIPS = 5  # items that broke
_ADVICE = re.compile(
    r"[;:,] (or )?(add|ask|give|install|keep|label|make|name|run|say|see|set|use|write|qagate|--)"
)


def _urgency(note: str) -> int:
    """Return 0 for a note that touches the verdict, 1 where there is something to do, else 2."""
    return 0 if note.startswith(WARNING) else 2 - bool(_ADVICE.search(note))


def brief(report: Report) -> Iterator[str]:
    """Yield ungraded items, what broke, all notes that touch the verdict, and three others."""
    for name, counts in ((one.name, one.counts) for one in report.slices):
        lacking = ("ERROR", counts.error), ("MISSING", counts.missing)
        if texts := ", ".join(f"{count:,} {state}" for state, count in lacking if count):
            yield f"not graded   {name}: {texts} of {counts.planned:,}"
    for record, _ in words.broke(report)[:FLIPS]:
        yield clean.cut(f"broke        {record.key}: {clean.line(record.question)}", width())
    shown = sorted(report.notes, key=_urgency)
    urgent = [note for note in shown if note.startswith(WARNING)]
    yield from notes(replace(report, notes=tuple(shown[: len(urgent) + NOTED])))
    if (more := len(shown) - len(urgent) - NOTED) > 0:
        yield f"and {plural(more, 'more note')}: in summary.md, on the page, or with -v"


def totals(report: Report) -> Iterator[str]:
    """Yield how many items the model passed and missed, and how many labelled answers the judge."""
    for who, what, answered in (("model", "item", True), ("judge", "labelled answer", False)):
        if counts := [one.counts for one in report.slices if one.kind.answered == answered]:
            yield (
                f"{who}: {plural(sum(one.planned for one in counts), what)}, "
                f"{sum(one.passed for one in counts):,} right, "
                f"{sum(one.failed for one in counts):,} missed, "
                f"{sum(one.ungraded for one in counts):,} without a grade"
            )


def comparison(report: Report) -> Iterator[str]:
    """Yield the comparison table, its warnings, and the items that broke."""
    compared = report.comparison
    if compared is None:
        return
    yield from _table(report, compared, "old")
    if broke := words.broke(report):
        yield from ("", f"broke ({len(broke):,}):")
    for record, change in broke[:LISTED]:
        texts = (
            f"  {record.key}: {clean.line(record.question)}",
            f"    expected: {clean.line(record.expected)}",
            f"    old: {clean.line(change.answer or '')}",
            f"    new: {clean.line(record.answer or '')}",
        )
        yield from (clean.cut(text, width()) for text in texts)
    if len(broke) > LISTED:
        yield f"  and {len(broke) - LISTED:,} more"
    if report.since_anchor is not None:
        yield from ("", *_table(report, report.since_anchor, "anchor"))


def _table(report: Report, compared: Comparison, name: str) -> Iterator[str]:
    yield f"{name}: {clean.line(compared.model)}, judge {clean.line(compared.judge)}"
    yield from (f"new: {clean.line(words.model(report))}, judge {clean.line(report.judge)}", "")
    header = ("slice", "pairs", "fixed", "broke", "new - old [95 %]", "McNemar p")
    yield _ROW.format(*header, "odds fixed : broke").rstrip()
    for one in compared.slices:
        cells = (one.name, one.difference.n, one.fixed, one.broke, words.signed(one.difference))
        yield _ROW.format(*cells, words.p_value(one.p_value), words.odds(one.odds)).rstrip()
        moved = [f"{name} {words.signed(found)}" for name, found in one.differences.items()]
        lone = [("new", one.added), ("removed", one.removed), ("changed data", one.changed)]
        lone += [("ungraded", one.ungraded), (_FEWER, one.repeats)]
        moved += [f"{count:,} {what}" for what, count in lone if count]
        yield from wrapped("; ".join(moved), "    ")
    yield from warnings(compared)


def width() -> int:
    """Return the columns of the terminal; 100 where there is none, and never fewer than 40."""
    return max(40, shutil.get_terminal_size((WIDTH, 24)).columns)


def wrapped(text: str, indent: str = "") -> list[str]:
    """Return a sentence on lines as wide as the terminal, the later ones indented."""
    how: Any = {"subsequent_indent": "    ", "break_on_hyphens": False}
    return textwrap.wrap(text, width(), initial_indent=indent, **how)


LIMIT = 10  # GitHub shows ten errors and ten warnings a step
_LEVELS = {"FAIL": "error", "INCONCLUSIVE": "warning"}


def annotations(report: Report) -> Iterator[str]:
    """Yield a line for each gate that is FAIL or INCONCLUSIVE, FAIL first, at most ten a level."""

    def data(text: str, more: str = "") -> str:
        for character in f"%\r\n{more}":
            text = text.replace(character, f"%{ord(character):02X}")
        return text

    left = dict.fromkeys(_LEVELS.values(), LIMIT)
    for gate in words.by_urgency(report.decision.gates):
        level = _LEVELS.get(gate.state)
        if level and left[level]:
            left[level] -= 1
            found, title = gate.estimate, f"{gate.state}: {gate.slice} {gate.name}"
            text = f"{gate.name} {number(found.value)}, 95 % interval {words.interval(found)}, "
            text += f"n={found.n}; bar {words.bar(gate)}"
            yield f"::{level} title={data(title, ':,')}::{data(text)}"
