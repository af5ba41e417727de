"""Two runs item by item: which pair, what changed, what was removed, gaps between languages."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from qagate.cases.dataset import Threshold
from qagate.evaluators.core import CORRECT, INCORRECT
from qagate.evaluators.statistics.intervals import Estimate
from qagate.evaluators.statistics.paired import tango
from qagate.reports.compare.differences import differences
from qagate.reports.compare.languages import parity
from qagate.reports.compare.shares import share_difference
from qagate.reports.compare.sides import PairedSlice
from qagate.reports.compare.states import pair_records
from qagate.reports.extras.sequential.sequential import AuditedGate, audited_gates
from qagate.reports.gates.change import change_gates
from qagate.reports.render import console
from qagate.reports.run.evidence import (
    Comparison,
    LanguageGap,
    MissedFact,
    SliceComparison,
)
from qagate.reports.run.record import Record
from qagate.reports.run.report import GateResult
from tests.support.auditing import answers, audited, verdicts
from tests.support.figures import some
from tests.support.made_records import make_dataset, make_record, make_slice
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of

DROP = Threshold(measure="drop", max=0.1, evidence="confident")


def compared(new: str, old: str, **changes: Any) -> Comparison:
    """Return the comparison of two runs over one slice, an item a letter."""
    baseline = run_of(answered(old))
    return some(run_of(answered(new, **changes), baseline=baseline).comparison)


def only(found: Comparison) -> SliceComparison:
    (one,) = found.slices
    return one


def test_every_item_of_the_new_run_is_counted_once() -> None:
    """Fixed, broke, right, wrong, ungraded, added, changed sum to the run; an outage is no flip."""
    one = only(compared("ciccneicc", "iccicceem"))
    counts = (one.fixed, one.broke, one.both_right, one.both_wrong, one.ungraded)
    assert counts == (2, 2, 1, 0, 4)
    assert sum(counts) + one.added + one.changed == 9
    more = only(compared("ccc", "cc"))
    assert (more.added, more.removed, more.shared) == (1, 0, 2)
    fewer = only(compared("cc", "ccc"))
    assert (fewer.added, fewer.removed) == (0, 1)
    other = compared("cc", "cc", question="Another?")
    assert (only(other).changed, only(other).shared) == (2, 2)
    assert [change.flip for change in other.changes] == ["changed", "changed"]
    assert [one.flip for one in compared("ec", "ce").changes] == [
        "ungraded",
        "ungraded",
    ]


def of_one_question(question: str, gold: str) -> tuple[Record, ...]:
    """Return one answered item whose id, as in a file without any, comes from its texts."""
    return tuple(
        replace(
            record,
            id=f"{question}{gold}",
            question=question,
            expected=gold,
            golds=(gold,),
            digest=f"{question}{gold}",
        )
        for record in answered("c")
    )


@pytest.mark.parametrize(
    ("gold", "other_golds"), [("Sofia.", 0), ("Sofia ", 0), ("Plovdiv", 1)]
)
def test_one_question_is_one_item_whatever_its_gold(
    gold: str, other_golds: int
) -> None:
    """Answers are read by both golds, so that a full stop in one file costs no pair."""
    baseline = run_of(of_one_question("Which city?", "Sofia"))
    new = run_of(of_one_question("Which city?", gold), baseline=baseline)
    one = only(some(new.comparison))
    assert (one.added, one.removed, one.respelt) == (0, 0, 0)
    assert one.other_golds == other_golds
    told = "1 with another gold than before" in " ".join(console.comparison(new))
    assert told == bool(other_golds)


@pytest.mark.parametrize(
    ("question", "respelt"),
    [("Which city? ", 1), ("which  city", 1), ("„Which“ city?", 1), ("Which town?", 0)],
)
def test_a_question_that_is_spelt_otherwise_is_no_pair_and_told(
    question: str, respelt: int
) -> None:
    baseline = run_of(of_one_question("Which city?", "Sofia"))
    report = run_of(of_one_question(question, "Sofia"), baseline=baseline)
    one = only(some(report.comparison))
    assert (one.added, one.removed, one.respelt) == (1, 1, respelt)
    told = "1 of the new ask what a removed one does but for blanks"
    assert (told in " ".join(console.comparison(report))) == bool(respelt)


def test_the_difference_has_interval_p_value_and_odds_ratio() -> None:
    """Tango's interval, McNemar's exact p, fixed : broke; no pair, no figure: not 0, not NaN."""
    one = only(compared("c" * 12 + "i" * 3 + "c" * 35, "i" * 12 + "c" * 38))
    assert (one.fixed, one.broke, one.difference.n) == (12, 3, 50)
    assert one.difference.value == pytest.approx(0.18)
    assert (one.difference.low, one.difference.high) == tango(12, 3, 50)
    assert one.p_value == pytest.approx(0.03515625)
    assert one.odds.value == 4
    assert one.odds.low == pytest.approx(1.0795, abs=1e-4)
    assert one.odds.high == pytest.approx(22.0880, abs=1e-3)
    assert one.detectable is not None
    one = only(compared("cc", "ee"))
    assert (one.difference.value, one.p_value, one.odds.n, one.detectable) == (
        None,
        None,
        0,
        None,
    )
    assert (one.differences, one.ungraded) == ({}, 2)


def test_changes_hold_what_the_baseline_had() -> None:
    """Flips with old answer, grade and reason; an unchanged item is not listed."""
    found = compared("cicn", "ccii").changes
    assert [
        (one.key[-2:], one.flip, one.grade, one.reason, one.answer) for one in found
    ] == [
        ("i1", "broke", "CORRECT", "It is CORRECT.", "c: 1"),
        ("i2", "fixed", "INCORRECT", "It is INCORRECT.", "i: 2"),
        ("i3", "same", "INCORRECT", "It is INCORRECT.", "i: 3"),
    ]


def test_the_same_answers_twice_are_no_certainty() -> None:
    """Differences of the runs' own values; 0 has an interval, the undefined no difference."""
    few, many = (only(compared("ccinn" * n, "ccinn" * n)).differences for n in (8, 40))
    for name, one in few.items():
        (low, high), (nearer, _) = map(some, (one.interval, many[name].interval))
        assert (one.value, low < nearer < 0 < high) == (0, True)
    moved = only(
        compared("c" * 20 + "i" * 10 + "n" * 10, "c" * 26 + "i" * 14)
    ).differences
    shares = {"incorrect", "not_attempted", "attempted", "correct_given_attempted"}
    assert set(moved) == {*shares, "f_score", "penalised", "mean_score"}
    new, old = 2 * 20 / (40 + 20 + 10), 2 * 26 / (2 * 26 + 2 * 14)
    found = moved["f_score"]
    assert found.value == pytest.approx(new - old)
    low, high = some(found.interval)
    assert low < new - old < high
    assert moved["mean_score"].value == pytest.approx((20 + 5) / 40 - 26 / 40)
    assert "correct_given_attempted" not in only(compared("cc", "nn")).differences


