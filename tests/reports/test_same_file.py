"""Recorded answers that are the baseline's own decide nothing."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from qagate.cases.dataset import Threshold
from qagate.evaluators.core import RECORDED
from qagate.reports.run.record import Record
from qagate.reports.run.report import GateResult
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of

DROP = Threshold(measure="drop", max=0.3, evidence="confident", fail="margin")
DATASET = facts_dataset(graded_slice("en", DROP), graded_slice("pl", DROP))


def gates(
    new: Sequence[Record],
    old: Sequence[Record],
    model: str = RECORDED,
    earlier_model: str = RECORDED,
) -> list[GateResult]:
    earlier = run_of(old, DATASET, model=earlier_model)
    made = run_of(new, DATASET, baseline=earlier, model=model)
    return list(made.decision.gates)


def both(letters: str, **fields: Any) -> list[Record]:
    return [*answered(letters, **fields), *answered(letters, "pl", **fields)]


def test_the_same_answers_in_all_rows_are_the_same_file() -> None:
    results = gates(both("c" * 30), both("c" * 30))
    assert {gate.state for gate in results} == {"INCONCLUSIVE"}
    assert "it seems to be the same file" in results[0].reason
    assert "a column `run` or `date` that differs" in results[0].reason


def test_added_rows_make_no_other_file() -> None:
    """A stale export with twenty new rows is stale."""
    results = gates(both("c" * 50), both("c" * 30))
    assert "it seems to be the same file" in results[0].reason


def test_a_slice_of_many_answers_is_found_alone() -> None:
    new = [*answered("c" * 30), *answered("i" + "c" * 29, "pl")]
    english, polish = gates(new, both("c" * 30))
    assert english.state == "INCONCLUSIVE"
    assert polish.state == "PASS"


def test_few_different_answers_may_be_equal_by_chance() -> None:
    yes = answered("c" * 30, answer="Yes")
    new = [*yes, *answered("i" + "c" * 29, "pl")]
    english, _ = gates(new, [*yes, *answered("c" * 30, "pl")])
    assert english.state == "PASS"


@pytest.mark.parametrize("column", ["run", "date"])
def test_a_column_that_differs_tells_two_exports_apart(column: str) -> None:
    old = [replace(one, metadata={column: "1"}) for one in both("c" * 30)]
    new = [replace(one, metadata={column: "2"}) for one in both("c" * 30)]
    assert {gate.state for gate in gates(new, old)} == {"PASS"}


def test_a_column_that_differs_in_one_row_tells_nothing_apart() -> None:
    old = [replace(one, metadata={"run": "1"}) for one in both("c" * 30)]
    new = [replace(old[0], metadata={"run": "2"}), *old[1:]]
    assert gates(new, old)[0].state == "INCONCLUSIVE"


@pytest.mark.parametrize(
    ("model", "earlier"), [(RECORDED, "openai:m"), ("openai:m", RECORDED)]
)
def test_a_model_beside_a_file_is_no_comparison(model: str, earlier: str) -> None:
    (first, _) = gates(both("c" * 30), both("i" * 30), model, earlier)
    assert first.state == "INCONCLUSIVE"
    assert "data file" in first.reason


def test_equal_answers_of_a_model_are_no_file() -> None:
    results = gates(both("c" * 30), both("c" * 30), "openai:m", "openai:m")
    assert {gate.state for gate in results} == {"PASS"}


def served(letters: str, name: str) -> list[Record]:
    """Return records of both languages, of which the replies name this model."""
    return [replace(record, model=name) for record in both(letters)]


def test_answers_of_the_baselines_model_under_a_new_name_decide_nothing() -> None:
    """A gateway's new name may lead to the released model: then nobody asked the new one."""
    old = served("c" * 30, "openai:released")
    results = gates(
        served("c" * 30, "released-2026-05-01"),
        old,
        model="openai:candidate",
        earlier_model="released",
    )
    assert {gate.state for gate in results} == {"INCONCLUSIVE"}
    assert "30 of 30 answers come from released, the model of the baseline" in (
        results[0].reason
    )
    assert "not from openai:candidate" in results[0].reason


def test_a_model_that_is_asked_by_the_old_name_may_answer_by_it() -> None:
    named = served("c" * 30, "released-2026-05-01")
    results = gates(named, named, model="released", earlier_model="released")
    assert {gate.state for gate in results} == {"PASS"}


def test_the_line_says_that_both_replies_name_one_model() -> None:
    """One model may have answered both; or the server gives all its models this name."""
    named = served("c" * 30, "gateway")
    earlier = run_of(named, DATASET, model="released")
    made = run_of(named, DATASET, baseline=earlier, model="candidate")
    assert made.decision.code == 0
    said = "replies of this run and of the baseline name one model, gateway"
    assert said in made.decision.line


def test_a_models_answers_of_the_same_run_are_no_new_ones() -> None:
    """One call under one name of a run, however it came into both: nobody asked the new model."""
    old = both("c" * 30, asked_by="r1")
    new = [*both("c" * 30, asked_by="r2")]
    new[0] = replace(new[0], asked_by="r1")
    english, polish = gates(new, old, model="openai:m", earlier_model="openai:m")
    assert english.state == "INCONCLUSIVE"
    assert "1 of 30 answers are the baseline's own" in english.reason
    assert "--fresh NAME" in english.reason
    assert polish.state == "PASS"
