"""Measures the judge in the session that uses it, on labelled items."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from qagate.cases.config import load_dataset, with_items
from qagate.cases.dataset import DATASET_FILE, Dataset, Plan
from qagate.cases.discovery import labelled_files
from qagate.cases.plan import BUNDLED_LABELS, Labelled, gated, labelled_for
from qagate.cases.tasks import make_tasks
from qagate.evaluators.core import RECORDED, Outcome, parse_judges
from qagate.evaluators.judges.factory import JudgeFactory
from qagate.evaluators.runtime.engine import Task
from qagate.reports.judge.measured import (
    CALIBRATION_OFF,
    calibrate,
    distrust,
    unmeasured,
)
from qagate.reports.plugin.options import RunOptions
from qagate.reports.run.evidence import Calibration


def find_labelled(options: RunOptions, plan: Plan, root: Path) -> tuple[Labelled, ...]:
    """Return the labelled items that can measure the judge; none if no gate depends on it.

    A model also gets bundled labels where there are no others. Files of ``--items`` come first.
    Raises UsageError for a file that cannot be read.
    """
    if options.gates_off or not any(gated(plan)):
        return ()
    folders, items = [dataset.folder for dataset in plan.datasets], options.choice.items

    def load(path: Path) -> Dataset:
        dataset = load_dataset(path)
        for (name, language), file in items.items():
            if name == dataset.name:
                dataset = with_items(dataset, language, file)
        return dataset

    found = list(map(load, labelled_files(folders, items, root)))
    names = {one.name for dataset in found for one in dataset.slices.values()}
    is_offline = parse_judges(options.judges).is_offline
    for bundled in map(load, sorted(BUNDLED_LABELS.rglob(DATASET_FILE))):
        given = {language for name, language in items if name == bundled.name}
        wanted = given if is_offline else bundled.slices.keys()
        slices = {key: bundled.slices[key] for key in wanted}
        kept = {key: one for key, one in slices.items() if one.name not in names}
        if kept or not is_offline:
            found.append(replace(bundled, slices=kept))
    found.sort(key=lambda dataset: dataset.name not in {name for name, _ in items})
    return labelled_for(plan, found, None if is_offline else options.calibration)


class Calibrator:
    """The labelled items of one run. They belong to no test."""

    def __init__(
        self,
        plan: Plan,
        labelled: Sequence[Labelled],
        judges: JudgeFactory,
        options: RunOptions,
    ) -> None:
        """Take the judge's measure unless that is off; that of rules always, at no cost."""
        is_offline = judges.first_model is None
        self.plan, self.labelled = plan, tuple(labelled)
        self.is_on = is_offline or options.calibration != 0
        items = [item for one in labelled for item in one.items] if self.is_on else []
        self.tasks: Mapping[str, Task] = make_tasks(items, None, judges)
        """The tasks of the labelled items, by key."""
        self._placeholder = (
            is_offline and options.model == RECORDED and options.answers is None
        )
        self._judge = " ".join(one.name for one in judges.spec.members)
        self._selected: tuple[Labelled, ...] = ()
        self._keys: tuple[str, ...] = ()

    def select(self, keys: Collection[str]) -> tuple[str, ...]:
        """Note which items are run; return the keys of the labelled ones to judge with them."""
        selected = set(keys)
        slices = {self.plan.items[key].slice.name for key in selected}
        own = (
            one
            for one in (labels.of(slices) for labels in self.labelled)
            if one.graders
        )
        self._selected = tuple(one for one in own if not one.planned_in(selected))
        measured = self._selected if self.is_on else ()
        self._keys = tuple(item.key for one in measured for item in one.items)
        return self._keys

    def is_complete(self, outcomes: Mapping[str, Outcome]) -> bool:
        """Return whether every labelled item of this session has ended."""
        return all(key in outcomes for key in self._keys)

    def calibrations(self, outcomes: Mapping[str, Outcome]) -> tuple[Calibration, ...]:
        """Return how the judge was measured in each language of the run."""
        if not self.is_on:
            return tuple(unmeasured(one, CALIBRATION_OFF) for one in self._selected)
        how = self._placeholder
        return tuple(
            calibrate(one, outcomes, placeholder=how) for one in self._selected
        )

    def distrusted(self) -> Iterator[str]:
        """Yield the slices whose gates stay open because nothing can measure their judge."""
        unknown = [one for one in self.calibrations({}) if not one.measures]
        names = {name for one in unknown for name in one.graders}
        slices = (one for part in self.plan.datasets for one in part.slices.values())
        for one in (one for one in slices if one.name in names):
            if why := distrust(self.plan.datasets, one, unknown, self._judge):
                yield f"{one.name}: INCONCLUSIVE with any answers; {why}"
