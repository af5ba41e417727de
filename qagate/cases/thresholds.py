"""Thresholds from YAML: the gates of a data set, its extra metrics with their bars, its checks."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from qagate.cases.dataset import (
    AUDIT_SHARE,
    Dataset,
    EvidenceRule,
    Fail,
    Sampling,
    Slice,
    Threshold,
)
from qagate.evaluators import doors
from qagate.evaluators.core import UsageError
from qagate.evaluators.kinds import Kind
from qagate.evaluators.metric_specs import (
    DEEPEVAL_METRICS,
    GEVAL_PREFIX,
    ITEM_FIELDS,
    CheckSpec,
    MetricSpec,
)
from qagate.evaluators.reading import (
    NUMBER,
    Settings,
    Word,
    parse_json,
    problem,
    read_text,
)
from qagate.evaluators.statistics import metrics as metric_rules
from qagate.evaluators.statistics.metrics import (
    DROP,
    RATE,
    RISE,
    USAGE,
    Better,
    Range,
    better_end,
)
from qagate.evaluators.text import hint, shown

Ranges = Mapping[str, Range]
BAR_KEYS = ("min", "max", "evidence")
UNMEASURED_KEY = "unmeasured"
CHANGE_KEYS = ("max", "evidence", "fail", "share")
FAILS: tuple[Fail, ...] = ("margin", "zero")
METRICS_KEY = "metrics"
CHECKS_KEY = "checks"
_CHECK_NAME = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_CHECK_TEXTS = {"regex": "pattern", "json_schema": "schema"}
CHECK_KEYS = ("name", "check", *_CHECK_TEXTS.values())
_GEVAL_NAME = re.compile(rf"{GEVAL_PREFIX}[a-z0-9_]+", re.ASCII)
FIELDS_KEY = "evaluation_params"
GEVAL_KEYS = ("criteria", "steps", FIELDS_KEY, UNMEASURED_KEY, *BAR_KEYS)


def read_gates(gates: Settings, metrics: Ranges) -> tuple[Threshold, ...]:
    """Return a slice's ``gates``, which may name ``metrics``. Raises UsageError."""
    ranges = dict(metrics)
    for name in gates.values:
        if metric_rules.is_repeated(name):
            ranges[name] = RATE
    gates.check_keys(ranges)
    thresholds: list[Threshold] = []
    for metric in gates.values:
        if metric in (DROP, RISE):
            thresholds += _changes(gates, metric, metrics)
            continue
        part = gates.part(metric)
        part.check_keys(BAR_KEYS)
        bars = _bar(part, metric, ranges[metric])
        if not bars:
            raise gates.problem(
                metric, "give min, max or both, for instance {min: 0.35}"
            )
        thresholds += bars
    return tuple(thresholds)


def read_pooled(settings: Settings, metrics: Ranges) -> tuple[Threshold, ...]:
    """Return a data set's ``drop`` and ``rise``, which may name what all its languages have."""
    thresholds: list[Threshold] = []
    for change in (DROP, RISE):
        if change not in settings.values:
            continue
        if change not in metrics:
            raise settings.problem(
                change, "not for kind judged, where the judge is what is tested"
            )
        if settings.part(change).text("pool") != "languages":
            raise settings.problem(
                change, "say 'pool: languages', or put it under gates"
            )
        for threshold in _changes(settings, change, metrics, "pool"):
            thresholds.append(replace(threshold, pool=True))
    return tuple(thresholds)


def _changes(
    holder: Settings, change: str, metrics: Ranges, *more: str
) -> list[Threshold]:
    """Return the margins that ``drop`` or ``rise`` gives: of what passes, and of metrics by name.

    ``more`` are other keys that may stand there.
    """
    bare = holder.values.get(change)
    if isinstance(bare, str) and NUMBER.fullmatch(bare.strip()):
        example = (
            f"{{max: {bare}}}" if change == DROP else f"{{incorrect: {{max: {bare}}}}}"
        )
        raise holder.problem(change, f"write {change}: {example}")
    part = holder.part(change)
    named = [name for name in metrics if name not in (DROP, RISE)]
    part.check_keys((*CHANGE_KEYS, *more, *named))
    of_metrics = [name for name in part.values if name in named]
    margins = []
    if not of_metrics or any(key in part.values for key in CHANGE_KEYS):
        if change == RISE:
            raise holder.problem(
                RISE, "name what must not rise, as in {incorrect: {max: 0.05}}"
            )
        margins.append(_margin(part, change, RATE))
    for name in of_metrics:
        own = part.part(name)
        own.check_keys(CHANGE_KEYS)
        low, high = metrics[name]
        margins.append(_margin(own, change, (0.0, high - low), name))
    return margins


