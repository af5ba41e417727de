"""What a miss or an ERROR looks like in the terminal: five lines, safe to print anywhere."""

from cases.plan import Item
from evaluators.core import Outcome
from reports.record import Record, make_record
from reports.render.clean import cut, line

WIDTH = 300  # characters of each text that are shown


def miss_lines(item: Item, outcome: Outcome) -> str:
    """Return question, expected, answer, verdict and reason, a line each."""
    record = make_record(item, outcome)
    return "\n".join(
        [
            _line("question", record.question),
            _line("expected", _expected(record, item)),
            _line("answer", record.answer or "(empty)"),
            _line("verdict", _verdict(record, item)),
            _line("reason", record.reason or "(none given)"),
        ]
    )


def error_lines(item: Item, outcome: Outcome) -> str:
    """Return what could not be asked, judged or read, and why."""
    problem = f"{outcome.kind}: {outcome.message}"
    lines = [_line("question", item.case.question), _line("ERROR", problem)]
    if outcome.answer is not None:
        lines.insert(1, _line("answer", outcome.answer or "(empty)"))
    return "\n".join(lines)


def _expected(record: Record, item: Item) -> str:
    if item.slice.kind == "judged":
        return f"{record.label} (gold: {record.expected})"
    return record.expected


def _verdict(record: Record, item: Item) -> str:
    if record.rating is not None:
        return f"{record.rating} of 10, passes from {item.slice.pass_bar}"
    return record.grade or "(none)"


def _line(name: str, text: str) -> str:
    return f"{name + ':':<10}{cut(line(text), WIDTH)}"
