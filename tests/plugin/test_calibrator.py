"""Measuring the judge beside the tests: what is looked for, what is asked, what is waited for."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from cases.dataset import Choice, Plan, SliceFile
from cases.plan import labelled_for, make_plan
from evaluators.core import Outcome, Reply, ToolCall
from evaluators.judges.llm import ChoiceJudge
from evaluators.text import request_key
from reports.plugin.calibrator import Calibrator, JudgeWait, find_labelled, way_of
from reports.plugin.options import Options, read_options
from tests.conftest import Project
from tests.plugin.test_plugin_judges import SURE, YAML, with_labels, with_rubrics
from tests.support.judging import judges
from tests.support.scripted import Scripted

CALL = ToolCall(name="grade", arguments='{"reason": "", "grade": "CORRECT"}')
MODEL = Scripted(lambda request: Reply(calls=(CALL,)))
ASKING = judges(MODEL.spec, models=[MODEL])


class Nothing:
    """pytest's config with no option of ours given."""

    def getoption(self, name: str) -> None:
        return None


def options(**changes: object) -> Options:
    blank = read_options(cast("pytest.Config", Nothing()), Path())
    return replace(blank, judges=("openai:j",), **changes)  # type: ignore[arg-type]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """Return a project in which nothing is run."""
    return Project(tmp_path)


@pytest.fixture
def plan(project: Project) -> Plan:
    """Return the plan of a project whose labelled items are not part of the run."""
    project.dataset("capital", {"en": [SURE], "bg": [SURE]}, YAML)
    with_labels(with_rubrics(project, "capital"))
    return make_plan([project.path / "qa" / "capital" / "dataset.yaml"], Choice())


def test_labels_are_found_beside_the_datasets_of_the_run(project: Project, plan: Plan) -> None:
    """Beside them and below, not above the root; a broken neighbour is nobody's business here."""
    project.write("qa/broken/dataset.yaml", "kind: [judged")
    project.write("qa/capital/deep/dataset.yaml", "kind: graded\n")
    found = find_labelled(options(), plan, project.path)
    assert [(one.dataset.name, one.language) for one in found] == [
        ("labels", "en"),
        ("labels", "bg"),
    ]
    assert find_labelled(options(), plan, project.path / "qa" / "capital") == ()


@pytest.mark.parametrize("changes", [{"gates_off": True}, {"judges": ("lexical",)}])
def test_nothing_is_looked_for_where_nothing_would_hang_on_it(
    project: Project, plan: Plan, changes: dict[str, object]
) -> None:
    """Without gates, or where rules judge, no folder is searched."""
    assert find_labelled(replace(options(), **changes), plan, project.path) == ()  # type: ignore[arg-type]


def test_how_a_judge_is_measured() -> None:
    """In the session; from the ledger for the user's own items; or not at all."""
    own = SliceFile(dataset="d", language="en", path=Path("own.csv"))
    assert way_of(options()) == "session"
    assert way_of(options(choice=Choice(items=(own,)))) == "ledger"
    assert way_of(options(calibration=False)) == "off"


@pytest.fixture
def calibrator(project: Project, plan: Plan) -> Calibrator:
    """Return a calibrator of a run that a model judges."""
    return Calibrator.of(plan, find_labelled(options(), plan, project.path), "session", ASKING)


def test_only_the_languages_that_are_run_are_measured(calibrator: Calibrator) -> None:
    """A run of one language judges the labelled items of that language alone."""
    keys = calibrator.select(["capital-en-q1"])
    assert keys == tuple(f"calibration:labels-en-l{number}" for number in range(4))
    assert set(keys) < set(calibrator.tasks)
    assert not calibrator.is_complete({})
    done = {key: Outcome(key=key, state="error") for key in keys}
    assert calibrator.is_complete(done)
    (found,) = calibrator.calibrations(done, lambda key: None)
    assert (found.language, found.graders) == ("en", ("capital:en",))


