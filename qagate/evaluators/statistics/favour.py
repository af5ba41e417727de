"""How far a judge may favour one of two runs: it reads their answers with different errors.

Let p be the share of right answers, Se the share of right answers that the judge passes, Sp the
share of wrong ones that it fails. The judge then moves the difference of two runs, new less old, by

    b = p (Se new - Se old) - (1 - p) (Sp new - Sp old)

Labels on answers of both runs show b. They were drawn by the judge's grade, so each grade counts by
its share in the run: of the answers with one grade, labels show how many are right. Their ends
are Wilson's, combined by MOVER: Zou and Donner (2008), Stat. Med. 27:1693, and for the ratio of
right answers failed to those passed, Donner and Zou (2012), Stat. Methods Med. Res. 21:347.

Labels count as independent. Answers of both runs to one question are mostly judged alike, which
makes the true interval narrower than this one.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist

from qagate.evaluators.statistics.intervals import Z95, Estimate, wilson

HIGHEST_Z = 8.0
"""Where the search for a p-value ends: its two tails are below 1e-14."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GradeLabels:
    """Labels on the answers of a run that the judge gave one grade."""

    share: float
    """That of the grade among all graded answers of the run, 0 to 1."""
    passes: bool
    """Whether an answer with the grade counts as right."""
    right: int
    """Labels that say the answer is right."""
    labels: int


@dataclass(frozen=True, slots=True)
class ShareWithEnds:
    """A share with the ends of its interval, all 0 to 1."""

    value: float
    low: float
    high: float


def _sum_of(grades: Sequence[GradeLabels], z: float, *, right: bool) -> ShareWithEnds:
    """Return the share of a run's answers that have one of the grades and are right, or wrong."""
    value = 0.0
    below = 0.0
    above = 0.0
    for grade in grades:
        hits = grade.right if right else grade.labels - grade.right
        share = hits / grade.labels if grade.labels else 0.5
        low, high = wilson(hits, grade.labels, z) or (0.0, 1.0)
        value += grade.share * share
        below += (grade.share * (share - low)) ** 2
        above += (grade.share * (high - share)) ** 2
    return ShareWithEnds(
        value, max(0.0, value - math.sqrt(below)), value + math.sqrt(above)
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledRun:
    """How the judge reads the answers of one run."""

    grades: tuple[GradeLabels, ...]

    @property
    def labels(self) -> int:
        """How many labels there are."""
        return sum(grade.labels for grade in self.grades)

    @property
    def right(self) -> float:
        """The share of the answers that are right."""
        return _sum_of(self.grades, Z95, right=True).value

    def kept(self, z: float, *, right: bool) -> ShareWithEnds:
        """Return the share of right answers that pass, or of wrong ones that fail."""
        on_their_side = [grade for grade in self.grades if grade.passes is right]
        misjudged = [grade for grade in self.grades if grade.passes is not right]
        return _part(
            _sum_of(on_their_side, z, right=right), _sum_of(misjudged, z, right=right)
        )


def _part(part: ShareWithEnds, rest: ShareWithEnds) -> ShareWithEnds:
    """Return ``part`` / (``part`` + ``rest``), by the ends of the ratio of ``rest`` to ``part``."""
    if part.value + rest.value == 0:
        return ShareWithEnds(1.0, 0.0, 1.0)
    low = 0.0
    least_part = part.low * (2 * part.value - part.low)
    most_rest = rest.high * (2 * rest.value - rest.high)
    product = rest.value * part.value
    if least_part > 0:
        root = math.sqrt(max(0.0, product**2 - most_rest * least_part))
        low = 1 / (1 + (product + root) / least_part)
    high = 1.0
    most_part = part.high * (2 * part.value - part.high)
    least_rest = rest.low * (2 * rest.value - rest.low)
    if most_part > 0:
        root = math.sqrt(max(0.0, product**2 - least_rest * most_part))
        high = 1 / (1 + max(0.0, (product - root) / most_part))
    return ShareWithEnds(part.value / (part.value + rest.value), low, high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Favour:
    """How far the judge moves the difference between two runs, new less old."""

    new: LabelledRun
    old: LabelledRun

    @property
    def labels(self) -> int:
        """Labels of both runs; one on an answer that both gave counts twice."""
        return self.new.labels + self.old.labels

    def ends(self, z: float = Z95) -> ShareWithEnds:
        """Return b with its ends, -1 to 1; it is above 0 where the new run is favoured."""
        right = (self.new.right + self.old.right) / 2
        kept_right = _difference(
            self.new.kept(z, right=True), self.old.kept(z, right=True)
        )
        kept_wrong = _difference(
            self.old.kept(z, right=False), self.new.kept(z, right=False)
        )
        return _weighted(kept_right, right, kept_wrong, 1 - right)

    @property
    def estimate(self) -> Estimate:
        """B with its 95 % interval."""
        ends = self.ends()
        return Estimate.of(ends.value, (ends.low, ends.high), self.labels)

    def p_value(self) -> float:
        """Return the error at which an end of the interval meets 0; 1 where b itself is 0."""
        if self.ends().value == 0:
            return 1.0
        low, high = 0.0, HIGHEST_Z
        while high - low > 1e-4:
            middle = (low + high) / 2
            ends = self.ends(middle)
            if ends.low > 0 or ends.high < 0:
                low = middle
            else:
                high = middle
        return 2 * NormalDist().cdf(-low)


def _difference(first: ShareWithEnds, second: ShareWithEnds) -> ShareWithEnds:
    value = first.value - second.value
    below = math.hypot(first.value - first.low, second.high - second.value)
    above = math.hypot(first.high - first.value, second.value - second.low)
    return ShareWithEnds(value, value - below, value + above)


def _weighted(
    first: ShareWithEnds, weight: float, second: ShareWithEnds, other_weight: float
) -> ShareWithEnds:
    value = weight * first.value + other_weight * second.value
    below = math.hypot(
        weight * (first.value - first.low), other_weight * (second.value - second.low)
    )
    above = math.hypot(
        weight * (first.high - first.value),
        other_weight * (second.high - second.value),
    )
    return ShareWithEnds(value, value - below, value + above)
