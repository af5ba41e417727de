"""The plan's way from the controller to xdist's workers: made once, read by each of them.

Reading and checking the data again took each worker a third of its start.
"""

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from cases.plan import Plan

FILE = "plan.pickle"
KEY = "qa"
WORKERS_NICE = "10"  # execnet's word for it is text


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerPlan:
    """What a worker is given: the plan, and the file on which outcomes appear."""

    plan: Plan
    board: Path


class WorkerInput:
    """The controller's side. The file lies beside the board, in a folder that is the user's own."""

    def __init__(self, plan: Plan, board: Path) -> None:
        self._plan = plan
        self._board = board

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_setupnodes(self, specs: Sequence[Any]) -> None:
        """Let workers on this machine go after the engine: it is what they all wait for."""
        for spec in specs:
            if spec.popen and not spec.nice:
                spec.nice = WORKERS_NICE

    @pytest.hookimpl(optionalhook=True, trylast=True)
    def pytest_configure_node(self, node: pytest.Item) -> None:
        """Tell a worker which run it takes part in."""
        path = self._board.with_name(FILE)
        if not path.exists():
            self._write(path)
        given = {"plan": str(path), "board": str(self._board)}
        node.workerinput[KEY] = given  # type: ignore[attr-defined]

    def _write(self, path: Path) -> None:
        try:
            path.write_bytes(pickle.dumps(self._plan, pickle.HIGHEST_PROTOCOL))
        except OSError as error:
            msg = f"{path}: the plan cannot be written ({error.strerror}); free space there"
            raise pytest.UsageError(msg) from None


def read_worker_input(config: pytest.Config) -> WorkerPlan | None:
    """Return what the controller gave this worker; None where it runs no dataset."""
    inputs = cast("Mapping[str, Mapping[str, str]]", config.workerinput)  # type: ignore[attr-defined]
    given = inputs.get(KEY)
    if given is None:
        return None
    plan = pickle.loads(Path(given["plan"]).read_bytes())
    return WorkerPlan(plan=plan, board=Path(given["board"]))
