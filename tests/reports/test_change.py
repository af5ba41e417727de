"""Claims about gates on a change, and about differences of metrics without pairs of their own."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.cases.dataset import EvidenceRule, Fail, Threshold
from qagate.evaluators.statistics.intervals import Estimate
from qagate.reports.compare.differences import differences
from qagate.reports.compare.sides import PairedSlice
from qagate.reports.compare.states import pair_records
from qagate.reports.gates.change import change_gates
from qagate.reports.gates.notes import margin_warnings
from qagate.reports.run.record import Record
from qagate.reports.run.report import GateResult as Gate
from tests.support.figures import some
from tests.support.made_records import graded, make_dataset, make_record, make_slice
from tests.support.tables import tabled

CONFIDENT: EvidenceRule = "confident"


def sides(
    new: Sequence[Record], old: Sequence[Record], *rules: Threshold, **fields: object
) -> PairedSlice:
    return PairedSlice(
        slice_=make_slice("graded", *rules, **fields), pairing=pair_records(new, old)
    )


def drop(
    margin: float | None,
    evidence: EvidenceRule = CONFIDENT,
    *,
    pool: bool = False,
    fail: Fail = "",
) -> Threshold:
    return Threshold(
        measure="drop", max=margin, evidence=evidence, pool=pool, fail=fail
    )


def changes(
    fixed: int, broke: int, same: int, error: int = 0
) -> tuple[list[Record], list[Record]]:
    """A new and an old run; the ungraded items of the new one were right before."""
    after = (
        ["passed"] * fixed + ["failed"] * broke + ["passed"] * same + ["error"] * error
    )
    before = ["failed"] * fixed + ["passed"] * (broke + same + error)
    new, old = (
        [make_record(n, outcome=o) for n, o in enumerate(run)]
        for run in (after, before)
    )
    return new, old


def one_drop(
    max_: float, *counts: int, evidence: EvidenceRule = CONFIDENT, fail: Fail = ""
) -> Gate:
    side = sides(*changes(*counts), drop(max_, evidence, fail=fail))
    (result,) = change_gates(make_dataset(side.slice_), [side])
    return result


@tabled("counts", "state", "reason")
def test_drop_verdict_and_sentence(
    counts: tuple[int, ...], state: str, reason: str
) -> None:
    """Tango's interval of the paired difference against the margin of 0.05, in one sentence."""
    result = one_drop(0.05, *counts)
    assert (result.state, result.reason) == (state, reason)


@tabled("counts", "state", "zone")
def test_a_fail_by_margin_has_zones(
    counts: tuple[int, ...], state: str, zone: str
) -> None:
    """FAIL only where the whole interval lies beyond; worse, but maybe within, is INCONCLUSIVE."""
    result = one_drop(0.05, *counts, fail="margin")
    assert result.state == state
    assert zone in result.reason
    assert one_drop(0.05, *counts, fail="zero").state == (
        "PASS" if state == "PASS" else "FAIL"
    )


def test_estimate_evidence_compares_the_difference_itself() -> None:
    """The estimate with its bar; FAIL asks the best case, PASS may be real, pairs are named."""
    assert one_drop(0.1, 0, 2, 18, evidence="estimate").state == "PASS"
    failed = one_drop(0.09, 0, 2, 18, evidence="estimate")
    assert (failed.state, failed.worst) == ("FAIL", -0.1)
    assert failed.reason.startswith(
        "new - old is -0.1: the drop is beyond the margin of 0.09"
    )
    assert one_drop(0.09, 0, 1, 18, 1, evidence="estimate").state == "INCONCLUSIVE"
    assert one_drop(0.1, 0, 80, 420, fail="margin").state == "FAIL"
    assert one_drop(0.1, 0, 80, 420, 200, fail="margin").state == "INCONCLUSIVE"
    result = one_drop(0.05, 0, 40, 1960)
    assert some(result.estimate.interval)[1] < 0
    assert result.state == "PASS"
    result = one_drop(0.05, 1, 3, 16)
    assert result.state == "INCONCLUSIVE"
    assert "about 77 pairs would decide it" in result.reason
    assert "would decide" not in one_drop(0.0, 2, 2, 16).reason


