"""What tests report, and from it the one outcome of every planned item."""

from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import Any

import pytest

from cases.dataset import Plan
from evaluators.core import Outcome, UsageError


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
            with suppress(NotImplementedError):  # loadfile and similar schedulers do it themselves
                sched.mark_test_pending(crashitem)  # type: ignore[attr-defined]

    def untested(self, outcomes: Mapping[str, Outcome]) -> int:
        """Return how many items have a verdict but no test, as their workers died."""
        lost = [key for key in self.planned if key in outcomes and key not in self._ended]
        return len(lost) if self._deaths else 0

    def final(self, outcomes: Mapping[str, Outcome], reason: str) -> dict[str, Outcome]:
        """Return every planned item's outcome; ``reason`` is why those left did not end."""
        found: dict[str, Outcome] = {}
        for key in self.planned:
            outcome, word, state = outcomes.get(key), self._words.get(key), "missing"
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
                state, kind, why = "error", "engine_lost", "the engine posted no outcome"
            lost: Any = {"state": state, "kind": kind, "message": why}
            found[key] = outcome if outcome and not why else Outcome(key=key, **lost)
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
