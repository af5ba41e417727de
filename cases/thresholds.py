"""Thresholds from YAML: gates of a dataset.yaml, bars beside its metrics, and gates files."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast, get_args

from cases.dataset import Dataset, Evidence, Slice, Threshold
from evaluators.core import UsageError
from evaluators.extra_metrics import FIELDS, GEVAL, METRICS, MetricSpec
from evaluators.kinds import KINDS, Kind
from evaluators.settings import Settings, load_settings
from evaluators.statistics.metrics import DROP, LABEL_SHARE, RATE, Range
from evaluators.text import hint

BAR_KEYS = ("min", "max", "evidence")
METRICS_KEY = "metrics"
_GEVAL_NAME = re.compile(rf"{GEVAL}[a-z0-9_]+", re.ASCII)
_GEVAL_KEYS = ("criteria", "steps", "evaluation_params", *BAR_KEYS)

Gates = Mapping[str, Mapping[str, tuple[Threshold, ...]]]
"""Thresholds by dataset and language."""


def read_gates(gates: Settings, metrics: Mapping[str, Range]) -> tuple[Threshold, ...]:
    """Return the thresholds of one slice's ``gates`` in their order.

    ``metrics`` are those that it may name. Raises UsageError for any other, or for a threshold
    out of its range.
    """
    gates.check_keys(metrics)
    found = []
    for metric in gates.values:
        part = gates.part(metric)
        if metric == DROP:
            found.append(_drop(gates, part, metrics[DROP]))
            continue
        part.check_keys(BAR_KEYS)
        threshold = _bar(part, metric, metrics[metric])
        if threshold is None:
            raise gates.problem(metric, "give min, max or both, for instance {min: 0.35}")
        found.append(threshold)
    return tuple(found)


def read_pooled(settings: Settings, kind: Kind) -> tuple[Threshold, ...]:
    """Return the threshold of a dataset's own ``drop``, which puts all languages together."""
    if DROP not in settings.values:
        return ()
    if DROP not in kind.ranges():
        raise settings.problem(DROP, f"not a measure of kind {kind}")
    part = settings.part(DROP)
    if part.text("pool") != "languages":
        raise settings.problem(DROP, "say 'pool: languages', or put it under a language's gates")
    return (_drop(settings, part, kind.ranges()[DROP], pool=True),)


def _drop(settings: Settings, part: Settings, limits: Range, *, pool: bool = False) -> Threshold:
    part.check_keys(("max", "evidence", "pool") if pool else ("max", "evidence"))
    margin = part.number("max", *limits)
    if margin is None:
        raise settings.problem(DROP, "give max, the largest drop that is no loss: {max: 0.05}")
    return Threshold(measure=DROP, max=margin, evidence=_evidence(part, "confident"), pool=pool)


def _bar(part: Settings, metric: str, limits: Range) -> Threshold | None:
    """Return what ``min``, ``max`` and ``evidence`` say; None without a bar."""
    low, high = (part.number(key, *limits) for key in ("min", "max"))
    if low is None and high is None:
        return None
    if low is not None and high is not None and low > high:
        raise part.problem(key="min", what=f"{low:g} is above max, {high:g}; no value can pass")
    return Threshold(measure=metric, min=low, max=high, evidence=_evidence(part, "estimate"))


def _evidence(part: Settings, default: Evidence) -> Evidence:
    word = part.text("evidence", default)
    if word not in get_args(Evidence):
        what = f"'estimate' or 'confident' is needed, not {word!r}"
        raise part.problem(key="evidence", what=what)
    return cast("Evidence", word)


def read_metrics(holder: Settings, kind: Kind) -> tuple[MetricSpec, ...]:
    """Return the deepeval metrics that a data set or a language names, in their order.

    Raises UsageError for one that is not known, or where no model answers.
    """
    metrics = holder.part(METRICS_KEY)
    if metrics.values and not kind.answered:
        what = f"not for kind {kind}: no model answers there; take it out"
        raise holder.problem(METRICS_KEY, what)
    return tuple(_metric(metrics, name) for name in metrics.values)


