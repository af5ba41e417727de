"""A gates file: thresholds in addition to those of the data sets, or in place of them."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cases.config import DATASET_KEYS, FILE
from cases.dataset import Dataset, Sampling, Slice, Threshold
from cases.thresholds import check_shares, ranges_of, read_gates, read_pooled, read_sampling
from evaluators.core import UsageError
from evaluators.extra_metrics import CHECK, GEVAL, METRICS
from evaluators.kinds import KINDS
from evaluators.reading import Map, Settings, load_settings
from evaluators.statistics.metrics import DROP, LABEL_SHARE, RATE, RISE, Range, is_repeated
from evaluators.text import hint

REPLACE = "replace"
_DATASET_KEYS = (DROP, RISE, "sample")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetGates:
    """What the file says of one data set."""

    languages: Mapping[str, tuple[Threshold, ...]] = field(default_factory=dict)
    pooled: tuple[Threshold, ...] = ()
    sampling: Sampling | None = None
    settings: Settings = field(default_factory=lambda: Settings(Path("--gates"), "", Map(1)))
    """Where it says so, for messages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GatesFile:
    """The gates by data set."""

    datasets: Mapping[str, DatasetGates]
    replaces_all: bool = False
    """Whether no other gate of any data set stays."""

    def check_names(self, names: Sequence[str], where: str) -> None:
        """Raise UsageError where none of these data sets is named."""
        if not set(self.datasets) & set(names):
            there = ", ".join(names)
            what = f"{where}: no gate for any dataset of this run ({there}); name one of them"
            raise UsageError(what)


def load_gates(path: Path, own: Sequence[str] = ()) -> GatesFile:
    """Return the gates of a file: ``dataset: {language: {metric: {min: …}}}``.

    ``own`` are more metrics, 0 to 1, that it may name. A data set may also have pooled ``drop`` and
    ``rise`` and a ``sample``; the file may have ``replace: all``. Raises UsageError.
    """
    top = load_settings(path)
    word = top.text(REPLACE, "all")
    if word != "all":
        raise top.problem(REPLACE, f"'all' is needed, not {word!r}; or take the line out")
    names = [name for name in top.values if name != REPLACE]
    found = {name: _dataset_gates(top.part(name), own) for name in names}
    return GatesFile(datasets=found, replaces_all=REPLACE in top.values)


def _dataset_gates(part: Settings, more: Sequence[str]) -> DatasetGates:
    every = {name: limits for kind in KINDS.values() for name, limits in kind.ranges().items()}
    every.update(dict.fromkeys((*METRICS, *more), RATE))
    languages = [key for key in part.values if key not in _DATASET_KEYS]
    if odd := next((key for key in languages if key in DATASET_KEYS), ""):
        raise part.problem(odd, f"not for a gates file; it belongs in the {FILE} of {part.name}")
    return DatasetGates(
        languages={
            language: read_gates(own, {**every, **_own_metrics(own)})
            for language, own in ((one, part.part(one)) for one in languages)
        },
        pooled=read_pooled(part, {**every, **_own_metrics(part)}),
        sampling=read_sampling(part),
        settings=part,
    )


def _own_metrics(part: Settings) -> dict[str, Range]:
    """Return the metrics named here that only a user's own data set can have."""
    changes = [part.part(change) for change in (DROP, RISE) if change in part.values]
    names = (name for one in (part, *changes) for name in one.values)
    return dict.fromkeys(
        (one for one in names if one.startswith((GEVAL, LABEL_SHARE, CHECK))), RATE
    )


def with_gates(dataset: Dataset, gates: GatesFile) -> Dataset:
    """Return the data set with these gates, ``left_out`` and ``laxer`` noted. Raises UsageError."""
    own = gates.datasets.get(dataset.name, DatasetGates())
    for language in own.languages:
        if language not in dataset.slices:
            what = f"no such language here; {hint(language, dataset.slices)}"
            raise own.settings.problem(language, what)
    for language, slice_ in dataset.slices.items():
        for threshold in own.languages.get(language, ()):
            _check_fit(threshold, slice_, own.settings.part(language))
        for threshold in own.pooled:
            _check_fit(threshold, slice_, own.settings)
    slices, left_out = {}, list(dataset.left_out)
    laxer = [*dataset.laxer, *_laxer(f"{dataset.name}:*", dataset.pooled, own.pooled)]
    for language, slice_ in dataset.slices.items():
        mine = own.languages.get(language, ())
        kept, gone = _split(slice_.thresholds, mine, gates)
        slices[language] = replace(slice_, thresholds=(*kept, *mine))
        left_out += (f"{slice_.name} {one.name} {one.bar}" for one in gone)
        laxer += _laxer(slice_.name, slice_.thresholds, mine)
    kept, gone = _split(dataset.pooled, own.pooled, gates)
    left_out += (f"{dataset.name}:* {one.name} {one.bar}" for one in gone)
    made = replace(
        dataset,
        slices=slices,
        pooled=(*kept, *own.pooled),
        sampling=own.sampling or dataset.sampling,
        left_out=tuple(left_out),
        laxer=tuple(laxer),
    )
    check_shares(made, own.settings)
    return made


def _laxer(name: str, before: Sequence[Threshold], own: Sequence[Threshold]) -> Iterator[str]:
    for old in before:
        new = [one for one in own if one.name == old.name]
        if new and all(one.is_laxer(old) for one in new):
            yield f"{name} {new[0].text} in place of {old.text}"


def _split(
    before: Sequence[Threshold], own: Sequence[Threshold], gates: GatesFile
) -> tuple[list[Threshold], list[Threshold]]:
    named = {one.name for one in own}
    others = [one for one in before if one.name not in named]
    return ([], others) if gates.replaces_all else (others, [])


def _check_fit(threshold: Threshold, slice_: Slice, part: Settings) -> None:
    metrics, name = ranges_of(slice_), threshold.of or threshold.measure
    place = part.part(threshold.measure) if threshold.of else part
    if is_repeated(name) and not threshold.of:
        metrics[name] = RATE
    if threshold.paired and DROP not in metrics:
        place, name = part, threshold.measure
    if name not in metrics:
        what = f"no metric of {slice_.name} (kind {slice_.kind}); {hint(name, metrics)}"
        raise place.problem(name, what)
    low, high = (0.0, metrics[name][1] - metrics[name][0]) if threshold.of else metrics[name]
    for bar in (threshold.min, threshold.max):
        if bar is not None and not low <= bar <= high:
            raise place.problem(name, f"{bar:g} is not within {low:g} to {high:g}")
