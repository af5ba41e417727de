"""What the tests of a session reported, and from it the one outcome of every planned item.

The engine's outcome of an item counts only if the item's test ran to its end: a run that
was cut short must not show what nobody had selected or looked at. A worker that dies is
forgiven once, and its item is given to another worker. In a session where workers died,
an item that the engine graded counts even without a test.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from qagate.cases.dataset import Plan
from qagate.evaluators.core import Outcome

if TYPE_CHECKING:
    from qagate.reports.run.record import Record

CRASH_PHASE = "???"
"""The phase of a test that xdist reports as crashed."""


def key_in(nodeid: str) -> str:
    """Return the content of a node id's last brackets; empty without brackets.

    It is the item's key, unless a test is parametrised by something else as well.
    """
    _, bracket, rest = nodeid.rpartition("[")
    return rest.removesuffix("]") if bracket else ""


class SessionResults:
    """Collects pytest's reports for the end, and gives items of dead workers to others."""

    def __init__(self, plan: Plan) -> None:
        self.selected_keys: tuple[str, ...] = ()
        """The keys of the planned items whose tests are selected; set after the collection."""
        self.other_failures = 0
        """Failures that are neither graded misses nor ERRORs."""
        self._plan = plan
        self._marks: dict[str, str] = {}
        """What a key's test reported: ``miss``, ``error``, ``missing``, ``stopped``, ``skipped``.

        A key is not in it if its test only passed, or has not reported yet.
        """
        self._records: dict[str, tuple[Outcome, Record]] = {}
        """Records by key, each with the outcome that it was made of."""
        self._ended: set[str] = set()
        """The keys whose tests ran to their end."""
        self._deaths: Counter[str] = Counter()
        """How many workers died of each key's test."""
        self.key_by_node: Mapping[str, str] = {}
        """The keys of the tests whose node ids do not name them alone."""

    def key_of(self, nodeid: str) -> str:
        """Return the key of the item that a test is about; another text for any other test."""
        return self.key_by_node.get(nodeid) or key_in(nodeid)

    def planned_among(self, nodeids: Iterable[str]) -> tuple[str, ...]:
        """Return the keys of those tests that are planned items, each once, in their order."""
        keys = dict.fromkeys(self.key_of(nodeid) for nodeid in nodeids)
        return tuple(key for key in keys if key in self._plan.items)

    def note(self, report: pytest.TestReport) -> None:
        """Note one report: of a test's setup, call or teardown, or of its crash.

        Its ``qa`` says miss, error, missing or stopped, where that applies. A failure without it
        has nothing to do with a grade, and counts in ``other_failures``; but not the crash of an
        item, which ``final_outcomes`` makes an error.
        """
        key = self.key_of(report.nodeid)
        mark = getattr(report, "qa", "")
        if report.outcome == "skipped" and not mark:
            mark = "skipped"
        # As text, because pytest's own type knows no such phase.
        is_crashed_item = str(report.when) == CRASH_PHASE and key in self._plan.items
        if report.outcome == "failed" and not mark and not is_crashed_item:
            self.other_failures += 1
        if mark:
            self._marks[key] = mark
        if report.when == "teardown":
            self._ended.add(key)

    def record_of(self, key: str, outcome: Outcome) -> "Record":
        """Return the record of an item that ended so, made once for each outcome."""
        from qagate.reports.run.record import make_record  # noqa: PLC0415  # quick start

        if key in self._records:
            recorded_outcome, record = self._records[key]
            if recorded_outcome is outcome:
                return record
        record = make_record(self._plan.items[key], outcome)
        self._records[key] = (outcome, record)
        return record

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodeready(self, node: Any) -> None:
        """Ignore commands to a dead worker; xdist would abort the run."""
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
        key = self.key_of(crashitem)
        if key not in self._plan.items:
            return
        self._deaths[key] += 1
        if self._deaths[key] > 1:
            return
        report.outcome = "rerun"  # type: ignore[assignment]
        with suppress(NotImplementedError):  # loadfile and the like do it themselves
            sched.mark_test_pending(crashitem)  # type: ignore[attr-defined]

    def graded_without_test(self, outcomes: Mapping[str, Outcome]) -> int:
        """Return how many items have a verdict but no test, as their workers died."""
        if not self._deaths:
            return 0
        count = 0
        for key in self.selected_keys:
            if key in outcomes and key not in self._ended:
                count += 1
        return count

    def final_outcomes(
        self, outcomes: Mapping[str, Outcome], reason: str, *, interrupted: bool = False
    ) -> dict[str, Outcome]:
        """Return every planned item's outcome, by key.

        ``outcomes`` are the engine's; ``reason`` is why those that are left did not end. An
        item whose test was not run to the end has its outcome all the same where workers died
        or the run was ``interrupted``: its test is behind the engine then, and not left out.
        """
        counts_without_test = interrupted or bool(self._deaths)
        final: dict[str, Outcome] = {}
        for key in self.selected_keys:
            outcome = outcomes.get(key)
            if key not in self._ended and not counts_without_test:
                outcome = None
            final[key] = self._final_outcome(key, outcome, reason)
        return final

    def _final_outcome(self, key: str, outcome: Outcome | None, reason: str) -> Outcome:
        if self._deaths[key] > 1:
            message = "the worker died twice while running this item"
            return _error(key, "worker_died", message)
        if key not in self._ended and outcome is None:
            return _missing(key, reason, "its test was not run to the end")
        mark = self._marks.get(key)
        if mark == "skipped":
            return _missing(key, "skipped", "its test was skipped")
        if outcome is not None:
            return outcome
        if mark == "missing":
            return _missing(key, reason, "the engine stopped before this item")
        return _error(key, "engine_lost", "the engine posted no outcome")


def _missing(key: str, kind: str, message: str) -> Outcome:
    return Outcome(key=key, state="missing", kind=kind, message=message)


def _error(key: str, kind: str, message: str) -> Outcome:
    return Outcome(key=key, state="error", kind=kind, message=message)
