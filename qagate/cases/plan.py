"""The plan of a run: which items are asked, and which labelled items measure the judge.

A plan is made in three steps. The data sets that were found are narrowed to what the user chose:
languages, files, prompts, gates. Their files are read, and of each slice a sample is drawn if
there is a ``--limit``. Each case becomes one planned item a repeat, under a key that is its pytest
id. Everything that cannot work is refused here, before any call.
"""

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from qagate.bundled import BUNDLED_LABELS
from qagate.cases.answer_files import check_shared_files
from qagate.cases.config import NAME, load_dataset, load_gates, with_items
from qagate.cases.dataset import (
    DATASET_FILE,
    Dataset,
    Plan,
    PlannedItem,
    Selection,
    Shards,
    Slice,
    SliceFiles,
    SliceSample,
    Threshold,
)
from qagate.cases.loading import load_cases
from qagate.evaluators.core import Case, UsageError
from qagate.evaluators.kinds import NOT_CORRECT, TWO_WAY
from qagate.evaluators.reading import file_hash
from qagate.evaluators.rubric import load_prompt
from qagate.evaluators.statistics.count_table import PREMISE, CountTable
from qagate.evaluators.statistics.metrics import ANSWER_RANGES, metrics_of
from qagate.evaluators.text import hint, listed


def make_plan(
    files: Sequence[Path], selection: Selection, judge_files: Iterable[Path] = ()
) -> Plan:
    """Return the plan for the data sets of these ``dataset.yaml`` files.

    ``judge_files`` are the ``dataset.yaml`` files that only measure the judge. Raises UsageError.
    """
    all_datasets = [load_dataset(path) for path in files]
    _check_names_differ(all_datasets)
    selection = _without_judge_files(selection, all_datasets, judge_files)
    datasets = _chosen(all_datasets, selection)

    items: dict[str, PlannedItem] = {}
    samples: dict[str, SliceSample] = {}
    loaded: list[tuple[Slice, list[Case]]] = []
    for dataset in datasets:
        for slice_ in dataset.slices.values():
            cases = load_cases(slice_)
            loaded.append((slice_, cases))
            is_users_file = (slice_.dataset, slice_.language) in selection.items
            gates_on_slice = (*slice_.thresholds, *dataset.pooled)
            _check_gates(slice_, gates_on_slice, cases, is_users_file=is_users_file)
            drawn = sample(cases, selection.limit, selection.seed)
            if len(drawn) < len(cases):
                samples[slice_.name] = SliceSample(
                    items=len(drawn), of=len(cases), seed=selection.seed
                )
            for item in _planned(slice_, drawn, selection.repeats):
                _add(item, items)
    check_shared_files(loaded)
    slices = {item.slice.name: item.slice for item in items.values()}
    return Plan(
        datasets=tuple(datasets),
        items=items,
        hashes={name: file_hash(slice_.path) for name, slice_ in slices.items()},
        samples=samples,
        tests_per_slice=selection.tests_per_slice,
        shard=selection.shard,
    )


def _planned(
    slice_: Slice, cases: Iterable[Case], repeats: int
) -> Iterator[PlannedItem]:
    """Yield each case as often as it is asked; a later repeat has its number in the key."""
    for case in cases:
        for repeat in range(1, repeats + 1):
            key = f"{slice_.dataset}-{slice_.language}-{case.id}"
            if repeat > 1:
                key = f"{key}~r{repeat}"
            yield PlannedItem(key=key, slice=slice_, case=case, repeat=repeat)


def _add(item: PlannedItem, items: dict[str, PlannedItem]) -> None:
    """Add an item under its key. Raises UsageError if another item has that key."""
    if item.key in items:
        raise UsageError(
            f"{item.slice.path}: item {item.key!r} is also one of "
            f"{items[item.key].slice.path}; rename an id"
        )
    items[item.key] = item


# What the user chose


def _chosen(datasets: Sequence[Dataset], selection: Selection) -> list[Dataset]:
    """Return the data sets as the user chose them: narrowed, and with the user's gates.

    Raises UsageError for a choice that fits none of them.
    """
    _check_datasets_exist(selection, datasets)
    _check_languages_exist(selection, datasets)
    chosen = [_narrow(dataset, selection) for dataset in datasets]
    _check_files_are_used("prompt", selection.prompts, chosen)
    _check_files_are_used("recorded", selection.recorded, chosen)
    if selection.gates_file is not None:
        gates = load_gates(selection.gates_file)
        chosen = list(gates.put_into(chosen, f"{selection.gates_file}"))
    if selection.baseline_required:
        chosen = [replace(dataset, baseline_required=True) for dataset in chosen]
    return chosen


