"""The plan of a run, from data sets and what the user selected, and what measures its judge."""

import hashlib
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, cast

from qagate.bundled import CASES
from qagate.cases.config import NAME, load_dataset, load_gates, with_items
from qagate.cases.dataset import (
    DATASET_FILE,
    Dataset,
    Plan,
    PlannedItem,
    Selection,
    Slice,
    SliceSample,
)
from qagate.cases.loading import load_cases
from qagate.evaluators.core import Case, UsageError
from qagate.evaluators.reading import file_hash
from qagate.evaluators.rubric import load_prompt
from qagate.evaluators.statistics.count_table import PREMISE, CountTable
from qagate.evaluators.statistics.metrics import DROP, RISE, USAGE, metrics_of
from qagate.evaluators.text import listed

BUNDLED_LABELS = CASES / "judges"
"""The labelled data sets that come with this package."""


def make_plan(
    files: Sequence[Path], selection: Selection, labelled: Iterable[Path] = ()
) -> Plan:
    """Return the plan; ``labelled`` files only measure the judge. Raises UsageError."""
    datasets = [load_dataset(path) for path in files]
    selection = _checked(datasets, selection, labelled)
    chosen = [_narrow(dataset, selection) for dataset in datasets]
    there = {slice_.name for dataset in chosen for slice_ in dataset.slices.values()}
    for name in map(":".join, selection.prompts):
        if name not in there:
            what = (
                f"{name} is not asked in this run; there are {', '.join(sorted(there))}"
            )
            raise UsageError(f"--prompt: {what}")
    if selection.gates is not None:
        chosen = [*load_gates(selection.gates).put_into(chosen, f"{selection.gates}")]
    if selection.baseline_required:
        chosen = [replace(dataset, baseline_required=True) for dataset in chosen]
    items, samples = dict[str, PlannedItem](), dict[str, SliceSample]()
    for slice_ in (slice_ for dataset in chosen for slice_ in dataset.slices.values()):
        every = load_cases(slice_)
        _check_gates(slice_, chosen, every, selection)
        drawn = sample(every, selection.limit, selection.seed)
        if (count := len(drawn)) < len(every):
            samples[slice_.name] = SliceSample(
                items=count, of=len(every), seed=selection.seed
            )
        for case, repeat in product(drawn, range(1, selection.repeats + 1)):
            key = f"{slice_.dataset}-{slice_.language}-{case.id}" + f"~r{repeat}" * (
                repeat > 1
            )
            item = PlannedItem(key=key, slice=slice_, case=case, repeat=repeat)
            if (other := items.setdefault(key, item)) is not item:
                what = f"item {key!r} is also one of {other.slice.path}; rename an id"
                raise UsageError(f"{slice_.path}: {what}")
    slices = {item.slice.name: item.slice for item in items.values()}
    return Plan(
        datasets=tuple(chosen),
        items=items,
        hashes={name: file_hash(slice_.path) for name, slice_ in slices.items()},
        samples=samples,
        first=selection.first,
        shard=selection.shard,
    )


def _check_gates(
    slice_: Slice,
    datasets: Sequence[Dataset],
    cases: Sequence[Case],
    selection: Selection,
) -> None:
    """Raise UsageError for a gate on a metric that these items can never have."""
    own = (slice_.dataset, slice_.language) in selection.items
    labels = {
        slice_.kind.gold_label(case.label, (case.golds or ("",))[0]) for case in cases
    }
    golds, outcomes = slice_.kind.axes(slice_.labels, labels, ())
    blank = CountTable(
        counts=cast(
            "Any", None
        ),  # not counted: numpy's threads would keep the engine from forking
        golds=golds,
        outcomes=outcomes,
        scores=slice_.rubric.scores if slice_.rubric else {},
        passing=slice_.passing,
        attacks=slice_.attacks,
    )
    there, known = metrics_of(slice_.kind, blank), slice_.kind.ranges(slice_.labels)
    pooled = (
        gate for one in datasets if one.name == slice_.dataset for gate in one.pooled
    )
    for gate in (*slice_.thresholds, *pooled):
        name = gate.of or gate.measure
        if own and name.startswith(PREMISE):
            continue
        if name in known and name not in (*there, *USAGE, DROP, RISE):
            rubric = slice_.rubric.name if slice_.rubric else "the judge"
            why = f"{rubric} gives no scores; add `choice_scores: {{A: 1}}` to dataset.yaml"
            why = why if name == "mean_score" else f"these items have {listed(there)}"
            raise UsageError(f"{slice_.name} {gate.name}: can never be decided: {why}")


def _checked(
    datasets: Sequence[Dataset], selection: Selection, labelled: Iterable[Path]
) -> Selection:
    """Return the selection without labels that only measure the judge. Raises UsageError."""
    known = sorted(dataset.name for dataset in datasets)
    files = (
        *BUNDLED_LABELS.rglob(DATASET_FILE),
        *(labelled if selection.items else ()),
    )
    labels = {path.parent.name for path in files}.difference(known)
    items = {key: path for key, path in selection.items.items() if key[0] not in labels}
    selection = replace(selection, items=items)
    folders = {dataset.name: dataset.folder for dataset in datasets}
    for dataset in datasets:
        if folders[dataset.name] != dataset.folder:
            both = f"{dataset.folder} and {folders[dataset.name]}"
            raise UsageError(
                f"two datasets are named {dataset.name!r}: {both}; rename one folder"
            )
    for name, _ in (*selection.items, *selection.prompts):
        if name not in known:
            what = f"dataset {name!r} is not among those found ({', '.join(known)})"
            advice = "name a folder that holds it, for instance `pytest cases/`"
            raise UsageError(f"{what}; {advice}")
    languages = {language for dataset in datasets for language in dataset.slices}
    languages.update(language for _, language in selection.items)
    for given in selection.languages:
        language, _, split = given.partition("/")
        if language not in languages:
            there = ", ".join(sorted(languages))
            raise UsageError(
                f"--languages: no dataset has {language!r}; there are {there}"
            )
        parts = [one.slices[language] for one in datasets if language in one.slices]
        if split and not any(_split(one, split) for one in parts):
            file = f"a file such as {language}.{split}.jsonl next to the dataset's own"
            raise UsageError(
                f"--languages: no dataset has a split {given!r}; it is {file}"
            )
    return selection


