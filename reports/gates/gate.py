"""Gates on one run's measures: PASS, FAIL or INCONCLUSIVE, whatever became of ungraded items."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cases.dataset import Slice, Threshold
from evaluators.output import plural
from evaluators.statistics.estimate import UNDEFINED, Estimate, figure
from evaluators.statistics.intervals import Interval
from evaluators.statistics.metrics import DROP, metrics_of
from evaluators.statistics.sample import Sample
from reports.record import Record
from reports.report import GateResult, GateState, SliceSummary
from reports.summary import missing_extras, tabulate
from reports.wording import reason

PARTIAL = "only a part of the slice was run, picked by hand; run all of it to decide"

ROUNDING = 1e-12  # a measure that equals its bar on paper may miss it by this much in floats


@dataclass(frozen=True, slots=True, kw_only=True)
class GateInputs:
    """A slice as its gates see it.

    ``fates`` holds a sample for each way in which the ungraded items may all have come out; where
    nothing is ungraded, the graded items alone. ``distrust`` says why its judge is not trusted.
    ``untaken`` counts the planned items that lack an extra measure, by its name.
    """

    summary: SliceSummary
    sample: Sample
    fates: tuple[Sample, ...]
    distrust: str = ""
    untaken: Mapping[str, int] = field(default_factory=dict)

    @property
    def ungraded(self) -> int:
        """How many planned items have no grade."""
        return self.summary.counts.error + self.summary.counts.missing


def standing(
    slice_: Slice, records: Sequence[Record], summary: SliceSummary, distrust: str = ""
) -> GateInputs:
    """Return what the gates of a slice need. ``records`` holds every planned item of it."""
    sample = tabulate(records, slice_)
    fates: tuple[Sample, ...] = (sample,)
    if summary.counts.error + summary.counts.missing:
        fates = tuple(tabulate(records, slice_, fill) for fill in sample.worst_case_bounds())
    return GateInputs(
        summary=summary,
        sample=sample,
        fates=fates,
        distrust=distrust,
        untaken=missing_extras(records),
    )


def slice_gates(
    slice_: Slice, records: Sequence[Record], summary: SliceSummary, distrust: str = ""
) -> tuple[GateResult, ...]:
    """Return the slice's gates on this run alone: every rule but ``drop``, in their order.

    ``distrust`` says why the slice's judge is not trusted (``distrust_in``); empty where it is.
    """
    rules = [rule for rule in slice_.rules if rule.measure != DROP]
    if not rules:
        return ()
    scene = standing(slice_, records, summary, distrust)
    return tuple(evaluate(rule, scene) for rule in rules)


def evaluate(rule: Threshold, scene: GateInputs) -> GateResult:
    """Return the verdict of one ``min``/``max`` rule.

    PASS where the measure (or, with ``evidence: confident``, its whole interval) keeps to the bar
    for every fate of the ungraded items; FAIL where it does so for none; else INCONCLUSIVE.
    """
    estimate = scene.summary.measures.get(rule.measure, UNDEFINED)
    state, sentence = _verdict(rule, scene, estimate)
    worst, best = _values(rule, scene) or (None, None)
    if rule.min is None:
        worst, best = best, worst
    return GateResult(
        dataset=scene.summary.dataset,
        language=scene.summary.language,
        rule=rule,
        state=state,
        estimate=estimate,
        worst=worst,
        best=best,
        reason=sentence,
    )


def _verdict(rule: Threshold, scene: GateInputs, estimate: Estimate) -> tuple[GateState, str]:
    obstacle = _blocked(rule, scene) or _unfit(rule, scene, estimate)
    if obstacle:
        return "INCONCLUSIVE", obstacle
    span = _values(rule, scene) if rule.evidence == "estimate" else _ends(rule, scene)
    if span is None:
        what = "bounds" if rule.evidence == "estimate" else "95 % interval"
        return "INCONCLUSIVE", f"{rule.measure} has no {what} over these items"
    state = _state(rule, span)
    return state, reason(rule, state, estimate, span, scene.summary.counts)


def _blocked(rule: Threshold, scene: GateInputs) -> str:
    """Return why the gate is not to be decided, whatever the figures, or nothing."""
    if scene.summary.partial:
        return PARTIAL
    if scene.distrust:
        return scene.distrust
    return (
        ""
        if (rule.min, rule.max) != (None, None)
        else f"{rule.measure} has no bar; give min or max"
    )


def _unfit(rule: Threshold, scene: GateInputs, estimate: Estimate) -> str:
    """Return why the figures cannot decide the gate, or nothing."""
    name = rule.measure
    if name not in scene.summary.measures:
        return f"{name} is not measured on this slice of kind {scene.summary.kind}"
    if estimate.value is None:
        return f"{name} is undefined over {plural(estimate.n, 'graded item')}"
    if lacking := scene.untaken.get(name, 0):
        return f"{name} could not be taken of {plural(lacking, 'item')}; see the notes"
    if name in scene.untaken:
        return ""
    if not _bounded(rule, scene):
        return f"{name} has no bounds with {plural(scene.ungraded, 'ungraded item')}; grade them"
    return ""


def _bounded(rule: Threshold, scene: GateInputs) -> bool:
    row = metrics_of(scene.sample.kind, scene.sample.whole).get(rule.measure)
    return row is not None and (row.bounded or not scene.ungraded)


def _values(rule: Threshold, scene: GateInputs) -> Interval | None:
    """Return the lowest and the highest value over all fates, None where any is undefined."""
    if rule.measure in scene.untaken:
        taken = scene.summary.measures[rule.measure].value
        return None if taken is None or scene.untaken[rule.measure] else (taken, taken)
    if not _bounded(rule, scene):
        return None
    figures = [sample.value(rule.measure) for sample in scene.fates]
    known = [figure for figure in figures if figure is not None]
    return (min(known), max(known)) if len(known) == len(figures) else None


def _ends(rule: Threshold, scene: GateInputs) -> Interval | None:
    """Return the lowest and the highest end of the 95 % intervals over all fates."""
    if rule.measure in scene.untaken:
        taken = scene.summary.measures[rule.measure]
        return None if taken.low is None or taken.high is None else (taken.low, taken.high)
    found = [sample.estimates((rule.measure,))[rule.measure] for sample in scene.fates]
    lows = [estimate.low for estimate in found if estimate.low is not None]
    highs = [estimate.high for estimate in found if estimate.high is not None]
    return (min(lows), max(highs)) if len(lows) == len(highs) == len(found) else None


def _state(rule: Threshold, span: Interval) -> GateState:
    low, high = span
    floor = -math.inf if rule.min is None else rule.min - ROUNDING
    ceiling = math.inf if rule.max is None else rule.max + ROUNDING
    if floor <= low and high <= ceiling:
        return "PASS"
    return "FAIL" if high < floor or low > ceiling else "INCONCLUSIVE"


def distrust_in(
    language: str, judged: SliceSummary | None, floor: Mapping[str, float], *, required: bool
) -> str:
    """Return why the judge of a language is not trusted there, empty where it is.

    ``judged`` is the summary of that language's slice of kind ``judged``, None where the run has
    none: then the judge is unmeasured, which counts only where calibration is ``required``.
    """
    if judged is None:
        return f"judge not measured in {language}, and calibration is required" if required else ""
    for name, lowest in floor.items():
        found = judged.measures.get(name, UNDEFINED).value
        if found is None:
            return f"judge not trusted in {language}: {name} is undefined"
        if found < lowest - ROUNDING:
            shown = figure(found, lowest)
            return f"judge not trusted in {language}: {name} {shown} < {lowest:g}"
    return ""
