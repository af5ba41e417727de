"""A worker gets the controller's plan; every planned item ends in exactly one state."""

import gc
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from qagate.cases.dataset import Dataset, Plan, PlannedItem, Selection, Slice
from qagate.cases.plan import make_plan
from qagate.evaluators.core import Outcome
from qagate.evaluators.kinds import kind_of
from qagate.reports.plugin.session_results import SessionResults, key_in
from qagate.reports.plugin.worker import (
    INPUT_KEY,
    WorkerHooks,
    WorkerInput,
    gc_paused,
    read_worker_input,
)
from tests.support.figures import some
from tests.support.fixtures import Patch
from tests.support.loopback import loopback, plausible
from tests.support.projects import Project
from tests.support.scripted import make_case
from tests.support.tables import kept, tabled

READERS = (
    "asyncio",
    "qagate.cases.loading",
    "qagate.cases.plan",
    "qagate.evaluators.runtime.engine",
    "jinja2",
    "yaml",
)
HEAVY = ("anthropic", "deepeval", "numpy", "openai", "pandas", "scipy", "statsmodels")
LOADED: str = kept(__file__, "loaded").format(readers=READERS, heavy=HEAVY)


@pytest.fixture
def plan(tmp_path: Path) -> Plan:
    """Return the plan of two languages, one of them with everything that a row can have."""
    folder = tmp_path / "capital"
    folder.mkdir()
    (folder / "dataset.yaml").write_text(
        "kind: graded\nlanguages:\n  en: {file: en.csv, gates: {correct: {min: 0.5}}}\n"
        "  bg: {file: bg.jsonl}\n"
    )
    (folder / "en.csv").write_text(
        "metadata,problem,answer,aliases\n\"{'topic': 'Art', 'n': (1, 2.5)}\",q?,Sofia,Sofija | S\n"
    )
    row = {
        "id": "й",
        "question": "коя?",
        "answer": "София",
        "predicted_answer": "\ud800",
    }
    (folder / "bg.jsonl").write_text(
        json.dumps(row) + "\n" + json.dumps({**row, "id": 2}) + "\n"
    )
    return make_plan([folder / "dataset.yaml"], Selection(repeats=2))


def worker_input(plan: Plan, store: Path) -> dict[str, str]:
    node = SimpleNamespace(workerinput={})
    WorkerHooks(WorkerInput(plan=plan, outcome_store=store)).pytest_configure_node(node)
    given: dict[str, str] = node.workerinput
    return given


def test_a_worker_has_the_very_plan_of_the_controller(
    plan: Plan, tmp_path: Path
) -> None:
    """The same items in order, equal in every field; one file for all, or a usage error."""
    given = some(read_worker_input(worker_input(plan, tmp_path / "store")))
    assert given.plan == plan
    assert list(given.plan.items) == list(plan.items)
    assert [len([*given.plan.tests(dataset)]) for dataset in given.plan.datasets] == [6]
    assert given.outcome_store == tmp_path / "store"
    first = worker_input(plan, tmp_path / "store")
    path = Path(first[INPUT_KEY])
    path.write_bytes(path.read_bytes() + b"end")
    assert worker_input(plan, tmp_path / "store") == first
    assert path.read_bytes().endswith(b"end")
    with pytest.raises(
        pytest.UsageError, match=r"the plan cannot be written .*; free space there"
    ):
        worker_input(plan, tmp_path / "absent" / "store")


def test_a_worker_without_datasets_is_given_nothing(plan: Plan, tmp_path: Path) -> None:
    """Nothing where there is no plan; what pytest wrote of a report arrives, tuples included."""
    assert read_worker_input({}) is None
    assert read_worker_input({INPUT_KEY: "/nowhere/plan.pickle"}) is None
    report = {
        "nodeid": "a",
        "location": ("a.py", 1, "b"),
        "user_properties": [("qa", "{}")],
    }
    hooks = WorkerHooks(WorkerInput(plan=plan, outcome_store=tmp_path / "store"))
    worker = SimpleNamespace(workerinput={})
    packing = hooks.pytest_report_to_serializable(cast("pytest.Config", worker))
    next(packing)
    with pytest.raises(StopIteration) as packed:
        packing.send(report)
    data = {**packed.value.value, "worker_id": "gw0"}
    hooks.pytest_report_from_serializable(data)
    assert data == {**report, "worker_id": "gw0"}