def _narrow(dataset: Dataset, selection: Selection) -> Dataset:
    own = {
        code: path
        for (name, code), path in selection.items.items()
        if name == dataset.name
    }
    for language, path in own.items():
        dataset = with_items(dataset, language, path)
    keep = own if selection.items else dataset.slices
    slices = {key: slice_ for key, slice_ in dataset.slices.items() if key in keep}
    if selection.languages:
        wanted = dict(given.partition("/")[::2] for given in selection.languages)
        found = {
            key: _split(slices[key], wanted[key]) for key in slices if key in wanted
        }
        slices = {key: one for key, one in found.items() if one}
    for (name, language), path in selection.prompts.items():
        if name == dataset.name and language in slices:
            prompt = load_prompt(path, language)
            slices[language] = replace(slices[language], prompt=prompt)
    return replace(dataset, slices=slices)


def _split(slice_: Slice, split: str) -> Slice | None:
    """Return the slice with the file of a split, such as ``be.test.jsonl``; None without one."""
    if not split:
        return slice_
    path = slice_.path
    part = (
        path.with_name(f"{path.stem}.{split}{path.suffix}")
        if NAME.fullmatch(split)
        else None
    )
    return replace(slice_, path=part) if part and part.is_file() else None


def sample(cases: Sequence[Case], limit: int | None, seed: int) -> list[Case]:
    """Return at most ``limit`` cases in their order, chosen by a hash of seed and id."""
    if limit is None or limit >= len(cases):
        return list(cases)
    chosen = {
        case.id
        for case in sorted(cases, key=lambda case: draw_order(case.id, seed))[:limit]
    }
    return [case for case in cases if case.id in chosen]


def draw_order(id_: str, seed: int) -> bytes:
    """Return the hash by which ``sample`` draws: the lowest ones."""
    return hashlib.sha256(f"{seed}:{id_}".encode()).digest()


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
    why_not: str = ""
    """Why there are no items, where there are none."""
    whole: int = 0
    """How many items the file has; ``items`` may be a sample of them."""

    def of(self, slices: Collection[str]) -> "Labelled":
        """Return the same with only those graders that are among these slices."""
        return replace(
            self, graders=tuple(name for name in self.graders if name in slices)
        )

    def planned_in(self, keys: Collection[str]) -> bool:
        """Return whether the plan's ``keys`` have every item: then nothing is added."""
        own = [item.key.removeprefix(PREFIX) for item in self.items]
        return bool(own) and all(key in keys for key in own)


def labelled_for(
    plan: Plan, judged: Sequence[Dataset], limit: int | None = None
) -> tuple[Labelled, ...]:
    """Return what measures the judge of the plan's gated slices.

    Labelled items in its language, judged by its own rubric, measure a slice, if there are any. At
    most ``limit`` are drawn, by a hash of their ids alone: nobody can look for a sample that suits
    a judge. Raises UsageError for a data file that cannot be read.
    """
    found: dict[tuple[str, str, str], Labelled] = {}
    for slice_ in gated(plan):
        language, version = (
            slice_.language,
            slice_.rubric.version if slice_.rubric else None,
        )
        alike = [dataset for dataset in judged if rates(dataset) == slice_.kind.rated]
        known = ((one, one.slices.get(language)) for one in alike)
        same = ((one, own) for one, own in known
                if own and own.rubric and own.rubric.version == version)  # fmt: skip
        dataset, own = next(same, (alike[0] if alike else None, None))
        if dataset is None:
            continue
        key = (dataset.name, language, own.name if own else slice_.name)
        every = load_cases(own) if own and key not in found else []
        where = (
            f"for {version or 'its rubric'}" if language in dataset.slices else "there"
        )
        new = Labelled(
            dataset=dataset,
            language=language,
            items=tuple(
                _labelled(own, case) for case in sample(every, limit, 0) if own
            ),
            why_not="" if own else f"{dataset.name} has no labelled items {where}",
            whole=len(every),
        )
        before = found.get(key, new)
        found[key] = replace(before, graders=(*before.graders, slice_.name))
    return tuple(found.values())


def _labelled(own: Slice, case: Case) -> PlannedItem:
    key = f"{PREFIX}{own.dataset}-{own.language}-{case.id}"
    return PlannedItem(key=key, slice=own, case=case, repeat=1)


def gated(plan: Plan) -> Iterator[Slice]:
    """Yield the slices with items that some gate decides by what a judge says."""
    planned = {item.slice.name for item in plan.items.values()}
    for dataset in plan.datasets:
        for slice_ in dataset.slices.values():
            by_judge = slice_.kind.by_rubric and slice_.name in planned
            gates = (*slice_.thresholds, *dataset.pooled)
            if by_judge and not all(gate.of_usage for gate in gates):
                yield slice_


def rates(dataset: Dataset) -> bool:
    """Return whether the labels of a labelled dataset are ratings."""
    return any(one.rates for one in dataset.slices.values())
