"""Measuring the judge alongside the tests: what is looked for, asked and waited for."""

import json
import shutil
from collections.abc import Callable, Generator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from qagate.bundled import BUNDLED_LABELS
from qagate.cases.config import load_dataset
from qagate.cases.dataset import Plan, Selection
from qagate.cases.discovery import labelled_files
from qagate.cases.loading import load_cases
from qagate.cases.plan import labelled_for, make_plan
from qagate.evaluators.core import Outcome, Reply, ToolCall, UsageError
from qagate.reports.plugin.calibrator import Calibrator, find_labelled
from qagate.reports.plugin.controller import Controller
from qagate.reports.plugin.options import RunOptions
from tests.plugin.test_plugin_judges import SURE, YAML, with_labels, with_rubrics
from tests.support.judging import judges
from tests.support.projects import Project, graded
from tests.support.run_options import options_of
from tests.support.scripted import Scripted

CALL = ToolCall(name="grade", arguments='{"reason": "", "grade": "CORRECT"}')
MODEL = Scripted(lambda request: Reply(calls=(CALL,)))
ASKING = judges(MODEL.spec, models=[MODEL])


def options(**changes: object) -> RunOptions:
    return replace(options_of(), judges=("openai:j",), **changes)  # type: ignore[arg-type]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


@pytest.fixture
def plan(project: Project) -> Plan:
    """Return the plan of a project whose labelled items are not part of the run."""
    project.dataset("capital", {"en": [SURE], "bg": [SURE]}, YAML)
    with_labels(with_rubrics(project, "capital"))
    return make_plan([project.path / "qa" / "capital" / "dataset.yaml"], Selection())


def test_labels_are_found_beside_the_datasets_of_the_run(
    project: Project, plan: Plan
) -> None:
    """Next to them and below, not above the root, nor without gates; a broken one harms nobody."""
    project.write("qa/broken/dataset.yaml", "kind: [judged")
    project.write("qa/capital/deep/dataset.yaml", "kind: graded\n")
    found = find_labelled(options(), plan, project.path)
    names = [(one.dataset.name, one.language) for one in found]
    assert names == [("labels", "en"), ("labels", "bg")]
    assert find_labelled(options(gates_off=True), plan, project.path) == ()


def test_rules_are_measured_like_a_model(project: Project, plan: Plan) -> None:
    rules = replace(options(), judges=("lexical",))
    assert [len(found.items) for found in find_labelled(rules, plan, project.path)] == [
        len(found.items) for found in find_labelled(options(), plan, project.path)
    ]


def test_few_labels_of_ones_own_have_the_bundled_ones_beside_them(
    project: Project,
) -> None:
    """In another repository too, and under names that differ."""
    bare = graded(
        dict.fromkeys(("en", "bg"), "correct: {min: 0.1}"), "rubric: simpleqa"
    )
    judged = "kind: judged\nrubric: simpleqa\nlanguages: {bg: {file: bg.jsonl}}\n"
    project.dataset("capital", {"en": [SURE], "bg": [SURE]}, bare)
    project.dataset("judges", {"bg": [SURE]}, judged)
    row = {"question": "?", "answer": "a", "predicted_answer": "a", "label": "CORRECT"}
    project.write(
        "qa/judges/bg.jsonl", json.dumps({**row, "label_source": "constructed"}) + "\n"
    )
    plan = make_plan([project.path / "qa" / "capital" / "dataset.yaml"], Selection())
    found = find_labelled(options(), plan, project.path)
    sizes = {(one.dataset.name, one.language): len(one.items) for one in found}
    bundled = load_dataset(BUNDLED_LABELS / "dataset.yaml")
    whole = {code: len(load_cases(bundled.slices[code])) for code in ("en", "bg")}
    assert sizes == {
        ("judges", "bg"): 1,
        ("bundled_judges", "bg"): whole["bg"],
        ("judges", "en"): whole["en"],
    }


def test_a_labelled_file_of_the_users_own_is_what_measures(project: Project) -> None:
    """``--items`` names it for a language that the labelled data set lacks."""
    labels = project.write(
        "own.csv", "question,answer,predicted_answer,label\n?,a,a,CORRECT\n"
    )
    asked = project.write("asked.csv", "Question,Answers,Predicted answers\n?,a,a\n")
    folder = BUNDLED_LABELS.parent
    files = [folder / name / "dataset.yaml" for name in ("simpleqa", "judges")]
    items = {("simpleqa", "de"): asked, ("judges", "de"): labels}
    gates = project.write("gates.yaml", "simpleqa: {de: {correct: {min: 0.1}}}")
    choice = Selection(items=items, gates_file=gates)
    plan = make_plan(files, choice)
    (found,) = find_labelled(options(choice=choice), plan, folder.parent)
    assert (found.graders, [item.case.row for item in found.items]) == (
        ("simpleqa:de",),
        [1],
    )
    assert found.planned_in(set(plan.items))


