"""Claims about single gates, and about the exit code and last line that follow from all of them."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations_with_replacement, product
from pathlib import Path

import pytest
import yaml
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from qagate.cases.dataset import EvidenceRule, Slice, Threshold
from qagate.evaluators.core import CORRECT, GRADES, INCORRECT, NO, YES
from qagate.evaluators.statistics.count_table import RATINGS
from qagate.evaluators.statistics.metrics import ANSWERS, METRICS, metrics_of
from qagate.reports.gates.decide import SessionFacts, decide
from qagate.reports.metrics.gate import (
    WAYS_OUT,
    evaluate,
    floor_gates,
    slice_gates,
    way_out,
)
from qagate.reports.metrics.summary import summarise, tabulate
from qagate.reports.run.record import Record
from qagate.reports.run.report import GateResult, GateState, Obstacle
from tests.support.made_records import graded, inputs_of, make_slice, numbered
from tests.support.samples import gate
from tests.support.tables import kept

CONFIDENT: EvidenceRule = "confident"


def judge(
    rule: Threshold, records: Sequence[Record], slice_: Slice | None = None
) -> GateResult:
    return evaluate(rule, inputs_of(slice_ or make_slice(), records))


def at_least(
    measure: str, bar: float, evidence: EvidenceRule = "estimate"
) -> Threshold:
    return Threshold(measure=measure, min=bar, evidence=evidence)


def test_marked_golds_are_counted_apart_and_gated() -> None:
    """Shares of marked items, which others do not change; a gate waits for ungraded marked ones."""
    rows = [
        ("CORRECT", "FALSE PREMISE: never"),
        ("INCORRECT", "UNANSWERABLE: nobody knows"),
    ]
    rows += [("NOT_ATTEMPTED", "FALSE PREMISE: not there")] * 2 + [
        ("INCORRECT", "Lisbon")
    ] * 4
    some = numbered([
        {"grade": said, "expected": gold, "outcome": "passed" if said == CORRECT else "failed"}
        for said, gold in rows
    ])  # fmt: skip
    measures = summarise(some, make_slice()).measures
    names = ("premise_corrected", "premise_declined", "premise_accepted")
    assert [measures[name].value for name in names] == [0.25, 0.5, 0.25]
    assert (measures["incorrect"].value, measures["premise_accepted"].n) == (0.625, 4)
    rule = Threshold(measure="premise_accepted", max=0.3)
    assert judge(rule, some).state == "PASS"
    assert judge(replace(rule, max=0.2), some).state == "FAIL"
    lost = numbered(
        [{"outcome": "error", "answer": None, "expected": "FALSE PREMISE: no"}]
    )
    lost = [replace(one, id="z", key="z") for one in lost]
    assert judge(rule, [*some, *lost]).state == "INCONCLUSIVE"
    assert judge(rule, graded(3, 2)).state == "INCONCLUSIVE"
    plain = graded(3, 2)
    assert (
        slice_gates(make_slice("graded", rule), plain, summarise(plain, make_slice()))
        == ()
    )


SENTENCES: str = kept(__file__, "sentences")
"""For each rule, counts of correct, incorrect, not attempted and ungraded items: the verdict."""


@pytest.mark.parametrize(
    "row",
    re.sub(r"\n {4,}", " ", SENTENCES.strip()).splitlines(),
    ids=lambda row: row[:40],
)
def test_verdict_and_sentence(row: str) -> None:
    """The estimate against its bar, with every ungraded item counted both ways, in one sentence."""
    found = re.fullmatch(r"(\w+) (\{.*?\}) ([\d ]+) ([A-Z]+) (.*)", row)
    assert found
    measure, bars, counts, state, reason = found.groups()
    rule = Threshold(measure=measure, **yaml.safe_load(bars))
    result = judge(rule, graded(*map(int, counts.split())))
    assert (result.state, result.reason) == (state, reason)


def test_worst_and_best_follow_the_direction_of_the_rule() -> None:
    """The worst is the highest where less is better; a value on its bar names no number."""
    records = graded(40, 50, 8, 2)
    low = judge(at_least("correct", 0.1), records)
    assert (low.worst, low.best) == (0.40, 0.42)
    high = judge(Threshold(measure="incorrect", max=0.9), records)
    assert (high.worst, high.best) == (0.52, 0.50)
    records = judged((CORRECT, CORRECT), (INCORRECT, INCORRECT), (CORRECT, None))
    result = judge(at_least("agreement", 0.6), records, make_slice("judged"))
    assert (result.state, result.worst, result.best) == ("PASS", 2 / 3, 1.0)
    kappa = judge(at_least("kappa", 0.6), records[:2], make_slice("judged"))
    assert kappa.state == "PASS"  # without ungraded items its estimate counts
    on_the_bar = judge(at_least("correct", 0.4, CONFIDENT), graded(40, 60))
    assert "does not clear the bar; no number can be named (n=100)" in on_the_bar.reason
    ratings = numbered([{"rating": r, "label": str(11 - r)} for r in (2, 5, 9)])
    result = judge(at_least("spearman", -1, CONFIDENT), ratings, make_slice("judged"))
    assert (result.state, result.reason) == (
        "INCONCLUSIVE",
        "spearman has no 95 % interval over these items",
    )
    unclear = judge(at_least("correct", 0.4, CONFIDENT), graded(40, 60, error=1))
    assert unclear.reason.endswith("no number can be named (n=100, 1 ungraded)")


def judged(*pairs: tuple[str, str | None]) -> list[Record]:
    """Judged records of (label, grade); no grade is an ERROR."""
    rows = [
        {"label": label, "grade": grade, "outcome": "passed" if grade else "error"}
        for label, grade in pairs
    ]
    return numbered(rows)


UNKNOWN = judged((CORRECT, CORRECT), (INCORRECT, INCORRECT), (CORRECT, None))
SCORED = [replace(one, score=1.0) if one.grade else one for one in graded(3, error=1)]


@pytest.mark.parametrize(
    ("rule", "records", "reason"),
    [
        (at_least("f1", 0.5), graded(3), "f1 is not measured on this slice"),
        (
            Threshold(measure="correct"),
            graded(3),
            "correct has no bar; give min or max",
        ),
        (at_least("correct", 0), graded(error=3), "undefined over 0 graded items"),
        (
            at_least("correct_given_attempted", 0),
            graded(0, 0, 3),
            "attempted is undefined",
        ),
        (
            at_least("kappa", 0.1),
            UNKNOWN,
            "kappa has no bounds with 1 ungraded item; run the same",
        ),
        (
            at_least("mean_score", 0.1),
            SCORED,
            "mean_score has no bounds over these items",
        ),
    ],
)
def test_the_undefined_is_inconclusive(
    rule: Threshold, records: list[Record], reason: str
) -> None:
    """Undefined, unknown or unbounded is never a PASS and never a FAIL."""
    result = judge(
        rule, records, make_slice("judged" if rule.measure == "kappa" else "graded")
    )
    assert result.state == "INCONCLUSIVE"
    assert reason in result.reason


def test_a_partial_slice_and_a_distrusted_judge_decide_nothing() -> None:
    """A part and a judge below its floor decide nothing, an interval only as a whole."""
    rule = at_least("correct", 0.1)
    slice_ = make_slice("graded", rule, Threshold(measure="drop", max=0.1))
    records = graded(50, 50)
    (partial,) = slice_gates(slice_, records, summarise(records, slice_, partial=True))
    assert (partial.state, partial.slice) == ("INCONCLUSIVE", "d:bg")
    assert partial.reason.startswith("only a part of the slice was run, picked by hand")
    (distrusted,) = slice_gates(
        slice_, records, summarise(records, slice_), "judge not trusted"
    )
    assert slice_gates(make_slice(), records, summarise(records, slice_)) == ()
    assert (distrusted.state, distrusted.reason) == (
        "INCONCLUSIVE",
        "judge not trusted",
    )
    many, few = graded(400, 600), graded(40, 60)
    passed = judge(at_least("correct", 0.35, CONFIDENT), many)
    assert passed.state == "PASS"
    assert (
        "is at least 0.35 with its whole 95 % interval, 0.37 to 0.431 (n=1000)"
        in passed.reason
    )
    assert judge(at_least("correct", 0.45, CONFIDENT), many).state == "FAIL"
    unclear = judge(at_least("correct", 0.35, CONFIDENT), few)
    assert unclear.state == "INCONCLUSIVE"
    assert "does not clear the bar; about 380 items would decide it" in unclear.reason
    rule = at_least("correct", 0.36, CONFIDENT)
    assert judge(rule, many).state == "PASS"
    assert judge(rule, graded(400, 600, error=60)).state == "INCONCLUSIVE"


@pytest.mark.parametrize(
    ("pairs", "states"),
    [
        ([(CORRECT, CORRECT), (INCORRECT, INCORRECT)] * 5, ["PASS", "PASS"]),
        ([(CORRECT, CORRECT), (INCORRECT, CORRECT)], ["FAIL", "FAIL"]),
        ([(CORRECT, CORRECT)], ["PASS", "INCONCLUSIVE"]),
        ([(CORRECT, CORRECT)] * 9 + [(CORRECT, None)], ["PASS", "INCONCLUSIVE"]),
        ([(CORRECT, CORRECT)] * 8 + [(CORRECT, None)] * 3, ["INCONCLUSIVE"] * 2),
        (
            [(CORRECT, CORRECT)] + [(CORRECT, None), (INCORRECT, CORRECT)] * 3,
            ["FAIL", "INCONCLUSIVE"],
        ),
        ([(CORRECT, None)], ["INCONCLUSIVE"] * 2),
    ],
    ids=[
        "reached",
        "below",
        "undefined",
        "worst above",
        "between",
        "best below",
        "none graded",
    ],
)
def test_judges_are_held_to_floors(
    pairs: list[tuple[str, str | None]], states: list[str]
) -> None:
    """Bounds over the ungraded labels decide; kappa, which has none, is open with any of them."""
    slice_ = make_slice("judged", floor={"agreement": 0.8, "kappa": 0.6})
    found = floor_gates(slice_.floor, inputs_of(slice_, judged(*pairs)))
    assert [one.state for one in found] == states


@pytest.mark.parametrize(
    ("shift", "ungraded", "state"),
    [
        (0, 0, "PASS"),
        (1, 0, "FAIL"),
        (-1, 0, "FAIL"),
        (0, 1, "PASS"),
        (0, 9, "INCONCLUSIVE"),
    ],
)
def test_a_floor_of_the_bias_holds_on_both_sides(
    shift: int, ungraded: int, state: str
) -> None:
    """Too kind is as bad as too strict; J of ratings has ungraded answers on the other side."""
    rows = [{"label": str(n), "rating": n + shift} for n in (4, 5, 6, 7)] * 10
    rows += [{"label": "5", "outcome": "error"}] * ungraded
    slice_ = make_slice("judged", floor={"mean_difference": 0.5})
    (found,) = floor_gates(slice_.floor, inputs_of(slice_, numbered(rows)))
    assert (found.state, found.threshold.bar) == (state, "<= 0.5 and >= -0.5")
    sides = [{"label": str(n), "rating": n} for n in (2, 3, 7, 8)] * 5
    lost = [{"label": label, "outcome": "error"} for label in "49"]
    result = judge(
        at_least("youden", 0.8), numbered([*sides, *lost]), make_slice("judged")
    )
    assert (result.state, result.best) == ("PASS", 1.0)
    assert result.worst == pytest.approx(10 / 11 + 10 / 11 - 1)


def fates(kind: str, ungraded: Sequence[Record]) -> list[tuple[dict[str, object], ...]]:
    """Every way in which these ungraded items may have come out."""
    each: list[dict[str, object]] = [{"grade": grade} for grade in GRADES]
    if kind == "yes_no":
        each = [{"grade": answer} for answer in ANSWERS]
    elif kind == "rated":
        each = [{"rating": int(rating)} for rating in RATINGS]
    alike = kind in ("graded", "rated")
    count = len(ungraded)
    return [
        *(
            combinations_with_replacement(each, count)
            if alike
            else product(each, repeat=count)
        )
    ]


def row(kind: str) -> st.SearchStrategy[dict[str, object]]:
    """A record's fields, one in three ungraded."""
    graded_rows: dict[str, dict[str, st.SearchStrategy[object]]] = {
        "graded": {"grade": st.sampled_from(GRADES)},
        "rated": {"rating": st.integers(1, 10)},
        "yes_no": {
            "label": st.sampled_from([YES, NO]),
            "grade": st.sampled_from(ANSWERS),
        },
        "judged": {"label": st.sampled_from(GRADES), "grade": st.sampled_from(GRADES)},
    }
    outcome = st.sampled_from(["passed", "failed", "error"])
    return st.fixed_dictionaries({**graded_rows[kind], "outcome": outcome})


