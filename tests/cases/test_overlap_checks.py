"""The linter finds items on which judges are measured or attacked as well."""

import pytest

from cases.check.overlap_checks import calibration_overlap
from tests.support.linting import found, item, said, subject


@pytest.mark.parametrize(
    ("language", "question", "gold", "told"),
    [
        ("en", "What is the capital of New Zealand?", "Wellington", True),
        ("en", "what is the CAPITAL of New Zealand", "somewhere else", True),
        ("en", "Which capital city has New Zealand?", "Wellington", True),
        ("en", "Which city in New Zealand has a cable car?", "Auckland", False),
        ("en", "Who won the battle of Waterloo?", "Wellington", False),
        ("pl", "Kto jest autorem powieści „Lalka”?", "Bolesław Prus", False),
        ("pl", "Kto napisał powieść „Lalkę”?", "Bolesław Prus", True),
        ("xx", "What is the capital of New Zealand?", "Wellington", False),
    ],
)
def test_the_same_question_or_fact_is_told(
    language: str, question: str, gold: str, *, told: bool
) -> None:
    """The words alone, or two words of the question and the gold; other languages are apart."""
    row = item(3, question, gold, language=language)
    assert found(calibration_overlap, subject(row, language=language)) == [("warning", 3)] * told


def test_the_message_names_the_labelled_item() -> None:
    """Whoever reads it can look at both."""
    own = subject(item(1, "What is the capital of New Zealand?", "Wellington"))
    assert "judges:en row 2" in said(calibration_overlap, own)
    assert not found(calibration_overlap, subject(*own.cases, kind="judged"))
    assert not found(calibration_overlap, subject(*own.cases, kind="yes_no"))
