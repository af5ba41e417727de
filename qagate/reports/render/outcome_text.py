"""What a miss or an ERROR looks like in the terminal: five lines, safe to print anywhere."""

import json
from collections.abc import Mapping
from dataclasses import asdict

from qagate.cases.dataset import PlannedItem
from qagate.evaluators.core import Outcome, Verdict
from qagate.reports.run.clean import cut, line, mask
from qagate.reports.run.record import make_record

WIDTH = 300  # characters of each text that are shown


def miss_lines(item: PlannedItem, outcome: Outcome) -> str:
    """Return question, expected, answer, verdict and reason, a line each."""
    case = item.case
    verdict = outcome.verdict or Verdict()
    expected = case.expected
    if not item.slice.kind.answered:
        expected = f"{case.label} (gold: {case.expected})"
    verdict_text = verdict.grade or "(none)"
    if verdict.rating is not None:
        verdict_text = f"{verdict.rating} of 10, passes from {item.slice.pass_bar}"
    return _lines(
        ("question", case.question),
        ("expected", expected),
        ("answer", outcome.answer or "(empty)"),
        ("verdict", verdict_text),
        ("reason", verdict.reason or "(none given)"),
    )


def error_lines(item: PlannedItem, outcome: Outcome) -> str:
    """Return what could not be asked, judged or read, and why."""
    question = ("question", item.case.question)
    error = ("ERROR", f"{outcome.kind}: {outcome.message}")
    if outcome.answer is None:
        return _lines(question, error)
    return _lines(question, ("answer", outcome.answer or "(empty)"), error)


def _lines(*texts: tuple[str, str]) -> str:
    """Return texts after their headings, a line each."""
    lines = []
    for heading, text in texts:
        label = f"{heading}:"
        lines.append(f"{label:<10}{cut(line(mask(text)), WIDTH)}")
    return "\n".join(lines)


LONGEST = 4000  # characters of each text; the exact text is in records.jsonl


def qa_property(item: PlannedItem, outcome: Outcome) -> str:
    """Return the item's record as ASCII JSON, long texts cut with a mark."""
    values = asdict(make_record(item, outcome))
    return json.dumps({name: _short(value) for name, value in values.items()})


def _short(value: object) -> object:
    if isinstance(value, Mapping):
        return {str(_short(name)): _short(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_short(inner) for inner in value]
    if not isinstance(value, str) or len(value) <= LONGEST:
        return value
    return f"{value[:LONGEST]} [... {len(value)} characters]"