def test_repeats_of_an_item_are_one_observation_to_the_exact_test() -> None:
    """Three broken repeats are one broken item; several languages have one more row."""
    one = only(
        some(run_of(thrice("iiccc"), baseline=run_of(thrice("ccccc"))).comparison)
    )
    assert (one.broke, one.difference.n, one.odds.n) == (6, 15, 2)
    assert one.p_value == 0.5
    single = only(compared("iiccc", "ccccc"))
    assert one.difference.low == pytest.approx(single.difference.low, abs=0.1)
    dataset = facts_dataset(graded_slice("en"), graded_slice("bg"))
    old = run_of([*answered("ccc"), *answered("ccc", "bg")], dataset)
    new = run_of([*answered("cci"), *answered("ici", "bg")], dataset, baseline=old)
    found = some(new.comparison)
    assert [one.name for one in found.slices] == ["facts:en", "facts:bg", "facts:*"]
    assert [one.broke for one in found.slices] == [1, 2, 3]
    assert found.slices[-1].differences["incorrect"].value == pytest.approx(3 / 6)


def thrice(letters: str, language: str = "en") -> list[Record]:
    return [
        replace(one, key=f"{one.key}~r{number}")
        for number in (1, 2, 3)
        for one in answered(letters, language, repeat=number)
    ]


