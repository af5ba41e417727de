"""A gates file: thresholds in addition to those of the data sets, or in place of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from cases.config import DATASET_KEYS, FILE
from cases.dataset import Dataset, Sampling, Slice, Threshold
from cases.thresholds import check_shares, ranges_of, read_gates, read_pooled, read_sampling
from evaluators.answer_checks import CHECK, GEVAL, METRICS
from evaluators.core import UsageError
from evaluators.kinds import KINDS
from evaluators.reading import Map, Settings, load_settings
from evaluators.statistics.metrics import DROP, LABEL_SHARE, RATE, RISE, Range, is_repeated
from evaluators.text import hint

REPLACE = "replace"
Gates = tuple[Threshold, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class DatasetGates:
    """What the file says of one data set."""

    languages: Mapping[str, Gates] = field(default_factory=dict)
    pooled: Gates = ()
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
    every = {name: limits for kind in KINDS.values() for name, limits in kind.ranges().items()}
    every.update(dict.fromkeys((*METRICS, *own), RATE))
    found = {}
    for name in (name for name in top.values if name != REPLACE):
        part = top.part(name)
        languages = [key for key in part.values if key not in (DROP, RISE, "sample")]
        if odd := next((key for key in languages if key in DATASET_KEYS), ""):
            raise part.problem(odd, f"not for a gates file; it belongs in the {FILE} of {name}")
        parts = {language: part.part(language) for language in languages}
        found[name] = DatasetGates(
            languages={one: read_gates(at, every | _own_metrics(at)) for one, at in parts.items()},
            pooled=read_pooled(part, every | _own_metrics(part)),
            sampling=read_sampling(part),
            settings=part,
        )
    return GatesFile(datasets=found, replaces_all=REPLACE in top.values)


def _own_metrics(part: Settings) -> dict[str, Range]:
    """Return the metrics named here that only a user's own data set can have."""
    changes = [part.part(change) for change in (DROP, RISE) if change in part.values]
    names = (name for one in (part, *changes) for name in one.values)
    own = (one for one in names if one.startswith((GEVAL, LABEL_SHARE, CHECK)))
    return dict.fromkeys(own, RATE)


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
    left_out, laxer = list(dataset.left_out), list(dataset.laxer)

    def merged(name: str, before: Gates, new: Gates) -> Gates:
        """Return what stays and what is new."""
        others = [one for one in before if one.name not in {gate.name for gate in new}]
        if gates.replaces_all:
            left_out.extend(f"{name} {one.name} {one.bar}" for one in others)
        for old in before:
            same = [one for one in new if one.name == old.name]
            if same and all(one.is_laxer(old) for one in same):
                laxer.append(f"{name} {same[0].text} in place of {old.text}")
        return new if gates.replaces_all else (*others, *new)

    slices = {
        code: replace(one, thresholds=merged(one.name, one.thresholds, own.languages.get(code, ())))
        for code, one in dataset.slices.items()
    }
    made = replace(
        dataset,
        slices=slices,
        pooled=merged(f"{dataset.name}:*", dataset.pooled, own.pooled),
        sampling=own.sampling or dataset.sampling,
        left_out=tuple(left_out),
        laxer=tuple(laxer),
    )
    check_shares(made, own.settings)
    return made


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
