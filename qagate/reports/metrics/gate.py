"""Gates on one run's metrics: PASS, FAIL or INCONCLUSIVE, and the sentence that says why."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from qagate.cases.dataset import EvidenceRule, Slice, Threshold
from qagate.evaluators.metric_specs import CHECK_PREFIX
from qagate.evaluators.output import plural
from qagate.evaluators.statistics import metrics
from qagate.evaluators.statistics.count_table import PREMISE, worst_case_fills
from qagate.evaluators.statistics.intervals import (
    UNDEFINED,
    Estimate,
    Interval,
    figure,
    span_of,
)
from qagate.reports.metrics.summary import (
    gated_repeats,
    missing_extras,
    missing_states,
    repeat_estimate,
    tabulate,
)
from qagate.reports.run.record import Record
from qagate.reports.run.report import (
    ASK_ANEW,
    GateResult,
    GateState,
    Obstacle,
    SliceSummary,
)
from qagate.reports.run.usage import taken, usage_estimate

KEEPS_TO: Mapping[GateState, str] = {"PASS": "keeps to", "FAIL": "does not keep to"}
"""What a decided gate on usage says of its bar."""

Doubt = Callable[[Threshold], str]
"""Says why the judge's errors do not let a bar pass; empty where they do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageInputs:
    """A slice as its gates on usage see it: what is unknown may be nothing, or any amount."""

    slice_: Slice
    records: Sequence[Record]
    """Every planned item."""
    summary: SliceSummary
    distrust: str = ""
    """Empty: the judge has no part in usage."""
    doubt: Doubt | None = None
    """None: likewise."""

    def _ends(self, name: str) -> list[Estimate]:
        most = (0.0, math.inf)
        return [
            usage_estimate(self.records, self.slice_, metrics.USAGE[name], one)
            for one in most
        ]

    def obstacle(self, name: str) -> str:
        """Return why the figures cannot decide a gate on a metric, or nothing."""
        if name in self.summary.measures:
            return ""
        why = "recorded answers take no call, servers may name no tokens, and a cost needs a price"
        return (
            f"{name} is not known of any of {plural(len(self.records), 'item')}: {why}"
        )

    def values(self, name: str) -> Interval | None:
        """Return a metric's lowest and highest value, for any usage of the unknown items."""
        if name not in self.summary.measures:
            return None
        low, high = (one.value for one in self._ends(name))
        return low or 0.0, math.inf if high is None else high

    def ends(self, name: str) -> Interval | None:
        """Return the lowest and the highest end of its 95 % intervals, None where one lacks."""
        low, high = (one.interval for one in self._ends(name))
        return (low[0], high[1]) if low and high else None

    def sentence(
        self,
        threshold: Threshold,
        state: GateState,
        estimate: Estimate,
        bounds: Interval,
    ) -> str:
        """Return the verdict's sentence; ``bounds`` as for ``GateInputs.sentence``."""
        metric = metrics.USAGE[threshold.measure]
        unknown = sum(taken(record, metric) is None for record in self.records)
        value = figure(estimate.value or 0.0, threshold.min, threshold.max)
        low, high = bounds
        span = span_of(bounds)
        if math.isinf(high):
            span = f"{figure(low)} or any more"
        basis = [f"n={estimate.n}"]
        if unknown:
            basis.append(f"not known of {plural(unknown, 'item')}")
        if threshold.evidence == "confident":
            basis.append(f"95 % interval {span}")
        elif unknown:
            basis.append(f"{span} with these at either extreme")
        verb = KEEPS_TO.get(state, "is not shown to keep to")
        return (
            f"{threshold.measure} {value} {verb} {threshold.bar} ({', '.join(basis)})"
        )


BY_RUN = (
    "estimate",
    "confident",
)  # the evidence that is judged once, over all items of a run