def test_workers_read_no_data_and_load_nothing_that_could(project: Project) -> None:
    """A worker loads neither readers nor engine before its tests, and no SDK or statistics ever."""
    project.dataset("capital", {"en": ["Sofia"] * 3, "bg": ["Sofia", "Varna"]})
    project.write("qa/conftest.py", LOADED)
    project.run("-n", "2", "qa").assert_outcomes(passed=4)
    loaded = sorted(project.path.glob("loaded-*.json"))
    assert [json.loads(path.read_text(encoding="utf-8")) for path in loaded] == [[]] * 4
    assert (
        len(set((project.path / "seen.txt").read_text(encoding="utf-8").split())) == 5
    )


@pytest.fixture
def collector() -> Iterator[None]:
    was_on = gc.isenabled()
    yield
    (gc.enable if was_on else gc.disable)()


@pytest.mark.usefixtures("collector")
@pytest.mark.parametrize("was_on", [True, False])
def test_the_collector_rests_for_a_while_only(
    was_on: bool, plan: Plan, tmp_path: Path
) -> None:
    """It comes back as it was, off or on, also where something breaks; so while items are made."""
    (gc.enable if was_on else gc.disable)()
    with pytest.raises(KeyError), gc_paused():
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled() == was_on
    hook = WorkerHooks(
        WorkerInput(plan=plan, outcome_store=tmp_path / "store")
    ).pytest_collection()
    next(hook)
    assert not gc.isenabled()
    with pytest.raises(StopIteration):
        next(hook)
    assert gc.isenabled() == was_on


SLICE = Slice(
    dataset="simpleqa", language="bg", kind=kind_of("graded"), path=Path("bg.csv")
)
KEYS = ("simpleqa-bg-q1", "simpleqa-bg-q2")
PASSED = Outcome(key=KEYS[0], state="passed")


@pytest.fixture
def results() -> SessionResults:
    items = {
        key: PlannedItem(key=key, slice=SLICE, case=make_case(number), repeat=1)
        for number, key in enumerate(KEYS, start=1)
    }
    dataset = Dataset(
        name="simpleqa", folder=Path(), kind=SLICE.kind, slices={"bg": SLICE}
    )
    made = SessionResults(Plan(datasets=(dataset,), items=items))
    made.selected_keys = made.planned_among(
        [*map(node_of, KEYS), "tests/test_x.py::test_y"]
    )
    assert made.selected_keys == KEYS
    return made


def node_of(key: str) -> str:
    return f"cases/simpleqa/test_simpleqa.py::test_simpleqa[{key}]"


def note(
    results: SessionResults,
    nodeid: str,
    when: str,
    outcome: str = "passed",
    word: str = "",
) -> None:
    report = SimpleNamespace(nodeid=nodeid, when=when, outcome=outcome, qa=word)
    results.note(cast("pytest.TestReport", report))


def run(
    results: SessionResults, key: str, word: str = "", call: str = "passed"
) -> None:
    """Note the three reports of one test."""
    note(results, node_of(key), "setup")
    note(results, node_of(key), "call", call, word)
    note(results, node_of(key), "teardown")


def died(results: SessionResults) -> str:
    report: Any = SimpleNamespace(outcome="failed")
    sched = SimpleNamespace(mark_test_pending=lambda _: None)
    results.pytest_handlecrashitem(node_of(KEYS[0]), report, sched)
    return str(report.outcome)


def test_the_key_stands_between_the_last_brackets(results: SessionResults) -> None:
    """For any path; a failure with our word is the item's, others and crashes not."""
    assert key_in("a[b]/test_c.py::test_d[simpleqa-bg-1~r2]") == "simpleqa-bg-1~r2"
    assert key_in("tests/test_x.py::test_y") == ""
    run(results, KEYS[0], "miss", "failed")
    assert results.other_failures == 0
    run(results, KEYS[1], "", "failed")
    assert results.other_failures == 1
    note(results, "tests/test_x.py::test_y", "???", "failed")
    assert results.other_failures == 2


