"""``metrics:`` of a ``dataset.yaml``: extra measures by deepeval's metrics, and bars for them."""

import re
from collections.abc import Sequence

from cases.problems import hint
from cases.rules import BAR_KEYS, bar_rule
from cases.settings import Settings
from cases.slices import Slice, Threshold
from evaluators.core import Case, Kind, Model, UsageError
from evaluators.extra_metrics import FIELDS, GEVAL, KINDS, METRICS, Measurer, MetricSpec
from evaluators.statistics.metrics import RATE, Range

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
    rules = (_rule(metrics, name, gates) for name in metrics.values)
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


def _rule(metrics: Settings, name: str, gates: Settings) -> Threshold | None:
    part = metrics.part(name)
    rule = bar_rule(part, name, RATE)
    if rule is None and "evidence" in part.values:
        raise part.problem(key="evidence", what="there is no bar; give min or max as well")
    if rule is not None and name in gates.values:
        raise metrics.problem(name, "has a bar here and under gates; keep one")
    return rule


def measurers(slice_: Slice, cases: Sequence[Case], model: Model | None) -> tuple[Measurer, ...]:
    """Return what takes the extra measures of a slice; nothing without a model that judges.

    Raises UsageError where one of the cases lacks the context that a metric reads.
    """
    if not slice_.metrics or model is None:
        return ()
    needing = [metric.name for metric in slice_.metrics if metric.needs_context]
    without = [case.id for case in cases if not case.context] if needing else []
    if without:
        msg = (
            f"{slice_.path}: metric {needing[0]} reads an item's context, and item "
            f"{without[0]!r} has none; add it, or take the metric out"
        )
        raise UsageError(msg)
    # Loads deepeval: seconds, and only for those who ask for it.
    from evaluators.judges.metric import measurers_of  # noqa: PLC0415

    return measurers_of(slice_.metrics, model)
