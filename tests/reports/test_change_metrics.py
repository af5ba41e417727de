"""Claims about gates on the change of any metric, and on what answers take."""

import json
from collections.abc import Sequence
from dataclasses import replace
from html import unescape
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.cases.dataset import Threshold
from qagate.evaluators.core import (
    CORRECT,
    INCORRECT,
    NO,
    NOT_ATTEMPTED,
    UNANSWERED,
    YES,
    Outcome,
)
from qagate.evaluators.metric_specs import MetricSpec
from qagate.reports.compare.differences import differences
from qagate.reports.compare.sides import PairedSlice
from qagate.reports.compare.states import pair_records
from qagate.reports.gates.change import change_gates
from qagate.reports.metrics.gate import slice_gates
from qagate.reports.metrics.summary import (
    extra_estimates,
    extra_notes,
    missing_extras,
    summarise,
)
from qagate.reports.run.record import Record
from qagate.reports.run.report import GateResult
from tests.support.made_records import make_dataset, make_record, make_slice, numbered
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of
from tests.support.samples import rendered
from tests.support.tables import tabled

GRADES = {"c": CORRECT, "i": INCORRECT, "n": NOT_ATTEMPTED}
WORDS = {"y": YES, "n": NO, "-": UNANSWERED}


def change(
    of: str, margin: float, measure: str = "drop", **fields: object
) -> Threshold:
    made = Threshold(
        measure=measure, of=of, max=margin, evidence="confident", fail="margin"
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def decided(
    kind: str,
    new: Sequence[Record],
    old: Sequence[Record],
    *rules: Threshold,
    **fields: object,
) -> list[GateResult]:
    side = PairedSlice(
        slice_=make_slice(kind, *rules, **fields), pairing=pair_records(new, old)
    )
    return list(change_gates(make_dataset(side.slice_), [side]))


def one(
    kind: str,
    new: Sequence[Record],
    old: Sequence[Record],
    rule: Threshold,
    **fields: object,
) -> GateResult:
    (found,) = decided(kind, new, old, rule, **fields)
    return found


def lettered(letters: str) -> list[Record]:
    """Return graded items; e is one without a grade."""
    rows: list[dict[str, object]] = [
        {
            "grade": GRADES.get(one),
            "outcome": {"c": "passed", "e": "error"}.get(one, "failed"),
        }
        for one in letters
    ]
    return numbered(rows)


def rated(ratings: Sequence[int | None]) -> list[Record]:
    """Return rated items; None is one without a rating."""
    states = (
        "error" if one is None else "passed" if one >= 6 else "failed"
        for one in ratings
    )
    return numbered(
        [
            {"rating": one, "outcome": state}
            for one, state in zip(ratings, states, strict=True)
        ]
    )


def said(labels: str, answers: str) -> list[Record]:
    """Return yes/no items; e is one without an answer."""
    rows: list[dict[str, object]] = []
    for label, answer in zip(labels, answers, strict=True):
        state = "error" if answer == "e" else "passed" if label == answer else "failed"
        rows.append(
            {"label": WORDS[label], "grade": WORDS.get(answer), "outcome": state}
        )
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
    assert "within the margin of 0.3 (200 pairs)" in found.reason
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
        (
            "yes_no",
            said("yn" * 30, "yy-n" * 15),
            said("yn" * 30, "yn" * 30),
            "macro_f1",
        ),
        (
            "yes_no",
            said("yn" * 30, "yy-n" * 15),
            said("yn" * 30, "yn" * 30),
            "unanswered",
        ),
    ],
)
def test_gates_show_those_figures(
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
    assert (
        one("graded", lettered("i" * 60 + "c" * 200 + "e" * 40), old, rule).state
        == "FAIL"
    )


@settings(max_examples=15, deadline=None)
@given(st.lists(st.sampled_from([3, 6, 9, None]), min_size=12, max_size=12), st.data())
def test_no_fate_overturns_ratings(
    ratings: list[int | None], data: st.DataObject
) -> None:
    """PASS or FAIL holds for any rating that an ungraded item may have had."""
    lost = [place for place, rating in enumerate(ratings) if rating is None]
    ratings = [
        6 if place in lost[2:] else rating for place, rating in enumerate(ratings)
    ]
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
def test_no_fate_in_any_run(
    answers: str, of: str, measure: str, fail: str, margin: float
) -> None:
    """Of an item not graded now, nor of one not asked before; FAIL may become INCONCLUSIVE, as
    bounds are drawn."""
    labels = "yn" * 12
    rule = change(of, margin, measure, fail=fail)
    state = one(
        "yes_no", said(labels, f"e{answers[1:]}"), said(labels, labels)[:-1], rule
    ).state
    for now, before in product("yn-", repeat=2):
        new, old = said(labels, now + answers[1:]), said(labels, labels[:-1] + before)
        found = one("yes_no", new, old, rule).state
        assert state in ("INCONCLUSIVE", found) or (state, found) == (
            "FAIL",
            "INCONCLUSIVE",
        )


def test_an_item_that_is_missing_counts_at_its_worst() -> None:
    """What this run lacks counts at its worst; no change in any pair is no certainty."""
    old = lettered("c" * 300)
    found = one("graded", old[:288], old, change("f_score", 0.03))
    assert (found.state, found.estimate.value) == ("INCONCLUSIVE", 0)
    assert found.worst is not None
    assert found.worst < -0.02
    assert one("graded", old, old, change("f_score", 0.03)).state == "PASS"
    half, sevens = with_tone(lettered("c" * 60), [0.5] * 60), rated([7] * 60)
    found = one("graded", half, half, change("tone", 0.05))
    assert (found.state, found.estimate.value) == ("INCONCLUSIVE", 0)
    still = one("rated", sevens, sevens, change("mean_rating", 0.3))
    assert (still.state, still.estimate.value) == ("INCONCLUSIVE", 0)
    assert one("rated", sevens, sevens, change("mean_rating", 2.0)).state == "PASS"
    base = lettered("c" * 200)
    old, same = with_tone(base, [0.8, 0.6] * 100), with_tone(base, [0.8, 0.62] * 100)
    rule = change("tone", 0.05)
    assert one("graded", same, old, rule).state == "PASS"
    assert one("graded", with_tone(base, [0.3, 0.4] * 100), old, rule).state == "FAIL"
    for count, state in ((2, "PASS"), (40, "INCONCLUSIVE")):
        lacking = [*with_tone(base, [None] * 200)[:count], *same[count:]]
        failed = [*lettered("e" * count + "c" * (200 - count))[:count], *same[count:]]
        for some in (lacking, failed):
            for found in (
                one("graded", some, old, rule),
                one("graded", same, some, rule),
            ):
                assert found.state == state
                assert found.worst is not None


def with_tone(records: Sequence[Record], tones: Sequence[float | None]) -> list[Record]:
    return [
        replace(one, measures={"tone": tone})
        for one, tone in zip(records, tones, strict=True)
    ]


@pytest.mark.parametrize(
    ("kind", "new", "old", "rule", "reason"),
    [
        ("graded", "cc", "cc", change("tone", 0.1), "tone is not measured on d:bg"),
        (
            "graded",
            "nn",
            "nn",
            change("correct_given_attempted", 0.1),
            "is undefined in one of",
        ),
        (
            "graded",
            "cc",
            "",
            change("incorrect", 0.1, "rise"),
            "no item has a grade in this run",
        ),
        (
            "graded",
            "cc",
            "cc",
            change("incorrect", -1, "rise"),
            "rise of incorrect needs a margin",
        ),
    ],
)
def test_the_open_says_why(
    kind: str, new: str, old: str, rule: Threshold, reason: str
) -> None:
    """INCONCLUSIVE with the reason, and never a figure made up."""
    found = one(kind, lettered(new), lettered(old), rule)
    assert (found.state, found.worst) == ("INCONCLUSIVE", None)
    assert reason in found.reason


@pytest.mark.parametrize(
    ("n", "state"), [(2, "INCONCLUSIVE"), (20, "INCONCLUSIVE"), (90, "PASS")]
)
def test_few_like_scores_exclude_no_loss(n: int, state: str) -> None:
    """However little they vary; the interval is at least as wide as that of a share."""
    for last in (0.7, 0.699):
        new = with_tone(lettered("c" * n), [0.7] * (n - 1) + [last])
        old = with_tone(lettered("c" * n), [0.7] * n)
        assert one("graded", new, old, change("tone", 0.05)).state == state


def test_a_rise_is_pooled_over_languages() -> None:
    """The same facts in two languages are one observation each, and one language hides nothing."""
    rule = change("incorrect", 0.05, "rise", pool=True)
    dataset = facts_dataset(graded_slice("en"), graded_slice("bg"), pooled=(rule,))
    old = run_of(
        [*answered("c" * 90 + "n" * 30), *answered("c" * 90 + "n" * 30, "bg")], dataset
    )
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
    (found,) = change_gates(
        make_dataset(*(one.slice_ for one in sides), pooled=[rule]), sides
    )
    assert "penalised is not the same in all languages" in found.reason


SLOWEST = Threshold(measure="seconds_p95", max=8.0)
DEAREST = Threshold(measure="cost", max=0.01)


def timed(seconds: Sequence[float | None], **fields: object) -> list[Record]:
    """Return a graded record of each time, None where it is unknown."""
    return [
        make_record(n, grade="CORRECT", answer_seconds=one, **fields)
        for n, one in enumerate(seconds)
    ]


def priced(costs: Sequence[float | None]) -> list[Record]:
    return [
        make_record(n, grade="CORRECT", answer_cost=one) for n, one in enumerate(costs)
    ]


def gate(rule: Threshold, records: Sequence[Record], **fields: object) -> GateResult:
    slice_ = make_slice("graded", rule, **fields)
    (found,) = slice_gates(
        slice_, records, summarise(records, slice_), "the judge is not trusted"
    )
    return found


@tabled("quick", "slow", "unknown", "state", "said")
def test_seconds(quick: int, slow: int, unknown: int, state: str, said: str) -> None:
    """Unknown times at worst and best; no judge has a part, trusted or not."""
    seconds = [1.0] * quick + [9.0] * slow + [None] * unknown
    found = gate(SLOWEST, timed(seconds))
    assert found.state == state
    assert said in found.reason
    failed = [replace(one, outcome="error", grade=None) for one in timed(seconds)]
    assert gate(SLOWEST, failed).state == state


def test_a_mean_has_no_upper_bound_over_what_is_not_known() -> None:
    """One unknown price of a hundred is no PASS; confident takes the whole interval."""
    assert gate(DEAREST, priced([0.001] * 100)).state == "PASS"
    assert gate(DEAREST, priced([0.001] * 99 + [None])).state == "INCONCLUSIVE"
    assert gate(DEAREST, priced([0.1] * 99 + [None])).state == "FAIL"
    assert gate(DEAREST, priced([None] * 100)).state == "INCONCLUSIVE"
    random = np.random.default_rng(1)
    rule = replace(SLOWEST, evidence="confident")
    assert gate(rule, timed([1.0] * 30)).state == "INCONCLUSIVE"
    assert gate(rule, timed(random.uniform(0, 7.4, 400).tolist())).state == "PASS"
    assert (
        gate(rule, timed(random.uniform(0, 8.3, 400).tolist())).state == "INCONCLUSIVE"
    )
    assert gate(rule, timed(random.uniform(0, 9.5, 400).tolist())).state == "FAIL"


@given(
    st.lists(st.floats(0, 20), min_size=1, max_size=60),
    st.sets(st.integers(0, 59)),
    st.sampled_from(["seconds_p50", "seconds_p95"]),
    st.sampled_from(["estimate", "confident"]),
)
def test_no_unknown_passes(
    seconds: list[float], lost: set[int], name: str, evidence: str
) -> None:
    """Whichever figures are lost: a gate that passes without them passes with all of them."""
    rule = Threshold(measure=name, max=8.0, evidence=evidence)  # type: ignore[arg-type]
    whole = timed(seconds)
    part = timed([None if n in lost else one for n, one in enumerate(seconds)])
    if gate(rule, part).state == "PASS":
        assert gate(rule, whole).state == "PASS"


def risen(
    old: Sequence[float | None],
    new: Sequence[float | None],
    rule: Threshold,
    **fields: object,
) -> GateResult:
    side = PairedSlice(
        slice_=make_slice("graded", rule),
        pairing=pair_records(timed(new), timed(old)),
        blocked="another judge",
        changed="another judge",
        **fields,  # type: ignore[arg-type]
    )
    (found,) = change_gates(make_dataset(side.slice_), [side])
    return found


def rise(share: float, *, relative: bool = True, of: str = "seconds_p50") -> Threshold:
    return Threshold(
        measure="rise",
        of=of,
        max=share,
        relative=relative,
        evidence="confident",
        fail="margin",
    )


TIMES = np.random.default_rng(5).lognormal(size=300).tolist()


@pytest.mark.parametrize(
    ("factor", "state"), [(1.0, "PASS"), (1.02, "PASS"), (1.5, "FAIL")]
)
def test_a_rise_is_a_share_of_the_old_value(factor: float, state: str) -> None:
    """Paired item by item, so that 2 % is told from 20 %, no matter which judge came before."""
    found = risen(TIMES, [factor * one for one in TIMES], rise(0.2))
    assert found.state == state
    assert "new / old - 1 is" in found.reason
    assert "the margin of 20%" in found.reason
    assert found.estimate.value == pytest.approx(factor - 1)


def test_a_rise_with_what_is_not_known() -> None:
    """A median decides without a few, a mean never passes; without % it is in seconds."""
    few: list[float | None] = [*TIMES[:-3], None, None, None]
    assert risen(TIMES, few, rise(0.2)).state == "PASS"
    assert risen(few, TIMES, rise(0.2)).state == "PASS"
    assert (
        risen(TIMES, [2 * one if one else one for one in few], rise(0.2)).state
        == "FAIL"
    )
    half: list[float | None] = [*TIMES[:150], *[None] * 150]
    for old, new in (
        (TIMES, half),
        (half, TIMES),
        (TIMES, [None] * 300),
        ([None] * 300, TIMES),
    ):
        found = risen(old, new, rise(0.2))
        assert found.state == "INCONCLUSIVE"
        assert "is not known of" in found.reason
    assert risen(TIMES, TIMES, rise(0.2, of="cost")).state == "INCONCLUSIVE"
    found = risen(TIMES, [one + 0.5 for one in TIMES], rise(0.4, relative=False))
    assert found.state == "FAIL"
    assert found.estimate.value == pytest.approx(0.5)
    assert "new - old is 0.5, 95 % interval" in found.reason
    found = risen(TIMES[:40], TIMES[:40], rise(0.2, of="seconds_p95"))
    assert found.state == "INCONCLUSIVE"
    assert "no 95 % interval" in found.reason


def test_a_slower_and_dearer_model_shows_without_any_gate() -> None:
    """Then, now and the factor; where nothing is known nothing is said; a cache apart."""
    old = answered(
        "c" * 90, answer_seconds=0.8, answer_cost=0.0004, answer_tokens_in=100
    )
    new = answered(
        "c" * 90, answer_seconds=8.0, answer_cost=0.002, answer_tokens_in=100
    )
    files = rendered(run_of(new, baseline=run_of(old)))
    summary, page = files["summary.md"], files["report.html"]
    for text in (summary, page):
        assert not [
            said
            for said in ("0.8 → 8", "×10", "0.0004 → 0.002", "×5")
            if said not in text
        ]
    assert page.index('id="gates"') < page.index("0.8 → 8")
    shift = json.loads(files["run.json"])["comparison"]["slices"][0]["usage"][
        "seconds_p95"
    ]
    assert (shift["before"]["value"], shift["now"]["value"]) == (0.8, 8.0)
    files = rendered(run_of(answered("ccc", tokens=1000, cached_tokens=800)))
    for name in ("summary.md", "report.html"):
        assert "3,000, of them 2,400 read from a provider's cache" in unescape(
            files[name]
        )
    recorded = rendered(run_of(answered("cic")))["summary.md"]
    assert "cache" not in recorded
    assert "Seconds, tokens" not in recorded


RATED = make_slice("rated")


def with_measure(*values: float | None, **fields: object) -> list[Record]:
    rows = enumerate(values)
    return [
        make_record(n, rating=7, measures={"bias": value}, **fields)
        for n, value in rows
    ]


def test_means_have_intervals_over_items() -> None:
    """Repeats count as one, and unseen items leave room."""
    found = extra_estimates(with_measure(0.0, 0.5, 1.0, None), RATED)["bias"]
    assert (found.value, found.n, found.low, found.high) == (0.5, 3, 0.0, 1.0)
    again = with_measure(0.0, 1.0)
    doubled = extra_estimates([*again, *again], RATED)["bias"]
    once = extra_estimates(again, RATED)["bias"]
    assert (doubled.low, doubled.high, doubled.n) == (once.low, once.high, 4)
    alike = extra_estimates(with_measure(*[1.0] * 20), RATED)["bias"]
    assert (alike.value, alike.high) == (1.0, 1.0)
    assert alike.low is not None
    assert 0.8 < alike.low < 0.9
    nothing = extra_estimates(with_measure(None), RATED)["bias"]
    assert (nothing.value, nothing.low, nothing.n) == (None, None, 0)
    some = [*with_measure(0.5, None), make_record(3, outcome="error"), make_record(4)]
    assert missing_extras(some) == {"bias": 2}  # the last one has nothing to measure


LACKING = [
    Outcome(key="k", state="passed", unmeasured={"bias": f"no {number}"})
    for number in range(3)
]


def test_what_is_not_measured_is_counted_with_the_first_reason() -> None:
    slice_ = make_slice(metrics=(MetricSpec(name="bias"),))
    assert extra_notes([slice_], LACKING, "") == ["bias: 3 items not measured: no 0"]


def test_a_judge_without_a_model_measures_no_metric_and_hides_no_reason() -> None:
    metrics = (MetricSpec(name="bias"), MetricSpec(name="toxicity"))
    slices = [make_slice(metrics=metrics), make_slice(dataset="e")]
    assert extra_notes(slices, LACKING, "lexical") == [
        "d:bg: bias, toxicity not measured: --judge lexical asks no model",
        "bias: 3 items not measured: no 0",
    ]


@tabled("rule", "values", "state")
def test_gates_on_measures(
    rule: dict[str, Any], values: list[float | None], state: str
) -> None:
    """Decided on the mean, or its interval; any item without the measure leaves the gate open."""
    values = values * 50 if "evidence" in rule else values
    records = [replace(one, metadata={"topic": "Art"}) for one in with_measure(*values)]
    slice_ = make_slice(
        "rated", Threshold(**{"measure": "bias", **rule}), by=("topic", "unknown")
    )
    summary = summarise(records, slice_)
    assert "bias" in summary.breakdowns["topic"]["Art"]
    assert "unknown" not in summary.breakdowns
    (gate,) = slice_gates(slice_, records, summary)
    assert gate.state == state, gate.reason