def test_labels_that_are_tests_of_the_run_are_not_judged_beside_it(project: Project) -> None:
    """They are measured among its records; a part of them is not enough."""
    folder = project.path / "qa"
    project.dataset("capital", {"en": [SURE], "bg": [SURE]}, YAML)
    with_labels(with_rubrics(project, "capital"))
    files = [folder / "capital" / "dataset.yaml", folder / "labels" / "dataset.yaml"]
    every = make_plan(files, Choice(languages=("en",)))
    labelled = labelled_for(every, [one for one in every.datasets if one.kind == "judged"])
    calibrator = Calibrator.of(every, labelled, "session", ASKING)
    assert calibrator.select(list(every.items)) == ()
    assert calibrator.is_complete({})
    assert len(calibrator.select(list(every.items)[:-1])) == 4


def test_rules_need_no_measuring(calibrator: Calibrator) -> None:
    """The offline judge keeps to what is among the run's own tests."""
    offline = Calibrator.of(calibrator.plan, calibrator.labelled, "session", judges("lexical"))
    assert offline.select(["capital-en-q1"]) == ()
    assert offline.calibrations({}, lambda key: None) == ()


def test_what_is_in_the_ledger_is_looked_up(calibrator: Calibrator) -> None:
    """A judge with every labelled item recorded is measured; with one missing it is not."""
    later = Calibrator.of(calibrator.plan, calibrator.labelled, "ledger", ASKING)
    assert later.select(["capital-en-q1"]) == ()
    assert later.is_complete({})
    (found,) = later.calibrations({}, lambda key: Reply(calls=(CALL,)))
    assert (found.source, found.items) == ("ledger", 4)
    assert found.measures["agreement"].value == 0.5
    assert found.blocks == "judge not trusted in en: kappa 0 < 0.6"
    missing = asked_of(later, "calibration:labels-en-l2")
    (found,) = later.calibrations({}, lambda key: None if key == missing else Reply(calls=(CALL,)))
    to_do = " in the ledger; a run without --items measures it"
    assert found.reason == f"1 labelled item without a grade{to_do}"
    (found,) = later.calibrations({}, lambda key: Reply(text="no call"))
    assert found.reason == f"4 labelled items without a grade{to_do}"


def asked_of(calibrator: Calibrator, key: str) -> str:
    """Return the ledger key of the request that judges an item."""
    task = calibrator.tasks[key]
    model = Scripted(lambda request: Reply(calls=(CALL,)))
    assert isinstance(task.judge, ChoiceJudge)
    keys = []

    async def ask(_: object, request: object) -> Reply:
        keys.append(request_key(MODEL.identity, request))  # type: ignore[arg-type]
        return await model.complete(request)  # type: ignore[arg-type]

    asyncio.run(task.judge.judge(task.case, task.case.recorded or "", ask))
    return keys[0]


def test_a_judge_that_is_not_measured_by_choice(calibrator: Calibrator) -> None:
    """Nothing is asked, and the report says that it was switched off."""
    off = Calibrator.of(calibrator.plan, calibrator.labelled, "off", ASKING)
    assert (off.select(["capital-en-q1"]), dict(off.tasks)) == ((), {})
    (found,) = off.calibrations({}, lambda key: None)
    assert found.reason == "calibration is off"


def test_a_session_waits_for_its_judge_and_an_interrupt_does_not() -> None:
    """The loop's own result is passed on; an exception goes through at once."""
    answers = iter([False, False, True])
    steps = JudgeWait(lambda: next(answers)).pytest_runtestloop()
    next(steps)
    with pytest.raises(StopIteration) as end:
        send(steps, True)
    assert end.value.value is True
    assert next(answers, "none left") == "none left"
    stopped = JudgeWait(lambda: pytest.fail("it waited")).pytest_runtestloop()
    next(stopped)
    with pytest.raises(KeyboardInterrupt):
        stopped.throw(KeyboardInterrupt)


def send(steps: Iterator[None], value: object) -> None:
    """Resume a hook's wrapper as pluggy does."""
    steps.send(value)  # type: ignore[attr-defined]
