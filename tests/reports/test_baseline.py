"""Claims about what keeps a baseline from deciding, and about items that it does not have."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases.dataset import Evidence, Sampling, SliceSample, Threshold
from reports.compare.pairs import PairedSlice, pair_records
from reports.gates.change import change_gates
from reports.run.record import Record
from reports.run.report import GateResult, Report, Role
from tests.support.made_records import make_dataset, make_slice
from tests.support.made_runs import answered, before, facts_dataset, graded_slice, run_of

DROP = Threshold(measure="drop", max=0.1, evidence="confident", fail="zero")
DROPS = facts_dataset(graded_slice("en", DROP))
LETTERS = "c" * 200
TEN = SliceSample(items=200, of=900, seed=3)


def gate_of(new: Sequence[Record], old: Report, **run: object) -> GateResult:
    """Return the drop gate of a run beside a baseline with other fields in its run.json."""
    baseline = before(old)
    given = replace(baseline, run={**baseline.run, **run})
    (gate,) = run_of(new, DROPS, baseline=given).decision.gates
    return gate


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ({}, ""),
        ({"complete": False}, "the baseline was cut short"),
        ({"complete": None}, "the baseline was cut short"),
        ({"slices": None}, "the baseline knows no facts:en"),
        ({"slices": []}, "the baseline knows no facts:en"),
        ({"slices": [{"name": "facts:en"}]}, "only a part of the baseline's slice was run"),
        (
            {"slices": [{"name": "facts:en", "partial": False}]},
            "the baseline does not say whether it asked all items",
        ),
        (
            {
                "slices": [{"name": "facts:en", "partial": False, "whole": 200}],
                "provenance": {"limit": 200, "seed": 3, "repeats": 1},
            },
            "the baseline asked 200 of ?, seed 3; compare with a run of all, or of the same",
        ),
        (
            {
                "slices": [{"name": "facts:en", "partial": False, "whole": 200}],
                "provenance": {"limit": None, "seed": 3, "repeats": 1},
            },
            "",
        ),
    ],
)
def test_what_a_baseline_does_not_vouch_for_decides_nothing(
    run: dict[str, object], words: str
) -> None:
    """The same records PASS beside a whole run, and are INCONCLUSIVE beside any other."""
    gate = gate_of(answered(LETTERS), run_of(answered(LETTERS), DROPS), **run)
    assert gate.state == ("INCONCLUSIVE" if words else "PASS")
    assert gate.reason.startswith(words or "new - old is 0")


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("role", ["baseline", "anchor"])
def test_a_run_is_not_held_against_its_own_answers(role: Role, moved: bool) -> None:
    """Nothing differs from itself, also where rows moved and an item got its grade since."""
    own = run_of(answered("c" * 199 + "e"), DROPS)
    new = [replace(one, row=one.row + moved) for one in answered(LETTERS)]
    earlier = replace(before(own), records=own.records, role=role)
    (gate,) = run_of(new, DROPS, baseline=earlier).decision.gates
    assert gate.state == "INCONCLUSIVE"
    assert gate.reason.startswith(f"the {role} holds this run's own answers")


@pytest.mark.parametrize(
    ("now", "then", "state"),
    [
        (TEN, TEN, "PASS"),
        (TEN, None, "PASS"),  # all were asked then, those of the pinned sample among them
        (TEN, replace(TEN, seed=4), "INCONCLUSIVE"),
        (None, TEN, "INCONCLUSIVE"),
    ],
)
def test_a_baselines_sample_must_be_that_of_the_run(
    now: SliceSample | None, then: SliceSample | None, state: str
) -> None:
    """A pinned sample may be held against itself, or against a run of all items."""
    pins = replace(DROPS, sampling=Sampling(limit=200, seed=3))
    old = run_of(answered(LETTERS), pins, samples={"facts:en": then} if then else {})
    samples = {"facts:en": now} if now else {}
    made = run_of(answered(LETTERS), pins, baseline=old, samples=samples)
    assert made.decision.gates[0].state == state


@pytest.mark.parametrize(
    ("added", "ungraded", "state", "words"),
    [
        (10, 0, "PASS", "190 pairs; 10 items without a partner: at worst 0, at best 0.05"),
        (5, 5, "PASS", "190 pairs; 10 items without a partner"),
        (11, 0, "INCONCLUSIVE", "11 of 200 items have no partner in the baseline (11 not asked, 0"),
        (6, 6, "INCONCLUSIVE", "(6 not asked, 6 ungraded there), more than 5%; compare with a run"),
    ],
)
def test_only_few_items_may_lack_a_partner(
    added: int, ungraded: int, state: str, words: str
) -> None:
    """One in twenty, for whatever reason but new data."""
    old = answered("e" * ungraded + "c" * (200 - ungraded))[: 200 - added]
    gate = gate_of(answered(LETTERS), run_of(old, DROPS))
    assert gate.state == state
    assert words in gate.reason


def test_changed_data_is_said_and_the_rest_compared() -> None:
    """However much of it; where all of it changed there is nothing to compare."""
    old = answered(LETTERS)
    changed = [replace(one, digest="other") for one in old]
    gate = gate_of(old, run_of([*changed[:120], *old[120:]], DROPS))
    assert gate.state == "PASS"
    assert "80 pairs; 120 items whose data changed left out" in gate.reason
    every = gate_of(old, run_of(changed, DROPS))
    assert every.state == "INCONCLUSIVE"
    assert every.reason.startswith("no graded item pairs with the baseline")


@pytest.mark.parametrize(
    ("gone", "state", "words"),
    [
        (10, "PASS", "190 pairs; 10 items of the baseline not asked again: at worst 0, at best"),
        (11, "INCONCLUSIVE", "6% of the baseline's items are not in this run, more than 5%"),
    ],
)
def test_a_data_set_that_lost_its_hard_questions_decides_nothing(
    gone: int, state: str, words: str
) -> None:
    """Up to one in twenty is said in the gate's own sentence."""
    left = 200 - gone
    gate = gate_of(answered("c" * left), run_of(answered("c" * left + "i" * gone), DROPS))
    assert gate.state == state
    assert words in gate.reason


