"""The process that runs tests: each planned item is a test that waits for its outcome.

The controller plans the items and starts the engine. The engine asks the models and judges
the answers. A test asks nobody: it waits until the engine has posted the outcome of its
item, then passes, fails or is skipped as the outcome says.

Without pytest-xdist the controller runs the tests itself. With it, each worker reads the
plan from a file, as checking the data again would take a third of a worker's start, and
waits for outcomes in another file.

Begin with ``pytest_generate_tests``, which turns items into tests, and with ``Verdicts``,
which runs them. ``WorkerHooks`` joins controller and workers.
"""

import gc
import os
import pickle
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, cast

import pytest

from qagate.cases.dataset import DATASET_FILE, Dataset, Plan, PlannedItem
from qagate.door import is_declaration, wrong_kind
from qagate.evaluators.core import Case, Outcome, QAError
from qagate.evaluators.runtime.outcomes import (
    EngineLostError,
    OutcomeReader,
    OutcomeSource,
)
from qagate.reports.plugin.asserts import is_miss
from qagate.reports.plugin.crash_guard import (
    add_cleanup,
    told,
    told_in_collection,
)
from qagate.reports.plugin.session_results import key_in

if TYPE_CHECKING:
    from qagate.evaluators.runtime.process import EngineProcess

INPUT_KEY = "qa"
"""Where xdist's ``workerinput``, a dictionary, holds the path of the plan's file."""
PLAN_FILE = "plan.pickle"
KEYS_FILE = "keys.pickle"
"""Beside the plan: the keys of tests whose node ids do not name them alone."""
PACKED = "qa-packed"
"""The only key of a report on its way from a worker to the controller."""
WORKERS_NICE = "10"
"""The priority of workers; a text, as execnet wants it."""
SKIPPED_STATES = ("missing", "stopped")
"""How an item ended whose test is skipped: it was not asked."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInput:
    """What a process that runs tests needs: the plan, and the file where outcomes appear."""

    plan: Plan
    outcome_store: Path


WORKER_INPUT = pytest.StashKey[WorkerInput]()
OUTCOMES = pytest.StashKey[OutcomeSource]()
EARLY_ENGINE: "pytest.StashKey[EngineProcess]" = pytest.StashKey()
"""The controller's engine, if it was started before the plan was made."""


class NoVerdictError(QAError):
    """The item has no grade: it could not be asked, judged or read."""


# Collection: one test an item


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one test of each planned item of the dataset that the ``qa`` marker names."""
    with told_in_collection(metafunc.config):
        _generate_tests(metafunc)


def _generate_tests(metafunc: pytest.Metafunc) -> None:
    """Do it. Raises CollectError for a marker without a data set."""
    marker = metafunc.definition.get_closest_marker("qa")
    if marker is None:
        return
    folder = metafunc.definition.path.parent
    declaration = folder / DATASET_FILE
    if declaration.is_file() and not is_declaration(declaration):
        raise pytest.Collector.CollectError(wrong_kind(declaration))
    worker_input = metafunc.config.stash.get(WORKER_INPUT, None)
    if worker_input is None:
        raise pytest.Collector.CollectError(
            f"qa marker: no dataset.yaml under {folder}; "
            "write one next to this module, with kind, rubric and languages"
        )
    name = marker.args[0] if marker.args else folder.name
    dataset = _dataset_named(name, worker_input.plan)

    marks_by_language = {}
    for language in dataset.slices:
        marks_by_language[language] = (
            getattr(pytest.mark, name),
            getattr(pytest.mark, language),
        )
    tests = []
    for item in worker_input.plan.tests(dataset):
        marks = marks_by_language[item.slice.language]
        tests.append(pytest.param(item, id=item.key, marks=marks))
    metafunc.parametrize("qa_item", tests)


def _dataset_named(name: str, plan: Plan) -> Dataset:
    """Return the planned data set of this name. Raises CollectError if there is none."""
    for dataset in plan.datasets:
        if dataset.name == name:
            return dataset
    names = ", ".join(dataset.name for dataset in plan.datasets)
    raise pytest.Collector.CollectError(
        f"qa marker: no dataset {name!r} among those found ({names}); name one of them"
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Drop the placeholder that pytest makes where a dataset has no selected item."""
    items[:] = [item for item in items if not _is_placeholder(item)]


