"""Intervals for one sample, and estimates: figures with their intervals.

All intervals are two-sided at 95 %. None means "cannot be given"; there is never a NaN.

Items are often dependent: questions about one passage, repeats of one question. Such items are a
*cluster*. Functions get one number for each distinct cluster and, as ``items``, how many clusters
are like it. For clustered rates the sample counts as fewer independent trials
(``effective_size``); other figures have a bootstrap that draws whole clusters (``resample``).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import TYPE_CHECKING, TypeAlias

# Reports import the wording of numbers from here, too.
from qagate.evaluators.number_text import figure as figure  # noqa: PLC0414
from qagate.evaluators.number_text import number as number  # noqa: PLC0414
from qagate.evaluators.number_text import span_of as span_of  # noqa: PLC0414
from qagate.evaluators.statistics.probabilities import student_quantile

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Array: TypeAlias = "npt.NDArray[np.float64]"
Places: TypeAlias = "npt.NDArray[np.int64]"
"""Numbers that count or name places, such as the kind or the cluster of each record."""

Interval = tuple[float, float]
"""The lower and the upper end."""

Z95 = 1.959963984540054
"""The 97.5 % point of the normal distribution."""

TAIL = 0.025
"""The error of each end of a 95 % interval."""

SEED = 20240913
"""Of every bootstrap: the same data always give the same interval."""

ROUNDS = 2000
"""Resamples of a bootstrap."""

WHOLE = 1
"""Added clusters that move as a whole, as Wilson adds successes to a small sample."""

BLOCK = 4_000_000
"""Numbers in memory at once while resampling."""


def wilson(successes: float, n: float, z: float = Z95) -> Interval | None:
    """Return Wilson's score interval of a rate, within 0 to 1, or None for ``n`` = 0.

    Wilson (1927), J. Am. Stat. Assoc. 22:209. Neither number need be whole. ``z`` is more than 1.96
    where ``n`` was estimated (``quantile``).
    """
    if n <= 0:
        return None
    rate = successes / n
    shrinkage = 1 + z**2 / n
    centre = (rate + z**2 / (2 * n)) / shrinkage
    variance = max(0.0, rate * (1 - rate)) / n + (z / (2 * n)) ** 2
    half_width = z * math.sqrt(variance) / shrinkage
    low = max(0.0, min(rate, centre - half_width))
    high = min(1.0, max(rate, centre + half_width))
    return low, high


@cache
def normal_quantile(tail: float) -> float:
    """Return the point of the normal distribution above which a share of ``tail`` lies."""
    if tail == TAIL:
        return Z95
    return NormalDist().inv_cdf(1 - tail)


def unseen_share(n: float, tail: float = TAIL) -> float:
    """Return the largest share of a population that ``n`` items may miss, 0 to 1.

    It is 1 less the lower end of Wilson's interval of ``n`` successes in ``n`` trials, an end
    that errs with a probability of ``tail``.
    """
    z = normal_quantile(tail)
    return z**2 / (n + z**2)


def quantile(clusters: float, trials: float, tail: float = TAIL) -> float:
    """Return the point for an interval over ``trials`` in ``clusters``, with this ``tail``.

    It is the normal distribution's if each trial is its own cluster. Otherwise the number of
    independent trials is estimated, and it is Student's with ``clusters`` - 1 degrees of freedom;
    Bell and McCaffrey (2002), Survey Methodology 28:169, compare such choices.
    """
    if trials <= clusters:
        return normal_quantile(tail)
    return student_quantile(max(1.0, clusters - 1), tail)


def clustered_rate(
    hits: Array, sizes: Array, items: Array, tail: float = TAIL
) -> Interval | None:
    """Return Wilson's interval of a rate over clusters of dependent trials.

    ``items[i]`` clusters have ``hits[i]`` successes in ``sizes[i]`` trials. The sample counts as
    the number of independent trials with the same variance (``effective_size``). A percentile
    bootstrap would have no width for a rate of 0 or 1. None without trials.
    """
    trials = float((items * sizes).sum())
    if trials <= 0:
        return None
    rate = float((items * hits).sum()) / trials
    residuals = hits - rate * sizes
    independent_trials = effective_size(residuals, sizes, items, rate * (1 - rate))
    if 0 < rate < 1:
        clusters = float(items[sizes > 0].sum())
        z = quantile(clusters, trials, tail)
    else:
        # Their number was not estimated: without variation each cluster counts as one trial.
        z = normal_quantile(tail)
    return wilson(rate * independent_trials, independent_trials, z)


def effective_size(
    residuals: Array, sizes: Array, items: Array, variance: float
) -> float:
    """Return the number of independent trials with the same information as the clustered ones.

    ``items[i]`` clusters have ``sizes[i]`` trials, and a sum that deviates by ``residuals[i]`` from
    the expected one. ``variance`` is that of a single trial. The result is at most the number of
    trials; without variation it is the number of clusters.

    The *design effect* (Kish (1965), Survey Sampling) is how many times the variance of the sum
    exceeds that of independent trials; the trials are divided by it. The variance of the sum is
    that of the clusters' sums: Miller (2024), arXiv 2411.00640, section 2.2. But a few deviating
    clusters say little about the dependence within clusters. So the observed effect, with as much
    weight as clusters deviate, is averaged with that of ``WHOLE`` clusters that move as a whole.
    """
    trials = float((items * sizes).sum())
    clusters = float(items[sizes > 0].sum())
    if clusters < 2 or variance <= 0:
        return min(clusters, trials)
    independent_spread = trials * variance
    effect_of_whole = float((items * sizes**2).sum()) / trials
    spread = float((items * residuals**2).sum())
    fourth_powers = float((items * residuals**4).sum())
    deviating_clusters = independent_spread / effect_of_whole
    if (
        fourth_powers
    ):  # k equal deviations have a squared spread of k times their fourth powers
        deviating_clusters = max(spread**2 / fourth_powers, deviating_clusters)
    effect = (
        (deviating_clusters * spread / independent_spread + WHOLE * effect_of_whole)
        / (deviating_clusters + WHOLE)
        * clusters
        / (clusters - 1)
    )
    return min(trials, max(1.0, trials / effect))


def cluster_sums(rows: Array, clusters: Sequence[Hashable]) -> Array:
    """Return the sums of the rows of each cluster, in the order of first appearance.

    ``clusters`` names the cluster of each row.
    """
    import numpy as np

    places = {cluster: place for place, cluster in enumerate(dict.fromkeys(clusters))}
    sums = np.zeros((len(places), *rows.shape[1:]))
    np.add.at(sums, [places[cluster] for cluster in clusters], rows)
    return sums


def resample(patterns: Array, items: Array) -> Array:
    """Return ``ROUNDS`` count tables, each the sum of as many items, drawn with replacement.

    ``patterns[i]`` is the count table of one item (or cluster), ``items[i]`` how many have that
    table: drawing the multiplicities from a multinomial is the same as drawing the items one by
    one.
    """
    import numpy as np

    total = items.sum()
    flat = patterns.reshape(len(patterns), -1)
    random = np.random.default_rng(SEED)
    rounds_at_once = max(1, BLOCK // len(patterns))
    tables = []
    for start in range(0, ROUNDS, rounds_at_once):
        rounds = min(rounds_at_once, ROUNDS - start)
        multiplicities = random.multinomial(int(total), items / total, size=rounds)
        tables.append(multiplicities @ flat)
    return np.concatenate(tables).reshape(ROUNDS, *patterns.shape[1:])


def percentile(
    numerators: Array,
    denominators: Array,
    clusters: float = 0,
    trials: float = 0,
    tail: float = TAIL,
) -> Interval | None:
    """Return the resampled ratios but for a ``tail`` on each side: the middle 95 %.

    Rounds with denominator 0 are left out. None if they are more than half, or if all others are
    equal: a sample without variation does not show how wide the interval should be. For fewer
    ``clusters`` than ``trials`` it is wider, as Hesterberg (2015), Am. Stat. 69:371, proposes for
    small samples: Student's quantile by √(n / (n - 1)).
    """
    import numpy as np

    defined = denominators != 0
    if 2 * int(defined.sum()) < len(denominators):
        return None
    ratios = numerators[defined] / denominators[defined]
    tail_percent = 100 * tail
    if clusters < trials:
        reach = quantile(clusters, trials, tail) * math.sqrt(
            clusters / max(1.0, clusters - 1)
        )
        tail_percent = 50 * math.erfc(reach / math.sqrt(2))
    low, high = np.percentile(ratios, [tail_percent, 100 - tail_percent])
    if low < high:
        return float(low), float(high)
    return None  # all are equal, or one is not a number


Count = tuple[float, float]
"""Successes, and trials."""


def corrected_rate(
    judged: Count, right_passed: Count, wrong_refused: Count
) -> Estimate | None:
    """Return the share of truly correct answers behind the share that a judge called CORRECT.

    ``judged``: answers called CORRECT, of all. ``right_passed``: of the labelled items that are
    correct, those that the judge called CORRECT (sensitivity). ``wrong_refused``: of those that
    are not, those that it did not call CORRECT (specificity). The estimate is Rogan and Gladen's
    (1978), Am. J. Epidemiol. 107:71; the interval, from all three samples, that of Lang and
    Reiczigel (2014), Prev. Vet. Med. 113:13. Both are clipped to 0..1, and the interval is at least
    as wide as that of the judged share. None without trials, where sensitivity + specificity is not
    above 1 (such a judge tells nothing apart), or where all of the interval is outside 0..1: then
    the judge errs otherwise on these answers than on the labelled ones.
    """
    if any(trials <= 0 for _, trials in (judged, right_passed, wrong_refused)):
        return None
    rate = _share_of(judged)
    sensitivity = _share_of(right_passed)
    specificity = _share_of(wrong_refused)
    if sensitivity + specificity <= 1:
        return None
    value = (rate + specificity - 1) / (sensitivity + specificity - 1)
    low, high = _lang_reiczigel(judged, right_passed, wrong_refused)
    if low >= 1 or high <= 0:
        return None
    value = _clipped(value)
    low = min(value, _clipped(low))
    high = max(value, _clipped(high))
    judged_low, judged_high = wilson(*judged) or (0.0, 1.0)
    missing_width = max(0.0, judged_high - judged_low - (high - low))
    interval = (_clipped(low - missing_width), _clipped(high + missing_width))
    return Estimate.of(value, interval, round(judged[1]))


def _share_of(count: Count) -> float:
    hits, trials = count
    return hits / trials


def _lang_reiczigel(
    judged: Count, right_passed: Count, wrong_refused: Count
) -> Interval:
    """Return the interval of a corrected rate, which may reach out of 0..1.

    Lang and Reiczigel (2014), Prev. Vet. Med. 113:13. Trials, half of them hits, are added to each
    sample as in Agresti and Coull's interval: z² to the judged, 2 to the others.
    """
    judged = _with_added_trials(judged, Z95**2)
    right_passed = _with_added_trials(right_passed, 2)
    wrong_refused = _with_added_trials(wrong_refused, 2)
    rate = _share_of(judged)
    sensitivity = _share_of(right_passed)
    specificity = _share_of(wrong_refused)
    gain = sensitivity + specificity - 1
    if gain <= 0:
        return 0.0, 1.0
    value = (rate + specificity - 1) / gain
    variance_of_rate = rate * (1 - rate) / judged[1]
    variance_of_sensitivity = sensitivity * (1 - sensitivity) / right_passed[1]
    variance_of_specificity = specificity * (1 - specificity) / wrong_refused[1]
    variance = (
        variance_of_rate
        + value**2 * variance_of_sensitivity
        + (1 - value) ** 2 * variance_of_specificity
    )
    shift = (
        2
        * Z95**2
        * (value * variance_of_sensitivity - (1 - value) * variance_of_specificity)
    )
    reach = Z95 * math.sqrt(variance) / gain
    return value + shift - reach, value + shift + reach


def _with_added_trials(count: Count, added: float) -> Count:
    hits, trials = count
    return hits + added / 2, trials + added


def _clipped(value: float) -> float:
    return min(1.0, max(0.0, value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure with its 95 % interval."""

    value: float | None
    """None if the figure is undefined: never 0, never NaN."""
    low: float | None
    """None if there is no interval, as ``high``."""
    high: float | None
    n: int
    """The number of items behind the figure."""

    @classmethod
    def of(cls, value: float | None, interval: Interval | None, n: int) -> Estimate:
        """Return the estimate with this interval, or with none."""
        low, high = interval or (None, None)
        return cls(value=value, low=low, high=high, n=n)

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval, None where there is none."""
        if self.low is None or self.high is None:
            return None
        return self.low, self.high

    def text(
        self,
        full: str = "{value} [{low}, {high}]",
        bare: str = "{value}",
        undefined: str = "undefined",
    ) -> str:
        """Return the estimate to three decimals, for instance ``0.412 [0.350, 0.480]``.

        A value below a hundredth has, like its interval, three significant digits. The templates
        may use ``value``, ``low``, ``high`` and ``n``: ``full`` with an interval, ``bare`` without
        one, ``undefined`` without a value.
        """
        if self.value is None:
            template = undefined
        elif self.interval is None:
            template = bare
        else:
            template = full
        is_small = self.value is not None and 0 < abs(self.value) < 0.01
        return template.format(
            value=number(self.value, small=is_small),
            low=number(self.low, small=is_small),
            high=number(self.high, small=is_small),
            n=self.n,
        )


UNDEFINED = Estimate(value=None, low=None, high=None, n=0)