ROUNDING = (
    1e-12  # a metric that equals its bar on paper may miss it by this much in floats
)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateInputs:
    """A slice as its gates see it."""

    summary: SliceSummary
    graded: metrics.Sample
    """The graded items."""
    cases: tuple[metrics.Sample, ...]
    """A sample for each extreme result of the ungraded items; else the graded items alone."""
    distrust: str = ""
    """Why the judge is not trusted; empty where it is."""
    missing: Mapping[str, int] = field(default_factory=dict)
    """How many planned items lack each extra metric, by its name."""
    repeated: Mapping[str, tuple[Estimate, Estimate]] = field(default_factory=dict)
    """The worst and the best estimate of each metric of repeats, by its name."""
    remedy: str = ""
    """What would get ungraded items a grade."""
    doubt: Doubt | None = None
    """Why a share that clears its bar as judged does not pass."""
    unmeasured: frozenset[str] = frozenset()
    """The extra metrics that decide nothing, as no label shows the errors of their judge."""

    def is_bounded(self, name: str) -> bool:
        """Return whether a metric's extremes over the ungraded items are known."""
        sample = self.cases[0]
        row = metrics.metrics_of(sample.kind, sample.whole).get(name)
        return row is not None and (row.bounded or not self.summary.counts.ungraded)

    def values(self, name: str) -> Interval | None:
        """Return a metric's lowest and highest value over all worst cases, None if undefined."""
        if ends := self.repeated.get(name):
            return _hull([one.value for one in ends])
        if name in self.missing:
            return (
                None
                if self.missing[name]
                else _hull([self.summary.measures[name].value])
            )
        return (
            _hull([one.value(name) for one in self.cases])
            if self.is_bounded(name)
            else None
        )

    def ends(self, name: str) -> Interval | None:
        """Return the lowest and the highest end of its 95 % intervals over all worst cases."""
        if ends := self.repeated.get(name):
            return _hull([one.interval for one in ends])
        if name in self.missing:
            return self.summary.measures[name].interval
        return _hull(
            [sample.estimates((name,))[name].interval for sample in self.cases]
        )

    def obstacle(self, name: str) -> str:
        """Return why the figures cannot decide a gate on a metric, or nothing."""
        if name in self.unmeasured:
            return without_labels(name)
        if name not in self.summary.measures and metrics.is_repeated(name):
            return f"{name} needs --repeats {metrics.tries_of(name)}; run with so many"
        if name not in self.summary.measures:
            return f"{name} is not measured on this slice of kind {self.summary.kind}"
        estimate = self.summary.measures[name]
        if estimate.value is None:
            return f"{name} is undefined over {plural(estimate.n, 'graded item')}"
        if lacking := self.missing.get(name, 0):
            return (
                f"{name} could not be taken of {plural(lacking, 'item')}; see the notes"
            )
        if not (name in self.missing or name in self.repeated) and not self.is_bounded(
            name
        ):
            ungraded = plural(self.summary.counts.ungraded, "ungraded item")
            return f"{name} has no bounds with {ungraded}; {self.remedy}"
        return ""

    def sentence(
        self,
        threshold: Threshold,
        state: GateState,
        estimate: Estimate,
        bounds: Interval,
    ) -> str:
        """Return the verdict's sentence; ``bounds`` are a metric's or its interval's extremes."""
        value, counts = estimate.value or 0.0, self.summary.counts
        stem = f"{threshold.measure} {figure(value, threshold.min, threshold.max)}"
        stem += f" is {_side(threshold, value)}"
        size = f"n={estimate.n}" + (
            f", {counts.ungraded} ungraded" if counts.ungraded else ""
        )
        if threshold.evidence == "confident":
            interval = f"95 % interval, {span_of(bounds)}"
            if state != "INCONCLUSIVE":
                return f"{stem} with its whole {interval} ({size})"
            needed = items_to_decide(threshold, estimate, counts.passed + counts.failed)
            items = f"about {plural(needed, 'item')} would decide it" if needed else ""
            remedy = items or "no number can be named"
            return (
                f"{stem}, but its {interval}, does not clear the bar; {remedy} ({size})"
            )
        if state == "INCONCLUSIVE":
            ungraded = plural(counts.ungraded, "ungraded item")
            range_ = f"{ungraded} could bring it anywhere from {span_of(bounds)}"
            return f"{stem}, but {range_}; {self.remedy} ({size})"
        if not counts.ungraded:
            return f"{stem} ({size})"
        if threshold.min is not None and threshold.max is not None:
            return f"{stem} ({size}; {span_of(bounds)} with these at either extreme)"
        lowest = (state == "PASS") == (threshold.min is not None)
        extreme = figure(bounds[0 if lowest else 1], threshold.min, threshold.max)
        return f"{stem} ({size}; at {'worst' if state == 'PASS' else 'best'} {extreme})"


def _hull(found: Sequence[float | Interval | None]) -> Interval | None:
    """Return the lowest and the highest of values or intervals; None where one is not known."""
    ends = [
        one if isinstance(one, tuple) else (one, one)
        for one in found
        if one is not None
    ]
    known = len(ends) == len(found)
    return (
        (min(low for low, _ in ends), max(high for _, high in ends)) if known else None
    )


