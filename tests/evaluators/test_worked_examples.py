"""The worked examples: every kind of decision in every language."""

from collections import Counter

import pytest

from evaluators.core import GRADES
from tests.support.worked_examples import worked_examples

LANGUAGES = ["en", "bg", "pl", "hu", "be"]
KINDS = {
    "list_order": "CORRECT",
    "hedged_right": "CORRECT",
    "verbose": "CORRECT",
    "number_equal": "CORRECT",
    "number_rounds": "CORRECT",
    "two_names": "CORRECT",
    "place_implied": "CORRECT",
    "word_implied": "CORRECT",
    "name_implied": "CORRECT",
    "part_as_whole": "INCORRECT",
    "extra_item": "INCORRECT",
    "denial": "INCORRECT",
    "left_open": "INCORRECT",
    "contradiction": "INCORRECT",
    "hedged_wrong": "INCORRECT",
    "number_off": "INCORRECT",
    "unknown": "NOT_ATTEMPTED",
    "which_one": "NOT_ATTEMPTED",
    "true_remark": "NOT_ATTEMPTED",
    "part_admitted": "NOT_ATTEMPTED",
    "rough_number": "NOT_ATTEMPTED",
    "bound": "NOT_ATTEMPTED",
    "coarse": "NOT_ATTEMPTED",
}
"""Kinds of decision that have one grade, whatever the question."""


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_kind_of_decision_stands_in_every_language(language: str) -> None:
    """A kind has one grade; numbers, ranges and false premises have right and wrong answers."""
    found = [example for example in worked_examples() if example.language == language]
    assert len(found) >= 24
    assert {example.grade for example in found} == set(GRADES)
    decided = {example.rule: example.grade for example in found if example.rule in KINDS}
    assert decided == KINDS
    for rule in ("range", "premise"):
        assert {example.grade for example in found if example.rule == rule} >= {"CORRECT"}


def test_no_answer_stands_twice_and_none_gives_its_rule_away() -> None:
    """An answer to a question is graded once, and with the one grade of its kind."""
    examples = worked_examples()
    counted = Counter((example.language, example.question, example.answer) for example in examples)
    assert max(counted.values()) == 1
    assert [e for e in examples if KINDS.get(e.rule, e.grade) != e.grade] == []