def test_another_judge_then_is_no_obstacle() -> None:
    """This run's judge reads both sides, so what the earlier one said is no matter."""
    dataset = facts_dataset(graded_slice("en", DROP))
    old = run_of(answered("c" * 60, judge="judge-2025"), dataset)
    made = run_of(answered("c" * 60), dataset, baseline=old)
    assert some(made.comparison).warnings == ()
    assert [gate.state for gate in made.decision.gates] == ["PASS"]


def test_without_a_baseline_nothing_is_compared() -> None:
    assert run_of(answered("c")).comparison is None


BOTH = facts_dataset(graded_slice("en"), graded_slice("bg"))


def gaps(**letters: str) -> tuple[LanguageGap, ...]:
    """Return the gaps of a run with a letter an item in each of these languages."""
    dataset = facts_dataset(*(graded_slice(language) for language in letters))
    records = [
        one for language, some in letters.items() for one in answered(some, language)
    ]
    return run_of(records, dataset).parity


def test_the_gap_is_paired_by_fact() -> None:
    """Language - first declared one, Tango's interval, exact p; facts missed, no outages."""
    (gap,) = gaps(en="cccccciicc", bg="ciiicccccc")
    assert (gap.dataset, gap.reference, gap.language) == ("facts", "en", "bg")
    assert gap.difference.value == pytest.approx(-0.1)
    assert gap.difference.interval == tango(2, 3, 10)
    assert gap.p_value == pytest.approx(1.0)
    assert gap.ahead == 2
    found = gaps(bg="cc", en="ci", pl="ii")
    assert [(gap.reference, gap.language) for gap in found] == [
        ("bg", "en"),
        ("bg", "pl"),
    ]
    (gap,) = gaps(en="cce", bg="eci")
    assert gap.difference.n == 1
    assert gaps(en="e", bg="c") == ()
    (gap,) = gaps(en="ccci", bg="cinc")
    assert gap.lapses == (
        MissedFact(fact="F1", reference="facts-en-i1", other="facts-bg-i1"),
        MissedFact(fact="F2", reference="facts-en-i2", other="facts-bg-i2"),
    )


def test_without_shared_facts_there_is_no_gap() -> None:
    """Other facts, no fact_id, one language, a fact asked twice; three repeats are one fact."""
    english, bulgarian = answered("c"), answered("c", "bg")
    twice = [replace(one, metadata={"fact_id": "F0"}) for one in answered("cc")]
    other = [replace(one, metadata={"fact_id": "other"}) for one in bulgarian]
    plain = [replace(one, metadata={}) for one in bulgarian]
    for one, two in ((english, other), (english, plain), (twice, bulgarian)):
        assert tuple(parity(BOTH, {"facts:en": one, "facts:bg": two})) == ()
    assert (gaps(en="cc"), tuple(parity(BOTH, {}))) == ((), ())
    (gap,) = parity(BOTH, {"facts:en": thrice("cc"), "facts:bg": thrice("ic", "bg")})
    assert (gap.difference.n, len(gap.lapses), gap.p_value) == (6, 3, 1.0)


def stopped_gaps(runs: int) -> Iterator[Estimate]:
    """Yield the gaps of runs that stop at the first look at which Bulgarian seems better.

    Of 150 facts a third differ, as many in either direction: there is no gap.
    """
    random, count = np.random.default_rng(20261123), 150
    dataset = facts_dataset(graded_slice("en"), graded_slice("bg"))
    facts = answered("c" * count)
    order = sorted(range(count), key=lambda n: dataset.slices["en"].place_of(facts[n]))
    for _ in range(runs):
        change = random.choice([-1, 0, 1], p=[1 / 6, 2 / 3, 1 / 6], size=count)
        right = np.where(change, change < 0, random.random(count) < 0.6)
        gap, differ = np.cumsum(change[order]), np.cumsum(np.abs(change[order]))
        looks = [n for n in range(10, count) if gap[n] > 1.96 * differ[n] ** 0.5]
        asked = set(order[: looks[0] + 1 if looks else count])
        made: dict[str, list[Record]] = {}
        for name, won in (("en", right), ("bg", right + change)):
            letters = ("ic"[int(won[n])] if n in asked else "s" for n in range(count))
            made[f"facts:{name}"] = answered("".join(letters), name)
        (found,) = parity(dataset, made)
        assert (found.p_value is None) == bool(looks)
        yield found.difference


