"""The tests: each planned item is one pytest case that waits for its outcome, and reports it.

The controller makes the plan, and its engine posts the outcomes; without xdist it is the worker.
xdist's workers read the plan from a file: checking the data again took a third of their start.
"""

import gc
import pickle
from collections import Counter
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pytest

from qagate.cases.dataset import DATASET_FILE, Plan, PlannedItem
from qagate.door import is_declaration, wrong_kind
from qagate.evaluators.core import Case, Outcome, QAError, State, UsageError
from qagate.evaluators.runtime.outcomes import (
    EngineLostError,
    OutcomeReader,
    OutcomeSource,
)

if TYPE_CHECKING:
    from qagate.reports.run.record import Record

INPUT_KEY = "qa"  # of xdist's workerinput
PLAN_FILE = "plan.pickle"
PACKED = "qa-packed"  # of a report on its way to the controller
WORKERS_NICE = "10"  # text, as execnet wants it
T = TypeVar("T")
SKIPPED = ("missing", "stopped")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInput:
    """What a process that runs tests needs: the plan, and the file in which outcomes appear."""

    plan: Plan
    outcome_store: Path


WORKER_INPUT = pytest.StashKey[WorkerInput]()
OUTCOMES = pytest.StashKey[OutcomeSource]()
EARLY = pytest.StashKey[
    Any
]()  # the controller's engine, if it began before the plan was made


class NoVerdictError(QAError):
    """The item has no grade: it could not be asked, judged or read."""


# Collection: one case an item


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one case of each planned item of the dataset that the ``qa`` marker names."""
    marker = metafunc.definition.get_closest_marker("qa")
    if marker is None:
        return
    given = metafunc.config.stash.get(WORKER_INPUT, None)
    folder = metafunc.definition.path.parent
    declaration = folder / DATASET_FILE
    if declaration.is_file() and not is_declaration(declaration):
        raise pytest.Collector.CollectError(wrong_kind(declaration))
    if given is None:
        advice = "write one next to this module, with kind, rubric and languages"
        what = f"qa marker: no dataset.yaml under {folder}; {advice}"
        raise pytest.Collector.CollectError(what)
    name = marker.args[0] if marker.args else folder.name
    dataset = next((one for one in given.plan.datasets if one.name == name), None)
    if dataset is None:
        known = ", ".join(one.name for one in given.plan.datasets)
        what = f"qa marker: no dataset {name!r} among those found ({known}); name one of them"
        raise pytest.Collector.CollectError(what)
    marks = {
        one: (getattr(pytest.mark, name), getattr(pytest.mark, one))
        for one in dataset.slices
    }
    items = given.plan.tests(dataset)
    cases = [
        pytest.param(one, id=one.key, marks=marks[one.slice.language]) for one in items
    ]
    metafunc.parametrize("qa_item", cases)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Drop the placeholder test that pytest makes where a dataset has no selected item."""
    items[:] = [item for item in items if _planned(item) or not hasattr(item, "callspec")
                or "qa_item" not in item.callspec.params]  # fmt: skip


def _planned(item: pytest.Item) -> PlannedItem | None:
    planned = item.callspec.params.get("qa_item") if hasattr(item, "callspec") else None
    return planned if isinstance(planned, PlannedItem) else None


# Running a test


