"""A worker's side of a run: each planned item is one pytest case that waits for its outcome.

The controller has made the plan, and its engine stores the outcomes; without xdist the
controller's own process is the one worker.
"""

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from cases.dataset import Plan, PlannedItem
from evaluators.core import Case, Outcome, QAError
from evaluators.runtime.outcomes import EngineLostError, OutcomeReader, OutcomeSource


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerInput:
    """What a process that runs tests needs: the plan, and the file in which outcomes appear."""

    plan: Plan
    outcome_store: Path


WORKER_INPUT = pytest.StashKey[WorkerInput]()
OUTCOMES = pytest.StashKey[OutcomeSource]()
SKIPPED = ("missing", "stopped")


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
    if given is None:
        raise pytest.Collector.CollectError(
            f"qa marker: no dataset.yaml under {folder}; write one beside this module, with kind, "
            "rubric and languages"
        )
    metafunc.parametrize("qa_item", _cases(given.plan, marker, folder))


def _cases(plan: Plan, marker: pytest.Mark, folder: Path) -> list[Any]:
    """Return pytest's parameters, one an item, with the marks of its dataset and language."""
    name = marker.args[0] if marker.args else folder.name
    dataset = next((one for one in plan.datasets if one.name == name), None)
    if dataset is None:
        known = ", ".join(one.name for one in plan.datasets)
        raise pytest.Collector.CollectError(
            f"qa marker: no dataset {name!r} among those found ({known}); name one of them"
        )
    marks = {
        language: (getattr(pytest.mark, name), getattr(pytest.mark, language))
        for language in dataset.slices
    }
    return [
        pytest.param(item, id=item.key, marks=marks[item.slice.language])
        for item in plan.tests(dataset)
    ]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Drop the placeholder test, without an item, that pytest makes where nothing is selected."""
    items[:] = [item for item in items if "qa_item" not in _parameters(item) or _planned(item)]


def _parameters(item: pytest.Item) -> Mapping[str, object]:
    return item.callspec.params if hasattr(item, "callspec") else {}


def _planned(item: pytest.Item) -> PlannedItem | None:
    planned = _parameters(item).get("qa_item")
    return planned if isinstance(planned, PlannedItem) else None


# Running a test


class Verdicts:
    """Gives each test its case and verdict, and words a miss in five lines.

    The fixtures are methods: a fixture that asked pytest for its configuration would cost as much
    as an empty test.
    """

    def __init__(self) -> None:
        self._outcome: Outcome | None = None  # of the running test

    @pytest.fixture
    def case(self, qa_item: PlannedItem) -> Case:
        """Return the item: question, accepted answers, context, metadata."""
        return qa_item.case

    @pytest.fixture
    def verdict(self, qa_item: PlannedItem) -> Outcome:
        """Return the verdict on the answer; without one: an ERROR, or skipped."""
        assert self._outcome is not None
        assert self._outcome.key == qa_item.key
        return self._outcome

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Wait for the item's outcome. Not in the fixture, whose failure pytest would word."""
        self._outcome, planned = None, _planned(item)
        if planned is None or "verdict" not in item.fixturenames:  # type: ignore[attr-defined]
            return
        try:
            outcome = _outcomes(item.config).wait(planned.key)
        except EngineLostError as error:
            message = str(error)
            outcome = Outcome(key=planned.key, state="error", kind="engine_lost", message=message)
        self._outcome = outcome
        if outcome.state in SKIPPED:
            pytest.skip(f"{outcome.state.upper()} ({outcome.kind}): {outcome.message}")
        if outcome.state == "error":
            raise NoVerdictError(f"{outcome.kind}: {outcome.message}")

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> pytest.TestReport | None:
        """Word a miss, and mark it, so that the controller can tell it from other failures."""
        outcome, planned = self._outcome, _planned(item)
        if outcome is None or planned is None or outcome.key != planned.key:
            return None
        report = _report(item, call, planned, outcome)
        if report.when == "teardown" and item.config.getoption("xmlpath", None):
            from reports.render.outcome_text import qa_property  # noqa: PLC0415  # nor here

            report.user_properties.append(("qa", qa_property(planned, outcome)))
        return report


def _outcomes(config: pytest.Config) -> OutcomeSource:
    """Return where outcomes arrive: the controller has set it, a worker opens the store."""
    if OUTCOMES not in config.stash:
        config.stash[OUTCOMES] = OutcomeReader(config.stash[WORKER_INPUT].outcome_store)
        config.add_cleanup(config.stash[OUTCOMES].close)
    return config.stash[OUTCOMES]


def _report(
    item: pytest.Item, call: pytest.CallInfo[None], planned: PlannedItem, outcome: Outcome
) -> pytest.TestReport:
    """Return the report of one phase; its ``qa`` says "miss", "error", "missing" or "stopped"."""
    from reports.render.outcome_text import error_lines, miss_lines  # noqa: PLC0415  # not at the start

    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, NoVerdictError):
        return _short(item, call, "error", error_lines(planned, outcome))
    if call.when == "call" and isinstance(error, AssertionError) and outcome.state == "failed":
        return _short(item, call, "miss", miss_lines(planned, outcome))
    report = pytest.TestReport.from_item_and_call(item, call)
    if report.skipped and outcome.state in SKIPPED:
        report.__dict__["qa"] = outcome.state
    return report


def _short(
    item: pytest.Item, call: pytest.CallInfo[None], word: str, text: str
) -> pytest.TestReport:
    """Return the report of a failure without its traceback, which is slow to make."""
    quiet = copy(call)
    quiet.excinfo = None
    report = pytest.TestReport.from_item_and_call(item, quiet)
    report.outcome = "failed"
    report.longrepr = text
    report.__dict__["qa"] = word  # xdist carries every plain attribute to the controller
    return report