def gate_inputs(
    slice_: Slice,
    records: Sequence[Record],
    summary: SliceSummary,
    distrust: str = "",
    sample: metrics.Sample | None = None,
) -> GateInputs:
    """Return what the gates of a slice need; ``sample`` has all its planned records counted."""
    sample = sample or tabulate(records, slice_)
    cases: tuple[metrics.Sample, ...] = (sample,)
    if summary.counts.ungraded:
        cases = tuple(
            tabulate(records, slice_, fill)
            for fill in worst_case_fills(sample.patterns)
        )
    kinds = set()
    if summary.counts.ungraded:
        kinds = {one.error.partition(":")[0] for one in records if not one.is_graded}
    known = _REMEDIES.get(kinds.pop(), "") if len(kinds) == 1 else ""
    return GateInputs(
        summary=summary,
        graded=sample,
        cases=cases,
        distrust=distrust,
        missing=missing_extras(records) | missing_states(records, slice_),
        repeated={
            name: (repeat_estimate(records, slice_, name, False),
                   repeat_estimate(records, slice_, name, True))
            for name in gated_repeats(slice_) if name in summary.measures
        },
        remedy=known or "run the same command again to grade them",
        unmeasured=unmeasured_metrics(slice_),
    )  # fmt: skip


def unmeasured_metrics(slice_: Slice) -> frozenset[str]:
    """Return the extra metrics of a slice by a model that no label measures, and no one waived."""
    return frozenset(metric.name for metric in slice_.metrics if not metric.unmeasured)


def without_labels(name: str) -> str:
    """Return why a gate on such a metric is not decided."""
    return (
        f"{name} {Obstacle.UNMEASURED}: no label shows how its judge errs; "
        "say unmeasured: true beside it in dataset.yaml to let it decide"
    )


_REMEDIES = {
    "judge_unreadable": f"ask anew with {ASK_ANEW}",
    "no_recorded_answer": "give the data file answers, or name a --model",
}


def slice_gates(
    slice_: Slice,
    records: Sequence[Record],
    summary: SliceSummary,
    distrust: str = "",
    sample: metrics.Sample | None = None,
    *,
    doubt: Doubt | None = None,
) -> tuple[GateResult, ...]:
    """Return the slice's gates on this run alone; ``distrust`` says why its judge is not trusted.

    A gate on marked golds is left out where no item has one: the user's own items need not.
    """
    thresholds = [
        one for one in slice_.thresholds
        if not one.paired and one.evidence in BY_RUN
        and (one.measure in summary.measures or not one.measure.startswith(PREMISE))
    ]  # fmt: skip
    if not thresholds:
        return ()
    judged = gate_inputs(slice_, records, summary, distrust, sample)
    judged = replace(judged, doubt=doubt)
    used = UsageInputs(slice_=slice_, records=records, summary=summary)
    return tuple(evaluate(one, used if one.of_usage else judged) for one in thresholds)


def floor_gates(
    floor: Mapping[str, float],
    inputs: GateInputs,
    limit: Mapping[str, float] | None = None,
) -> tuple[GateResult, ...]:
    """Return a judge's floor as gates: ``floor`` for estimates, ``limit`` for whole intervals."""
    proofs: dict[EvidenceRule, Mapping[str, float]] = {
        "estimate": floor,
        "confident": limit or {},
    }
    return tuple(
        evaluate(Threshold(measure=name, min=low, max=high, evidence=evidence), inputs)
        for evidence, bars in proofs.items()
        for name, bar in bars.items()
        for low, high in [metrics.floor_ends(name, bar)]
    )


def is_by_code(name: str) -> bool:
    """Return whether no judge has a say in a metric: a check, or a state of the answers."""
    return name.startswith(CHECK_PREFIX) or name in metrics.ANSWER_STATES


