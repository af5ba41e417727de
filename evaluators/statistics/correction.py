"""A rate freed of the errors of the judge that counted it."""

import math
from dataclasses import dataclass

from evaluators.statistics.intervals import Z95, Interval

Count = tuple[float, float]
"""Successes, and trials."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CorrectedRate:
    """A rate as it would be with a judge that never errs, and its 95 % interval.

    ``sensitivity`` and ``specificity`` are the judge's, as measured on labelled items.
    """

    value: float
    interval: Interval
    sensitivity: float
    specificity: float


def corrected_rate(judged: Count, right_kept: Count, wrong_refused: Count) -> CorrectedRate | None:
    """Return the share of truly correct answers behind the share that a judge called CORRECT.

    ``judged``: answers called CORRECT, of all. ``right_kept``: of the labelled items that are
    correct, those that the judge called CORRECT (sensitivity). ``wrong_refused``: of those that
    are not, those that it did not call CORRECT (specificity). The estimate is Rogan and Gladen's
    (1978), Am. J. Epidemiol. 107:71; the interval, from all three samples, that of Lang and
    Reiczigel (2014), Prev. Vet. Med. 113:13. Both are clipped to 0..1. None without trials, or
    where sensitivity + specificity is not above 1: such a judge tells nothing apart.
    """
    samples = (judged, right_kept, wrong_refused)
    if any(trials <= 0 for _, trials in samples):
        return None
    rate, sensitivity, specificity = (hits / trials for hits, trials in samples)
    if sensitivity + specificity <= 1:
        return None
    value = (rate + specificity - 1) / (sensitivity + specificity - 1)
    low, high = _interval(judged, right_kept, wrong_refused)
    point = _clipped(value)
    return CorrectedRate(
        value=point,
        interval=(min(point, low), max(point, high)),
        sensitivity=sensitivity,
        specificity=specificity,
    )


def _interval(judged: Count, right_kept: Count, wrong_refused: Count) -> Interval:
    rate, n = _padded(judged, Z95**2)
    sensitivity, n_right = _padded(right_kept, 2)
    specificity, n_wrong = _padded(wrong_refused, 2)
    gain = sensitivity + specificity - 1
    if gain <= 0:
        return 0.0, 1.0
    value = (rate + specificity - 1) / gain
    missed = sensitivity * (1 - sensitivity) / n_right
    passed = specificity * (1 - specificity) / n_wrong
    shift = 2 * Z95**2 * (value * missed - (1 - value) * passed)
    variance = rate * (1 - rate) / n + value**2 * missed + (1 - value) ** 2 * passed
    reach = Z95 * math.sqrt(variance) / gain
    return _clipped(value + shift - reach), _clipped(value + shift + reach)


def _padded(count: Count, trials: float) -> Count:
    """Return the rate and the size of a sample to which so many trials, half of them hits, came."""
    size = count[1] + trials
    return (count[0] + trials / 2) / size, size


def _clipped(value: float) -> float:
    return min(1.0, max(0.0, value))