def test_a_sample_need_not_have_all_that_the_baseline_has() -> None:
    """Where it is the pinned one; further repeats of the baseline are no items of their own."""
    once = answered(LETTERS)
    more = [replace(one, repeat=2, key=f"{one.key}~r2") for one in once]
    assert gate_of(once, run_of([*once, *more], DROPS)).state == "PASS"
    pins = replace(DROPS, sampling=Sampling(limit=200, seed=3))
    old = run_of(answered("c" * 900), DROPS)
    made = run_of(once, pins, baseline=old, samples={"facts:en": TEN})
    assert made.decision.gates[0].state == "PASS"


def test_repeats_that_the_baseline_lacks_are_left_out_and_said() -> None:
    """The first repeats pair; the others are not unpaired, and an item that is new still is."""
    once = answered(LETTERS)
    again = [replace(one, repeat=n, key=f"{one.key}~r{n}") for n in (2, 3) for one in once]
    made = run_of([*once, *again], DROPS, baseline=run_of(once[:199], DROPS))
    (gate,) = made.decision.gates
    assert gate.state == "PASS"
    assert "199 pairs; 1 item without a partner" in gate.reason
    assert "400 repeats left out, as the baseline has fewer repeats" in gate.reason
    assert made.comparison is not None
    (one,) = made.comparison.slices
    assert (one.both_right, one.added, one.repeats) == (199, 1, 400)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.sampled_from(["cc", "ci", "ic", "ii", "ec"]), min_size=20, max_size=60),
    st.sampled_from(["estimate", "confident"]),
    st.data(),
)
def test_a_baseline_item_less_never_makes_a_run_pass(
    pairs: list[str], evidence: Evidence, data: st.DataObject
) -> None:
    """Absent or ungraded in the baseline, an item may take a PASS away, and never give one."""
    rule = replace(DROP, evidence=evidence)
    new = answered("".join(pair[0] for pair in pairs))
    old = answered("".join(pair[1] for pair in pairs))

    def state(old: Sequence[Record]) -> str:
        slice_ = make_slice("graded", rule, dataset="facts", language="en")
        side = PairedSlice(slice_=slice_, pairing=pair_records(new, old))
        return change_gates(make_dataset(slice_), [side])[0].state

    whole = state(old)
    lost = data.draw(st.sets(st.integers(0, len(old) - 1), min_size=1, max_size=4))
    absent = [one for number, one in enumerate(old) if number not in lost]
    silent = [
        replace(one, outcome="error", grade=None) if number in lost else one
        for number, one in enumerate(old)
    ]
    for fewer in (absent, silent):
        assert state(fewer) != "PASS" or whole == "PASS"