@pytest.mark.slow
def test_the_gap_of_a_stopped_run_holds_at_any_look() -> None:
    """Stopped where it looks largest: 95 % hold, where no fixed-sample interval of these would."""
    found = list(stopped_gaps(200))
    assert sum(one.n < 150 for one in found) > 20
    assert sum(one.low is None or one.low > 0 for one in found) <= 10


def test_every_item_is_in_exactly_one_state() -> None:
    """Those of the old run in a pair, in the new run's order; those of the new run alone added."""
    old = [
        make_record(1, grade=CORRECT),
        make_record(2, grade=CORRECT),
        make_record(3, grade=CORRECT),
        make_record(4, outcome="error"),
        make_record(5, grade=CORRECT),
        make_record(6, grade=CORRECT),
        make_record(7, grade=CORRECT),
    ]
    new = [
        make_record(8, grade=CORRECT),
        make_record(7, outcome="stopped"),
        make_record(6, outcome="error"),
        make_record(5, grade=CORRECT, question="other?"),
        make_record(4, grade=CORRECT),
        make_record(3, grade=INCORRECT, outcome="failed"),
        make_record(2, grade=CORRECT),
    ]
    pairing = pair_records(new, old)
    assert [(pair.new.id, pair.state) for pair in pairing.pairs] == [
        ("i7", "stopped"),
        ("i6", "ungraded"),
        ("i5", "edited"),
        ("i4", "ungraded"),
        ("i3", "wrong"),
        ("i2", "right"),
        ("i1", "absent"),
    ]
    assert [record.id for record in pairing.added] == ["i8"]


def test_an_edited_item_has_no_new_answer() -> None:
    """What the model says to another question is no answer to the old one."""
    old = [make_record(1, grade=INCORRECT, outcome="failed")]
    new = [make_record(1, grade=CORRECT, question="easy?")]
    (pair,) = pair_records(new, old).pairs
    assert (pair.new.answer, pair.new.is_graded, pair.old.is_graded) == (
        None,
        False,
        True,
    )


def test_a_renamed_item_pairs_by_its_words() -> None:
    (pair,) = pair_records(
        [make_record(1, id="new", grade=CORRECT)], [make_record(1, grade=CORRECT)]
    ).pairs
    assert (pair.old.id, pair.new.id, pair.state) == ("i1", "new", "right")


def test_a_copied_item_pairs_once() -> None:
    """Copies of an item that came out well would outvote the others."""
    record = make_record(1, grade=CORRECT)
    copies = [replace(record, id=f"copy{n}", key=f"copy{n}") for n in range(3)]
    pairing = pair_records(copies, [record])
    assert len(pairing.pairs) == 1
    assert len(pairing.added) == 2


def test_an_old_grade_is_what_this_run_reads_and_nothing_else() -> None:
    """The earlier run's own grade is no part of the comparison."""
    old = [make_record(1, grade=CORRECT), make_record(2, grade=CORRECT)]
    read = [make_record(1, grade=INCORRECT, outcome="failed")]
    first, second = pair_records(old, old, read).pairs
    assert (first.old.grade, first.state) == (INCORRECT, "right")
    assert (second.old.is_graded, second.state) == (False, "ungraded")


def test_pairs_that_lack_a_grade_are_left_out_of_the_difference_that_is_shown() -> None:
    now = ("passed", "failed", "passed", "error")
    then = ("failed", "passed", "passed", "passed")
    new, old = (
        [make_record(n, outcome=outcome) for n, outcome in enumerate(run)]
        for run in (now, then)
    )
    side = PairedSlice(slice_=make_slice(), pairing=pair_records(new, old))
    difference = share_difference([side])
    assert (difference.n, difference.fixed, difference.broke) == (3, 1, 1)


def test_a_rating_passes_by_the_bar_that_is_given() -> None:
    record = make_record(1, rating=7, outcome="failed")
    passes = [record.passes(bar=6), record.passes(bar=8), record.passes()]
    assert passes == [True, False, False]
    assert make_record(1, outcome="missing").passes(bar=6) is None