def _margin(part: Settings, change: str, limits: Range, of: str = "") -> Threshold:
    """Return the gate of a ``drop`` or ``rise``: how large it may be, and what shows it.

    ``of`` is the metric that changes; empty for the share that passes. ``max: 20%`` is
    relative to the baseline, and only for time, tokens and cost. Raises UsageError.
    """
    _check_change_harms(part, change, of)
    margin: float | None = None
    if of in USAGE:
        margin = part.share_of("max")
    is_relative = margin is not None
    if margin is None:
        margin = part.number("max", *limits)
    if margin is None:
        message = f"missing; give the largest {change} that is no loss: {{max: 0.05}}"
        raise part.problem("max", message)
    if margin == limits[1]:
        message = f"no {change} is beyond {margin:g}: the gate could never fail"
        raise part.problem("max", message)
    evidence = _word(part, "evidence", _evidence_of_change(change, of), "confident")
    share = part.number("share", 0.01, 1)
    if share is None:
        share = AUDIT_SHARE
    elif evidence != "audited":
        raise part.problem("share", "only with evidence: audited; take it out")
    return Threshold(
        measure=change,
        max=margin,
        share=share,
        evidence=evidence,
        of=of,
        relative=is_relative,
        fail=_word(part, "fail", FAILS, "margin"),
    )


def _check_change_harms(part: Settings, change: str, metric: str) -> None:
    """Raise UsageError for the drop of what should be low, or the rise of what should be high."""
    better = _better_end(metric)
    if change == DROP and better == "less":
        message = f"less {metric} is better; a {RISE} of it is what harms"
        raise part.problem("max", message)
    if change != DROP and better == "more":
        message = f"more {metric} is better; a {DROP} of it is what harms"
        raise part.problem("max", message)


def _evidence_of_change(change: str, metric: str) -> list[EvidenceRule]:
    """Return what may decide whether a metric dropped or rose; empty: the share that passes."""
    rules: list[EvidenceRule] = ["estimate", "confident"]
    if change == DROP and not metric:  # people only say whether an answer passes
        rules.append("audited")
    if not metric or metric_rules.counts_every_item(metric):
        rules.append("sequential")
    return rules


def check_shares(dataset: Dataset, settings: Settings) -> None:
    """Raise UsageError where audited gates of a data set, over the same pairs, draw two shares."""
    thresholds = list(dataset.pooled)
    for slice_ in dataset.slices.values():
        thresholds += slice_.thresholds
    audited = [gate for gate in thresholds if gate.evidence == "audited"]
    shares = sorted({gate.share for gate in audited})
    if len(shares) > 1:
        found = " and ".join(f"{one:g}" for one in shares)
        what = f"audited gates of {dataset.name} have `share: {found}`; give all of them one share"
        raise problem(settings.path, settings.values.line, what)


def read_sampling(settings: Settings) -> Sampling | None:
    """Return the sample that ``sample: {limit: N, seed: S}`` lets decide, if any."""
    if "sample" not in settings.values:
        return None
    part = settings.part("sample")
    part.check_keys(("limit", "seed"), ("limit",))
    limit = part.whole("limit", 1, math.inf)
    return Sampling(limit=limit or 1, seed=part.whole("seed", 0, math.inf) or 0)


def _bar(part: Settings, metric: str, limits: Range) -> list[Threshold]:
    """Return the one gate that ``min``, ``max`` or both give a metric; no gate without them.

    ``limits`` are the lowest and the highest value of the metric. Raises UsageError.
    """
    lowest, highest = limits
    low = part.number("min", lowest, highest)
    high = part.number("max", lowest, highest)
    if low is None and high is None:
        return []
    better = _better_end(metric)
    if low is not None:
        if high is None and better == "less":
            raise part.problem("min", f"less {metric} is better; give max")
        if low == lowest:
            message = f"no {metric} misses {low:g}: the gate could never fail"
            raise part.problem("min", message)
    if high is not None:
        if low is None and better == "more":
            raise part.problem("max", f"more {metric} is better; give min")
        if high == highest:
            message = f"no {metric} misses {high:g}: the gate could never fail"
            raise part.problem("max", message)
    if low is not None and high is not None and low > high:
        message = f"{low:g} is above max, {high:g}; no value can pass"
        raise part.problem("min", message)
    bars = [bar for bar in (low, high) if bar is not None]
    evidence = _word(
        part, "evidence", _evidence_of_bars(metric, bars, limits), "estimate"
    )
    return [Threshold(measure=metric, min=low, max=high, evidence=evidence)]


def _evidence_of_bars(
    metric: str, bars: Sequence[float], limits: Range
) -> list[EvidenceRule]:
    """Return what may decide whether a metric meets its bars."""
    lowest, highest = limits
    is_inside = all(lowest < bar < highest for bar in bars)
    rules: list[EvidenceRule] = ["estimate", "confident"]
    if is_inside and metric_rules.counts_every_item(metric):
        rules.append("sequential")
    if metric == "correct":
        rules.append("corrected")
    return rules


def _better_end(metric: str) -> Better:
    """Return which end of a metric's range is the better one, of deepeval's as well."""
    if metric in DEEPEVAL_METRICS:
        return "more"
    return better_end(metric)


def _word(part: Settings, key: str, known: Sequence[Word], default: Word) -> Word:
    word = part.text(key, default)
    if (found := next((one for one in known if one == word), None)) is None:
        raise part.problem(
            key, f"{' or '.join(map(repr, known))} is needed, not {word!r}"
        )
    return found


