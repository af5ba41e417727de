"""The labelled items that measure a run's judge, for each slice whose gates hang on it."""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from cases.dataset import load_cases
from cases.plan import Item, Plan
from cases.slices import Dataset, Slice

PREFIX = "calibration:"
"""Before the key of an item that is judged beside the plan; no planned key holds a colon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """One language of a labelled dataset, and the ``graders``: slices whose judge it measures.

    ``items`` is empty where the dataset has none for that language, or only ones that are judged
    by another rubric; ``why_not`` says so.
    """

    dataset: Dataset
    language: str
    graders: tuple[str, ...]
    items: tuple[Item, ...] = ()
    why_not: str = ""

    def of(self, slices: Collection[str]) -> "Labelled":
        """Return the same with only those graders that are among these slices."""
        return replace(self, graders=tuple(name for name in self.graders if name in slices))

    def planned_in(self, keys: Collection[str]) -> bool:
        """Return whether the plan's ``keys`` hold every item: then nothing is to be added."""
        own = [item.key.removeprefix(PREFIX) for item in self.items]
        return bool(own) and all(key in keys for key in own)


def labelled_for(plan: Plan, judged: Sequence[Dataset]) -> tuple[Labelled, ...]:
    """Return what measures the judge of the plan's gated slices, every item of it.

    A slice is measured by labels in its language that are judged by its own rubric. Slices without
    any labelled dataset of their kind are left out. Raises UsageError for a data file that cannot
    be read.
    """
    found: dict[tuple[str, str, str], Labelled] = {}
    for slice_ in gated(plan):
        dataset, own = _measuring(slice_, judged)
        if dataset is None:
            continue
        key = (dataset.name, slice_.language, own.name if own else slice_.name)
        before = found.get(key) or _labelled(dataset, slice_, own)
        found[key] = replace(before, graders=(*before.graders, slice_.name))
    return tuple(found.values())


def gated(plan: Plan) -> Iterator[Slice]:
    """Yield the slices with items that some gate decides by what a judge says."""
    there = {item.slice.name for item in plan.items.values()}
    for dataset in plan.datasets:
        for slice_ in dataset.slices.values():
            asked = slice_.kind in ("graded", "rated") and slice_.name in there
            if asked and (slice_.rules or dataset.pooled):
                yield slice_


def _measuring(slice_: Slice, judged: Iterable[Dataset]) -> tuple[Dataset | None, Slice | None]:
    """Return the labelled dataset of this slice's kind, and its slice for this rubric, if any."""
    alike = [dataset for dataset in judged if _rates(dataset) == (slice_.kind == "rated")]
    for dataset in alike:
        own = dataset.slices.get(slice_.language)
        if own and own.rubric and slice_.rubric and own.rubric.version == slice_.rubric.version:
            return dataset, own
    return (alike[0] if alike else None), None


def _rates(dataset: Dataset) -> bool:
    rubrics = [one.rubric for one in dataset.slices.values() if one.rubric]
    return any(rubric.protocol == "rate" for rubric in rubrics)


def _labelled(dataset: Dataset, slice_: Slice, own: Slice | None) -> Labelled:
    language = slice_.language
    if own is None:
        other = language in dataset.slices
        rubric = slice_.rubric.version if slice_.rubric else "its rubric"
        why_not = f"{dataset.name} has no labelled items {'for ' + rubric if other else 'there'}"
        return Labelled(dataset=dataset, language=language, graders=(), why_not=why_not)
    items = tuple(
        Item(key=f"{PREFIX}{own.dataset}-{language}-{case.id}", slice=own, case=case, repeat=1)
        for case in load_cases(own)
    )
    return Labelled(dataset=dataset, language=language, graders=(), items=items)