def as_ungraded(record: Record) -> Record:
    return (
        replace(record, grade=None, rating=None)
        if record.outcome == "error"
        else record
    )


@settings(max_examples=60, deadline=None)
@given(data=st.data(), kind=st.sampled_from(["graded", "rated", "yes_no", "judged"]))
def test_no_fate_of_ungraded_items_overturns_a_verdict(
    data: st.DataObject, kind: str
) -> None:
    """PASS holds under all fates, FAIL under none; bounds are reached and passed by none."""
    rows = data.draw(st.lists(row(kind), max_size=7))
    assume(sum(one["outcome"] == "error" for one in rows) <= 3)
    records = [as_ungraded(record) for record in numbered(rows)]
    slice_ = make_slice(kind, penalty=data.draw(st.sampled_from([0.0, 1.0, 2.5])))
    scene = inputs_of(slice_, records)
    ungraded = [r for r in records if r.outcome == "error"]
    worlds = [
        values(
            resolved(records, dict(zip([r.id for r in ungraded], fate, strict=True))),
            slice_,
        )
        for fate in fates(kind, ungraded)
    ]
    bar = (
        data.draw(st.integers(-10, 40)) / 10
        if kind == "rated"
        else data.draw(st.floats(-1, 1))
    )
    for name in METRICS[kind]:
        found = [world[name] for world in worlds if name in world]
        check(evaluate(at_least(name, bar), scene), found)
        check(evaluate(Threshold(measure=name, max=bar), scene), found)


