"""Claims about gates on the change of any metric: rises, means, ratios and extra metrics."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases.dataset import Threshold
from evaluators.core import CORRECT, INCORRECT, NO, NOT_ATTEMPTED, UNANSWERED, YES
from reports.compare.differences import differences
from reports.compare.pairs import PairedSlice, pair_records
from reports.gates.change import change_gates
from reports.run.record import Record
from reports.run.report import GateResult
from tests.support.made_records import make_dataset, make_slice, numbered
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of

GRADES = {"c": CORRECT, "i": INCORRECT, "n": NOT_ATTEMPTED}
WORDS = {"y": YES, "n": NO, "-": UNANSWERED}


def change(of: str, margin: float, measure: str = "drop", **fields: object) -> Threshold:
    made = Threshold(measure=measure, of=of, max=margin, evidence="confident", fail="margin")
    return replace(made, **fields)  # type: ignore[arg-type]


def decided(
    kind: str, new: Sequence[Record], old: Sequence[Record], *rules: Threshold, **fields: object
) -> list[GateResult]:
    side = PairedSlice(slice_=make_slice(kind, *rules, **fields), pairing=pair_records(new, old))
    return list(change_gates(make_dataset(side.slice_), [side]))


def one(
    kind: str, new: Sequence[Record], old: Sequence[Record], rule: Threshold, **fields: object
) -> GateResult:
    (found,) = decided(kind, new, old, rule, **fields)
    return found


def lettered(letters: str) -> list[Record]:
    """Return graded items; e is one without a grade."""
    rows: list[dict[str, object]] = [
        {"grade": GRADES.get(one), "outcome": {"c": "passed", "e": "error"}.get(one, "failed")}
        for one in letters
    ]
    return numbered(rows)


def rated(ratings: Sequence[int | None]) -> list[Record]:
    """Return rated items; None is one without a rating."""
    states = ("error" if one is None else "passed" if one >= 6 else "failed" for one in ratings)
    return numbered(
        [{"rating": one, "outcome": state} for one, state in zip(ratings, states, strict=True)]
    )


def said(labels: str, answers: str) -> list[Record]:
    """Return yes/no items; e is one without an answer."""
    rows: list[dict[str, object]] = []
    for label, answer in zip(labels, answers, strict=True):
        state = "error" if answer == "e" else "passed" if label == answer else "failed"
        rows.append({"label": WORDS[label], "grade": WORDS.get(answer), "outcome": state})
    return numbered(rows)


def test_more_hallucination_with_as_many_right_answers_fails() -> None:
    """INCORRECT from 10 to 40 %, CORRECT as before: the drop gate passes, the rise gate fails."""
    old = lettered("c" * 120 + "i" * 24 + "n" * 96)
    new = lettered("c" * 120 + "i" * 96 + "n" * 24)
    rise = change("incorrect", 0.05, "rise")
    drop, rose = decided("graded", new, old, change("", 0.1), rise)
    assert (drop.state, rose.state) == ("PASS", "FAIL")
    assert rose.reason.startswith(
        "incorrect: new - old is 0.3, 95 % interval 0.246 to 0.361: the rise is shown to be beyond "
        "the margin of 0.05 (72 up, 0 down of 240 pairs)"
    )
    fewer = one("graded", old, new, rise)
    assert fewer.state == "PASS"
    assert fewer.estimate.value == pytest.approx(-0.3)


def test_a_mean_rating_is_gated_by_its_bootstrap_interval() -> None:
    """Within 0.3, beyond it, or neither, by the interval that the comparison shows."""
    old = [7, 8, 6, 9] * 50
    rule = change("mean_rating", 0.3)

    def gate(new: Sequence[int]) -> GateResult:
        return one("rated", rated(new), rated(old[: len(new)]), rule)

    found = gate([rating - (n % 20 == 0) for n, rating in enumerate(old)])
    assert found.state == "PASS"
    assert "within the margin of 0.3 (200 pairs); " in found.reason
    assert gate([rating - 1 for rating in old]).state == "FAIL"
    unclear = gate([rating - (n % 10 < 3) for n, rating in enumerate(old)])
    assert unclear.state == "INCONCLUSIVE"
    assert unclear.estimate.value == pytest.approx(-0.3)
    few = gate([rating - (n % 10 < 2) for n, rating in enumerate(old[:30])])
    assert "pairs would decide it" in few.reason


@pytest.mark.parametrize(
    ("kind", "new", "old", "of"),
    [
        ("graded", lettered("cin" * 20), lettered("ccn" * 20), "f_score"),
        ("graded", lettered("cin" * 20), lettered("ccn" * 20), "incorrect"),
        ("rated", rated([5, 7, 9] * 20), rated([6, 7, 9] * 20), "mean_rating"),
        ("yes_no", said("yn" * 30, "yy-n" * 15), said("yn" * 30, "yn" * 30), "macro_f1"),
        ("yes_no", said("yn" * 30, "yy-n" * 15), said("yn" * 30, "yn" * 30), "unanswered"),
    ],
)
def test_gates_and_comparison_show_the_same_figures(
    kind: str, new: list[Record], old: list[Record], of: str
) -> None:
    """The value, the interval and the number of pairs."""
    side = PairedSlice(slice_=make_slice(kind), pairing=pair_records(new, old))
    assert one(kind, new, old, change(of, 0.1)).estimate == differences([side])[of]


@pytest.mark.parametrize("of", ["incorrect", "share"])
def test_an_ungraded_item_can_be_a_hallucination(of: str) -> None:
    """A rise is judged with all ungraded items against it, and a FAIL with all of them for it."""
    old = lettered("c" * 300)
    rule = change("incorrect", 0.05, "rise") if of == "incorrect" else change("", 0.05)
    assert one("graded", lettered("c" * 300), old, rule).state == "PASS"
    found = one("graded", lettered("c" * 280 + "e" * 20), old, rule)
    assert found.state == "INCONCLUSIVE"
    assert abs(found.worst or 0) == pytest.approx(20 / 300)
    assert found.best == 0
    beyond = one("graded", lettered("i" * 60 + "c" * 200 + "e" * 40), old, rule)
    assert beyond.state == "FAIL"


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from([3, 6, 9, None]), min_size=12, max_size=12), st.data())
def test_no_fate_overturns_a_verdict_on_ratings(
    ratings: list[int | None], data: st.DataObject
) -> None:
    """PASS or FAIL holds for any rating that an ungraded item may have had."""
    lost = [place for place, rating in enumerate(ratings) if rating is None]
    ratings = [6 if place in lost[2:] else rating for place, rating in enumerate(ratings)]
    old = rated([6] * 12)
    rule = change("mean_rating", data.draw(st.sampled_from([0.5, 1.0, 2.0, 4.0])))
    state = one("rated", rated(ratings), old, rule).state
    for fate in product([1, 5, 10], repeat=len(lost[:2])):
        world = list(ratings)
        for place, rating in zip(lost[:2], fate, strict=True):
            world[place] = rating
        assert state in ("INCONCLUSIVE", one("rated", rated(world), old, rule).state)


@pytest.mark.slow
@settings(max_examples=20, deadline=None)
@given(
    st.text("yn-", min_size=24, max_size=24),
    st.sampled_from(["f1", "macro_f1", "recall", "unanswered"]),
    st.sampled_from(["drop", "rise"]),
    st.sampled_from(["margin", "zero"]),
    st.sampled_from([0.05, 0.3, 0.6]),
)
def test_no_fate_of_either_run_overturns_a_verdict(
    answers: str, of: str, measure: str, fail: str, margin: float
) -> None:
    """An item that the new run could not grade, and one that the old run did not ask."""
    labels = "yn" * 12
    rule = change(of, margin, measure, fail=fail)
    lost = said(labels, f"e{answers[1:]}")
    state = one("yes_no", lost, said(labels, labels)[:-1], rule).state
    for now, before in product("yn-", repeat=2):
        new, old = said(labels, now + answers[1:]), said(labels, labels[:-1] + before)
        assert state in ("INCONCLUSIVE", one("yes_no", new, old, rule).state)


def test_an_item_that_the_baseline_lacks_counts_at_its_worst() -> None:
    """Of 12 items in 300 the old run knows nothing: they may have been right there."""
    new, old = lettered("c" * 288 + "i" * 12), lettered("c" * 288)
    found = one("graded", new, old, change("f_score", 0.03))
    assert (found.state, found.estimate.value) == ("INCONCLUSIVE", 0)
    assert found.worst == pytest.approx(288 / 300 - 1)
    assert one("graded", new[:288], old, change("f_score", 0.03)).state == "PASS"


def with_tone(records: Sequence[Record], tones: Sequence[float | None]) -> list[Record]:
    return [replace(one, measures={"tone": tone}) for one, tone in zip(records, tones, strict=True)]


def test_an_extra_metric_is_gated_with_unknown_values_at_their_worst_and_best() -> None:
    """The mean over pairs; a value that is missing in either run may be anything from 0 to 1."""
    base = lettered("c" * 200)
    old, same = with_tone(base, [0.8, 0.6] * 100), with_tone(base, [0.8, 0.62] * 100)
    rule = change("tone", 0.05)
    assert one("graded", same, old, rule).state == "PASS"
    worse = with_tone(base, [0.3, 0.4] * 100)
    assert one("graded", worse, old, rule).state == "FAIL"
    for count, state in ((2, "PASS"), (40, "INCONCLUSIVE")):
        blank = with_tone(base, [None] * 200)
        lacking = [*blank[:count], *same[count:]]
        failed = [*lettered("e" * count + "c" * (200 - count))[:count], *same[count:]]
        for some in (lacking, failed):
            for found in (one("graded", some, old, rule), one("graded", same, some, rule)):
                assert found.state == state
                assert found.worst is not None


def test_the_change_of_every_item_is_no_certainty() -> None:
    """Where no pair differs an interval is as wide as what unseen pairs could do."""
    half, sevens = with_tone(lettered("c" * 60), [0.5] * 60), rated([7] * 60)
    found = one("graded", half, half, change("tone", 0.05))
    assert (found.state, found.estimate.value) == ("INCONCLUSIVE", 0)
    still = one("rated", sevens, sevens, change("mean_rating", 0.3))
    assert (still.state, still.estimate.value) == ("INCONCLUSIVE", 0)
    assert one("rated", sevens, sevens, change("mean_rating", 2.0)).state == "PASS"


@pytest.mark.parametrize(
    ("kind", "new", "old", "rule", "reason"),
    [
        ("graded", "cc", "cc", change("tone", 0.1), "tone is not measured on d:bg"),
        ("graded", "nn", "nn", change("correct_given_attempted", 0.1), "is undefined in one of"),
        ("graded", "cc", "", change("incorrect", 0.1, "rise"), "no graded item pairs"),
        ("graded", "cc", "cc", change("incorrect", -1, "rise"), "rise of incorrect needs a margin"),
    ],
)
def test_what_cannot_be_decided_says_why(
    kind: str, new: str, old: str, rule: Threshold, reason: str
) -> None:
    """INCONCLUSIVE with the reason, and never a figure made up."""
    found = one(kind, lettered(new), lettered(old), rule)
    assert (found.state, found.worst) == ("INCONCLUSIVE", None)
    assert reason in found.reason


def test_a_rise_is_pooled_over_languages() -> None:
    """The same facts in two languages are one observation each, and one language hides nothing."""
    rule = change("incorrect", 0.05, "rise", pool=True)
    dataset = facts_dataset(graded_slice("en"), graded_slice("bg"), pooled=(rule,))
    old = run_of([*answered("c" * 90 + "n" * 30), *answered("c" * 90 + "n" * 30, "bg")], dataset)
    new = [*answered("c" * 90 + "i" * 30), *answered("c" * 90 + "i" * 30, "bg")]
    found = run_of(new, dataset, baseline=old)
    (gate,) = (one for one in found.decision.gates if not one.language)
    assert (gate.state, gate.estimate.n, found.decision.code) == ("FAIL", 240, 1)
    assert found.comparison is not None
    pooled = next(one for one in found.comparison.slices if not one.language)
    assert pooled.differences["incorrect"] == gate.estimate


def test_languages_that_score_otherwise_have_no_common_mean() -> None:
    """A penalty of their own: the pooled gate says so."""
    sides = [
        PairedSlice(
            slice_=make_slice("graded", language=language, penalty=penalty),
            pairing=pair_records(lettered("ci"), lettered("ci")),
        )
        for language, penalty in (("bg", 1.0), ("pl", 2.0))
    ]
    rule = change("penalised", 0.1, pool=True)
    (found,) = change_gates(make_dataset(*(one.slice_ for one in sides), pooled=[rule]), sides)
    assert "penalised is not the same in all languages" in found.reason
