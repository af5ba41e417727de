"""A judge's errors in a paired gate: how much of a true change it shows.

A judge with sensitivity Se and specificity Sp, alike on both runs' answers, shows J = Se + Sp - 1
times a true change of the share that passes. A margin therefore has to shrink by J, or a poor judge
would let pass what a good one would not.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from cases.dataset import Slice
from evaluators.output import plural
from evaluators.statistics.intervals import UNDEFINED, Estimate, figure, span_of
from evaluators.statistics.metrics import USAGE, YOUDEN, YOUDEN_INCORRECT
from evaluators.statistics.youden import corrected_difference, weighted_mean
from reports.compare.pairs import PairedSlice
from reports.judge.errors import ENOUGH, measuring
from reports.run.evidence import Calibration

MEASURED_BY = {"": YOUDEN, "correct": YOUDEN, "pass_rate": YOUDEN, "incorrect": YOUDEN_INCORRECT}
"""Which J scales a change, by the measure that changes; empty stands for the share that passes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeScale:
    """How a judge's errors shrink a change."""

    youden: Estimate
    """Youden's J; undefined if nothing measures it, and the gate is about the judge's opinion."""
    basis: str
    """Which labels J is from, or why there is none."""

    def shrunk(self, margin: float, *, confident: bool) -> float:
        """Return the largest change that the judge may show if the true one keeps to the margin.

        Takes the lower end of J for ``confident`` evidence, else its estimate. It is the margin
        itself if nothing measures J, and -infinity, which nothing keeps to, if J may be 0.
        """
        gain = self.youden.low if confident else self.youden.value
        if gain is None:
            return margin
        return margin * gain if gain > 0 else -math.inf

    def corrected(self, difference: Estimate) -> Estimate:
        """Return the difference corrected for the judge's errors."""
        return corrected_difference(difference, self.youden)

    def text(self, difference: Estimate) -> str:
        """Return in words how the judge's errors change a difference."""
        if self.youden.value is None:
            return f"the verdict is about the judge's opinion: {self.basis}"
        found = self.corrected(difference)
        gain = f"Youden's J {self.youden.text('{value}, {low} to {high}')} {self.basis}"
        if found.value is None or found.interval is None:
            return f"the judge's errors leave nothing to conclude from ({gain})"
        ends = span_of(found.interval)
        value = figure(found.value)
        return f"freed of the judge's errors it is {value}, 95 % interval {ends} ({gain})"


def judge_scale(sides: Sequence[PairedSlice], measure: str = "") -> JudgeScale | None:
    """Return the scale of a gate over these slices; None if no judge's verdict is in it.

    ``measure`` is what changes, empty for the share that passes. One slice takes the labels of its
    own language. With fewer than 30 of a class it takes those of all languages, limited by its own
    (``_at_most``). Several slices are weighted by their pairs; one without labels counts like the
    others.
    """
    parts = []
    for one in sides:
        both = (record for pair in one.pairing.pairs for record in (pair.new, pair.old))
        if one.slice_.kind.by_rubric and any(not record.adjudicated_by for record in both):
            parts.append((one.slice_, one.calibrations, len(one.pairing.pairs)))
    return _scale(parts, measure)


def expected_scale(
    slices: Sequence[tuple[Slice, int]], calibrations: Sequence[Calibration], measure: str = ""
) -> JudgeScale | None:
    """Return the expected ``judge_scale`` of slices with these numbers of items."""
    judged = [(one, items) for one, items in slices if one.kind.by_rubric]
    return _scale([(one, measuring(one, calibrations), items) for one, items in judged], measure)


_Part = tuple[Slice, Sequence[Calibration], int]
"""A slice that a judge decides, what measures the judge (``measuring``), and its weight."""


def _scale(parts: Sequence[_Part], measure: str) -> JudgeScale | None:
    name = MEASURED_BY.get(measure)
    if not parts or measure in USAGE:
        return None
    if name is None:
        basis = f"its errors are not known on the scale of {measure}"
        return JudgeScale(youden=UNDEFINED, basis=basis)
    if len(parts) > 1:
        every = [(one, found[0].separations.get(name), n) for one, found, n in parts if found]
        weighted = [(found.youden, float(n)) for _, found, n in every if found]
        return _pooled(weighted, [one.language for one, found, _ in every if found])
    (slice_, calibrations, _), *_ = parts
    known = [(one, found) for one in calibrations if (found := one.separations.get(name))]
    own = calibrations[0].separations.get(name) if calibrations else None
    if own and own.fewest >= ENOUGH:
        known = known[:1]
    labels = [(found.youden, float(found.youden.n)) for _, found in known]
    scale = _pooled(labels, [one.language for one, _ in known])
    if not own or len(known) < 2:
        return scale
    few = f"; {slice_.language} alone has fewer than {ENOUGH} of a class"
    return JudgeScale(youden=_at_most(scale.youden, own.youden), basis=scale.basis + few)


def _pooled(parts: Sequence[tuple[Estimate, float]], languages: Sequence[str]) -> JudgeScale:
    if not parts:
        return JudgeScale(youden=UNDEFINED, basis="no labelled items measure its errors")
    youden = weighted_mean(parts)
    basis = f"over {plural(youden.n, 'labelled item')} in {', '.join(languages)}"
    return JudgeScale(youden=youden, basis=basis)


def _at_most(pooled: Estimate, own: Estimate) -> Estimate:
    """Return J of several languages, limited by the few labels of one of them.

    Its value is at most the language's own. Its lower end is at most half way from there to the
    language's own lower end: a judge that errs more in one language is not excused.
    """
    top, bottom = own.value or 0.0, own.low or 0.0
    value, low = min(pooled.value or 0.0, top), min(pooled.low or 0.0, (top + bottom) / 2)
    return replace(pooled, value=value, low=min(value, low))
