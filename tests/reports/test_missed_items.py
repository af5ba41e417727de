"""What a terminal shows of missed items where a run asked only a few."""

import re

import pytest

from qagate.reports.render.missed_items import MOST_CHARACTERS, missed_items
from qagate.reports.run.record import Record
from tests.support.samples import record, report


def missed(number: int, **changes: object) -> Record:
    """Return a record that is graded INCORRECT."""
    values: dict[str, object] = {
        "outcome": "failed",
        "grade": "INCORRECT",
        "question": "What is the capital of Bulgaria?",
        "expected": "Sofia",
        "golds": ("Sofia", "Sofiya"),
        "answer": "Plovdiv",
        "reason": "Plovdiv is the second city.",
    }
    return record(number, **{**values, **changes})


def test_an_item_is_shown_with_all_that_explains_it() -> None:
    """Question, every gold, the answer, and the judge's reason."""
    lines = list(missed_items(report((missed(1),))))
    assert lines == [
        "missed       simpleqa-en-1: INCORRECT",
        "    question What is the capital of Bulgaria?",
        "    expected Sofia | Sofiya",
        "    answer   Plovdiv",
        "    reason   Plovdiv is the second city.",
    ]


def test_an_ungraded_item_is_shown_with_its_error() -> None:
    """There is no grade, and no answer here."""
    ungraded = missed(
        1, outcome="error", grade=None, answer=None, reason="", error="timeout: 120 s"
    )
    lines = list(missed_items(report((ungraded,))))
    assert lines[0] == "missed       simpleqa-en-1: ERROR"
    assert lines[-1] == "    reason   timeout: 120 s"
    assert not any(line.startswith("    answer") for line in lines)


def test_what_passed_or_was_not_asked_is_not_shown() -> None:
    """Only what somebody has to look into."""
    records = (record(1), missed(2, outcome="stopped"), missed(3, outcome="missing"))
    assert list(missed_items(report(records))) == []


@pytest.mark.parametrize(("count", "shown"), [(10, 10), (11, 0)])
def test_a_larger_run_shows_none(count: int, shown: int) -> None:
    """Its page has them."""
    records = tuple(missed(number) for number in range(1, count + 1))
    lines = [line for line in missed_items(report(records)) if re.match("missed", line)]
    assert len(lines) == shown


def test_a_long_answer_is_cut() -> None:
    """A terminal is no place for a book."""
    lines = list(missed_items(report((missed(1, answer="word " * 1_000),))))
    assert sum(len(line) for line in lines) < 2 * MOST_CHARACTERS


def test_an_answer_cannot_command_the_terminal() -> None:
    """Control characters are written out."""
    lines = list(missed_items(report((missed(1, answer="\x1b[2J::error::x"),))))
    assert not any("\x1b" in line or line.startswith("::") for line in lines)