def read_metrics(holder: Settings, kind: Kind) -> tuple[MetricSpec, ...]:
    """Return the deepeval metrics that are named, in order. Raises UsageError."""
    metrics = holder.part(METRICS_KEY)
    if metrics.values and not kind.answered:
        raise holder.problem(
            METRICS_KEY, f"not for kind {kind}: no model answers; take it out"
        )
    found = []
    for name in metrics.values:
        part = metrics.part(name)
        if name in DEEPEVAL_METRICS:
            part.check_keys((*BAR_KEYS, UNMEASURED_KEY))
            found.append(MetricSpec(name=name, unmeasured=part.flag(UNMEASURED_KEY)))
            continue
        if not _GEVAL_NAME.fullmatch(name):
            known = [
                *DEEPEVAL_METRICS,
                f"{GEVAL_PREFIX}NAME (with criteria of your own)",
            ]
            raise metrics.problem(name, f"no metric; {hint(name, known)}")
        part.check_keys(GEVAL_KEYS)
        criteria, steps, fields = (
            part.text("criteria"),
            part.words("steps"),
            part.words(FIELDS_KEY),
        )
        if not criteria and not steps:
            raise metrics.problem(name, "give criteria, in words, or steps, as a list")
        if not fields:
            what = f"missing; name what of an item is shown: {', '.join(ITEM_FIELDS)}"
            raise part.problem(FIELDS_KEY, what)
        if odd := next((field for field in fields if field not in ITEM_FIELDS), ""):
            raise part.problem(FIELDS_KEY, f"{odd!r}: {hint(odd, ITEM_FIELDS)}")
        found.append(
            MetricSpec(
                name=name,
                criteria=criteria,
                steps=steps,
                fields=fields,
                unmeasured=part.flag(UNMEASURED_KEY),
            )
        )
    return tuple(found)


def read_checks(settings: Settings, kind: Kind) -> tuple[CheckSpec, ...]:
    """Return the checks that a data set lists. Raises UsageError for one that cannot be made."""
    parts = settings.parts(CHECKS_KEY)
    if parts and not kind.answered:
        raise settings.problem(
            CHECKS_KEY, f"not for kind {kind}: no model answers; take it out"
        )
    if not parts and kind.by_checks:
        raise settings.problem(
            CHECKS_KEY, "missing; list one: [{name: form, check: exact}]"
        )
    found: dict[str, CheckSpec] = {}
    for part in parts:
        check = _check(part)
        if found.setdefault(check.name, check) is not check:
            raise part.problem(
                key="name", message=f"{check.name!r} stands twice; rename one"
            )
    return tuple(found.values())


def _check(part: Settings) -> CheckSpec:
    part.check_keys(CHECK_KEYS, ("name", "check"))
    name, check = part.text("name"), part.text("check")
    if not _CHECK_NAME.fullmatch(name):
        raise part.problem(
            key="name", message=f"{shown(name)}: a to z, 0 to 9 and _ are needed"
        )
    needed = _CHECK_TEXTS.get(check, "")
    for key in _CHECK_TEXTS.values():
        if key in part.values and key != needed:
            raise part.problem(key, f"means nothing to check {check}; take it out")
    text = part.text(needed) if needed else ""
    if needed and not text:
        raise part.problem(key=needed, message=f"missing; check {check} needs it")
    if needed == "schema":
        text = _schema_text(part.path.parent / text)
    spec = CheckSpec(name=name, check=check, text=text)
    load_check = doors.load_check_loader()
    try:
        load_check(spec)
    except UsageError as error:
        raise part.problem(needed or "check", str(error)) from None
    return spec


def _schema_text(path: Path) -> str:
    """Return a schema's file as JSON text. Raises UsageError if it cannot be read."""
    try:
        schema = parse_json(read_text(path))
    except ValueError as error:
        raise UsageError(f"{path}: no JSON: {error}") from None
    return json.dumps(schema, sort_keys=True)


def read_metric_bars(holder: Settings, *gates: Settings) -> tuple[Threshold, ...]:
    """Return the thresholds that the metrics themselves declare, such as ``{min: 0.7}``."""
    metrics = holder.part(METRICS_KEY)
    found = []
    for name in metrics.values:
        part = metrics.part(name)
        bar = _bar(part, name, RATE)
        if not bar and "evidence" in part.values:
            raise part.problem(
                key="evidence", message="there is no bar; give min or max as well"
            )
        if bar and any(name in one.values for one in gates):
            raise metrics.problem(name, "has a bar here and under gates; keep one")
        found += bar
    return tuple(found)


def ranges_of(slice_: Slice) -> dict[str, Range]:
    """Return what a slice's gates may name: the metrics of its kind, and its own (0 to 1)."""
    own = {metric.name: RATE for metric in slice_.metrics}
    own |= {check.metric: RATE for check in slice_.checks}
    return {**slice_.kind.ranges(slice_.labels), **own}