def _metric(metrics: Settings, name: str) -> MetricSpec:
    part = metrics.part(name)
    if name in METRICS:
        part.check_keys(BAR_KEYS)
        return MetricSpec(name=name)
    if not _GEVAL_NAME.fullmatch(name):
        known = [*METRICS, f"{GEVAL}NAME (with criteria of your own)"]
        raise metrics.problem(name, f"no metric; {hint(name, known)}")
    part.check_keys(_GEVAL_KEYS)
    fields = part.words("evaluation_params")
    if not part.text("criteria") and not part.words("steps"):
        raise metrics.problem(name, "give criteria, in words, or steps, as a list")
    if not fields:
        what = f"missing; name what of an item is shown: {', '.join(FIELDS)}"
        raise part.problem(key="evaluation_params", what=what)
    for field in fields:
        if field not in FIELDS:
            raise part.problem(key="evaluation_params", what=f"{field!r}: {hint(field, FIELDS)}")
    return MetricSpec(
        name=name, criteria=part.text("criteria"), steps=part.words("steps"), fields=fields
    )


def read_metric_bars(holder: Settings, gates: Settings) -> tuple[Threshold, ...]:
    """Return the thresholds that stand beside the metrics themselves, such as ``{min: 0.7}``."""
    metrics = holder.part(METRICS_KEY)
    found = []
    for name in metrics.values:
        part = metrics.part(name)
        threshold = _bar(part, name, RATE)
        if threshold is None and "evidence" in part.values:
            raise part.problem(key="evidence", what="there is no bar; give min or max as well")
        if threshold is not None and name in gates.values:
            raise metrics.problem(name, "has a bar here and under gates; keep one")
        found += [threshold] if threshold else []
    return tuple(found)


def ranges_of(slice_: Slice) -> dict[str, Range]:
    """Return what a slice's gates may name: its kind's metrics, and its own, all within 0 to 1."""
    own = {metric.name: RATE for metric in slice_.metrics}
    return {**slice_.kind.ranges(slice_.labels), **own}


def load_gates(path: Path) -> Gates:
    """Return the thresholds of a gates file: ``dataset: {language: {metric: {min: …}}}``.

    Raises UsageError naming file, line and key.
    """
    every = {name: limits for kind in KINDS.values() for name, limits in kind.ranges().items()}
    every.update(dict.fromkeys(METRICS, RATE))
    top = load_settings(path)
    found: dict[str, dict[str, tuple[Threshold, ...]]] = {}
    for name in top.values:
        found[name] = {}
        for language in top.part(name).values:
            part = top.part(name).part(language)
            own = [metric for metric in part.values if metric.startswith((GEVAL, LABEL_SHARE))]
            found[name][language] = read_gates(part, {**every, **dict.fromkeys(own, RATE)})
    return found


def with_gates(dataset: Dataset, gates: Gates) -> Dataset:
    """Return the data set with these gates in place of all its own.

    Raises UsageError for a language that it does not have, or a metric of another kind.
    """
    own = gates.get(dataset.name, {})
    for language, thresholds in own.items():
        slice_ = dataset.slices.get(language)
        if slice_ is None:
            problem = f"no such language here; {hint(language, dataset.slices)}"
        else:
            problem = _misfit(thresholds, dataset.kind, ranges_of(slice_))
        if problem:
            msg = f"--gates: {dataset.name}: {language}: {problem}"
            raise UsageError(msg)
    slices = {
        language: replace(slice_, thresholds=own.get(language, ()))
        for language, slice_ in dataset.slices.items()
    }
    return replace(dataset, slices=slices, pooled=())


def _misfit(thresholds: Sequence[Threshold], kind: Kind, metrics: Mapping[str, Range]) -> str:
    """Return what is wrong with thresholds over these metrics, ``""`` where nothing is."""
    for threshold in thresholds:
        name = threshold.measure
        if name not in metrics:
            return f"{name!r} is no measure of kind {kind}; {hint(name, metrics)}"
        low, high = metrics[name]
        for bar in (threshold.min, threshold.max):
            if bar is not None and not low <= bar <= high:
                return f"{name}: {bar:g} is not within {low:g} to {high:g}"
    return ""
