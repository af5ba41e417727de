"""What was retired along a chain of baselines counts for a model that was tried before."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from qagate.cases.dataset import Dataset, Retired, Threshold
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.decisions import earlier_tries
from qagate.reports.run.lineage import (
    chain_of,
    promoted_anyway,
    retired_text,
    tried_beside,
    unsettled,
)
from qagate.reports.run.record import Record
from qagate.reports.run.report import (
    Decided,
    EarlierBaseline,
    Report,
    SliceAnswers,
)
from tests.support.made_runs import (
    answered,
    before,
    facts_dataset,
    graded_slice,
    run_of,
)

NAME = "facts:en"
BAR = Threshold(measure="correct", min=0.3)
DROP = Threshold(measure="drop", max=0.1, evidence="confident", fail="margin")
RIGHT = "c" * 200
WORSE = "i" * 50 + "c" * 150
LOST = tuple(f"i{number}" for number in range(50))
"""The items that the new model fails."""
PLAIN = facts_dataset(graded_slice("en", BAR, DROP))
RETIRED = facts_dataset(
    graded_slice("en", BAR, DROP, retired=Retired(ids=LOST, reason="said to be wrong"))
)
OLD_MODEL = "openai:old"
NEW_MODEL = "openai:new"


def run(
    letters: str | Sequence[Record],
    dataset: Dataset,
    baseline: Baseline | None = None,
    **facts: object,
) -> Report:
    records = answered(letters) if isinstance(letters, str) else letters
    given = {"model": OLD_MODEL} | facts
    return run_of(records, dataset, baseline=baseline, **given)  # type: ignore[arg-type]


FIRST = before(run(RIGHT, PLAIN), "reports/baselines/v1")


def second(dataset: Dataset = RETIRED, letters: str = RIGHT) -> Baseline:
    """A run of the old model, with the items retired, that was promoted beside the first."""
    report = run(letters, dataset, FIRST)
    assert report.decision.code == 0
    made = before(report, "reports/baselines/v2")
    return replace(made, sha256="of v2")  # its answers were asked anew


def tried(baseline: Baseline = FIRST, **changes: object) -> Decided:
    """Return the decision of the new model's first try."""
    answers = {NAME: SliceAnswers(prompt="", asked={"r1": 5})}
    made = Decided(
        run="r1",
        at=1.0,
        code=1,
        model=NEW_MODEL,
        baseline=baseline.sha256,
        answers=answers,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_a_model_that_was_tried_cannot_retire_what_it_failed() -> None:
    """Neither by a baseline of the old model that has these items retired."""
    baseline = second()
    ids = unsettled(NEW_MODEL, chain_of(baseline), [tried()])
    assert ids == {NAME: tuple(sorted(LOST))}
    made = run(WORSE, RETIRED, baseline, model=NEW_MODEL, unsettled=ids)
    assert made.decision.code == 1
    assert "by the earlier retired items" in made.decision.gates[-1].reason


def test_items_taken_out_of_the_file_count_for_it_too() -> None:
    baseline = second()
    kept = answered(WORSE)[50:]
    ids = {NAME: LOST}
    made = run(kept, PLAIN, baseline, model=NEW_MODEL, unsettled=ids)
    assert made.decision.code == 6
    assert "50 missing items" in made.decision.gates[-1].reason


def test_a_baseline_without_these_items_decides_nothing() -> None:
    third = before(run(answered(RIGHT)[50:], PLAIN, second()), "reports/baselines/v3")
    kept = answered(WORSE)[50:]
    made = run(kept, PLAIN, third, model=NEW_MODEL, unsettled={NAME: LOST})
    assert made.decision.code == 6
    reason = made.decision.gates[-1].reason
    assert "retired after this model was first tried" in reason
    assert "compare with a baseline that has" in reason


def test_a_model_that_was_never_tried_has_them_retired() -> None:
    """A baseline was made with them retired: they count no more, and the last line says so."""
    baseline = second()
    assert unsettled(NEW_MODEL, chain_of(baseline), []) == {}
    made = run(WORSE, RETIRED, baseline, model=NEW_MODEL)
    assert made.decision.code == 0
    assert "; 50 of 200 items retired, 50 since v1" in made.decision.line


@pytest.mark.parametrize(
    "other",
    [
        tried(model="openai:other"),
        tried(monitor=True),
        replace(tried(), baseline="of another chain"),
        tried(answers={}),
    ],
    ids=["model", "monitor", "baseline", "slice"],
)
def test_other_decisions_are_no_tries_of_it(other: Decided) -> None:
    assert unsettled(NEW_MODEL, chain_of(second()), [other]) == {}


def test_a_first_try_beside_the_second_baseline_is_after_the_retirement() -> None:
    baseline = second()
    assert unsettled(NEW_MODEL, chain_of(baseline), [tried(baseline)]) == {}


def test_tries_go_along_the_chain() -> None:
    chain = chain_of(second())
    beside = [baseline.sha256 for baseline in tried_beside(NEW_MODEL, chain)]
    answers = {NAME: SliceAnswers(prompt="", asked={"r9": 5})}
    tries = earlier_tries(NEW_MODEL, beside, answers, [tried()])
    assert tries == {NAME: ("FAIL",)}


def link(name: str, model: str, **retired: tuple[str, ...]) -> EarlierBaseline:
    names = {f"facts:{language}": ids for language, ids in retired.items()}
    return EarlierBaseline(name=name, sha256=name, model=model, retired=names)


def test_tries_end_with_the_baseline_that_is_the_models_own() -> None:
    """What it took to be promoted is done with."""
    chain = (link("v3", OLD_MODEL), link("v2", NEW_MODEL), link("v1", OLD_MODEL))
    names = [baseline.name for baseline in tried_beside(NEW_MODEL, chain)]
    assert names == ["v3", "v2"]


def test_a_dated_name_of_the_model_ends_no_tries() -> None:
    """A baseline of last year's version is not the candidate's own."""
    chain = (link("v2", "openai:gpt-4o-2024-05-13"), link("v1", OLD_MODEL))
    names = [baseline.name for baseline in tried_beside("openai:gpt-4o", chain)]
    assert names == ["v2", "v1"]


def test_what_any_baseline_retired_counts() -> None:
    """Also where the last one has it retired no more."""
    chain = (link("v3", "m"), link("v2", "m", en=("i1",)), link("v1", "m"))
    first = replace(tried(), baseline="v1")
    assert unsettled(NEW_MODEL, chain, [first]) == {NAME: ("i1",)}


def test_a_chain_grows_by_each_baseline() -> None:
    names = [baseline.name for baseline in chain_of(second())]
    assert names == ["v2", "v1"]
    assert chain_of(None) == ()


def test_the_last_line_says_what_is_retired_without_a_baseline() -> None:
    made = run("c" * 250, RETIRED)
    assert "exit 0; 50 of 250 items retired; " in made.decision.line
    assert made.slices[0].note == "50 items retired: said to be wrong"


def test_nothing_is_said_where_nothing_is_retired() -> None:
    chain = (link("v1", "m"),)
    assert retired_text([PLAIN], answered("c"), chain) == ""


def test_retired_items_that_are_gone_count_in_the_text() -> None:
    chain = (link("v2", "m", en=("old1", "old2")), link("v1", "m", en=("old1",)))
    text = retired_text([PLAIN], answered("c" * 8), chain)
    assert text == "2 of 10 items retired, 1 since v1"


def test_a_waived_baseline_is_named_until_another_needs_no_reason() -> None:
    """Its reason stands in the chain of every run that was only compared with it."""
    waived = EarlierBaseline(
        name="v2", sha256="2", model=OLD_MODEL, anyway="in a hurry"
    )
    chain = [link("v3", OLD_MODEL), waived, link("v1", OLD_MODEL)]
    assert list(promoted_anyway(chain)) == ["v2 was promoted anyway: in a hurry"]
    assert list(promoted_anyway([link("v1", OLD_MODEL)])) == []
