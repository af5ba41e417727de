"""Measures the judge in the session that uses it, on labelled items.

Labelled items are answers whose right grade is known. The judge grades them beside the
run's own answers, and the gates learn how far its grades can be believed. Labelled items
belong to no test: the engine asks the judge of them, and the controller waits for the end.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from qagate.bundled import BUNDLED_LABELS
from qagate.cases.config import load_dataset, with_items
from qagate.cases.dataset import (
    DATASET_FILE,
    Dataset,
    Plan,
    PlannedItem,
    Slice,
    SliceFiles,
)
from qagate.cases.discovery import labelled_files
from qagate.cases.plan import Labelled, gated, labelled_for
from qagate.cases.tasks import make_tasks
from qagate.evaluators.core import INCORRECT, LEXICAL, RECORDED, Outcome, Verdict
from qagate.evaluators.judges.factory import JudgeFactory
from qagate.evaluators.kinds import NOT_CORRECT
from qagate.evaluators.runtime.task import Task
from qagate.reports.judge.labels import Labels, LabelSet
from qagate.reports.judge.measuring import slice_judge
from qagate.reports.judge.waivers import are_bundled_answers
from qagate.reports.plugin.options import RunOptions
from qagate.reports.run.record import Record, make_record


def find_labelled(options: RunOptions, plan: Plan, root: Path) -> tuple[Labelled, ...]:
    """Return the labelled items that measure the judge; none if no gate depends on it.

    The user's own stand near the data sets of the run, or in files of ``--items``. Raises
    UsageError for a file that cannot be read.
    """
    if options.gates_off or not any(gated(plan)):
        return ()
    files = options.choice.items
    folders = [dataset.folder for dataset in plan.datasets]
    paths = [*labelled_files(folders, files, root)]
    paths += [path for path, _ in _bundled() if _names_a_file(path, files)]
    own = []
    for path in dict.fromkeys(path.resolve() for path in paths):
        dataset = _load_labelled(path, files)
        slices = {
            language: slice_
            for language, slice_ in dataset.slices.items()
            if not slice_.bundled
        }
        own.append(replace(dataset, slices=slices))
    bundled = [dataset for _, dataset in _bundled()]
    return labelled_for(plan, own, bundled)


def _load_labelled(path: Path, files: SliceFiles) -> Dataset:
    """Return a labelled data set, with the files that ``--items`` gives it."""
    dataset = load_dataset(path)
    for (name, language), file in files.items():
        if name == dataset.name:
            dataset = with_items(dataset, language, file)
    return dataset


def _bundled() -> list[tuple[Path, Dataset]]:
    """Return the bundled labelled data sets, each with its declaration."""
    paths = sorted(BUNDLED_LABELS.rglob(DATASET_FILE))
    return [(path, load_dataset(path)) for path in paths]


def _names_a_file(path: Path, files: SliceFiles) -> bool:
    """Return whether ``--items`` gives the data set declared there a file."""
    return any(name == path.parent.name for name, _ in files)


class Calibrator:
    """The labelled items of one run."""

    def __init__(
        self,
        plan: Plan,
        labelled: Sequence[Labelled],
        judges: JudgeFactory,
        options: RunOptions,
    ) -> None:
        """Prepare to measure the judge."""
        self.plan = plan
        self.labelled = tuple(labelled)
        items = [item for labels in labelled for item in labels.items]
        self.tasks: Mapping[str, Task] = make_tasks(items, None, judges)
        """The tasks of the labelled items, by key."""
        self._judge = " ".join(member.name for member in judges.spec.members)
        self._has_recorded_answers = (
            options.model == RECORDED and options.answers is None
        )
        self._selected: tuple[Labelled, ...] = ()
        self._keys: tuple[str, ...] = ()
        """Of the labelled items that are judged in this session."""

    def select(self, keys: Collection[str]) -> tuple[str, ...]:
        """Note which items are run; return the keys of the labelled ones to judge with them."""
        selected_keys = set(keys)
        slice_names = {self.plan.items[key].slice.name for key in selected_keys}
        selected = []
        for labels in self.labelled:
            labels_of_run = labels.of(slice_names).in_shard(self.plan.shard)
            if labels_of_run.graders and not labels_of_run.planned_in(selected_keys):
                selected.append(labels_of_run)
        self._selected = tuple(selected)
        self._keys = tuple(item.key for labels in selected for item in labels.items)
        return self._keys

    def is_complete(self, outcomes: Mapping[str, Outcome]) -> bool:
        """Return whether every labelled item of this session has ended."""
        return all(key in outcomes for key in self._keys)

    def records(self, outcomes: Mapping[str, Outcome]) -> tuple[Record, ...]:
        """Return the labelled items of this session; those not judged have no grade."""
        never = partial(
            Outcome,
            state="missing",
            kind="stopped",
            message="the run ended before it",
        )
        records = []
        for labels in self._selected:
            for item in labels.items:
                outcome = outcomes.get(item.key) or never(key=item.key)
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
        """Yield the slices whose gates stay open because too few labels measure their judge."""
        sets = self._sets(lambda item: Outcome(key=item.key, state="missing"))
        datasets = {dataset.name: dataset for dataset in self.plan.datasets}
        for slice_ in gated(self.plan):
            if self._grades_bundled_answers(slice_):
                continue
            judge = slice_judge(
                datasets[slice_.dataset],
                slice_,
                (),
                Labels.of(slice_, sets),
                self._judge,
            )
            why = judge.lack
            if why:
                yield f"{slice_.name}: INCONCLUSIVE with any answers; {why}"

    def sets_without_errors(self) -> list[LabelSet]:
        """Return the labels as a judge would grade them that is right on each."""
        return self._sets(_as_labelled)

    def _sets(self, outcome_of: Callable[[PlannedItem], Outcome]) -> list[LabelSet]:
        sets = []
        for labels in self.labelled:
            records = [make_record(item, outcome_of(item)) for item in labels.items]
            slice_ = labels.dataset.slices[labels.language]
            sets.append(LabelSet(slice_=slice_, records=tuple(records)))
        return sets

    def _grades_bundled_answers(self, slice_: Slice) -> bool:
        """Return whether rules grade recorded answers that come with this package."""
        if self._judge != LEXICAL or not self._has_recorded_answers:
            return False
        cases = [
            item.case
            for item in self.plan.items.values()
            if item.slice.name == slice_.name
        ]
        return are_bundled_answers(
            slice_, ((case.digest, case.recorded) for case in cases)
        )


def _as_labelled(item: PlannedItem) -> Outcome:
    """Return how a labelled answer ends with a judge that says what the label says."""
    label = item.case.label
    if label is None:
        return Outcome(key=item.key, state="missing")
    verdict = Verdict(grade=INCORRECT if label == NOT_CORRECT else label)
    if label.isdigit():
        verdict = Verdict(rating=int(label))
    return Outcome(key=item.key, state="passed", verdict=verdict)
