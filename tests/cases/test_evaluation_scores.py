"""The builder's measures are the suite's own: same figures, same intervals, on the same answers."""

from collections.abc import Sequence

from hypothesis import example, given, settings
from hypothesis import strategies as st

from cases.evaluation.scores import ANSWERS, GOLDS, NAMES, scores
from evaluators.core import NO, UNANSWERED, YES
from reports.summary import tabulate
from tests.support.made_records import make_slice, numbered

Pairs = Sequence[tuple[str, str]]


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(GOLDS), st.sampled_from(ANSWERS)), max_size=40))
@example([])
@example([(YES, YES)] * 5)
@example([(YES, YES), (NO, NO)])
@example([(NO, UNANSWERED)] * 3)
@example([(YES, NO)] * 4 + [(NO, YES)] * 4)
def test_figures_are_those_of_a_run(pairs: Pairs) -> None:
    """Every measure, its interval and its number of items are as a report gives them."""
    records = numbered(
        [
            {"label": gold, "grade": answer, "outcome": "passed" if gold == answer else "failed"}
            for gold, answer in pairs
        ]
    )
    own = tabulate(records, make_slice("yes_no")).estimates()
    found = scores(pairs)
    assert tuple(found) == NAMES
    for name, one in found.items():
        told = own[name]
        assert (one.value, one.low, one.high, one.n) == (told.value, told.low, told.high, told.n)


def test_unanswered_is_wrong() -> None:
    """It is a false negative where the gold is yes, and no prediction where it is no."""
    found = scores([(YES, YES), (YES, UNANSWERED), (NO, UNANSWERED), (NO, NO)])
    assert found["accuracy"].value == 0.5
    assert found["precision"].value == 1.0
    assert found["recall"].value == 0.5
    assert found["unanswered"].value == 0.5
    assert found["f1"].value == 2 / 3
    assert found["majority_baseline"].value == 0.5


def test_nothing_is_undefined_and_not_zero() -> None:
    """Without items there is no figure."""
    assert {one.value for one in scores([]).values()} == {None}