def evaluate(threshold: Threshold, inputs: GateInputs | UsageInputs) -> GateResult:
    """Return the verdict of one ``min``/``max`` threshold.

    PASS where the metric (or, with ``evidence: confident``, its whole interval) keeps to the bar
    in every worst case of the ungraded items; FAIL where it does so in none; else INCONCLUSIVE.
    """
    name, summary = threshold.measure, inputs.summary
    no_bar = threshold.min is None and threshold.max is None
    obstacle = (
        summary.obstacle
        or ("" if is_by_code(name) else inputs.distrust)
        or (f"{name} has no bar; give min or max" if no_bar else "")
        or inputs.obstacle(name)
    )
    estimate, values = summary.measures.get(name, UNDEFINED), inputs.values(name)
    confident = threshold.evidence == "confident"
    bounds = None
    if not obstacle:
        bounds = inputs.ends(name) if confident else values
    missing = "95 % interval" if confident else "bounds"
    state: GateState = "INCONCLUSIVE"
    sentence = obstacle or f"{name} has no {missing} over these items"
    if bounds:
        state = side_of(threshold, bounds)
        sentence = inputs.sentence(threshold, state, estimate, bounds)
        doubt = inputs.doubt(threshold) if inputs.doubt and state == "PASS" else ""
        if doubt:
            state = "INCONCLUSIVE"
            sentence = f"{sentence}; {doubt}"
    low, high = (
        one if math.isfinite(one) else None for one in values or (math.nan, math.nan)
    )
    return GateResult(
        dataset=summary.dataset,
        language=summary.language,
        threshold=threshold,
        state=state,
        estimate=estimate,
        worst=high if threshold.min is None else low,
        best=low if threshold.min is None else high,
        reason=sentence,
        band=bounds,
        remedy=_remedy(threshold, inputs) if state == "INCONCLUSIVE" else "",
    )


WAYS_OUT: Mapping[Obstacle, str] = {  # the first that a sentence holds counts
    Obstacle.FEW_LABELS: "add labels",
    Obstacle.UNMEASURED: "measure the judge",
    Obstacle.DISTRUSTED: "use another judge",
    Obstacle.PARTIAL: "run all",
    Obstacle.LACKING: "run all",
    Obstacle.OTHER_ITEMS: "compare with another run",
    Obstacle.CHANGED: "rejudge the earlier run",
}
GRADE, MORE_LABELS = "grade", "more labels"  # words of other remedies


def _remedy(threshold: Threshold, inputs: GateInputs | UsageInputs) -> str:
    """Return what would decide a bar, in a few words; empty where that is not known."""
    summary = inputs.summary
    if summary.obstacle:
        whole = summary.sample.of if summary.sample else summary.whole
        return f"run all {plural(whole, 'item')}" if whole else "run all"
    if inputs.distrust:
        return way_out(inputs.distrust) or WAYS_OUT[Obstacle.DISTRUSTED]
    if summary.counts.ungraded:
        return f"{GRADE} {summary.counts.ungraded:,} more"
    estimate = summary.measures.get(threshold.measure, UNDEFINED)
    needed = items_to_decide(threshold, estimate, estimate.n)
    return f"about {plural(needed - estimate.n, 'more item')}" if needed else ""


def way_out(obstacle: str) -> str:
    """Return what lifts an obstacle to a slice's gates, in a few words; empty if not known."""
    return next((way for why, way in WAYS_OUT.items() if why in obstacle), "")


def side_of(threshold: Threshold, bounds: Interval) -> GateState:
    """Return PASS where all of an interval keeps to the bar, FAIL where none of it does."""
    low, high = bounds
    floor = -math.inf if threshold.min is None else threshold.min - ROUNDING
    ceiling = math.inf if threshold.max is None else threshold.max + ROUNDING
    if floor <= low and high <= ceiling:
        return "PASS"
    return "FAIL" if high < floor or low > ceiling else "INCONCLUSIVE"


def _side(threshold: Threshold, value: float) -> str:
    """Return on which side of its bars a value lies, for instance ``below 0.35``."""
    if threshold.min is not None and value < threshold.min - ROUNDING:
        return f"below {threshold.min:g}"
    if threshold.max is not None and value > threshold.max + ROUNDING:
        return f"above {threshold.max:g}"
    bars = [("at least", threshold.min), ("at most", threshold.max)]
    return " and ".join(f"{word} {bar:g}" for word, bar in bars if bar is not None)


def items_to_decide(
    threshold: Threshold, estimate: Estimate, graded: int
) -> int | None:
    """Return how many graded items would clear the nearest bar, as a square root shrinks."""
    if estimate.value is None or estimate.low is None or estimate.high is None:
        return None
    bars = (bar for bar in (threshold.min, threshold.max) if bar is not None)
    gap = min((abs(estimate.value - bar) for bar in bars), default=0.0)
    half = max(estimate.high - estimate.value, estimate.value - estimate.low)
    if gap < 1e-9:
        return None
    leading = float(
        f"{graded * (half / gap) ** 2:.1e}"
    )  # two digits: it should not look exact
    return max(graded + 1, int(leading))