@pytest.mark.untraced
@settings(max_examples=25, deadline=None)
@given(*[st.integers(0, 8)] * 2, st.integers(0, 60), *[st.integers(0, 3)] * 2)
def test_any_fate(
    fixed: int, broke: int, same: int, error_right: int, error_wrong: int
) -> None:
    """Brute force over how many of the ungraded items came out right."""
    new, old = changes(fixed, broke, same, error_right + error_wrong)
    start, end = fixed + broke + same, len(old) - error_wrong
    old = [*old[:end], *with_fate(old[end:], ["failed"] * error_wrong)]
    rule = drop(0.1)
    worlds = {
        drop_state([*new[:start], *with_fate(new[start:], right + wrong)], old, rule)
        for right in fates(error_right)
        for wrong in fates(error_wrong)
    }
    verdict = drop_state(new, old, rule)
    assert verdict == "INCONCLUSIVE" or worlds == {verdict}


def fates(count: int) -> list[tuple[str, ...]]:
    """Return how so many alike items may have come out, whichever of them."""
    return [*combinations_with_replacement(("passed", "failed"), count)]


def drop_state(new: Sequence[Record], old: Sequence[Record], rule: Threshold) -> str:
    side = sides(new, old, rule)
    return change_gates(make_dataset(side.slice_), [side])[0].state


def with_fate(records: Sequence[Record], fate: Sequence[str]) -> list[Record]:
    return [
        replace(r, outcome=o)  # type: ignore[arg-type]
        for r, o in zip(records, fate, strict=True)
    ]


def test_ratings_are_compared_by_the_new_runs_bar() -> None:
    """8 before and 6 now, with a bar of 7: broke; unpaired items are only counted."""
    new, old = (
        [make_record(n, rating=x, outcome="failed") for n in range(30)] for x in (6, 8)
    )
    slice_ = make_slice("rated", drop(0.1), pass_bar=7)
    side = PairedSlice(slice_=slice_, pairing=pair_records(new, old))
    (result,) = change_gates(make_dataset(slice_), [side])
    assert (result.state, result.estimate.value) == ("FAIL", -1.0)
    new, old = changes(0, 0, 500)
    side = sides(new, old[:490], drop(0.05))
    (result,) = change_gates(make_dataset(side.slice_), [side])
    assert "490 pairs; 10 items that the baseline lacks left out" in result.reason


@pytest.mark.parametrize(
    ("side", "reason"),
    [
        (
            sides(graded(3), [], drop(0.1)),
            "no item has a grade in this run and in the baseline (0 of the baseline missing",
        ),
        (
            sides(graded(error=2), graded(2), drop(0.1)),
            "(2 of the baseline missing, edited or ungraded, 0 added)",
        ),
        (
            sides(graded(3), graded(3), drop(None)),
            "drop needs a margin as a share of items",
        ),
        (sides(graded(3), graded(3), drop(2.0)), "from 0 to below 1, not 2.0"),
        (
            replace(sides(graded(3), graded(3), drop(0.1)), blocked="another judge"),
            "another judge",
        ),
    ],
)
def test_what_no_pair_can_decide_is_inconclusive(
    side: PairedSlice, reason: str
) -> None:
    """Nothing paired, no margin, another judge: no verdict, and the reason."""
    (result,) = change_gates(make_dataset(side.slice_), [side])
    assert (result.state, result.estimate.value, result.worst) == (
        "INCONCLUSIVE",
        None,
        None,
    )
    assert reason in result.reason


def in_language(records: Sequence[Record], language: str) -> list[Record]:
    return [replace(record, language=language) for record in records]


def two_languages(
    *rules: Threshold, fixed: int, broke: int, same: int
) -> list[PairedSlice]:
    new, old = changes(fixed, broke, same)
    return [
        sides(in_language(new, one), in_language(old, one), *rules, language=one)
        for one in ("bg", "pl")
    ]


def clusters(count: int) -> dict[str, set[tuple[str, ...]]]:
    return {"bg": {("bg", str(number)) for number in range(count)}}


