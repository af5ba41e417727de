"""Thresholds from YAML: which measures each kind of dataset has, and the rules over them."""

import re
from collections.abc import Mapping, Sequence

from cases.dataset import Evidence, Threshold
from evaluators.core import Kind
from evaluators.extra_metrics import FIELDS, GEVAL, KINDS, METRICS, MetricSpec
from evaluators.settings import Settings
from evaluators.statistics.metrics import DROP, RATE, Range, gate_ranges
from evaluators.text import hint

BAR_KEYS = ("min", "max", "evidence")


def rules_of(gates: Settings, measures: Mapping[str, Range]) -> tuple[Threshold, ...]:
    """Return the rules of one slice's ``gates`` in their order.

    Raises UsageError for a measure that is not among these, or a threshold out of its range.
    """
    gates.check_keys(measures)
    return tuple(_rule(gates, measure, measures[measure]) for measure in gates.values)


def pooled_rule(settings: Settings, limits: Range) -> Threshold:
    """Return the rule of a dataset's own ``drop``, which puts all languages together."""
    part = settings.part(DROP)
    if part.text("pool") != "languages":
        what = "say 'pool: languages', or put it under a language's gates"
        raise settings.problem(DROP, what)
    return _drop(settings, part, limits, pool=True)


def check_measures(
    rules: tuple[Threshold, ...], kind: Kind, extra: Mapping[str, Range] | None = None
) -> str:
    """Return what is wrong with rules for a slice of this kind, ``""`` where nothing is.

    ``extra`` are the slice's own measures beside those of its kind.
    """
    measures = {**gate_ranges(kind), **(extra or {})}
    for rule in rules:
        if rule.measure not in measures:
            return f"{rule.measure!r} is no measure of kind {kind}; {hint(rule.measure, measures)}"
        low, high = measures[rule.measure]
        for bar in (rule.min, rule.max):
            if bar is not None and not low <= bar <= high:
                return f"{rule.measure}: {bar:g} is not within {low:g} to {high:g}"
    return ""


def _rule(gates: Settings, measure: str, limits: Range) -> Threshold:
    part = gates.part(measure)
    if measure == DROP:
        return _drop(gates, part, limits, pool=False)
    part.check_keys(BAR_KEYS)
    rule = bar_rule(part, measure, limits)
    if rule is None:
        raise gates.problem(measure, "give min, max or both, for instance {min: 0.35}")
    return rule


def bar_rule(part: Settings, measure: str, limits: Range) -> Threshold | None:
    """Return the rule that ``min``, ``max`` and ``evidence`` of a part say; None without a bar."""
    low, high = (part.number(key, *limits) for key in ("min", "max"))
    if low is None and high is None:
        return None
    if low is not None and high is not None and low > high:
        raise part.problem(key="min", what=f"{low:g} is above max, {high:g}; no value can pass")
    return Threshold(measure=measure, min=low, max=high, evidence=_evidence(part, "estimate"))


def _drop(settings: Settings, part: Settings, limits: Range, *, pool: bool) -> Threshold:
    part.check_keys(("max", "evidence", "pool") if pool else ("max", "evidence"))
    margin = part.number("max", *limits)
    if margin is None:
        raise settings.problem(DROP, "give max, the largest drop that is no loss: {max: 0.05}")
    return Threshold(measure=DROP, max=margin, evidence=_evidence(part, "confident"), pool=pool)


def _evidence(part: Settings, default: Evidence) -> Evidence:
    word = part.text("evidence", default)
    if word == "estimate":
        return "estimate"
    if word == "confident":
        return "confident"
    raise part.problem(key="evidence", what=f"'estimate' or 'confident' is needed, not {word!r}")


KEY = "metrics"
_GEVAL_NAME = re.compile(rf"{GEVAL}[a-z0-9_]+", re.ASCII)
_OWN_KEYS = ("criteria", "steps", "evaluation_params", *BAR_KEYS)


def metrics_of(holder: Settings, kind: Kind) -> tuple[MetricSpec, ...]:
    """Return the metrics that a dataset or a language names, in their order.

    Raises UsageError for one that is not known, or where no model answers.
    """
    metrics = holder.part(KEY)
    if metrics.values and kind not in KINDS:
        raise holder.problem(KEY, f"not for kind {kind}: no model answers there; take it out")
    return tuple(_metric(metrics, name) for name in metrics.values)


def metric_rules(holder: Settings, gates: Settings) -> tuple[Threshold, ...]:
    """Return the rules that stand beside the metrics themselves, such as ``{min: 0.7}``."""
    metrics = holder.part(KEY)
    rules = (_metric_rule(metrics, name, gates) for name in metrics.values)
    return tuple(rule for rule in rules if rule)


def ranges(metrics: Sequence[MetricSpec]) -> dict[str, Range]:
    """Return what a threshold can be for each metric: all of deepeval's lie within 0 to 1."""
    return {metric.name: RATE for metric in metrics}


def _metric(metrics: Settings, name: str) -> MetricSpec:
    part = metrics.part(name)
    if name in METRICS:
        part.check_keys(BAR_KEYS)
        return MetricSpec(name=name)
    if not _GEVAL_NAME.fullmatch(name):
        known = [*METRICS, f"{GEVAL}NAME (with criteria of your own)"]
        raise metrics.problem(name, f"no metric; {hint(name, known)}")
    part.check_keys(_OWN_KEYS)
    made = MetricSpec(
        name=name,
        criteria=part.text("criteria"),
        steps=part.words("steps"),
        fields=part.words("evaluation_params"),
    )
    if not made.criteria and not made.steps:
        raise metrics.problem(name, "give criteria, in words, or steps, as a list")
    if not made.fields:
        what = f"missing; name what of an item is shown: {', '.join(FIELDS)}"
        raise part.problem(key="evaluation_params", what=what)
    for field in made.fields:
        if field not in FIELDS:
            raise part.problem(key="evaluation_params", what=f"{field!r}: {hint(field, FIELDS)}")
    return made


def _metric_rule(metrics: Settings, name: str, gates: Settings) -> Threshold | None:
    part = metrics.part(name)
    rule = bar_rule(part, name, RATE)
    if rule is None and "evidence" in part.values:
        raise part.problem(key="evidence", what="there is no bar; give min or max as well")
    if rule is not None and name in gates.values:
        raise metrics.problem(name, "has a bar here and under gates; keep one")
    return rule