@settings(max_examples=25, deadline=None)
@given(data=st.data(), bar=st.floats(-3, 3), pass_bar=st.integers(1, 10))
def test_no_fate_of_ratings_turns_a_floor(
    data: st.DataObject, bar: float, pass_bar: int
) -> None:
    """Brute force over labelled ratings: the mean difference and the sides of the bar too."""
    rating = st.integers(1, 10)
    outcome = st.sampled_from(["passed", "failed", "error"])
    fields = {"label": rating.map(str), "rating": rating, "outcome": outcome}
    rows = data.draw(st.lists(st.fixed_dictionaries(fields), min_size=1, max_size=5))
    records = [as_ungraded(record) for record in numbered(rows)]
    ungraded = [one for one in records if one.outcome == "error"][:2]
    records = [one for one in records if one.outcome != "error" or one in ungraded]
    slice_ = make_slice("judged", pass_bar=pass_bar)
    each: list[dict[str, object]] = [{"rating": int(one)} for one in RATINGS]
    worlds = [
        values(
            resolved(records, dict(zip([r.id for r in ungraded], end, strict=True))),
            slice_,
        )
        for end in product(each, repeat=len(ungraded))
    ]
    scene = inputs_of(slice_, records)
    for name in ("agreement", "mean_difference", "pass_agreement", "youden"):
        found = [world[name] for world in worlds]
        check(evaluate(at_least(name, bar), scene), found)
        check(evaluate(Threshold(measure=name, max=bar), scene), found)