@pytest.mark.parametrize("place", ["qa/mine", "far/away/mine"])
def test_a_labelled_set_elsewhere_gets_a_file(
    project: Project, plan: Plan, place: str
) -> None:
    """It stands with the run's data sets, or with the file; it then measures with all others."""
    name, root = place.rpartition("/")[2], project.path
    shutil.copytree(root / "qa" / "labels", root / place)
    rows = "question,answer,predicted_answer,label\n?,a,a,CORRECT\n"
    own = project.write(f"{place}/own.csv", rows)
    choice = Selection(items={(name, "en"): own})
    files = [root / "qa" / "capital" / "dataset.yaml"]
    with pytest.raises(UsageError, match=f"dataset '{name}' is not among those found"):
        make_plan(files, choice)
    at_hand = labelled_files([file.parent for file in files], choice.items, root)
    assert make_plan(files, choice, at_hand).items == plan.items
    found = find_labelled(options(choice=choice), plan, root)
    sizes = {one.dataset.name: len(one.items) for one in found if one.language == "en"}
    assert sizes[name] == 1


@pytest.fixture
def calibrator(project: Project, plan: Plan) -> Calibrator:
    return Calibrator(
        plan, find_labelled(options(), plan, project.path), ASKING, options()
    )


def test_only_the_languages_that_are_run_are_measured(calibrator: Calibrator) -> None:
    """A run of one language judges its labelled items alone."""
    keys = calibrator.select(["capital-en-q1"])
    assert keys == tuple(f"calibration:labels-en-l{number}" for number in range(4))
    assert set(keys) < set(calibrator.tasks)
    assert not calibrator.is_complete({})
    done = {key: Outcome(key=key, state="error") for key in keys}
    assert calibrator.is_complete(done)
    records = calibrator.records(done)
    assert {record.language for record in records} == {"en"}


def test_labels_that_were_not_reached_count_as_not_graded(
    calibrator: Calibrator,
) -> None:
    """A run that is cut short must not choose which labels measure its judge."""
    keys = calibrator.select(["capital-en-q1"])
    records = calibrator.records({})
    assert [record.key for record in records] == list(keys)
    assert not any(record.is_graded for record in records)


def test_labels_that_are_tests_of_the_run_are_not_judged_beside_it(
    project: Project,
) -> None:
    """They are measured among its records; a part of them is not enough."""
    folder = project.path / "qa"
    project.dataset("capital", {"en": [SURE], "bg": [SURE]}, YAML)
    with_labels(with_rubrics(project, "capital"))
    files = [folder / "capital" / "dataset.yaml", folder / "labels" / "dataset.yaml"]
    every = make_plan(files, Selection(languages=("en",)))
    labelled = labelled_for(
        every, [one for one in every.datasets if one.kind == "judged"]
    )
    calibrator = Calibrator(every, labelled, ASKING, options())
    assert calibrator.select(list(every.items)) == ()
    assert calibrator.is_complete({})
    assert len(calibrator.select(list(every.items)[:-1])) == 4


def test_a_session_waits_for_its_judge_and_an_interrupt_does_not() -> None:
    """The loop's own result is passed on; an exception goes through at once."""
    answers = iter([False, False, True])

    def begun(is_measured: Callable[[], bool]) -> Generator[None, object, object]:
        run = type(
            "Run", (), {"is_judge_measured": property(lambda self: is_measured())}
        )()
        controller: Any = SimpleNamespace(_run=run, _distributed=True)
        session: Any = SimpleNamespace(testsfailed=0)
        return Controller.pytest_runtestloop(controller, session)

    steps = begun(lambda: next(answers))
    next(steps)
    with pytest.raises(StopIteration) as end:
        steps.send(True)  # as pluggy does
    assert end.value.value is True
    assert next(answers, "none left") == "none left"
    stopped = begun(lambda: pytest.fail("it waited"))
    next(stopped)
    with pytest.raises(KeyboardInterrupt):
        stopped.throw(KeyboardInterrupt)