NARROW = Threshold(measure="drop", max=0.05, evidence="confident", fail="margin")
GATES = {
    "confident": NARROW,
    "estimate": replace(NARROW, max=0.04, evidence="estimate"),
    "a metric": replace(NARROW, of="f_score"),
    "a share": replace(NARROW, measure="rise", of="incorrect"),
    "sequential": replace(NARROW, max=0.02, evidence="sequential"),
    "pooled": replace(NARROW, pool=True),
}
SAID = "missing items"


def gate_of(
    new: Sequence[Record], old: Sequence[Record], gate: Threshold
) -> GateResult:
    slice_ = graded_slice(
        "en", Threshold(measure="correct", min=0.01) if gate.pool else gate
    )
    dataset = facts_dataset(slice_, pooled=(gate,) if gate.pool else ())
    found = run_of(new, dataset, baseline=run_of(old, dataset)).decision.gates
    return next(one for one in found if one.threshold == gate)


@pytest.mark.untraced
@pytest.mark.parametrize("gate", GATES)
def test_broken_items_cut_from_the_data_do_not_make_a_gate_pass(gate: str) -> None:
    """One in twenty at most: they count as they came out, or as wrong, and the reason says so."""
    old = answered("c" * 1000, metadata={})
    broken = answered("i" * 49 + "c" * 951, metadata={})
    assert gate_of(old, old, GATES[gate]).state == "PASS"
    assert gate_of(broken, old, GATES[gate]).state != "PASS"
    less = gate_of(broken[49:], old, GATES[gate])
    assert less.state == "INCONCLUSIVE"
    assert f"49 {SAID}" in less.reason


@pytest.mark.parametrize("gate", GATES)
def test_items_cut_from_the_data_do_not_make_a_gate_fail(gate: str) -> None:
    """For a FAIL they count at their best: what was wrong and is gone may have come right."""
    old = answered("i" * 50 + "c" * 450, metadata={})
    new = answered(
        "i" * 50 + "".join("ic"[n % 11 > 0] for n in range(450)), metadata={}
    )[25:]
    assert gate_of(new, old[25:], GATES[gate]).state == "FAIL"
    less = gate_of(new, old, GATES[gate])
    assert less.state == "INCONCLUSIVE"
    assert f"25 {SAID}" in less.reason


def test_people_do_not_pass_a_run_that_lost_what_it_got_wrong() -> None:
    """The old answers that are not asked again count at their worst: nobody can look at a pair."""
    old, new = answers("c" * 300, "old"), answers("c" * 300, "new")
    people = {**verdicts(old, "c" * 300), **verdicts(new, "c" * 300)}

    def gate(asked: Sequence[Record], margin: float) -> AuditedGate:
        slice_ = graded_slice("en", audited(margin))
        side = PairedSlice(
            slice_=slice_, pairing=pair_records(asked, old), people=people
        )
        (found,) = audited_gates(facts_dataset(slice_), [side])
        return found

    assert gate(new, 0.1).state == "PASS"
    less = gate(new[:290], 0.1)
    assert (less.state, less.next_pairs) == ("INCONCLUSIVE", [])
    assert f"10 {SAID}" in less.result().reason
    assert gate(new[:290], 0.3).state == "PASS"


def test_an_item_that_neither_run_graded_is_not_known_either() -> None:
    """It could have been left out as the model gets it wrong; in a share a lost label counts."""
    old = answered("c" * 970 + "e" * 30, metadata={})
    new = answered("c" * 970, metadata={})
    gate = replace(NARROW, max=0.02)
    assert gate_of(new, new, gate).state == "PASS"
    assert gate_of(new, old, gate).state == "INCONCLUSIVE"
    rule = replace(NARROW, of="agreement", max=0.2)
    slice_ = make_slice("judged", rule, replace(rule, of="kappa"))
    labels = ["CORRECT", "INCORRECT"] * 50 + ["else"]
    old = [make_record(n, label=one, grade=one) for n, one in enumerate(labels)]
    side = PairedSlice(slice_=slice_, pairing=pair_records(old[:100], old))
    share, kappa = change_gates(make_dataset(slice_), [side])
    assert (share.state, kappa.state) == ("PASS", "INCONCLUSIVE")
    assert "1 missing item: at worst" in share.reason
    assert "kappa has no bounds with 1 item missing" in kappa.reason
    assert differences([side])["kappa"].n == 100