def _without_judge_files(
    selection: Selection, datasets: Sequence[Dataset], judge_files: Iterable[Path]
) -> Selection:
    """Return the selection without items for data sets that only measure the judge.

    Such a data set has its ``dataset.yaml`` in ``judge_files`` or comes with this package, and
    is none of ``datasets``, which are those of the run.
    """
    if not selection.items:
        return selection
    names_in_run = {dataset.name for dataset in datasets}
    judge_datasets = set()
    for path in (*BUNDLED_LABELS.rglob(DATASET_FILE), *judge_files):
        if path.parent.name not in names_in_run:
            judge_datasets.add(path.parent.name)
    items = {}
    for (name, language), path in selection.items.items():
        if name not in judge_datasets:
            items[name, language] = path
    return replace(selection, items=items)


def _check_names_differ(datasets: Sequence[Dataset]) -> None:
    folders = {dataset.name: dataset.folder for dataset in datasets}
    for dataset in datasets:
        other = folders[dataset.name]
        if other != dataset.folder:
            raise UsageError(
                f"two datasets are named {dataset.name!r}: {dataset.folder} and {other}; "
                "rename one folder"
            )


def _check_datasets_exist(selection: Selection, datasets: Sequence[Dataset]) -> None:
    """Raise UsageError for a file or prompt that is given to a data set that was not found."""
    names = sorted(dataset.name for dataset in datasets)
    for name, _ in (*selection.items, *selection.prompts, *selection.recorded):
        if name not in names:
            advice = hint(name, names)
            if not advice.startswith("did you mean"):
                advice = "name the folder that holds it as a path of the run"
            raise UsageError(
                f"dataset {name!r} is not among those found ({', '.join(names)}); {advice}"
            )


def _check_languages_exist(selection: Selection, datasets: Sequence[Dataset]) -> None:
    """Raise UsageError for a language, or a split of one, that no data set has."""
    languages = {language for dataset in datasets for language in dataset.slices}
    languages.update(language for _, language in selection.items)
    for given in selection.languages:
        language, _, split = given.partition("/")
        if language not in languages:
            raise UsageError(
                f"--languages: no dataset has {language!r}; "
                f"there are {', '.join(sorted(languages))}; a language goes by its code"
            )
        if split and not _has_split(datasets, language, split):
            raise UsageError(
                f"--languages: no dataset has a split {given!r}; it is a file such as "
                f"{language}.{split}.jsonl next to the dataset's own"
            )


def _has_split(datasets: Iterable[Dataset], language: str, split: str) -> bool:
    for dataset in datasets:
        slice_ = dataset.slices.get(language)
        if slice_ is not None and _split(slice_, split) is not None:
            return True
    return False


def _check_files_are_used(
    option: str, files: SliceFiles, datasets: Sequence[Dataset]
) -> None:
    """Raise UsageError for a prompt or answers of a slice that is not asked."""
    names = {slice_.name for dataset in datasets for slice_ in dataset.slices.values()}
    for dataset_name, language in files:
        name = f"{dataset_name}:{language}"
        if name not in names:
            raise UsageError(
                f"--{option}: {name} is not asked in this run; "
                f"there are {', '.join(sorted(names))}"
            )


def _narrow(dataset: Dataset, selection: Selection) -> Dataset:
    """Return a data set with the slices, files and prompts that were chosen."""
    files = {}
    for (name, language), path in selection.items.items():
        if name == dataset.name:
            files[language] = path
            dataset = with_items(dataset, language, path)
    slices = dict(dataset.slices)
    if selection.items:  # then nothing but these files is asked
        slices = {code: slices[code] for code in slices if code in files}
    if selection.languages:
        slices = _in_languages(slices, selection.languages)
    for (name, language), path in selection.prompts.items():
        if name == dataset.name and language in slices:
            prompt = load_prompt(path, language)
            slices[language] = replace(slices[language], prompt=prompt)
    for (name, language), path in selection.recorded.items():
        if name == dataset.name and language in slices:
            slices[language] = replace(slices[language], recorded=path)
    return replace(dataset, slices=slices)


def _in_languages(
    slices: Mapping[str, Slice], languages: Iterable[str]
) -> dict[str, Slice]:
    """Return the slices in these languages, such as ``be``, or their splits, such as ``be/dev``."""
    splits = {}
    for given in languages:
        language, _, split = given.partition("/")
        splits[language] = split
    chosen = {}
    for language, slice_ in slices.items():
        if language not in splits:
            continue
        part = _split(slice_, splits[language])
        if part is not None:
            chosen[language] = part
    return chosen