def _is_placeholder(item: pytest.Item) -> bool:
    return "qa_item" in _parameters(item) and _planned_item(item) is None


def _planned_item(item: pytest.Item) -> PlannedItem | None:
    planned = _parameters(item).get("qa_item")
    return planned if isinstance(planned, PlannedItem) else None


def _parameters(item: pytest.Item) -> Mapping[str, object]:
    if not hasattr(item, "callspec"):
        return {}  # the test is not parametrised
    parameters: Mapping[str, object] = item.callspec.params
    return parameters


# Running a test


class Verdicts:
    """Gives each test its case and its verdict.

    The fixtures are methods of a plugin: they cost next to nothing.
    """

    def __init__(self) -> None:
        self._outcome: Outcome | None = None
        """Of the running test; None for a test that needs no verdict."""

    @pytest.fixture
    def case(self, qa_item: PlannedItem) -> Case:
        """Return a copy of the item: question, accepted answers, context, metadata."""
        return _copy_of(qa_item.case)

    @pytest.fixture
    def verdict(self, qa_item: PlannedItem) -> Outcome:
        """Return a copy of the answer's verdict; without one the test is an ERROR, or skipped."""
        assert self._outcome is not None
        assert self._outcome.key == qa_item.key
        return _copy_of(self._outcome)

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Wait for the item's outcome. A fixture that did so would fail in pytest's words."""
        with told(item.config):
            self._await_verdict(item)

    def _await_verdict(self, item: pytest.Item) -> None:
        self._outcome = None
        planned = _planned_item(item)
        if planned is None or "verdict" not in item.fixturenames:  # type: ignore[attr-defined]
            return
        outcome = _wait_for_outcome(item.config, planned.key)
        self._outcome = outcome
        if outcome.state in SKIPPED_STATES:
            pytest.skip(f"{outcome.state.upper()} ({outcome.kind}): {outcome.message}")
        if outcome.state == "error":
            raise NoVerdictError(f"{outcome.kind}: {outcome.message}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> pytest.TestReport | None:
        """Word a miss and mark it: the controller must tell it from other failures."""
        outcome = self._outcome
        planned = _planned_item(item)
        if outcome is None or planned is None or outcome.key != planned.key:
            return None
        report = _make_report(item, call, planned, outcome)
        if report.when == "teardown" and item.config.getoption("xmlpath", None):
            from qagate.reports.render.outcome_text import qa_property  # noqa: PLC0415  # quick start

            report.user_properties.append(("qa", qa_property(planned, outcome)))
        return report


def _copy_of(value: T) -> T:
    """Return a copy that a test may change; faster than ``copy.deepcopy``."""
    return cast("T", pickle.loads(pickle.dumps(value, pickle.HIGHEST_PROTOCOL)))


def _wait_for_outcome(config: pytest.Config, key: str) -> Outcome:
    """Return the outcome of an item once the engine posts it; an ERROR if the engine is lost."""
    if OUTCOMES not in config.stash:
        # In an xdist worker: the controller cannot hand an object over.
        reader = OutcomeReader(config.stash[WORKER_INPUT].outcome_store)
        config.stash[OUTCOMES] = reader
        add_cleanup(config, reader.close)
    try:
        return config.stash[OUTCOMES].wait(key)
    except EngineLostError as error:
        return Outcome(key=key, state="error", kind="engine_lost", message=str(error))


def _make_report(
    item: pytest.Item,
    call: pytest.CallInfo[None],
    planned: PlannedItem,
    outcome: Outcome,
) -> pytest.TestReport:
    """Return the report of one phase; its ``qa`` says miss, error, missing or stopped."""
    from qagate.reports.render.outcome_text import error_lines, miss_lines  # noqa: PLC0415  # quick start

    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, NoVerdictError):
        return _failed_report(item, call, "error", error_lines(planned, outcome))
    if _is_miss(item, call, outcome):
        return _failed_report(item, call, "miss", miss_lines(planned, outcome))
    report = pytest.TestReport.from_item_and_call(item, call)
    if report.skipped and outcome.state in SKIPPED_STATES:
        _mark(report, outcome.state)
    return report


def _is_miss(item: pytest.Item, call: pytest.CallInfo[None], outcome: Outcome) -> bool:
    """Return whether a test failed because its answer is wrong, and for nothing else."""
    if call.excinfo is None or call.when != "call" or outcome.state != "failed":
        return False
    error = call.excinfo.value
    if not isinstance(error, AssertionError) or not isinstance(item, pytest.Function):
        return False
    return is_miss(error, item.originalname)


def _failed_report(
    item: pytest.Item, call: pytest.CallInfo[None], mark: str, text: str
) -> pytest.TestReport:
    """Return a failed report with this text, and no traceback: that is slow to make."""
    call_without_error = copy(call)
    call_without_error.excinfo = None
    report = pytest.TestReport.from_item_and_call(item, call_without_error)
    report.outcome = "failed"
    report.longrepr = text
    _mark(report, mark)
    return report


def _mark(report: pytest.TestReport, mark: str) -> None:
    """Set ``report.qa``; xdist carries every plain attribute to the controller."""
    report.__dict__["qa"] = mark


# Between the controller and xdist's workers


class WorkerHooks:
    """Hooks that give xdist's workers the plan, and bring their reports to the controller."""

    def __init__(self, worker_input: WorkerInput) -> None:
        self._worker_input = worker_input

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: Sequence[Any]) -> None:
        """Give local workers a lower priority than the engine, for which they all wait."""
        for spec in specs:
            if spec.popen and not spec.nice:
                spec.nice = WORKERS_NICE

    @pytest.hookimpl(optionalhook=True, trylast=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker where the plan is; no other user can read that file."""
        path = self._worker_input.outcome_store.with_name(PLAN_FILE)
        if not path.exists():
            content = pickle.dumps(self._worker_input, pickle.HIGHEST_PROTOCOL)
            try:
                path.write_bytes(content)
            except OSError as error:
                raise pytest.UsageError(
                    f"{path}: the plan cannot be written ({error.strerror}); free space there"
                ) from None
        node.workerinput[INPUT_KEY] = str(path)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_to_serializable(
        self, config: pytest.Config
    ) -> Generator[None, object, object]:
        """Pack a worker's report into one value: execnet is slow with many."""
        data = yield
        if not hasattr(config, "workerinput"):
            return data
        return {PACKED: pickle.dumps(data, pickle.HIGHEST_PROTOCOL)}

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_from_serializable(self, data: dict[str, Any]) -> None:
        """Unpack a worker's report for pytest's own hook; xdist has added keys of its own."""
        if PACKED in data:
            data.update(pickle.loads(data.pop(PACKED)))

    @pytest.hookimpl(
        tryfirst=True
    )  # before xdist tells the controller which tests there are
    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Say which items the tests are about whose node ids do not name them alone."""
        key_by_node = {}
        for item in session.items:
            planned = _planned_item(item)
            if planned is not None and key_in(item.nodeid) != planned.key:
                key_by_node[item.nodeid] = planned.key
        if key_by_node:
            path = self._worker_input.outcome_store.with_name(KEYS_FILE)
            part = path.with_name(
                f"{KEYS_FILE}.{os.getpid()}"
            )  # each worker writes the same
            part.write_bytes(pickle.dumps(key_by_node, pickle.HIGHEST_PROTOCOL))
            part.replace(path)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Make the items without garbage collection."""
        with gc_paused():
            return (yield)


def read_keys(outcome_store: Path) -> Mapping[str, str]:
    """Return the keys by node id that a process that runs tests has written; usually none."""
    try:
        content = outcome_store.with_name(KEYS_FILE).read_bytes()
    except FileNotFoundError:
        return {}
    key_by_node: Mapping[str, str] = pickle.loads(content)
    return key_by_node


def read_worker_input(workerinput: Mapping[str, Any]) -> WorkerInput | None:
    """Return what the controller gave this worker; None where it runs no dataset.

    ``workerinput`` is xdist's dictionary.
    """
    if INPUT_KEY not in workerinput:
        return None
    try:
        content = Path(workerinput[INPUT_KEY]).read_bytes()
    except FileNotFoundError:  # the controller was interrupted and has ended
        return None
    with gc_paused():
        worker_input: WorkerInput = pickle.loads(content)
    return worker_input


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pause garbage collection while long-lived objects are made: a fifth of a worker's start."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