class Verdicts:
    """Gives each test its case and verdict; fixtures as methods, which cost next to nothing."""

    def __init__(self) -> None:
        self._outcome: Outcome | None = None  # of the running test

    @pytest.fixture
    def case(self, qa_item: PlannedItem) -> Case:
        """Return a copy of the item: question, accepted answers, context, metadata."""
        return _copied(qa_item.case)

    @pytest.fixture
    def verdict(self, qa_item: PlannedItem) -> Outcome:
        """Return a copy of the answer's verdict; without one the test is an ERROR, or skipped."""
        assert self._outcome is not None
        assert self._outcome.key == qa_item.key
        return _copied(self._outcome)

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Wait for the item's outcome. A fixture that did so would fail in pytest's words."""
        self._outcome, planned = None, _planned(item)
        if planned is None or "verdict" not in item.fixturenames:  # type: ignore[attr-defined]
            return
        stash = item.config.stash
        if (
            OUTCOMES not in stash
        ):  # an xdist worker, which the controller cannot give them
            stash[OUTCOMES] = OutcomeReader(stash[WORKER_INPUT].outcome_store)
            item.config.add_cleanup(stash[OUTCOMES].close)
        try:
            outcome = stash[OUTCOMES].wait(planned.key)
        except EngineLostError as error:
            message = str(error)
            outcome = Outcome(
                key=planned.key, state="error", kind="engine_lost", message=message
            )
        self._outcome = outcome
        if outcome.state in SKIPPED:
            pytest.skip(f"{outcome.state.upper()} ({outcome.kind}): {outcome.message}")
        if outcome.state == "error":
            raise NoVerdictError(f"{outcome.kind}: {outcome.message}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> pytest.TestReport | None:
        """Word a miss and mark it: the controller must tell it from other failures."""
        outcome, planned = self._outcome, _planned(item)
        if outcome is None or planned is None or outcome.key != planned.key:
            return None
        report = _report(item, call, planned, outcome)
        if report.when == "teardown" and item.config.getoption("xmlpath", None):
            from qagate.reports.render.outcome_text import qa_property  # noqa: PLC0415  # as in _report

            report.user_properties.append(("qa", qa_property(planned, outcome)))
        return report


def _copied(value: T) -> T:
    return cast("T", pickle.loads(pickle.dumps(value, pickle.HIGHEST_PROTOCOL)))


def _report(
    item: pytest.Item,
    call: pytest.CallInfo[None],
    planned: PlannedItem,
    outcome: Outcome,
) -> pytest.TestReport:
    """Return the report of one phase; its ``qa`` says miss, error, missing or stopped."""
    from qagate.reports.render.outcome_text import error_lines, miss_lines  # noqa: PLC0415  # a quick start

    error, word, text = call.excinfo.value if call.excinfo else None, "", ""
    if isinstance(error, NoVerdictError):
        word, text = "error", error_lines(planned, outcome)
    elif (
        call.when == "call"
        and isinstance(error, AssertionError)
        and outcome.state == "failed"
    ):
        word, text = "miss", miss_lines(planned, outcome)
    if word:  # without the traceback, which is slow to make
        call = copy(call)
        call.excinfo = None
    report = pytest.TestReport.from_item_and_call(item, call)
    if word:
        report.outcome, report.longrepr = "failed", text
    elif report.skipped and outcome.state in SKIPPED:
        word = outcome.state
    if word:
        report.__dict__["qa"] = (
            word  # xdist carries every plain attribute to the controller
        )
    return report


# Between the controller and xdist's workers


class WorkerHooks:
    """Hooks that give xdist's workers the plan, and bring their reports to the controller."""

    def __init__(self, given: WorkerInput) -> None:
        self._given = given

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: Sequence[Any]) -> None:
        """Give local workers a lower priority than the engine, for which they all wait."""
        for spec in specs:
            if spec.popen and not spec.nice:
                spec.nice = WORKERS_NICE

    @pytest.hookimpl(optionalhook=True, trylast=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker where the plan is, which no other user can read."""
        path = self._given.outcome_store.with_name(PLAN_FILE)
        if not path.exists():
            try:
                path.write_bytes(pickle.dumps(self._given, pickle.HIGHEST_PROTOCOL))
            except OSError as error:
                what = f"{path}: the plan cannot be written ({error.strerror}); free space there"
                raise pytest.UsageError(what) from None
        node.workerinput[INPUT_KEY] = str(path)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(
        self, config: pytest.Config
    ) -> Generator[None, object, object]:
        """Pack a worker's report into one value, as execnet is slow with many; xdist adds a few."""
        data = yield
        is_worker = hasattr(config, "workerinput")
        return (
            {PACKED: pickle.dumps(data, pickle.HIGHEST_PROTOCOL)} if is_worker else data
        )

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_from_serializable(self, data: dict[str, Any]) -> None:
        """Unpack what a worker packed, for pytest's own hook."""
        if PACKED in data:
            data.update(pickle.loads(data.pop(PACKED)))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Make the items without garbage collection."""
        with gc_paused():
            return (yield)


def read_worker_input(workerinput: Mapping[str, Any]) -> WorkerInput | None:
    """Return what the controller gave this worker; None where it runs no dataset."""
    if INPUT_KEY not in workerinput:
        return None
    try:
        content = Path(workerinput[INPUT_KEY]).read_bytes()
    except FileNotFoundError:  # the controller was interrupted and has ended
        return None
    with gc_paused():
        given: WorkerInput = pickle.loads(content)
    return given


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause garbage collection, a fifth of a worker's start, while long-lived objects are made."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


# What tests report, and from it the one outcome of every planned item


def key_of(nodeid: str) -> str:
    """Return an item's key: the content of a node id's last brackets; empty without brackets."""
    _, bracket, rest = nodeid.rpartition("[")
    return rest.removesuffix("]") if bracket else ""


class SessionResults:
    """Collects pytest's reports for the end, and gives items of dead workers to others."""

    def __init__(self, plan: Plan) -> None:
        self.planned: tuple[str, ...] = ()
        """The keys of the selected items."""
        self.other_failures = 0
        """Failures that are neither graded misses nor ERRORs."""
        self._plan = plan
        self._words: dict[str, str] = {}
        self._records: dict[str, tuple[Outcome, Record]] = {}
        self._ended: set[str] = set()
        self._deaths: Counter[str] = Counter()

    def known(self, nodeids: Iterable[str]) -> tuple[str, ...]:
        """Return the keys of those tests that are planned items."""
        keys = dict.fromkeys(map(key_of, nodeids))
        return tuple(key for key in keys if key in self._plan.items)

    def note(self, report: pytest.TestReport) -> None:
        """Note one report; its ``qa`` says miss, error, missing or stopped, where that applies."""
        key, word = key_of(report.nodeid), getattr(report, "qa", "")
        is_death = str(report.when) == "???" and key in self._plan.items
        if report.outcome == "failed" and not word and not is_death:
            self.other_failures += 1
        if report.outcome == "skipped" and not word:
            word = "skipped"
        if word:
            self._words[key] = word
        if report.when == "teardown":
            self._ended.add(key)

    def record(self, key: str, outcome: Outcome) -> "Record":
        """Return the record of an item that ended so; asked for again, it is the same one."""
        from qagate.reports.run.record import make_record  # noqa: PLC0415  # a quick start of workers

        known = self._records.get(key)
        if known is None or known[0] is not outcome:
            known = self._records[key] = (
                outcome,
                make_record(self._plan.items[key], outcome),
            )
        return known[1]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodeready(self, node: Any) -> None:
        """Drop commands to a worker just dead: xdist would end the run by an internal error."""
        send = node.sendcommand

        def send_if_alive(name: str, **values: object) -> None:
            with suppress(OSError):
                send(name, **values)

        node.sendcommand = send_if_alive

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(
        self, crashitem: str, report: pytest.TestReport, sched: object
    ) -> None:
        """Give a dead worker's item to another one, once; it is a ``rerun`` until then."""
        key = key_of(crashitem)
        if key in self._plan.items:
            self._deaths[key] += 1
        if self._deaths[key] == 1:
            report.outcome = "rerun"  # type: ignore[assignment]
            with suppress(
                NotImplementedError
            ):  # loadfile and similar schedulers do it themselves
                sched.mark_test_pending(crashitem)  # type: ignore[attr-defined]

    def untested(self, outcomes: Mapping[str, Outcome]) -> int:
        """Return how many items have a verdict but no test, as their workers died."""
        lost = [
            key for key in self.planned if key in outcomes and key not in self._ended
        ]
        return len(lost) if self._deaths else 0

    def final(self, outcomes: Mapping[str, Outcome], reason: str) -> dict[str, Outcome]:
        """Return every planned item's outcome; ``reason`` is why those left did not end."""
        found: dict[str, Outcome] = {}
        for key in self.planned:
            outcome, word = outcomes.get(key), self._words.get(key)
            state: State = "missing"
            kind, why = reason, ""
            if self._deaths[key] > 1:
                state, kind = "error", "worker_died"
                why = "the worker died twice while running this item"
            elif key not in self._ended and not (outcome and self._deaths):
                why = "its test was not run to the end"
            elif word == "skipped":
                kind, why = word, "its test was skipped"
            elif outcome is None and word == "missing":
                why = "the engine stopped before this item"
            elif outcome is None:
                state, kind, why = (
                    "error",
                    "engine_lost",
                    "the engine posted no outcome",
                )
            lost = Outcome(key=key, state=state, kind=kind, message=why)
            found[key] = outcome if outcome and not why else lost
        return found


_RERUNS = ("reruns", "force_reruns", "retries", "force_flaky")
"""Options of pytest-rerunfailures, pytest-retry and flaky; the first and third in ini files too."""


def rerun_settings(config: pytest.Config) -> tuple[str, ...]:
    """Return the options and settings that ask plug-ins to run failing tests again."""
    given = [name for name in _RERUNS if config.getoption(name, None)]
    found = [f"--{name.replace('_', '-')}" for name in given]
    for name in ("reruns", "retries"):
        with suppress(ValueError):  # no plug-in knows it
            if str(config.getini(name) or "0").strip() not in ("", "0"):
                found.append(f"{name} (in the ini file)")
    return tuple(found)


def refuse_reruns(config: pytest.Config) -> None:
    """Raise UsageError if failing items would be run again: a miss is a finding."""
    if found := rerun_settings(config):
        what = "a miss is a finding and is not run again until it passes; a call that fails is "
        what += "retried anyway. Leave it out (PYTEST_ADDOPTS too), or give --gates off"
        raise UsageError(f"{', '.join(found)}: {what}")
