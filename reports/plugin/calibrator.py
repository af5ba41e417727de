"""Measures the judge in the session that uses it, on labelled items."""

import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

import cases
from cases.config import load_dataset, with_items
from cases.dataset import Plan
from cases.plan import Labelled, gated, labelled_for
from cases.tasks import make_tasks
from evaluators.core import Outcome, UsageError
from evaluators.judge_spec import parse_judges
from evaluators.judges.factory import JudgeFactory
from evaluators.kinds import JUDGED
from evaluators.reading import load_settings
from evaluators.runtime.engine import Task
from reports.judge.measured import calibrate, unmeasured
from reports.plugin.options import RunOptions
from reports.plugin.run_paths import dataset_files
from reports.run.evidence import Calibration

BUNDLED = Path(cases.__file__).parent / "judges"
"""The labelled datasets that come with this package."""

POLL_SECONDS = 0.02


def find_labelled(options: RunOptions, plan: Plan, root: Path) -> tuple[Labelled, ...]:
    """Return the labelled items that can measure the judge; none if no gate depends on it.

    Searches the folders that hold the run's data sets, and below them, but not above ``root``. An
    LLM judge also gets the bundled labels of slices not found there. Files given with ``--items``
    replace those of a labelled data set. Raises UsageError for a file that cannot be read.
    """
    if options.gates_off or not any(gated(plan)):
        return ()
    homes = {dataset.folder.resolve() for dataset in plan.datasets}
    above = {home.parent if home.parent.is_relative_to(root.resolve()) else home for home in homes}
    found = []
    for path in filter(_is_judged, dataset_files(map(str, sorted(above)), root, root)):
        dataset = load_dataset(path)
        for given in options.choice.items:
            if given.dataset == dataset.name:
                dataset = with_items(dataset, given.language, given.path)
        found.append(dataset)
    if parse_judges(options.judges).is_offline:
        return labelled_for(plan, found)  # rules cost nothing
    names = {one.name for dataset in found for one in dataset.slices.values()}
    for path in sorted(BUNDLED.rglob("dataset.yaml")):
        bundled = load_dataset(path)
        kept = {key: one for key, one in bundled.slices.items() if one.name not in names}
        found.append(replace(bundled, slices=kept))
    return labelled_for(plan, found, options.calibration)


def _is_judged(path: Path) -> bool:
    """Return whether a file declares labelled items that are no attacks; False for a bad file."""
    try:
        values = load_settings(path).values
        return values.get("kind") == JUDGED and "attacks" not in values
    except UsageError:
        return False


@dataclass(slots=True)
class Calibrator:
    """The labelled items of one run. They belong to no test."""

    plan: Plan
    labelled: tuple[Labelled, ...]
    is_on: bool
    """Whether the judge is measured at all."""
    tasks: Mapping[str, Task]
    """The tasks of the labelled items, by key."""
    placeholder: bool = False
    """Whether a judge without a model judges recorded answers."""
    _selected: tuple[Labelled, ...] = field(default=())

    @classmethod
    def of(
        cls,
        plan: Plan,
        labelled: Sequence[Labelled],
        judges: JudgeFactory,
        *,
        is_on: bool,
        answers_recorded: bool = False,
    ) -> "Calibrator":
        """Return the calibrator of a run with this judge; rules are always measured, at no cost.

        ``answers_recorded`` says that no model answers in this run.
        """
        is_offline = judges.first_model is None
        is_on = is_on or is_offline
        items = [item for one in labelled for item in one.items] if is_on else []
        tasks = make_tasks(items, None, judges)
        return cls(plan, tuple(labelled), is_on, tasks, is_offline and answers_recorded)

    def select(self, keys: Collection[str]) -> tuple[str, ...]:
        """Note which items are run; return the keys of the labelled ones to judge with them."""
        selected = set(keys)
        slices = {self.plan.items[key].slice.name for key in selected}
        narrowed = (one.of(slices) for one in self.labelled)
        self._selected = tuple(
            one for one in narrowed if one.graders and not one.planned_in(selected)
        )
        return tuple(self._keys())

    def _keys(self) -> Iterator[str]:
        for one in self._selected if self.is_on else ():
            for item in one.items:
                yield item.key

    def is_complete(self, outcomes: Mapping[str, Outcome]) -> bool:
        """Return whether every labelled item of this session has ended."""
        return all(key in outcomes for key in self._keys())

    def calibrations(self, outcomes: Mapping[str, Outcome]) -> tuple[Calibration, ...]:
        """Return how the judge was measured in each language of the run."""
        if not self.is_on:
            return tuple(unmeasured(one, "calibration is off") for one in self._selected)
        return tuple(
            calibrate(one, outcomes, placeholder=self.placeholder) for one in self._selected
        )


class JudgeWait:
    """Keeps a finished session open until its judge is measured."""

    def __init__(self, is_over: Callable[[], bool]) -> None:
        self._is_over = is_over

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Wait after the last test. An interrupt ends the wait; a run cut short never waits."""
        result = yield
        while not self._is_over():
            time.sleep(POLL_SECONDS)
        return result