def values(records: Sequence[Record], slice_: Slice) -> dict[str, float | None]:
    """Every metric of these records, without intervals."""
    whole = tabulate(records, slice_).whole
    return {
        name: row.value(whole) for name, row in metrics_of(slice_.kind, whole).items()
    }


def resolved(
    records: Sequence[Record], fate: dict[str, dict[str, object]]
) -> list[Record]:
    """The records with every ungraded one given its fate."""
    return [
        replace(r, outcome="failed", **fate[r.id]) if r.id in fate else r  # type: ignore[arg-type]
        for r in records
    ]


def check(result: GateResult, found: Sequence[float | None]) -> None:
    rule = result.threshold
    holds = [
        value is not None
        and (rule.min is None or value >= rule.min - 1e-12)
        and (rule.max is None or value <= rule.max + 1e-12)
        for value in found
    ]
    assert result.state != "PASS" or all(holds)
    assert result.state != "FAIL" or not any(holds)
    if result.worst is not None and result.best is not None:
        values = [value for value in found if value is not None]
        ends = sorted((result.worst, result.best))
        assert ends == pytest.approx([min(values), max(values)], abs=1e-12)


STATES: dict[str, GateState] = {"P": "PASS", "F": "FAIL", "I": "INCONCLUSIVE"}


