"""Gates on a change since the baseline: PASS where a metric is worse by no more than a margin.

Each gate is read in every way that the settings of now and then allow (``compare/ways.py``), and
in each way by all treatments of what is missing (``change_evidence.py``). The worst verdict
stands. A gate that pools languages fails as well if one of them is shown to be beyond its margin.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from qagate.cases.dataset import Dataset, Threshold
from qagate.evaluators.statistics.intervals import UNDEFINED, Interval
from qagate.evaluators.statistics.paired import holm
from qagate.reports.compare.differences import scopes
from qagate.reports.compare.sides import Sides
from qagate.reports.compare.ways import Way, ways_of
from qagate.reports.gates import change_text
from qagate.reports.gates.bars import WORST_FIRST
from qagate.reports.gates.change_evidence import (
    ChangeEvidence,
    evidence_of,
    obstacle_to,
)
from qagate.reports.metrics.gate import BY_RUN, way_out
from qagate.reports.run.report import GateResult, GateState


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """A gate in one way to read both runs."""

    rule: Threshold
    way: Way
    evidence: ChangeEvidence | str
    """What the pairs show, or why they show nothing."""

    @property
    def p_value(self) -> float | None:
        """That of a FAIL; None without evidence."""
        if isinstance(self.evidence, str):
            return None
        return self.evidence.p_value()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ruling:
    """What a gate says in one way."""

    reading: _Reading
    state: GateState
    lost: Mapping[str, ChangeEvidence]
    """The languages of a pool that fail by themselves."""


def change_gates(
    dataset: Dataset,
    sides: Sides,
    *,
    states_only: bool = False,
) -> tuple[GateResult, ...]:
    """Return a dataset's change gates, pooled ones last.

    ``states_only``: without their reasons, but for what lets no pair decide.
    """
    gates = []
    for rule, scope in scopes(dataset, sides):
        if rule.evidence in BY_RUN:
            gates.append(_readings(rule, scope))
    p_values_now = [readings[0].p_value for readings in gates]
    results = []
    for place, readings in enumerate(gates):
        rulings = []
        for reading in readings:
            p_value = reading.p_value
            if dataset.holm and p_value is not None:
                p_value = _adjusted(p_values_now, place, p_value)
            rulings.append(_rule(reading, p_value))
        worst = min(rulings, key=lambda ruling: WORST_FIRST.index(ruling.state))
        results.append(_result(dataset, worst, states_only=states_only))
    return tuple(results)


def _readings(rule: Threshold, scope: Sides) -> Sequence[_Reading]:
    """Return a gate in each way, first as things are now."""
    readings = []
    for way in ways_of(scope):
        evidence = evidence_of(rule, way.sides)
        readings.append(_Reading(rule=rule, way=way, evidence=evidence))
    return readings


def _adjusted(p_values: Sequence[float | None], place: int, p_value: float) -> float:
    """Return a p-value adjusted for the number of gates; it stands in the place of its gate."""
    known: list[float] = []
    own_place = 0
    for other_place, other in enumerate(p_values):
        if other_place == place:
            own_place = len(known)
            known.append(p_value)
        elif other is not None:
            known.append(other)
    return holm(known)[own_place]


def _rule(reading: _Reading, p_value: float | None) -> _Ruling:
    state: GateState = "INCONCLUSIVE"
    if not isinstance(reading.evidence, str) and p_value is not None:
        state = reading.evidence.state(p_value)
    lost = _lost(reading.rule, reading.way.sides)
    if lost:
        state = "FAIL"
    return _Ruling(reading=reading, state=state, lost=lost)


def _lost(rule: Threshold, sides: Sides) -> dict[str, ChangeEvidence]:
    """Return the languages of a pool shown to be beyond the margin, adjusted for their number."""
    if not rule.pool or len(sides) < 2:
        return {}
    rule = replace(rule, evidence="confident", fail="margin")
    parts = []
    for side in sides:
        evidence = evidence_of(rule, [side])
        if isinstance(evidence, ChangeEvidence):
            parts.append(evidence)
    p_values = holm([evidence.p_value() for evidence in parts])
    lost = {}
    for evidence, p_value in zip(parts, p_values, strict=True):
        if p_value < 0.05 and evidence.state(p_value) == "FAIL":
            lost[evidence.sides[0].slice_.language] = evidence
    return lost


def _lost_text(lost: Mapping[str, ChangeEvidence]) -> str:
    texts = []
    for language, evidence in lost.items():
        change = evidence.change.seen.text("{value}, 95 % interval {low} to {high}")
        texts.append(f"{language} is shown to be beyond the margin: {change}")
    return "; ".join(texts)


def _result(dataset: Dataset, ruling: _Ruling, *, states_only: bool) -> GateResult:
    reading = ruling.reading
    sides = reading.way.sides
    evidence = None if isinstance(reading.evidence, str) else reading.evidence
    result = GateResult(
        dataset=dataset.name,
        language="" if reading.rule.pool else sides[0].slice_.language,
        threshold=reading.rule,
        state=ruling.state,
        estimate=evidence.change.seen if evidence else UNDEFINED,
        worst=evidence.values[0] if evidence else None,
        best=evidence.values[-1] if evidence else None,
        reason=reading.evidence if isinstance(reading.evidence, str) else "",
        anchored=sides[0].role == "anchor",
        pairs=_pairs_text(sides),
    )
    if states_only:
        return result
    return replace(
        result,
        reason=_reason(ruling),
        needs=change_text.needs(evidence) if evidence else "",
        band=evidence.band if evidence else None,
        bands=_bands_of(ruling.lost),
        remedy=_remedy(ruling),
    )


def _bands_of(lost: Mapping[str, ChangeEvidence]) -> dict[str, Interval]:
    bands = {}
    for language, evidence in lost.items():
        if evidence.band is not None:
            bands[language] = evidence.band
    return bands


def _reason(ruling: _Ruling) -> str:
    reading = ruling.reading
    text = reading.evidence
    if isinstance(text, ChangeEvidence):
        text = change_text.reason(text, ruling.state)
    if ruling.lost:
        text = f"{_lost_text(ruling.lost)}; all languages: {text}"
    if reading.way.name:
        text = f"by the earlier {reading.way.name}: {text}"
    return text


def _remedy(ruling: _Ruling) -> str:
    if ruling.state != "INCONCLUSIVE":
        return ""
    reading = ruling.reading
    if isinstance(reading.evidence, ChangeEvidence):
        return change_text.remedy(reading.evidence)
    return way_out(obstacle_to(reading.rule, reading.way.sides) or reading.evidence)


def _pairs_text(sides: Sides) -> str:
    """Return how many pairs count, where edited items leave some unknown."""
    if not any(side.count("edited") for side in sides):
        return ""
    graded = sum(len(side.graded) for side in sides)
    pairs = sum(len(side.pairs) for side in sides)
    return f"{graded:,} of {pairs:,} pairs"
