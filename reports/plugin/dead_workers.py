"""When a worker of xdist dies: its item goes to another one, and nothing more is sent to it."""

from contextlib import suppress
from typing import Any

import pytest

from cases.dataset import Plan
from reports.plugin.session_results import SessionResults, key_of


class DeadWorkers:
    """The controller's hooks for workers that die; without xdist none of them is called.

    An item whose worker died has the outcome ``rerun``, until another one has tried it again.
    """

    def __init__(self, plan: Plan, results: SessionResults) -> None:
        self._plan = plan
        self._results = results

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodeready(self, node: Any) -> None:
        """Drop what is sent to a worker that has just died.

        Xdist may give it work before it reads of the death, and would end the whole run with an
        internal error. The death itself is still reported, and its items handed out again.
        """
        send = node.sendcommand

        def send_if_alive(name: str, **values: object) -> None:
            with suppress(OSError):
                send(name, **values)

        node.sendcommand = send_if_alive

    @pytest.hookimpl(optionalhook=True)
    def pytest_handlecrashitem(
        self, crashitem: str, report: pytest.TestReport, sched: object
    ) -> None:
        """Give the item of a dead worker to another one, once."""
        if key_of(crashitem) not in self._plan.items or not self._results.died(crashitem):
            return
        report.outcome = "rerun"  # type: ignore[assignment]
        with suppress(NotImplementedError):  # loadfile and its like hand it out again themselves
            sched.mark_test_pending(crashitem)  # type: ignore[attr-defined]
