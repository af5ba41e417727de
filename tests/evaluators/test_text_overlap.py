"""Shared wording as a measure: bounds, scripts, several golds, and none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.answer_checks import WORDING_METRICS
from evaluators.core import Case, JudgeError
from tests.support.scripted import make_case

GOLD = "Да, банката може да приспадне това вземане."


def case(*golds: str) -> Case:
    return make_case(golds=golds or (GOLD,))


@pytest.mark.parametrize("name", WORDING_METRICS)
def test_the_same_words_are_one_and_others_none(name: str) -> None:
    """In any script: what is written in Cyrillic counts as what is written in Latin letters."""
    run = WORDING_METRICS[name]
    assert run(case(), GOLD) == pytest.approx(1)
    assert run(case(), "") == 0
    assert run(case(), "xyz") == 0
    part = run(case(), "Не, банката не може да приспадне.")
    assert 0 < part < 1


@pytest.mark.parametrize("name", WORDING_METRICS)
def test_the_nearest_of_several_golds_counts(name: str) -> None:
    """A second accepted answer never lowers what the first one gave."""
    one, both = case(GOLD), case("Wholly other words stand here, and more of them.", GOLD)
    assert WORDING_METRICS[name](both, GOLD) == pytest.approx(WORDING_METRICS[name](one, GOLD))


@pytest.mark.parametrize("name", WORDING_METRICS)
def test_without_an_expert_answer_there_is_no_measure(name: str) -> None:
    """An error of the item, not a zero."""
    with pytest.raises(JudgeError, match="no expert answer"):
        WORDING_METRICS[name](case(" "), GOLD)


@given(gold=st.text(min_size=1, max_size=40).filter(str.strip), answer=st.text(max_size=40))
def test_every_measure_lies_between_nothing_and_all(gold: str, answer: str) -> None:
    """Whatever the texts hold."""
    for run in WORDING_METRICS.values():
        assert 0 <= run(case(gold), answer) <= 1
