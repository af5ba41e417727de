"""Measures the judge in the session that uses it, on labelled items.

Labelled items are answers whose right grade is known. The judge grades them beside the
run's own answers, and the gates learn how far its grades can be believed. Labelled items
belong to no test: the engine asks the judge of them, and the controller waits for the end.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from qagate.cases.config import load_dataset, with_items
from qagate.cases.dataset import DATASET_FILE, Dataset, Plan, PlannedItem, SliceFiles
from qagate.cases.discovery import labelled_files
from qagate.cases.plan import BUNDLED_LABELS, Labelled, gated, labelled_for
from qagate.cases.tasks import make_tasks
from qagate.evaluators.core import RECORDED, Outcome, parse_judges
from qagate.evaluators.judges.factory import JudgeFactory
from qagate.evaluators.runtime.task import Task
from qagate.reports.judge.measured import (
    CALIBRATION_OFF,
    calibrate,
    distrust,
    unmeasured,
)
from qagate.reports.plugin.options import RunOptions
from qagate.reports.run.evidence import Calibration
from qagate.reports.run.record import Record, make_record


def find_labelled(options: RunOptions, plan: Plan, root: Path) -> tuple[Labelled, ...]:
    """Return the labelled items that can measure the judge; none if no gate depends on it.

    A model also gets bundled labels where there are no others. Files of ``--items`` come first.
    Raises UsageError for a file that cannot be read.
    """
    if options.gates_off or not any(gated(plan)):
        return ()
    files = options.choice.items
    is_offline = parse_judges(options.judges).is_offline
    folders = [dataset.folder for dataset in plan.datasets]
    labelled = []
    for path in labelled_files(folders, files, root):
        labelled.append(_load_labelled(path, files))
    labelled += _bundled(files, labelled, is_offline=is_offline)
    datasets_with_files = {name for name, _ in files}
    labelled.sort(key=lambda dataset: dataset.name not in datasets_with_files)
    return labelled_for(plan, labelled, None if is_offline else options.calibration)


def _load_labelled(path: Path, files: SliceFiles) -> Dataset:
    """Return a labelled data set, with the files that ``--items`` gives it."""
    dataset = load_dataset(path)
    for (name, language), file in files.items():
        if name == dataset.name:
            dataset = with_items(dataset, language, file)
    return dataset


def _bundled(
    files: SliceFiles, others: Sequence[Dataset], *, is_offline: bool
) -> list[Dataset]:
    """Return the bundled labelled data sets, without slices that ``others`` have too.

    They measure rules only in languages whose file ``--items`` names.
    """
    slices_of_others = set()
    for dataset in others:
        for slice_ in dataset.slices.values():
            slices_of_others.add(slice_.name)
    bundled = []
    for path in sorted(BUNDLED_LABELS.rglob(DATASET_FILE)):
        dataset = _load_labelled(path, files)
        languages: Collection[str] = dataset.slices.keys()
        if is_offline:
            languages = {language for name, language in files if name == dataset.name}
        slices = {}
        for language in languages:
            slice_ = dataset.slices[language]
            if slice_.name not in slices_of_others:
                slices[language] = slice_
        if slices or not is_offline:
            bundled.append(replace(dataset, slices=slices))
    return bundled


class Calibrator:
    """The labelled items of one run."""

    def __init__(
        self,
        plan: Plan,
        labelled: Sequence[Labelled],
        judges: JudgeFactory,
        options: RunOptions,
    ) -> None:
        """Prepare to measure the judge, unless that is off; rules always, at no cost."""
        is_offline = judges.first_model is None
        self.plan = plan
        self.labelled = tuple(labelled)
        self.is_on = is_offline or options.calibration != 0
        items: list[PlannedItem] = []
        if self.is_on:
            for labels in labelled:
                items.extend(labels.items)
        self.tasks: Mapping[str, Task] = make_tasks(items, None, judges)
        """The tasks of the labelled items, by key."""
        has_recorded_answers = options.model == RECORDED and options.answers is None
        self._is_placeholder = is_offline and has_recorded_answers
        """Whether rules grade recorded answers, in place of a model."""
        self._judge = " ".join(member.name for member in judges.spec.members)
        self._selected: tuple[Labelled, ...] = ()
        self._keys: tuple[str, ...] = ()
        """Of the labelled items that are judged in this session."""

    def select(self, keys: Collection[str]) -> tuple[str, ...]:
        """Note which items are run; return the keys of the labelled ones to judge with them."""
        selected_keys = set(keys)
        slice_names = {self.plan.items[key].slice.name for key in selected_keys}
        selected = []
        for labels in self.labelled:
            labels_of_run = labels.of(slice_names)
            if labels_of_run.graders and not labels_of_run.planned_in(selected_keys):
                selected.append(labels_of_run)
        self._selected = tuple(selected)
        labelled_keys = []
        if self.is_on:
            for labels in selected:
                labelled_keys += [item.key for item in labels.items]
        self._keys = tuple(labelled_keys)
        return self._keys

    def is_complete(self, outcomes: Mapping[str, Outcome]) -> bool:
        """Return whether every labelled item of this session has ended."""
        return all(key in outcomes for key in self._keys)

    def calibrations(self, outcomes: Mapping[str, Outcome]) -> tuple[Calibration, ...]:
        """Return how the judge was measured in each language of the run."""
        calibrations = []
        for labels in self._selected:
            if self.is_on:
                calibration = calibrate(
                    labels, outcomes, placeholder=self._is_placeholder
                )
            else:
                calibration = unmeasured(labels, CALIBRATION_OFF)
            calibrations.append(calibration)
        return tuple(calibrations)

    def records(self, outcomes: Mapping[str, Outcome]) -> tuple[Record, ...]:
        """Return the labelled items of this session that were judged, each with its grade."""
        records = []
        for labels in self._selected:
            for item in labels.items:
                outcome = outcomes.get(item.key)
                if self.is_on and outcome is not None:
                    records.append(make_record(item, outcome))
        return tuple(records)

    @property
    def datasets(self) -> tuple[Dataset, ...]:
        """The labelled data sets of this session, with the languages that measure its judge."""
        languages: dict[str, set[str]] = {}
        datasets: dict[str, Dataset] = {}
        for labels in self._selected:
            name = labels.dataset.name
            datasets[name] = labels.dataset
            languages.setdefault(name, set()).add(labels.language)
        narrowed = []
        for name, dataset in datasets.items():
            slices = {
                language: slice_
                for language, slice_ in dataset.slices.items()
                if language in languages[name]
            }
            narrowed.append(replace(dataset, slices=slices))
        return tuple(narrowed)

    def distrusted(self) -> Iterator[str]:
        """Yield the slices whose gates stay open because nothing can measure their judge."""
        unknown = []
        for calibration in self.calibrations({}):
            if not calibration.measures:
                unknown.append(calibration)
        graders = {name for calibration in unknown for name in calibration.graders}
        for dataset in self.plan.datasets:
            for slice_ in dataset.slices.values():
                if slice_.name not in graders:
                    continue
                why = distrust(self.plan.datasets, slice_, unknown, self._judge)
                if why:
                    yield f"{slice_.name}: INCONCLUSIVE with any answers; {why}"
