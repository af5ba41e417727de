"""Measuring the judge in the session that uses it: labelled items beside those of the tests."""

import asyncio
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest

from cases.config import load_dataset
from cases.dataset import Plan
from cases.plan import Labelled, gated, labelled_for
from cases.tasks import make_tasks
from evaluators.core import (
    CallError,
    JudgeError,
    Model,
    Outcome,
    Reply,
    Request,
    UsageError,
)
from evaluators.judges.factory import JudgeFactory
from evaluators.kinds import JUDGED
from evaluators.runtime.engine import Task
from evaluators.settings import load_settings
from evaluators.text import request_key
from reports.evidence import Calibration
from reports.plugin.options import Options, dataset_files
from reports.plugin.run_models import judges_of
from reports.trust import calibrate, unmeasured

Way = Literal["session", "ledger", "off"]
Kept = Callable[[str], Reply | None]
"""Look a reply up in the ledger by the key of its request."""

POLL_SECONDS = 0.02


def find_labelled(options: Options, plan: Plan, root: Path) -> tuple[Labelled, ...]:
    """Return what could measure the judge of this run; nothing where no gate hangs on a model.

    Labelled datasets are looked for beside those of the run: in and under the folders that hold
    theirs, not above ``root``. Raises UsageError where one of them cannot be read.
    """
    if options.gates_off or judges_of(options).is_offline or not any(gated(plan)):
        return ()
    homes = {dataset.folder.resolve() for dataset in plan.datasets}
    above = {home.parent if home.parent.is_relative_to(root.resolve()) else home for home in homes}
    files = dataset_files(map(str, sorted(above)), root, root)
    judged = [load_dataset(path) for path in files if _is_judged(path)]
    return labelled_for(plan, judged)


def _is_judged(path: Path) -> bool:
    """Say whether a file declares labelled items; what else is wrong in it is not our business."""
    try:
        return load_settings(path).values.get("kind") == JUDGED
    except UsageError:
        return False


def way_of(options: Options) -> Way:
    """Return how the judge is measured: an ``--items`` run asks nothing that it was not given."""
    if not options.calibration:
        return "off"
    return "ledger" if options.choice.items else "session"


@dataclass(slots=True)
class Calibrator:
    """The labelled items of one run. ``tasks`` are theirs, by key; they belong to no test."""

    plan: Plan
    labelled: tuple[Labelled, ...]
    way: Way
    tasks: Mapping[str, Task]
    _selected: tuple[Labelled, ...] = field(default=())

    @classmethod
    def of(
        cls, plan: Plan, labelled: Sequence[Labelled], way: Way, judges: JudgeFactory
    ) -> "Calibrator":
        """Return the calibrator of a run with this judge; an empty one where rules judge alone."""
        kept = tuple(labelled) if judges.first_model else ()
        items = [item for one in kept for item in one.items] if way != "off" else []
        return cls(plan, kept, way, make_tasks(items, None, judges) if items else {})

    def select(self, keys: Collection[str]) -> tuple[str, ...]:
        """Note which items are run; return the keys of those to be judged beside them."""
        selected = set(keys)
        slices = {self.plan.items[key].slice.name for key in selected}
        narrowed = (one.of(slices) for one in self.labelled)
        self._selected = tuple(
            one for one in narrowed if one.graders and not one.planned_in(selected)
        )
        return tuple(self._keys()) if self.way == "session" else ()

    def _keys(self) -> Iterator[str]:
        for one in self._selected:
            for item in one.items:
                yield item.key

    @property
    def needs_ledger(self) -> bool:
        """Whether earlier replies are what the judge is measured by."""
        return self.way == "ledger" and bool(self._selected)

    def is_complete(self, outcomes: Mapping[str, Outcome]) -> bool:
        """Return whether every item that is judged in this session has come to its end."""
        return self.way != "session" or all(key in outcomes for key in self._keys())

    def calibrations(self, outcomes: Mapping[str, Outcome], kept: Kept) -> tuple[Calibration, ...]:
        """Return what is known of the judge in each language of the run."""
        if self.way == "off":
            return tuple(unmeasured(one, "calibration is off") for one in self._selected)
        if self.way == "session":
            return tuple(calibrate(one, outcomes, "session") for one in self._selected)
        earlier = asyncio.run(_looked_up([self.tasks[key] for key in self._keys()], kept))
        return tuple(calibrate(one, earlier, "ledger") for one in self._selected)


async def _looked_up(tasks: Sequence[Task], kept: Kept) -> dict[str, Outcome]:
    """Return the outcomes that recorded replies alone give."""

    async def ask(model: Model, request: Request) -> Reply:
        reply = kept(request_key(model.identity, request))
        if reply is None:
            kind = "not_in_ledger"
            raise CallError(kind, f"{model.spec}: not judged earlier")
        return reply

    found: dict[str, Outcome] = {}
    for task in tasks:
        answer = task.case.recorded or ""
        try:
            verdict = await task.judge.judge(task.case, answer, ask)
        except (CallError, JudgeError) as error:
            found[task.key] = Outcome(
                key=task.key, state="error", kind=error.kind, message=str(error)
            )
        else:
            state: Literal["passed", "failed"] = (
                "passed" if task.passes(task.case, verdict) else "failed"
            )
            found[task.key] = Outcome(key=task.key, state=state, answer=answer, verdict=verdict)
    return found


class JudgeWait:
    """Keeps a session that ran to its end open until its judge is measured."""

    def __init__(self, is_over: Callable[[], bool]) -> None:
        self._is_over = is_over

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Wait after the last test; an interrupt still ends it, and a run cut short never waits."""
        result = yield
        while not self._is_over():
            time.sleep(POLL_SECONDS)
        return result
