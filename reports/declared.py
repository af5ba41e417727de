"""What datasets declared, as data of ``run.json``: enough to decide on their gates again."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from cases.dataset import Dataset, Slice, Threshold
from evaluators.core import CORRECT, GRADES, Kind
from evaluators.extra_metrics import MetricSpec
from evaluators.rubric import Protocol, Rubric
from reports.codec import decode


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredSlice:
    """A slice without its data and texts; ``protocol`` is None where nothing judges it."""

    language: str
    file: str
    rules: tuple[Threshold, ...] = ()
    pass_bar: int = 6
    penalty: float = 1.0
    by: tuple[str, ...] = ()
    floor: Mapping[str, float] = field(default_factory=dict)
    metrics: tuple[str, ...] = ()
    declared: bool = True
    rubric: str = ""
    protocol: Protocol | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    labels: tuple[str, ...] = GRADES
    passing: tuple[str, ...] = (CORRECT,)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeclaredDataset:
    """A dataset whose slices are in the order of its file."""

    name: str
    kind: Kind
    slices: tuple[DeclaredSlice, ...]
    pooled: tuple[Threshold, ...] = ()
    holm: bool = False
    require_calibration: bool = False


def dump(datasets: Sequence[Dataset]) -> list[dict[str, object]]:
    """Return the datasets as JSON data that ``load`` reads back."""
    found = [asdict(_declared(dataset)) for dataset in datasets]
    for slice_ in (one for dataset in found for one in dataset["slices"]):
        if slice_["labels"] == GRADES:  # not written, as in every run before there were others
            del slice_["labels"], slice_["passing"]
    return found


def load(values: Sequence[object]) -> tuple[Dataset, ...]:
    """Return the datasets; a rubric has its version, protocol and scores, and no text.

    Raises ValueError where the data is not what ``dump`` returns.
    """
    return tuple(_dataset(decode(DeclaredDataset, value)) for value in values)


def _declared(dataset: Dataset) -> DeclaredDataset:
    return DeclaredDataset(
        name=dataset.name,
        kind=dataset.kind,
        slices=tuple(map(_declared_slice, dataset.slices.values())),
        pooled=dataset.pooled,
        holm=dataset.holm,
        require_calibration=dataset.require_calibration,
    )


def _declared_slice(slice_: Slice) -> DeclaredSlice:
    rubric = slice_.rubric
    return DeclaredSlice(
        language=slice_.language,
        file=slice_.path.name,
        rules=slice_.rules,
        pass_bar=slice_.pass_bar,
        penalty=slice_.penalty,
        by=slice_.by,
        floor=dict(slice_.floor),
        metrics=tuple(metric.name for metric in slice_.metrics),
        declared=slice_.declared,
        rubric=rubric.version if rubric else "",
        protocol=rubric.protocol if rubric else None,
        scores=dict(rubric.scores) if rubric else {},
        labels=slice_.labels,
        passing=slice_.passing,
    )


def _dataset(known: DeclaredDataset) -> Dataset:
    return Dataset(
        name=known.name,
        folder=Path(known.name),
        kind=known.kind,
        slices={one.language: _slice(known, one) for one in known.slices},
        pooled=known.pooled,
        holm=known.holm,
        require_calibration=known.require_calibration,
    )


def _slice(dataset: DeclaredDataset, one: DeclaredSlice) -> Slice:
    return Slice(
        dataset=dataset.name,
        language=one.language,
        kind=dataset.kind,
        path=Path(one.file),
        rubric=_rubric(one),
        rules=one.rules,
        pass_bar=one.pass_bar,
        penalty=one.penalty,
        by=one.by,
        floor=one.floor,
        metrics=tuple(MetricSpec(name=name) for name in one.metrics),
        declared=one.declared,
    )


def _rubric(one: DeclaredSlice) -> Rubric | None:
    if one.protocol is None:
        return None
    return Rubric(
        name=one.rubric.partition(".")[0],
        language=one.language,
        protocol=one.protocol,
        system="",
        user="",
        version=one.rubric,
        scores=one.scores,
        labels=one.labels,
        passing=one.passing,
    )
