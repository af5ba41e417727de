"""Earlier decisions: which are tries of the same model, and which let a run be a baseline."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.cases.dataset import Shards
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.decisions import (
    Known,
    answers_of,
    earlier_tries,
    is_part_of,
    spread,
    uncounted_tries,
    why_no_baseline,
)
from qagate.reports.run.provenance import sent_spec
from qagate.reports.run.record import Record
from qagate.reports.run.report import Decided, SliceAnswers
from tests.support.samples import record, report

OWN = {"facts:en": SliceAnswers(prompt="p1", asked={"r9": 5})}


def decided(run: str = "r1", code: int = 1, **changes: object) -> Decided:
    """Return a decision of ``openai:m`` beside the baseline ``b``."""
    answers = {"facts:en": SliceAnswers(prompt="p1", asked={run: 5})}
    made = Decided(
        run=run,
        at=float(run[1:]),
        code=code,
        model="openai:m",
        baseline="b",
        answers=answers,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def tries(*known: Decided) -> tuple[str, ...]:
    """Return the ends of the earlier sets of answers to ``facts:en``."""
    return earlier_tries("openai:m", ["b"], OWN, known)["facts:en"]


def test_earlier_sets_count_oldest_first() -> None:
    """Each with how it ended."""
    assert tries(decided("r2", 6), decided("r1", 1)) == ("FAIL", "INCONCLUSIVE")


def test_the_same_answers_read_again_are_no_try() -> None:
    """A replay, and a run that goes on, read the answers of the run that asked."""
    assert tries(decided("r9")) == ()


def test_a_part_of_an_earlier_set_is_no_try() -> None:
    """A sample of the answers that two runs asked."""
    both = {"facts:en": SliceAnswers(prompt="p1", asked={"r3": 5, "r9": 5})}
    assert tries(decided("r3", answers=both)) == ()


@pytest.mark.parametrize(
    "changes",
    [
        {"model": "openai:other"},
        {"baseline": "other"},
        {"monitor": True},
        {"code": 2},
        {"answers": {"facts:en": SliceAnswers(prompt="p2", asked={"r1": 5})}},
        {"answers": {"facts:bg": SliceAnswers(prompt="p1", asked={"r1": 5})}},
    ],
    ids=["model", "baseline", "monitor", "interrupted", "prompt", "slice"],
)
def test_other_sets_are_no_tries(changes: dict[str, object]) -> None:
    """Another model, baseline, prompt or slice; a nightly run; one that decided nothing."""
    other = replace(decided("r1"), **changes)  # type: ignore[arg-type]
    assert tries(other) == ()


@given(st.lists(st.integers(1, 8), max_size=12))
def test_a_set_counts_once(runs: list[int]) -> None:
    """However often its answers were decided on."""
    assert len(tries(*[decided(f"r{run}") for run in runs])) == len(set(runs))


def test_a_pool_counts_the_most_tries_of_its_slices() -> None:
    """Its gates read all of them."""
    ends = {"facts:en": ("FAIL",), "facts:bg": ("FAIL", "FAIL"), "eba:en": ()}
    assert spread(ends) == {"facts": ("FAIL", "FAIL"), "eba": ()}


def test_a_set_of_asked_answers_is_named_by_its_runs() -> None:
    """Kept answers of an earlier run keep its name."""
    records = [record(1, asked_by="r2"), record(2, asked_by="r1")]
    assert answers_of(records, {})["simpleqa:en"].asked == {"r1": 1, "r2": 1}


def test_recorded_answers_are_named_by_their_text() -> None:
    """Another answer makes another set."""
    first = answers_of([record(1, answer="a")], {})["simpleqa:en"]
    second = answers_of([record(1, answer="b")], {})["simpleqa:en"]
    assert not is_part_of(first, second)


@pytest.mark.parametrize("count", [10, 1000])
def test_a_part_of_recorded_answers_is_the_same_set(count: int) -> None:
    """A first look at twenty rows of a file is no try of a release."""
    records = [record(number, id=f"i{number}", answer="a") for number in range(count)]
    whole = answers_of(records, {})["simpleqa:en"]
    part = answers_of(records[:7], {})["simpleqa:en"]
    assert is_part_of(part, whole)
    other = answers_of([replace(made, answer="b") for made in records], {})
    assert not is_part_of(other["simpleqa:en"], whole)


@pytest.mark.parametrize("count", [10, 1000])
def test_a_recorded_file_that_was_read_in_part_before_is_no_try(count: int) -> None:
    """A run that was stopped had read a part of it; nothing was drawn anew since."""
    records = [record(number, id=f"i{number}", answer="a") for number in range(count)]
    whole = answers_of(records, {})
    first = decided("r1", 6, answers=answers_of(records[:7], {}))
    assert earlier_tries("openai:m", ["b"], whole, [first])["simpleqa:en"] == ()


def test_a_recorded_file_of_which_an_answer_changed_is_a_try() -> None:
    records = [record(number, id=f"i{number}", answer="a") for number in range(10)]
    other = [replace(records[0], answer="b"), *records[1:7]]
    first = decided("r1", 6, answers=answers_of(other, {}))
    tries_by_slice = earlier_tries("openai:m", ["b"], answers_of(records, {}), [first])
    assert tries_by_slice["simpleqa:en"] == ("INCONCLUSIVE",)


def test_each_file_of_recorded_answers_is_a_model() -> None:
    """Two releases come in two files."""
    provenance = {"slices": {"facts:en": {"recorded_file": "release-3.csv"}}}
    assert sent_spec("recorded", provenance) == "recorded (release-3.csv)"


def beside(*records: Record) -> Baseline:
    """Return a baseline with these records."""
    return Baseline(path="OLD", report=replace(report(), records=records), sha256="b")


def test_a_corrected_item_makes_no_other_set() -> None:
    """Its answer is drawn anew, but beside this baseline it counts at its worst anyway."""
    baseline = beside(record(1), record(2))
    edited = record(2, question="Who, exactly?", asked_by="r2")
    answers = answers_of([record(1, asked_by="r1"), edited], {}, baseline)
    assert answers["simpleqa:en"].asked == {"r1": 1}


def test_an_added_item_makes_no_other_set() -> None:
    """It is not compared."""
    records = [record(1, asked_by="r1"), record(2, id="new", asked_by="r2")]
    records[1] = replace(records[1], question="Which?")
    answers = answers_of(records, {}, beside(record(1)))
    assert answers["simpleqa:en"].asked == {"r1": 1}


@pytest.mark.parametrize(
    ("asked", "ends"),
    [
        ({"r1": 5, "r9": 1}, ()),
        ({"r1": 4, "r9": 1}, ("FAIL",)),
        ({"r9": 6}, ("FAIL",)),
    ],
    ids=["only added to", "one drawn anew", "all drawn anew"],
)
def test_a_set_that_grows_is_no_try_at_any_look(
    asked: dict[str, int], ends: tuple[str, ...]
) -> None:
    """Bets hold however often one looks; answers that are drawn anew are another try."""
    answers = {"facts:en": SliceAnswers(prompt="p1", asked=asked)}
    known = [decided("r1")]
    growing = earlier_tries("openai:m", ["b"], answers, known, {"facts:en"})
    assert growing["facts:en"] == ends
    fixed = earlier_tries("openai:m", ["b"], answers, known)
    assert fixed["facts:en"] == ("FAIL",)


@pytest.mark.parametrize(
    ("known", "is_said"),
    [([], True), ([decided("r7")], True), ([decided("r3")], False)],
    ids=["empty", "another run", "the baseline's"],
)
def test_a_ledger_that_lacks_the_baseline_may_lack_tries(
    known: list[Decided], is_said: bool
) -> None:
    """Whoever moves the ledger away hears that tries are not counted."""
    made = replace(report(), decided=decided("r3", 0))
    baseline = Baseline(path="v1", report=made, sha256="b")
    said = uncounted_tries(baseline, known)
    assert ("may not be counted: the ledger knows no run of v1" in said) == is_said


def test_an_entry_of_a_models_file_is_the_model_that_it_asks() -> None:
    """Whatever parameters it has: a second entry is no second model."""
    sent = {"provider": "openai", "name": "m", "base_url": "http://h/v1"}
    provenance = {"sent": {"warm": {**sent, "parameters": {"temperature": 1}}}}
    assert sent_spec("warm", provenance) == "openai:m@http://h/v1"
    assert sent_spec("recorded", provenance) == "recorded"
    function = {"sent": {"mine": {"provider": "python", "name": "app:ask"}}}
    assert sent_spec("mine", function) == "python:app:ask"


# What may be a baseline


def why(own: Decided | None, *known: Decided) -> str:
    """Return why a run with this decision may not be a baseline."""
    return why_no_baseline(replace(report(), decided=own), known)


def test_a_pass_beside_a_baseline_may_be_one() -> None:
    """Whatever passed before it."""
    assert why(decided("r5", 0), decided("r1", 0)) == ""


def test_the_first_pass_without_a_baseline_may_be_one() -> None:
    """Runs that failed before do not matter."""
    assert why(decided("r5", 0, baseline=""), decided("r1", 1), decided("r2", 6)) == ""


def test_a_later_pass_without_a_baseline_may_not() -> None:
    """Leaving the baseline out once must not make a worse release the next baseline."""
    assert "passed before it" in why(decided("r5", 0, baseline=""), decided("r1", 0))


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (decided("r5", 1), "its own decision was"),
        (decided("r5", 6), "its own decision was"),
        (decided("r5", 0, monitor=True), "--monitor"),
        (decided("r5", 0, gates_off=True), "gates were off"),
        (None, "gates were off"),
    ],
    ids=["fail", "inconclusive", "monitor", "gates off", "nothing decided"],
)
def test_other_runs_may_not(own: Decided | None, said: str) -> None:
    """The reason says what the run was."""
    assert said in why(own)


def test_a_decision_that_folder_and_ledger_know_is_one() -> None:
    """It is told by its run and time."""
    known = Known()
    known.add(decided("r1"))
    known.add(decided("r1"))
    known.add(None)
    assert known.decisions == (decided("r1"),)


def test_a_part_of_a_run_is_no_baseline() -> None:
    """A shard ends in 0 and decides nothing; the run may fail once it is whole."""
    shard = replace(report(), decided=decided(code=0), shards=Shards(of=3, held=(1,)))
    assert "merge all shards" in why_no_baseline(shard, ())
    whole = replace(shard, shards=Shards(of=3, held=(1, 2, 3)))
    assert why_no_baseline(whole, ()) == ""