def gates(*states: GateState) -> list[GateResult]:
    return [
        gate(state, f"m{number}", language="bg", worst=None, best=None, reason="")
        for number, state in enumerate(states)
    ]


TABLE = Path(__file__).with_name("decide.txt").read_text(encoding="utf-8")


def rows() -> Iterator[tuple[list[GateState], SessionFacts, str]]:
    """Yield the gates' states, the session's facts and the last line of each row."""
    text = re.sub(r"\n {4,}", "\t", re.sub("(?m)^#.*\n", "", TABLE)).strip()
    tuples = "undecided", "expected", "unpaired", "lost", "cautions", "causes"
    for row in text.splitlines():
        head, _, line = row.partition("\t")
        letters, _, given_facts = head.partition(" ")
        known = yaml.safe_load(given_facts)
        known |= {name: tuple(known.get(name, ())) for name in tuples}
        states = [STATES[one] for one in letters if one in STATES]
        yield (
            states,
            SessionFacts(**{"selected": 500, **known}),
            line.replace("\t", " "),
        )


@pytest.mark.parametrize(("states", "session", "line"), list(rows()))
def test_code_and_last_line(
    states: Sequence[GateState], session: SessionFacts, line: str
) -> None:
    """The contract, row by row; each line names its exit code."""
    given_gates = gates(*states)
    decision = decide(given_gates, session)
    assert decision.line == line
    assert re.findall(r"\bexit (\d+)", line) == [str(decision.code)]
    assert decision.gates == tuple(given_gates)


def test_where_grades_would_decide_the_line_says_why_they_lack() -> None:
    """The commonest cause alone; the warnings have the others."""
    lacking = gate("INCONCLUSIVE", "m0", language="bg", remedy="grade 9 more")
    causes = ("9 items ungraded: timeout: give max_tokens", "1 item ungraded: filtered")
    session = SessionFacts(selected=500, ungraded=10, pytest_code=1, causes=causes)
    decision = decide([lacking], session)
    assert decision.line.endswith(f"; {causes[0]}")


COUNTS = ("selected", "misses", "failures", "ungraded")
NAMES = st.lists(st.just("simpleqa:pl"), max_size=1).map(tuple)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([*STATES.values()]), max_size=4),
    st.builds(
        SessionFacts,
        **dict.fromkeys(COUNTS, st.integers(0, 2)),
        **dict.fromkeys(("undecided", "unpaired"), NAMES),
        unmet=st.sampled_from(["", "give --baseline=v1"]),
        interrupted=st.booleans(),
        pytest_code=st.sampled_from([0, 1, 2]),
    ),
)
def test_zero_means_that_everything_passed(
    states: list[GateState], session: SessionFacts
) -> None:
    """Exit 0 with items selected: at least one gate, all PASS, and no slice without one."""
    decision = decide(gates(*states), session)
    if decision.code == 0 and session.selected:
        assert set(states) == {"PASS"}
        assert not (session.failures or session.undecided or session.interrupted)
        assert not (session.unmet or session.unpaired)
    assert f"exit {decision.code}" in decision.line


@pytest.mark.parametrize("obstacle", Obstacle)
def test_every_obstacle_has_a_remedy(obstacle: Obstacle) -> None:
    """It is found by the obstacle's words, wherever they stand in a sentence."""
    assert way_out(f"one thing; another {obstacle} of it") == WAYS_OUT[obstacle]
