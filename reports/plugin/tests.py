"""The test's side: one pytest case an item, its two fixtures, and a short text for a miss."""

from copy import copy
from pathlib import Path

import pytest

from cases.plan import Item, Plan
from cases.slices import Dataset, Slice
from evaluators.core import Case, Outcome, QAError
from evaluators.runtime.outcomes import EngineLostError, OutcomeReader, OutcomeSource
from reports.plugin.session import SESSION

WATCHER = pytest.StashKey[OutcomeSource]()


class NoVerdictError(QAError):
    """The item has no grade: it could not be asked, judged or read."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make one case of each planned item of the dataset that the ``qa`` marker names."""
    marker = metafunc.definition.get_closest_marker("qa")
    if marker is None:
        return
    session = metafunc.config.stash.get(SESSION, None)
    items: list[Item] = []
    if session is not None:
        dataset = _dataset(session.plan, marker, Path(metafunc.definition.path).parent)
        items = session.plan.of(dataset)
    slices = {id(item.slice): item.slice for item in items}
    marks = {at: _marks(slice_) for at, slice_ in slices.items()}
    metafunc.parametrize(
        "qa_item",
        [pytest.param(item, id=item.key, marks=marks[id(item.slice)]) for item in items],
    )


def _marks(slice_: Slice) -> tuple[pytest.MarkDecorator, pytest.MarkDecorator]:
    return getattr(pytest.mark, slice_.dataset), getattr(pytest.mark, slice_.language)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Drop what pytest makes of a dataset of which nothing is selected: a test without an item."""
    items[:] = [item for item in items if not _is_empty(item)]


def _is_empty(item: pytest.Item) -> bool:
    callspec = getattr(item, "callspec", None)
    return callspec is not None and "qa_item" in callspec.params and _planned(item) is None


def _dataset(plan: Plan, marker: pytest.Mark, folder: Path) -> Dataset:
    name = marker.args[0] if marker.args else folder.name
    for dataset in plan.datasets:
        if dataset.name == name:
            return dataset
    known = ", ".join(dataset.name for dataset in plan.datasets)
    msg = f"qa marker: no dataset {name!r} among those found ({known}); name one of them"
    raise pytest.Collector.CollectError(msg)


class Verdicts:
    """Gives each test what it is about, and says in five lines what a miss was.

    An object, so that ``verdict`` need not ask pytest for its configuration: a fixture that does
    costs as much as an empty test.
    """

    def __init__(self) -> None:
        self._outcome: Outcome | None = None  # of the test that is being run

    @pytest.fixture
    def case(self, qa_item: Item) -> Case:
        """Return the item: question, accepted answers, context, metadata."""
        return qa_item.case

    @pytest.fixture
    def verdict(self, qa_item: Item) -> Outcome:
        """Return the verdict on the answer; without one: an ERROR, or skipped as MISSING."""
        assert self._outcome is not None
        assert self._outcome.key == qa_item.key
        return self._outcome

    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        """Wait for the item's outcome. Not in the fixture, whose failure pytest would word."""
        self._outcome, planned = None, _planned(item)
        if planned is None or "verdict" not in item.fixturenames:  # type: ignore[attr-defined]
            return
        outcome = self._outcome = _outcome(item.config, planned.key)
        if outcome.state == "missing":
            pytest.skip(f"MISSING ({outcome.kind}): {outcome.message}")
        if outcome.state == "error":
            msg = f"{outcome.kind}: {outcome.message}"
            raise NoVerdictError(msg)

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


def _planned(item: pytest.Item) -> Item | None:
    callspec = getattr(item, "callspec", None)
    planned = callspec.params.get("qa_item") if callspec is not None else None
    return planned if isinstance(planned, Item) else None


def _outcome(config: pytest.Config, key: str) -> Outcome:
    try:
        return _watcher(config).wait(key)
    except EngineLostError as error:
        return Outcome(key=key, state="error", kind="engine_lost", message=str(error))


def _watcher(config: pytest.Config) -> OutcomeSource:
    if WATCHER not in config.stash:
        config.stash[WATCHER] = OutcomeReader(config.stash[SESSION].board)
        config.add_cleanup(config.stash[WATCHER].close)
    return config.stash[WATCHER]


def _report(
    item: pytest.Item, call: pytest.CallInfo[None], planned: Item, outcome: Outcome
) -> pytest.TestReport:
    from reports.render.outcome_text import error_lines, miss_lines  # noqa: PLC0415  # not at the start

    error = call.excinfo.value if call.excinfo else None
    if isinstance(error, NoVerdictError):
        return _short(item, call, "error", error_lines(planned, outcome))
    if call.when == "call" and isinstance(error, AssertionError) and outcome.state == "failed":
        return _short(item, call, "miss", miss_lines(planned, outcome))
    report = pytest.TestReport.from_item_and_call(item, call)
    if report.skipped and outcome.state == "missing":
        _name(report, "missing")
    return report


def _short(
    item: pytest.Item, call: pytest.CallInfo[None], word: str, text: str
) -> pytest.TestReport:
    """Return the report of a failure whose traceback, slow to make, nobody needs."""
    quiet = copy(call)
    quiet.excinfo = None
    report = pytest.TestReport.from_item_and_call(item, quiet)
    report.outcome = "failed"
    report.longrepr = text
    _name(report, word)
    return report


def _name(report: pytest.TestReport, word: str) -> None:
    """Give a report a word of ours; xdist carries every plain attribute to the controller."""
    report.__dict__["qa"] = word
