"""Every planned item ends in exactly one state, whatever its test came to."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cases.dataset import Dataset, Plan, PlannedItem, Slice
from evaluators.core import Outcome
from evaluators.kinds import kind_of
from reports.plugin.results import SessionResults, key_of
from tests.support.scripted import make_case

SLICE = Slice(dataset="simpleqa", language="bg", kind=kind_of("graded"), path=Path("bg.csv"))
KEYS = ("simpleqa-bg-q1", "simpleqa-bg-q2")
PASSED = Outcome(key=KEYS[0], state="passed")


@pytest.fixture
def results() -> SessionResults:
    items = {
        key: PlannedItem(key=key, slice=SLICE, case=make_case(number), repeat=1)
        for number, key in enumerate(KEYS, start=1)
    }
    dataset = Dataset(name="simpleqa", folder=Path(), kind=SLICE.kind, slices={"bg": SLICE})
    made = SessionResults(Plan(datasets=(dataset,), items=items))
    assert made.select([node(key) for key in KEYS] + ["tests/test_x.py::test_y"]) == KEYS
    return made


def node(key: str) -> str:
    return f"cases/simpleqa/test_simpleqa.py::test_simpleqa[{key}]"


def note(
    results: SessionResults, nodeid: str, when: str, outcome: str = "passed", word: str = ""
) -> None:
    report = SimpleNamespace(nodeid=nodeid, when=when, outcome=outcome, qa=word)
    results.note(cast("pytest.TestReport", report))


def run(results: SessionResults, key: str, word: str = "", call: str = "passed") -> None:
    """Note the three reports of one test."""
    note(results, node(key), "setup")
    note(results, node(key), "call", call, word)
    note(results, node(key), "teardown")


def died(results: SessionResults) -> str:
    """Return the outcome of a test whose worker died."""
    report: Any = SimpleNamespace(outcome="failed")
    sched = SimpleNamespace(mark_test_pending=lambda _: None)
    results.pytest_handlecrashitem(node(KEYS[0]), report, sched)
    return str(report.outcome)


def test_the_key_stands_between_the_last_brackets() -> None:
    """Whatever the path holds, the item's key is what the last brackets hold."""
    assert key_of("a[b]/test_c.py::test_d[simpleqa-bg-1~r2]") == "simpleqa-bg-1~r2"
    assert key_of("tests/test_x.py::test_y") == ""


def test_the_engines_outcome_stands_where_its_test_ran(results: SessionResults) -> None:
    """Every planned key has one end; what was done ahead of the tests is only in the ledger."""
    ends = results.final({KEYS[0]: PASSED}, "interrupted")
    assert {end.kind for end in ends.values()} == {"interrupted"}
    run(results, KEYS[0])
    ends = results.final({KEYS[0]: PASSED}, "stopped")
    assert set(ends) == set(KEYS)
    assert ends[KEYS[0]] == PASSED
    assert (ends[KEYS[1]].state, ends[KEYS[1]].kind) == ("missing", "stopped")
    assert results.other_failures == 0


def test_a_miss_is_no_other_failure(results: SessionResults) -> None:
    """A failure that carries our word is the item's own; one without it, or a crash, is not."""
    run(results, KEYS[0], "miss", "failed")
    assert results.other_failures == 0
    run(results, KEYS[1], "", "failed")
    assert results.other_failures == 1
    note(results, "tests/test_x.py::test_y", "???", "failed")
    assert results.other_failures == 2


@pytest.mark.parametrize(
    ("ended", "why", "end"),
    [
        (("", "skipped"), "stopped", ("missing", "skipped")),  # by a person
        (("", "passed"), "stopped", ("error", "engine_lost")),  # although nothing was posted
        (("missing", "skipped"), "ledger", ("missing", "ledger")),  # as the engine had ended
    ],
)
def test_an_item_without_an_outcome_has_its_reason(
    results: SessionResults, ended: tuple[str, str], why: str, end: tuple[str, str]
) -> None:
    """Skipped, lost by the engine, or never reached."""
    run(results, KEYS[0], *ended)
    known = {KEYS[0]: PASSED} if end[1] == "skipped" else {}
    found = results.final(known, why)[KEYS[0]]
    assert (found.state, found.kind) == end


def test_a_dead_worker_is_forgiven_once(results: SessionResults) -> None:
    """The first death costs nothing; the second makes the item an ERROR, no other failure."""
    assert died(results) == "rerun"
    run(results, KEYS[0])
    assert results.final({KEYS[0]: PASSED}, "stopped")[KEYS[0]] == PASSED
    assert died(results) == "failed"
    note(results, node(KEYS[0]), "???", "failed")
    end = results.final({KEYS[0]: PASSED}, "stopped")[KEYS[0]]
    assert (end.state, end.kind) == ("error", "worker_died")
    assert results.other_failures == 0


def test_a_verdict_needs_no_worker(results: SessionResults) -> None:
    """Where workers died, an item that no test came to has the engine's outcome (R8)."""
    died(results)
    ended = {KEYS[1]: replace(PASSED, key=KEYS[1])}
    ends = results.final(ended, "stopped")
    assert ends[KEYS[1]] == ended[KEYS[1]]
    assert ends[KEYS[0]].state == "missing"
    assert results.untested(ended) == 1


def ready(send: Any) -> Any:
    """Return a worker that has become ready, whose commands go out by ``send``."""
    plan = Plan(datasets=(), items={})
    node = SimpleNamespace(sendcommand=send)
    SessionResults(plan).pytest_testnodeready(node)
    return node


def test_work_for_a_worker_that_has_just_died_is_dropped() -> None:
    """A closed pipe raises nothing, other errors do; a living one is told what it was before."""

    def send(name: str, error: type[Exception]) -> None:
        raise error(name)

    ready(send).sendcommand("steal", error=OSError)
    with pytest.raises(TypeError):
        ready(send).sendcommand("runtests", error=TypeError)
    told: list[tuple[str, dict[str, object]]] = []
    ready(lambda name, **values: told.append((name, values))).sendcommand("runtests", indices=[1])
    assert told == [("runtests", {"indices": [1]})]