def _split(slice_: Slice, split: str) -> Slice | None:
    """Return the slice with the file of a split, such as ``be.test.jsonl``; None without one.

    An empty split stands for the whole slice.
    """
    if not split:
        return slice_
    if not NAME.fullmatch(split):
        return None
    path = slice_.path
    part = path.with_name(f"{path.stem}.{split}{path.suffix}")
    if not part.is_file():
        return None
    return replace(slice_, path=part)


# Gates that can never be decided


def _check_gates(
    slice_: Slice,
    gates: Iterable[Threshold],
    cases: Sequence[Case],
    *,
    is_users_file: bool,
) -> None:
    """Raise UsageError for a gate on a metric that these items can never have.

    A user's own file may well lack the questions without an answer that the data set's gates
    are about.
    """
    declared = slice_.kind.ranges(slice_.labels)
    possible = [*metrics_of(slice_.kind, _uncounted(slice_, cases))]
    for gate in gates:
        name = gate.of or gate.measure
        if is_users_file and name.startswith(PREMISE):
            continue
        if name not in declared or name in (*possible, *ANSWER_RANGES):
            continue
        reason = f"these items have {listed(possible)}"
        if name == "mean_score":
            rubric = slice_.rubric.name if slice_.rubric else "the judge"
            reason = (
                f"{rubric} gives no scores; add `choice_scores: {{A: 1}}` "
                "to dataset.yaml"
            )
        raise UsageError(f"{slice_.name} {gate.name}: can never be decided: {reason}")


def _uncounted(slice_: Slice, cases: Iterable[Case]) -> CountTable:
    """Return the table of a slice's items before anything is counted.

    It tells which metrics there can be. An empty array would need numpy, whose threads keep the
    engine from forking.
    """
    labels = set()
    for case in cases:
        main_gold = case.golds[0] if case.golds else ""
        labels.add(slice_.kind.gold_label(case.label, main_gold))
    golds, outcomes = slice_.kind.axes(slice_.labels, labels, ())
    return CountTable(
        counts=cast("Any", None),
        golds=golds,
        outcomes=outcomes,
        scores=slice_.rubric.scores if slice_.rubric else {},
        passing=slice_.passing,
        attacks=slice_.attacks,
    )


# Samples


def sample(cases: Sequence[Case], limit: int | None, seed: int) -> list[Case]:
    """Return at most ``limit`` cases in their order, chosen by a hash of seed and id."""
    if limit is None or limit >= len(cases):
        return list(cases)
    ranked = sorted(cases, key=lambda case: draw_order(case.id, seed))
    drawn = {case.id for case in ranked[:limit]}
    return [case for case in cases if case.id in drawn]


def draw_order(id_: str, seed: int) -> bytes:
    """Return the hash by which ``sample`` draws: the lowest ones."""
    return hashlib.sha256(f"{seed}:{id_}".encode()).digest()


# What measures the judge


ENOUGH_OF_A_CLASS = 30
"""The labels of a class that show a judge's errors on it without any others."""
ENOUGH_FOR_THE_FLOOR = 100
"""The labels of all classes that show alone whether a judge reaches its floor."""
NEAR_THE_BAR = 2
"""Points: labels that are farther from the bar do not show how a judge errs at it."""
PREFIX = "calibration:"
"""Begins the key of an item that is judged in addition to the plan; no planned key has a colon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """One language of a labelled data set, for measuring a judge."""

    dataset: Dataset
    language: str
    graders: tuple[str, ...] = ()
    """The names of the slices whose judge it measures."""
    items: tuple[PlannedItem, ...] = ()

    def of(self, slices: Collection[str]) -> "Labelled":
        """Return the same with only those graders that are among these slices."""
        graders = tuple(name for name in self.graders if name in slices)
        return replace(self, graders=graders)

    def in_shard(self, shard: Shards | None) -> "Labelled":
        """Return the part of the labelled items that a shard judges; all without shards."""
        if shard is None:
            return self
        items = tuple(item for item in self.items if shard.holds(item.case))
        return replace(self, items=items)

    def planned_in(self, keys: Collection[str]) -> bool:
        """Return whether the plan's ``keys`` have every item: then nothing is added."""
        if not self.items:
            return False
        return all(item.key.removeprefix(PREFIX) in keys for item in self.items)


