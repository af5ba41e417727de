"""Thresholds from YAML: which measures each kind of dataset has, and the rules over them."""

from collections.abc import Mapping

from cases.problems import hint
from cases.settings import Settings
from cases.slices import Evidence, Threshold
from evaluators.core import Kind
from evaluators.statistics.metrics import DROP, Range, gate_ranges

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
