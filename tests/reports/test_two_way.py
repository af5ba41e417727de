"""Labels that say only whether an answer is right: counted, rated, attacked and compared."""

from dataclasses import replace

import pytest

from evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, Verdict
from evaluators.kinds import JUDGED, NOT_CORRECT
from reports.compare.differences import differences
from reports.compare.pairs import PairedSlice, pair_records
from reports.metrics.summary import summarise
from reports.run.record import Record
from tests.support.made_records import make_record, make_slice, numbered

GRADED = numbered(
    [
        {"label": CORRECT, "grade": CORRECT},
        {"label": CORRECT, "grade": NOT_ATTEMPTED, "outcome": "failed"},
        {"label": NOT_CORRECT, "grade": INCORRECT},
        {"label": NOT_CORRECT, "grade": NOT_ATTEMPTED},
        {"label": NOT_CORRECT, "grade": CORRECT, "outcome": "failed"},
        {"label": None, "grade": CORRECT},
    ]
)


def values(records: list[Record], **fields: object) -> dict[str, float | None]:
    found = summarise(records, make_slice("judged", **fields)).measures
    return {name: one.value for name, one in found.items()}


def test_every_other_grade_is_not_right() -> None:
    """Of six items one has no label: raters tied, and it is in no figure."""
    found = values(GRADED)
    assert found["agreement"] == pytest.approx(3 / 5)
    assert found["precision"] == found["recall"] == 0.5
    assert found["youden"] == pytest.approx(1 / 2 + 2 / 3 - 1)
    assert "youden_incorrect" not in found


def test_attacks_have_figures_of_their_own() -> None:
    """What passed of the wrong ones, and what was lost of the right ones."""
    found = values(GRADED, attacks=True)
    assert set(found) == {"agreement", "attacks_passed", "controls_lost"}
    assert found["attacks_passed"] == pytest.approx(1 / 3)
    assert found["controls_lost"] == 0.5


def test_ratings_count_by_the_pass_bar() -> None:
    """A rating at the bar is that of a right answer."""
    ratings = (7, 6, 3, 9)
    rows = [{"label": label, "rating": rating, "grade": None}
            for label, rating in zip((CORRECT, CORRECT, NOT_CORRECT, NOT_CORRECT), ratings,
                                     strict=True)]  # fmt: skip
    found = values(numbered(rows), attacks=True, pass_bar=7)
    assert (found["attacks_passed"], found["controls_lost"]) == (0.5, 0.5)


@pytest.mark.parametrize(
    ("label", "verdict", "passed"),
    [
        (NOT_CORRECT, Verdict(grade=INCORRECT), True),
        (NOT_CORRECT, Verdict(grade=NOT_ATTEMPTED), True),
        (NOT_CORRECT, Verdict(grade=CORRECT), False),
        (CORRECT, Verdict(grade=CORRECT), True),
        (CORRECT, Verdict(grade=NOT_ATTEMPTED), False),
        (CORRECT, Verdict(rating=7), True),
        (CORRECT, Verdict(rating=6), False),
        (NOT_CORRECT, Verdict(rating=6), True),
        (None, Verdict(grade=INCORRECT), True),
        ("INCORRECT", Verdict(grade=NOT_ATTEMPTED), False),
    ],
)
def test_an_item_passes_where_the_verdict_is_on_the_labels_side(
    label: str | None, verdict: Verdict, *, passed: bool
) -> None:
    """Without a label there is nothing to miss."""
    case = make_record(1, label=label)
    assert JUDGED.passes(case, verdict, (CORRECT,), 7) is passed


def test_runs_are_compared_by_the_side_too() -> None:
    """One more item agrees now; a change among wrong grades is none."""
    now = [replace(GRADED[1], grade=CORRECT, outcome="passed"),
           replace(GRADED[2], grade=NOT_ATTEMPTED)]  # fmt: skip
    new = [GRADED[0], *now, *GRADED[3:]]
    side = PairedSlice(slice_=make_slice("judged"), pairing=pair_records(new, GRADED))
    found = differences([side])
    assert found["recall"].value == 0.5
    assert found["precision"].value == pytest.approx(2 / 3 - 1 / 2)