def labelled_for(
    plan: Plan, own: Sequence[Dataset], bundled: Sequence[Dataset] = ()
) -> tuple[Labelled, ...]:
    """Return what measures the judge of the plan's gated slices.

    All of the user's ``own`` labelled answers in a slice's language and by its rubric measure it.
    The ``bundled`` ones are added where there are too few of its own: of a class, or of all
    together. Raises UsageError for a data file that cannot be read.
    """
    measuring: dict[tuple[str, str, bool], Labelled] = {}
    for slice_ in gated(plan):
        own_labels = _matching(slice_, own)
        loaded = [_all_labels(*pair) for pair in own_labels]
        if not _are_enough(slice_, loaded):
            loaded += [_all_labels(*pair) for pair in _matching(slice_, bundled)]
        for labels in loaded:
            is_bundled = labels.dataset.slices[labels.language].bundled
            key = labels.dataset.name, labels.language, is_bundled
            first = measuring.setdefault(key, labels)
            measuring[key] = replace(first, graders=(*first.graders, slice_.name))
    return _with_names_apart(measuring.values())


def _matching(
    slice_: Slice, datasets: Sequence[Dataset]
) -> list[tuple[Dataset, Slice]]:
    """Return the labelled slices in a slice's language and by its rubric."""
    matching = []
    for dataset in datasets:
        labels = dataset.slices.get(slice_.language)
        if labels is None or labels.rubric is None or slice_.rubric is None:
            continue
        if labels.attacks or labels.measures not in ("", slice_.dataset):
            continue
        if labels.rates != slice_.kind.rated:
            continue
        if labels.rubric.version != slice_.rubric.version:
            continue
        if labels.rates and labels.pass_bar != slice_.pass_bar:
            continue
        matching.append((dataset, labels))
    return matching


def _all_labels(dataset: Dataset, labels: Slice) -> Labelled:
    items = []
    for case in load_cases(labels):
        key = f"{PREFIX}{labels.dataset}-{labels.language}-{case.id}"
        items.append(PlannedItem(key=key, slice=labels, case=case, repeat=1))
    return Labelled(dataset=dataset, language=labels.language, items=tuple(items))


def _are_enough(slice_: Slice, own: Sequence[Labelled]) -> bool:
    """Return whether the user's own labels need none that are bundled."""
    labels = [
        item.case.label
        for labelled in own
        for item in labelled.items
        if item.case.label is not None
    ]
    if len(labels) < ENOUGH_FOR_THE_FLOOR:
        return False
    counts = Counter(_class_of(label, slice_) for label in labels)
    return all(counts[name] >= ENOUGH_OF_A_CLASS for name in _classes(slice_, counts))


def _class_of(label: str, slice_: Slice) -> str:
    """Return the class of a label; of ratings, the side of the bar if it is near."""
    if not label.isdigit():
        return label
    distance = int(label) - slice_.pass_bar
    if abs(distance) > NEAR_THE_BAR:
        return ""
    return "above" if distance >= 0 else "below"


def _classes(slice_: Slice, counts: Mapping[str, int]) -> tuple[str, ...]:
    if slice_.kind.rated:
        return ("above", "below")
    if NOT_CORRECT in counts:
        return TWO_WAY
    return slice_.labels


def _with_names_apart(found: Iterable[Labelled]) -> tuple[Labelled, ...]:
    """Return labelled sets whose names differ: a file of one's own may stand for a bundled one."""
    own_names = set()
    sets = []
    for labels in found:
        slice_ = labels.dataset.slices[labels.language]
        if not slice_.bundled:
            own_names.add(slice_.name)
        sets.append(labels)
    return tuple(
        _renamed(labels)
        if labels.dataset.slices[labels.language].bundled
        and labels.dataset.slices[labels.language].name in own_names
        else labels
        for labels in sets
    )


def _renamed(labels: Labelled) -> Labelled:
    """Return a bundled set under another name, with its items."""
    name = f"bundled_{labels.dataset.name}"
    slices = {
        language: replace(slice_, dataset=name)
        for language, slice_ in labels.dataset.slices.items()
    }
    items = []
    for item in labels.items:
        case = replace(item.case, dataset=name)
        key = f"{PREFIX}{name}-{labels.language}-{case.id}"
        items.append(replace(item, key=key, slice=slices[labels.language], case=case))
    dataset = replace(labels.dataset, name=name, slices=slices)
    return replace(labels, dataset=dataset, items=tuple(items))


def gated(plan: Plan) -> Iterator[Slice]:
    """Yield the slices with items that some gate decides by what a judge says."""
    planned = {item.slice.name for item in plan.items.values()}
    for dataset in plan.datasets:
        for slice_ in dataset.slices.values():
            if not slice_.kind.by_rubric or slice_.name not in planned:
                continue
            gates = (*slice_.thresholds, *dataset.pooled)
            if any(not gate.of_usage for gate in gates):
                yield slice_
