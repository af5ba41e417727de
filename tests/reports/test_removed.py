"""Claims about items that a baseline has and the new run's data no longer has."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from cases.dataset import Threshold
from reports.compare.differences import differences
from reports.compare.pairs import PairedSlice, pair_records
from reports.gates.change import change_gates
from reports.gates.sequential import AuditedGate, audited_gates
from reports.run.record import Record
from reports.run.report import GateResult
from tests.support.auditing import answers, audited, verdicts
from tests.support.made_records import make_dataset, make_record, make_slice
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of

DROP = Threshold(measure="drop", max=0.05, evidence="confident", fail="margin")
GATES = {
    "confident": DROP,
    "estimate": replace(DROP, max=0.04, evidence="estimate"),
    "a metric": replace(DROP, of="f_score"),
    "a share": replace(DROP, measure="rise", of="incorrect"),
    "sequential": replace(DROP, max=0.02, evidence="sequential"),
    "pooled": replace(DROP, pool=True),
}
SAID = "items of the baseline not asked again"


def gate_of(new: Sequence[Record], old: Sequence[Record], gate: Threshold) -> GateResult:
    """Return the result of a gate on a change."""
    bar = Threshold(measure="correct", min=0.01)
    slice_ = graded_slice("en", bar if gate.pool else gate)
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
    letters = "".join("ic"[n % 11 > 0] for n in range(450))
    new = answered("i" * 50 + letters, metadata={})[25:]
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
        side = PairedSlice(slice_=slice_, pairing=pair_records(asked, old), people=people)
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
    gate = replace(DROP, max=0.02)
    assert gate_of(new, new, gate).state == "PASS"
    assert gate_of(new, old, gate).state == "INCONCLUSIVE"
    rule = replace(DROP, of="agreement", max=0.2)
    slice_ = make_slice("judged", rule, replace(rule, of="kappa"))
    labels = ["CORRECT", "INCORRECT"] * 50 + ["else"]
    old = [make_record(n, label=one, grade=one) for n, one in enumerate(labels)]
    side = PairedSlice(slice_=slice_, pairing=pair_records(old[:100], old))
    share, kappa = change_gates(make_dataset(slice_), [side])
    assert (share.state, kappa.state) == ("PASS", "INCONCLUSIVE")
    assert "1 item of the baseline not asked again: at worst" in share.reason
    assert "kappa has no bounds with 1 item of the baseline not asked again" in kappa.reason
    assert differences([side])["kappa"].n == 100


@pytest.mark.parametrize("evidence", ["confident", "sequential", "audited"])
def test_a_pooled_gate_names_the_languages_that_only_the_baseline_has(evidence: str) -> None:
    """It may still decide; the gate of one language does not speak of others."""
    languages = ("en", "bg", "hu", "pl")
    pool = Threshold(measure="drop", max=0.3, evidence=evidence, fail="margin", pool=True)  # type: ignore[arg-type]
    dataset = facts_dataset(
        *(graded_slice(one, replace(pool, pool=False)) for one in languages), pooled=(pool,)
    )
    old = {one: answered("c" * 200, one, metadata={}) for one in languages}
    before = run_of([record for part in old.values() for record in part], dataset)
    some = run_of(old["en"], dataset, baseline=before).decision.gates
    said = {one.language: "the baseline also has bg, hu, pl" in one.reason for one in some}
    assert said == {"en": False, "": True}
    assert {one.state for one in some} == {"PASS"}
    every = run_of(before.records, dataset, baseline=before).decision.gates
    assert not any("also has" in one.reason for one in every)
