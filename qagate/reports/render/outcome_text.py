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
    case, verdict = item.case, outcome.verdict or Verdict()
    answered, rated = item.slice.kind.answered, verdict.rating is not None
    passes = f"{verdict.rating} of 10, passes from {item.slice.pass_bar}"
    return _lines(
        question=case.question,
        expected=case.expected if answered else f"{case.label} (gold: {case.expected})",
        answer=outcome.answer or "(empty)",
        verdict=passes if rated else verdict.grade or "(none)",
        reason=verdict.reason or "(none given)",
    )


def error_lines(item: PlannedItem, outcome: Outcome) -> str:
    """Return what could not be asked, judged or read, and why."""
    said = {} if outcome.answer is None else {"answer": outcome.answer or "(empty)"}
    return _lines(
        question=item.case.question, **said, ERROR=f"{outcome.kind}: {outcome.message}"
    )


def _lines(**texts: str) -> str:
    shown = ((f"{name}:", cut(line(mask(text)), WIDTH)) for name, text in texts.items())
    return "\n".join(f"{name:<10}{text}" for name, text in shown)


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