def test_the_engines_outcome_stands_where_its_test_ran(results: SessionResults) -> None:
    """Every planned key has one end; what was done ahead of the tests is only in the ledger."""
    ends = results.final_outcomes({KEYS[0]: PASSED}, "interrupted")
    assert {end.kind for end in ends.values()} == {"interrupted"}
    run(results, KEYS[0])
    ends = results.final_outcomes({KEYS[0]: PASSED}, "stopped")
    assert set(ends) == set(KEYS)
    assert ends[KEYS[0]] == PASSED
    assert (ends[KEYS[1]].state, ends[KEYS[1]].kind) == ("missing", "stopped")
    assert results.other_failures == 0


@tabled("ended", "why", "end")
def test_no_outcome(
    results: SessionResults, ended: list[str], why: str, end: list[str]
) -> None:
    """Skipped, lost by the engine, or never reached."""
    run(results, KEYS[0], *ended)
    known = {KEYS[0]: PASSED} if end[1] == "skipped" else {}
    found = results.final_outcomes(known, why)[KEYS[0]]
    assert [found.state, found.kind] == end


def test_a_dead_worker_is_forgiven_once(results: SessionResults) -> None:
    """A second death is an ERROR; a closed pipe raises nothing; a living one is told all."""
    assert died(results) == "rerun"
    run(results, KEYS[0])
    assert results.final_outcomes({KEYS[0]: PASSED}, "stopped")[KEYS[0]] == PASSED
    assert died(results) == "failed"
    note(results, node_of(KEYS[0]), "???", "failed")
    end = results.final_outcomes({KEYS[0]: PASSED}, "stopped")[KEYS[0]]
    assert (end.state, end.kind) == ("error", "worker_died")
    assert results.other_failures == 0

    def send(name: str, error: type[Exception]) -> None:
        raise error(name)

    ready(send).sendcommand("steal", error=OSError)
    with pytest.raises(TypeError):
        ready(send).sendcommand("runtests", error=TypeError)
    told: list[tuple[str, dict[str, object]]] = []
    ready(lambda name, **values: told.append((name, values))).sendcommand(
        "runtests", indices=[1]
    )
    assert told == [("runtests", {"indices": [1]})]


def test_a_verdict_needs_no_worker(results: SessionResults) -> None:
    """Where workers died, an item that no test reached has the engine's outcome (R8)."""
    died(results)
    ended = {KEYS[1]: replace(PASSED, key=KEYS[1])}
    ends = results.final_outcomes(ended, "stopped")
    assert (ends[KEYS[1]], ends[KEYS[0]].state) == (ended[KEYS[1]], "missing")
    assert results.graded_without_test(ended) == 1


def ready(send: Any) -> Any:
    """Return a worker that has become ready, whose commands go out by ``send``."""
    plan = Plan(datasets=(), items={})
    node_of = SimpleNamespace(sendcommand=send)
    SessionResults(plan).pytest_testnodeready(node_of)
    return node_of


KEYS_OF_WORKERS = """
import os
from pathlib import Path

Path("seen").mkdir(exist_ok=True)
if "PYTEST_XDIST_WORKER" in os.environ:
    names = Path("/proc/self/environ").read_text().replace("\\0", "\\n")
    Path("seen", os.environ["PYTEST_XDIST_WORKER"]).write_text(names)
"""


@pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
def test_workers_are_started_without_keys(project: Project, monkeypatch: Patch) -> None:
    """Tests ask nobody; the key is in the environment of the process that the user started."""
    project.asked(2)
    project.write("conftest.py", KEYS_OF_WORKERS)
    for variable in ("MY_KEY", "OPENAI_API_KEY", "QA_LEDGER_KEY"):
        monkeypatch.setenv(variable, "made-up-key-" + "0123456789" * 3)
    with loopback(handler=plausible()) as server:
        model = f"--model=openai:m@{server.url}/v1"
        named = f"--key-env={server.url}/v1=MY_KEY"
        done = project.run(
            "-n", "2", model, named, "--judge=lexical", "--gates=off", "qa"
        )
    assert done.ret in (0, 1), done.stdout.str()
    seen = [file.read_text("utf-8") for file in (project.path / "seen").iterdir()]
    assert len(seen) == 2
    for environment in seen:
        assert "PATH=" in environment
        assert "MY_KEY=" not in environment
        assert "QA_LEDGER_KEY=" not in environment
