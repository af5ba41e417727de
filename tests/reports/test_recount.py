"""Claims about deciding on recorded runs again, and about putting shards together."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from cases.dataset import Threshold
from cases.gates_file import DatasetGates, GatesFile
from evaluators.core import UsageError
from evaluators.statistics.intervals import UNDEFINED, Estimate
from reports.gates.decide import SessionFacts
from reports.run.evidence import Calibration
from reports.run.report import Report
from reports.verdict.recount import merged, rebuilt, regated
from tests.support.made_runs import answered, before, facts_dataset, graded_slice, run_of
from tests.support.samples import rendered

DROP = Threshold(measure="drop", max=0.1, evidence="confident")
HIGH = Threshold(measure="correct", min=0.9)
BOTH = facts_dataset(graded_slice("en"), graded_slice("bg"))


def gates(**languages: tuple[Threshold, ...]) -> GatesFile:
    """Return a file that has these thresholds alone."""
    own = DatasetGates(languages=languages)
    return GatesFile(datasets={"facts": own}, replaces_all=True)


def test_a_run_rebuilt_is_the_same_run() -> None:
    """Only records and what was declared go in; other gates decide as the run would have."""
    made = run_of(answered("cice"))
    assert rendered(rebuilt(made, None)) == rendered(made)
    made = run_of(answered("ccci"))
    assert made.decision.code == 0
    again = regated(made, gates(en=(HIGH,)), None)
    assert [(gate.threshold, gate.state) for gate in again.decision.gates] == [(HIGH, "FAIL")]
    assert again.decision.code == 1
    direct = run_of(answered("ccci"), facts_dataset(graded_slice("en", HIGH)))
    assert again.decision == direct.decision


def test_a_new_baseline_brings_the_drop_gates_into_play() -> None:
    """Without one a drop gate does not exist; with one it fails here."""
    made = run_of(answered("i" * 30 + "c" * 170), facts_dataset(graded_slice("en", DROP)))
    assert made.decision.code == 6
    again = rebuilt(made, before(run_of(answered("c" * 200))))
    assert again.decision.code == 1
    assert again.comparison is not None
    assert again.comparison.slices[0].broke == 30


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (GatesFile(datasets={"other": DatasetGates()}), r"no gate for any .* this run \(facts\)"),
        (gates(fr=(HIGH,)), "no such language here"),
        (gates(en=(replace(HIGH, measure="kappa"),)), r"no metric of facts:en \(kind graded\)"),
    ],
)
def test_gates_that_fit_no_part_of_the_run_are_refused(wrong: GatesFile, words: str) -> None:
    """A gate that decides nothing would pass."""
    with pytest.raises(UsageError, match=words):
        regated(run_of(answered("c")), wrong, None)


@pytest.mark.parametrize(("breaker", "code"), [("lexical", 0), ("openai:g", 6)])
def test_a_model_that_breaks_ties_has_to_be_measured(breaker: str, code: int) -> None:
    """Two judges by rules decide unmeasured, but not with a model over them; counted again, too."""
    facts = facts_dataset(judge_unmeasured=False)
    rules, known = "lexical python:mine:Judge", {"tie_breaker": breaker}
    made = run_of(answered("cc"), facts, judge=rules, provenance=known)
    assert (made.decision.code, rebuilt(made, None).decision.code) == (code, code)


@pytest.mark.parametrize(
    ("facts", "code"),
    [({"other_failures": 1}, 1), ({}, 1), ({"interrupted": True}, 2), ({}, 3)],
)
def test_what_else_happened_in_the_session_still_counts(facts: dict[str, Any], code: int) -> None:
    """New gates excuse no failing test, interrupt or internal error."""
    made = run_of(answered("cc"), session=SessionFacts(pytest_code=code, **facts))
    assert made.decision.code == code
    assert regated(made, gates(en=(HIGH,)), None).decision.code == code


def shards() -> list[Report]:
    """Return two runs of one language each."""
    english = run_of(answered("cci"), facts_dataset(graded_slice("en")))
    return [english, run_of(answered("cic", "bg"), facts_dataset(graded_slice("bg")))]


def test_shards_make_the_run_that_they_are_parts_of() -> None:
    """Counts sum, run.json is that of one run over all but its block; so is a comparison."""
    whole = run_of([*answered("cci"), *answered("cic", "bg")], BOTH)
    found = merged(shards(), None)
    assert found.counts == whole.counts
    assert rendered(replace(found, run={})) == rendered(replace(whole, run={}))
    assert found.run == {"shards": [{"id": "r1"}, {"id": "r1"}]}
    old = run_of([*answered("ccc"), *answered("ccc", "bg")], BOTH)
    found = merged(shards(), before(old))
    assert found.comparison is not None
    assert found.comparison.slices[-1].broke == 2


def test_parts_of_one_slice_are_whole_together() -> None:
    """Each is PARTIAL alone and decides nothing; together they decide."""
    records = answered("ccic")
    parts = [run_of(some, whole={"facts:en": 4}) for some in (records[:2], records[2:])]
    assert [part.decision.code for part in parts] == [6, 6]
    found = merged(parts, None)
    assert (found.decision.code, found.slices[0].partial) == (0, False)
    assert merged(parts[:1], None).slices[0].partial


def test_identical_items_overlap_and_others_do_not() -> None:
    """An item of two shards counts once; with two outcomes it is refused."""
    one, two = run_of(answered("cc")), run_of(answered("cc"))
    assert merged([one, two], None).counts.planned == 2
    with pytest.raises(UsageError, match=r"item facts-en-i1 is in two of the runs .* 'answer'"):
        merged([one, run_of(answered("ci"))], None)


OTHER_BAR = r"gates of facts:en: 'correct >= 0.5 \(evidence: estimate\)' and 'correct >= "


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: {"model": "openai:other"}, "differ in model"),
        (lambda r: {"judge": "lexical"}, "differ in judge"),
        (lambda r: {"provenance": {**r.provenance, "seed": 1}}, "differ in seed"),
        (lambda r: {"provenance": {"slices": {}}}, "differ in seed"),
        (
            lambda r: {"provenance": {"seed": 0, "slices": {"facts:en": {"rubric": 2}}}},
            "differ in data, prompt or rubric of facts:en",
        ),
        (lambda r: {"slices": (replace(r.slices[0], whole=9),)}, "number of items in facts:en"),
        (lambda r: {"datasets": (facts_dataset(holm=True),)}, "differ in holm of dataset"),
        (lambda r: {"datasets": (facts_dataset(graded_slice("en", HIGH)),)}, OTHER_BAR),
    ],
)
def test_runs_that_are_not_parts_of_one_are_refused(
    change: Callable[[Report], dict[str, Any]], words: str
) -> None:
    """The error names what differs."""
    one = run_of(answered("cc"), provenance={"seed": 0, "slices": {"facts:en": {"rubric": 1}}})
    with pytest.raises(UsageError, match=words) as caught:
        merged([one, replace(one, **change(one))], None)
    assert "\n" not in str(caught.value)


def test_what_may_differ_is_kept_side_by_side() -> None:
    """Versions returned are united; Python versions are listed."""
    first = {"python": "3.11", "models_returned": ["new-1"], "slices": {}}
    second = {"python": "3.12", "models_returned": ["new-2"], "slices": {}}
    runs = [run_of(answered("c"), provenance=first), run_of(answered("c"), provenance=second)]
    found = merged(runs, None).provenance
    assert found["python"] == ["3.11", "3.12"]
    assert found["models_returned"] == ["new-1", "new-2"]


@pytest.mark.parametrize(("codes", "code"), [((0, 1), 1), ((1, 2), 2), ((0, 3), 3), ((0, 0), 0)])
def test_a_shards_own_end_is_that_of_the_whole(codes: tuple[int, int], code: int) -> None:
    """An interrupted or broken shard leaves no green whole."""
    runs = []
    for one in codes:
        cut = one == 2
        facts = SessionFacts(pytest_code=one, interrupted=cut, other_failures=int(one == 1))
        runs.append(run_of(answered("cc"), session=facts, complete=not cut, notes=("said once",)))
    found = merged(runs, None)
    assert (found.decision.code, found.complete) == (code, 2 not in codes)
    assert found.session.notes == ("said once",)


def test_a_judge_measured_outside_the_records_stays_measured() -> None:
    """Once for all shards, and still a reason not to decide."""
    low = {"kappa": Estimate(value=0.2, low=0.1, high=0.3, n=9)}
    outside = Calibration(
        dataset="judges", language="en", measures=low, trusted=False, source="ledger",
        blocks="judge not trusted in en", graders=("facts:en",), tokens=5,
    )  # fmt: skip
    made = run_of(answered("cc"), outside=(outside,))
    assert made.decision.code == 6
    again = rebuilt(made, None)
    assert (again.judging, again.decision) == (made.judging, made.decision)
    found = merged([made, made], None)
    assert (found.tokens, found.decision) == (made.tokens, made.decision)
    other = replace(outside, measures={"kappa": UNDEFINED})
    with pytest.raises(UsageError, match="differ in measures of the judge by judges:en"):
        merged([made, run_of(answered("cc"), outside=(other,))], None)
