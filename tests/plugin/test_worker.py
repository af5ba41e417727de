"""A worker gets the plan from the controller: the same plan, and no file is read for it again."""

import gc
import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from cases.dataset import Plan, Selection
from cases.plan import make_plan
from reports.plugin.worker import (
    INPUT_KEY,
    CollectionWithoutGc,
    ReportPacker,
    WorkerInput,
    WorkerSetup,
    gc_paused,
    read_worker_input,
)
from tests.conftest import Project

READERS = ("asyncio", "cases.loading", "cases.plan", "evaluators.runtime.engine", "jinja2", "yaml")
HEAVY = ("anthropic", "deepeval", "numpy", "openai", "pandas", "scipy", "statsmodels")
LOADED = f"""
import json
import sys
from pathlib import Path


def pytest_runtest_logreport(report):
    if hasattr(report, "node") and report.when == "teardown":
        Path("seen.txt").open("a").write(report.nodeid + "\\n")


def note(session, when, names):
    if hasattr(session.config, "workerinput"):
        found = [name for name in names if name in sys.modules]
        worker = session.config.workerinput["workerid"]
        Path(f"loaded-{{when}}-{{worker}}.json").write_text(json.dumps(found))


def pytest_collection_finish(session):
    note(session, "before", {READERS!r})


def pytest_sessionfinish(session):
    note(session, "after", {HEAVY!r})
"""


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
    row = {"id": "й", "question": "коя?", "answer": "София", "predicted_answer": "\ud800"}
    (folder / "bg.jsonl").write_text(json.dumps(row) + "\n" + json.dumps({**row, "id": 2}) + "\n")
    return make_plan([folder / "dataset.yaml"], Selection(repeats=2))


def worker_input(plan: Plan, store: Path) -> dict[str, str]:
    """Return what xdist sends to one more worker."""
    node = SimpleNamespace(workerinput={})
    WorkerSetup(WorkerInput(plan=plan, outcome_store=store)).pytest_configure_node(node)
    given: dict[str, str] = node.workerinput
    return given


def test_a_worker_has_the_very_plan_of_the_controller(plan: Plan, tmp_path: Path) -> None:
    """The same items in order, equal in every field; one file for all, or a usage error."""
    given = read_worker_input(worker_input(plan, tmp_path / "store"))
    assert given is not None
    assert given.plan == plan
    assert list(given.plan.items) == list(plan.items)
    assert [len(given.plan.of(dataset)) for dataset in given.plan.datasets] == [6]
    assert given.outcome_store == tmp_path / "store"
    first = worker_input(plan, tmp_path / "store")
    path = Path(first[INPUT_KEY])
    path.write_bytes(path.read_bytes() + b"end")
    assert worker_input(plan, tmp_path / "store") == first
    assert path.read_bytes().endswith(b"end")
    with pytest.raises(pytest.UsageError, match=r"the plan cannot be written .*; free space there"):
        worker_input(plan, tmp_path / "absent" / "store")


def test_a_worker_of_a_session_without_datasets_is_given_nothing() -> None:
    """The plugin stays out of sessions that are not its own, or that have ended meanwhile."""
    assert read_worker_input({}) is None
    assert read_worker_input({INPUT_KEY: "/nowhere/plan.pickle"}) is None


def test_a_packed_report_arrives_with_what_xdist_adds(plan: Plan, tmp_path: Path) -> None:
    """The controller unpacks what pytest wrote of a report, tuples included."""
    report = {"nodeid": "a", "location": ("a.py", 1, "b"), "user_properties": [("qa", "{}")]}
    packing = ReportPacker().pytest_report_to_serializable()
    next(packing)
    with pytest.raises(StopIteration) as packed:
        packing.send(report)
    data = {**packed.value.value, "worker_id": "gw0"}
    given = WorkerInput(plan=plan, outcome_store=tmp_path / "store")
    WorkerSetup(given).pytest_report_from_serializable(data)
    assert data == {**report, "worker_id": "gw0"}


def test_workers_read_no_data_and_load_nothing_that_could(project: Project) -> None:
    """A worker loads neither readers nor engine before its tests, and no SDK or statistics ever."""
    project.dataset("capital", {"en": ["Sofia"] * 3, "bg": ["Sofia", "Varna"]})
    project.write("qa/conftest.py", LOADED)
    result = project.run("-n", "2", "qa")
    result.assert_outcomes(passed=4)
    loaded = sorted(project.path.glob("loaded-*.json"))
    assert [json.loads(path.read_text(encoding="utf-8")) for path in loaded] == [[]] * 4
    assert len(set((project.path / "seen.txt").read_text(encoding="utf-8").split())) == 5


@pytest.fixture
def collector() -> Iterator[None]:
    """Leave the collector of garbage as it was."""
    was_on = gc.isenabled()
    yield
    (gc.enable if was_on else gc.disable)()


@pytest.mark.usefixtures("collector")
@pytest.mark.parametrize("was_on", [True, False])
def test_the_collector_rests_for_a_while_only(was_on: bool) -> None:
    """It comes back as it was, off or on, also where something breaks."""
    (gc.enable if was_on else gc.disable)()
    with pytest.raises(KeyError), gc_paused():
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled() == was_on


@pytest.mark.usefixtures("collector")
def test_the_collector_rests_while_items_are_made() -> None:
    """Before pytest's own hook has run it is off, afterwards it is on."""
    gc.enable()
    hook = CollectionWithoutGc().pytest_collection()
    next(hook)
    assert not gc.isenabled()
    with pytest.raises(StopIteration):
        next(hook)
    assert gc.isenabled()