def test_a_slice_too_small_for_its_margin_is_warned_of() -> None:
    """Too few to pass even unchanged is said; both languages have enough; Holm spares a PASS."""
    dataset = make_dataset(
        make_slice("graded", drop(0.03)), pooled=[drop(0.5, pool=True)]
    )
    assert tuple(margin_warnings(dataset, clusters(50))) == (
        "d:bg: a drop of 0.03 can never be excluded with 50 independent items; it takes 125 even "
        "if none changes",
    )
    assert tuple(margin_warnings(dataset, clusters(125))) == ()
    lenient = make_dataset(
        make_slice(
            "graded", drop(0.03, "estimate"), Threshold(measure="correct", min=0.1)
        )
    )
    assert tuple(margin_warnings(lenient, clusters(5))) == ()
    both = two_languages(fixed=0, broke=0, same=100)
    dataset = make_dataset(
        *(one.slice_ for one in both), pooled=[drop(0.03, pool=True)]
    )
    (result,) = change_gates(dataset, both)
    assert (result.state, result.slice, result.estimate.n) == ("PASS", "d:*", 200)
    blocked = [both[0], replace(both[1], blocked="partial")]
    assert change_gates(dataset, blocked)[0].reason == "partial"
    assert change_gates(dataset, []) == ()
    both = two_languages(drop(0.01), fixed=1, broke=7, same=92)
    slices = [one.slice_ for one in both]
    assert [r.state for r in change_gates(make_dataset(*slices), both)] == ["FAIL"] * 2
    adjusted = change_gates(make_dataset(*slices, holm=True), both)
    assert [r.state for r in adjusted] == ["INCONCLUSIVE"] * 2
    good = two_languages(drop(0.1), fixed=0, broke=0, same=100)
    dataset = make_dataset(*(one.slice_ for one in good), holm=True)
    assert [r.state for r in change_gates(dataset, good)] == ["PASS"] * 2


def moved(
    kind: str, new: Sequence[Record], old: Sequence[Record]
) -> dict[str, Estimate]:
    return differences(
        [PairedSlice(slice_=make_slice(kind), pairing=pair_records(new, old))]
    )


def rated(ratings: Sequence[int]) -> list[Record]:
    return [
        make_record(n, rating=rating, outcome="passed" if rating >= 6 else "failed")
        for n, rating in enumerate(ratings)
    ]


def answered(labels: str, answers: str) -> list[Record]:
    """Return yes/no items: y and n, and a dash for no answer."""
    words = {"y": "YES", "n": "NO", "-": "UNANSWERED"}
    return [
        make_record(
            n,
            label=words[label],
            grade=words[answer],
            outcome="passed" if label == answer else "failed",
        )
        for n, (label, answer) in enumerate(zip(labels, answers, strict=True))
    ]


def test_mean_ratings_are_paired_by_item() -> None:
    """Not as wide as items differ among themselves: 1.96 standard errors of the differences."""
    ratings = [1, 9, 2, 8, 3, 7] * 10
    found = moved("rated", rated([one + 1 for one in ratings]), rated(ratings))
    assert set(found) == {"mean_rating"}
    assert found["mean_rating"].value == pytest.approx(1.0)
    assert found["mean_rating"].interval == pytest.approx(
        (1 - 4 / 15, 1 + 4 / 15), abs=0.01
    )
    random = np.random.default_rng(7)
    old = [int(one) for one in random.integers(3, 8, size=200)]
    new = [
        one + int(step)
        for one, step in zip(old, random.integers(-2, 3, size=200), strict=True)
    ]
    steps = np.subtract(new, old)
    half = 1.96 * steps.std(ddof=1) / np.sqrt(200)
    interval = moved("rated", rated(new), rated(old))["mean_rating"].interval
    assert interval == pytest.approx(
        (steps.mean() - half, steps.mean() + half), abs=0.03
    )


def test_yes_no_measures_move() -> None:
    """F1 and its like; the kappa of two judges; another kind than before moves nothing."""
    labels = "yyyynnnn" * 5
    found = moved(
        "yes_no", answered(labels, "yyn-nnny" * 5), answered(labels, "yyyynnnn" * 5)
    )
    assert set(found) == {"precision", "recall", "f1", "macro_f1", "unanswered"}
    assert found["recall"].value == pytest.approx(0.5 - 1)
    assert found["unanswered"].value == pytest.approx(1 / 8)
    given = ["CORRECT", "INCORRECT"] * 10
    old = [make_record(n, label=one, grade=one) for n, one in enumerate(given)]
    new = [make_record(n, label=one, grade="CORRECT") for n, one in enumerate(given)]
    assert moved("judged", new, old)["kappa"].value == pytest.approx(-1.0)
    assert (
        moved("rated", rated([5, 6]), [make_record(n, grade="CORRECT") for n in (0, 1)])
        == {}
    )
    assert moved("rated", [make_record(1, outcome="error")], rated([5, 6])) == {}
