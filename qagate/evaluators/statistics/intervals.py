"""Intervals for one sample, and the figures with intervals that reports show.

All intervals are two-sided at 95 %. None means "cannot be given"; there is never a NaN. Binomial,
beta and Student's probabilities have eight digits; scipy would take 140 MB more.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Array: TypeAlias = "npt.NDArray[np.float64]"
Interval = tuple[float, float]

Z95 = 1.959963984540054  # the 97.5 % point of the normal distribution
SEED = 20240913
ROUNDS = 2000
WHOLE = (
    1  # added clusters that move as a whole, as Wilson adds successes to a small sample
)
BLOCK = 4_000_000  # numbers in memory at once while resampling


_NEGLIGIBLE = 1e-17  # share of a sum


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function that falls, or rises, from ``low`` to ``high`` is 0."""
    falls = function(low) > 0
    for _ in range(60):  # halvings, for all the digits that a float has
        middle = (low + high) / 2
        low, high = (middle, high) if (function(middle) > 0) is falls else (low, middle)
    return (low + high) / 2


def chance(hits: int, trials: int, share: float) -> float:
    """Return the binomial probability of exactly so many hits, each with probability ``share``."""
    if not 0 < share < 1:
        return float(hits == (trials if share >= 1 else 0))
    ways = (
        math.lgamma(trials + 1) - math.lgamma(hits + 1) - math.lgamma(trials - hits + 1)
    )
    return math.exp(
        ways + hits * math.log(share) + (trials - hits) * math.log1p(-share)
    )


def at_most(hits: int, trials: int, share: float) -> float:
    """Return the binomial probability of at most so many hits."""
    if hits < 0 or hits >= trials:
        return float(hits >= trials)
    other = hits + 1 > trials * share  # the other tail is the shorter one
    if other:
        hits, share = trials - hits - 1, 1 - share
    total = term = chance(hits, trials, share)
    odds = (1 - share) / share if share else 0.0
    while hits and term > _NEGLIGIBLE * total:
        term *= hits / (trials - hits + 1) * odds
        total += term
        hits -= 1
    return 1.0 - total if other else total


def beta_quantile(a: int, b: int, level: float) -> float:
    """Return the quantile of the beta distribution with whole parameters, both above 0."""
    return root(lambda share: at_most(a - 1, a + b - 1, share) - (1 - level), 0.0, 1.0)


@cache
def student_quantile(freedom: float) -> float:
    """Return the 97.5 % point of Student's distribution with so many degrees of freedom, from 1."""
    import numpy as np

    # With t = sqrt(freedom) tan(angle) the density is a power of the cosine.
    nodes, weights = np.polynomial.legendre.leggauss(64)
    factor = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))

    def missing(angle: float) -> float:
        inside = (
            (weights * np.cos(angle * (nodes + 1) / 2) ** (freedom - 1)).sum()
            * angle
            / 2
        )
        return 0.475 - float(factor / math.sqrt(math.pi) * inside)

    widest = min(math.pi / 2, 20 / math.sqrt(freedom))
    return math.sqrt(freedom) * math.tan(root(missing, 0.0, widest))


def wilson(successes: float, n: float, z: float = Z95) -> Interval | None:
    """Return Wilson's score interval of a rate (J. Am. Stat. Assoc. 22:209), or None for ``n`` = 0.

    Neither number need be whole. ``z`` is more than 1.96 where ``n`` was estimated (``quantile``).
    """
    if n <= 0:
        return None
    rate, shrinkage = successes / n, 1 + z**2 / n
    centre = (rate + z**2 / (2 * n)) / shrinkage
    half = (
        z * math.sqrt(max(0.0, rate * (1 - rate)) / n + (z / (2 * n)) ** 2) / shrinkage
    )
    return max(0.0, min(rate, centre - half)), min(1.0, max(rate, centre + half))


def unseen_share(n: float) -> float:
    """Return the largest share of a population that ``n`` items may miss: 1 less Wilson's end."""
    return Z95**2 / (n + Z95**2)


def quantile(clusters: float, trials: float) -> float:
    """Return the 97.5 % point for an interval over ``trials`` in ``clusters``.

    It is the normal distribution's if each trial is its own cluster. Otherwise the number of
    independent trials is estimated, and it is Student's with ``clusters`` - 1 degrees of freedom;
    Bell and McCaffrey (2002), Survey Methodology 28:169, compare such choices.
    """
    if trials <= clusters:
        return Z95
    return student_quantile(max(1.0, clusters - 1))


def clustered_rate(hits: Array, sizes: Array, items: Array) -> Interval | None:
    """Return Wilson's interval of a rate over clusters of dependent trials.

    ``items[i]`` clusters have ``hits[i]`` successes in ``sizes[i]`` trials. The sample counts as
    the number of independent trials with the same variance (``effective_size``). A percentile
    bootstrap would have no width for a rate of 0 or 1.
    """
    n = float((items * sizes).sum())
    if n <= 0:
        return None
    rate = float((items * hits).sum()) / n
    size = effective_size(hits - rate * sizes, sizes, items, rate * (1 - rate))
    estimated = 0 < rate < 1  # without variation each cluster counts as one trial
    z = quantile(float(items[sizes > 0].sum()), n) if estimated else Z95
    return wilson(rate * size, size, z)


def effective_size(
    residuals: Array, sizes: Array, items: Array, variance: float
) -> float:
    """Return the number of independent trials with the same information as the clustered ones.

    ``residuals`` are the deviations of a cluster's sum from its expected sum, ``variance`` is that
    of a single trial. Clustered variance as in Miller (2024), arXiv 2411.00640, section 2.2; design
    effect after Kish (1965). At most the number of trials; without variation, that of clusters. A
    few deviating clusters say little about the dependence within clusters, so that the design
    effect assumes one more (``WHOLE``) that moves as a whole.
    """
    trials = float((items * sizes).sum())
    clusters = float(items[sizes > 0].sum())
    if clusters < 2 or variance <= 0:
        return min(clusters, trials)
    alone = trials * variance  # the spread that independent trials would have
    whole = (
        float((items * sizes**2).sum()) / trials
    )  # the design effect of clusters that are one
    spread, fourth = (float((items * residuals**power).sum()) for power in (2, 4))
    moved = max(spread**2 / fourth if fourth else 0.0, alone / whole)  # clusters, about
    effect = (
        (moved * spread / alone + WHOLE * whole)
        / (moved + WHOLE)
        * clusters
        / (clusters - 1)
    )
    return min(trials, max(1.0, trials / effect))


def cluster_sums(rows: Array, clusters: Sequence[Hashable]) -> Array:
    """Return the sums of the rows of each cluster, in the order of first appearance."""
    import numpy as np

    places = {cluster: place for place, cluster in enumerate(dict.fromkeys(clusters))}
    sums = np.zeros((len(places), *rows.shape[1:]))
    np.add.at(sums, [places[cluster] for cluster in clusters], rows)
    return sums


def resample(patterns: Array, items: Array) -> Array:
    """Return ``ROUNDS`` count tables, each the sum of as many items, drawn with replacement.

    ``patterns[i]`` is the count table of one item, ``items[i]`` how many items have that table:
    drawing the multiplicities from a multinomial is the same as drawing the items one by one.
    The seed is fixed: the same data always give the same interval.
    """
    import numpy as np

    total = items.sum()
    flat = patterns.reshape(len(patterns), -1)
    random = np.random.default_rng(SEED)
    step = max(1, BLOCK // len(patterns))
    sizes = [min(step, ROUNDS - start) for start in range(0, ROUNDS, step)]
    drawn = [
        random.multinomial(int(total), items / total, size=size) @ flat
        for size in sizes
    ]
    return np.concatenate(drawn).reshape(ROUNDS, *patterns.shape[1:])


def percentile(
    numerators: Array, denominators: Array, clusters: float = 0, trials: float = 0
) -> Interval | None:
    """Return the middle 95 % of the resampled ratios.

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
    tail = 2.5
    if clusters < trials:
        reach = quantile(clusters, trials) * math.sqrt(
            clusters / max(1.0, clusters - 1)
        )
        tail = 50 * math.erfc(reach / math.sqrt(2))
    low, high = np.percentile(ratios, [tail, 100 - tail])
    return (float(low), float(high)) if low < high else None


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
    samples = (judged, right_passed, wrong_refused)
    if any(trials <= 0 for _, trials in samples):
        return None
    rate, sensitivity, specificity = (hits / trials for hits, trials in samples)
    if sensitivity + specificity <= 1:
        return None
    value = (rate + specificity - 1) / (sensitivity + specificity - 1)
    low, high = _interval(judged, right_passed, wrong_refused)
    if low >= 1 or high <= 0:
        return None
    point = _clipped(value)
    low, high = min(point, _clipped(low)), max(point, _clipped(high))
    bottom, top = wilson(*judged) or (0.0, 1.0)
    short = max(0.0, top - bottom - (high - low))
    return Estimate.of(
        point, (_clipped(low - short), _clipped(high + short)), round(judged[1])
    )


def _interval(judged: Count, right_passed: Count, wrong_refused: Count) -> Interval:
    samples = ((*judged, Z95**2), (*right_passed, 2), (*wrong_refused, 2))
    n, n_right, n_wrong = (
        trials + added for _, trials, added in samples
    )  # half of these are hits
    rate, sensitivity, specificity = (
        (hits + added / 2) / (trials + added) for hits, trials, added in samples
    )
    gain = sensitivity + specificity - 1
    if gain <= 0:
        return 0.0, 1.0
    value = (rate + specificity - 1) / gain
    missed = sensitivity * (1 - sensitivity) / n_right
    passed = specificity * (1 - specificity) / n_wrong
    shift = 2 * Z95**2 * (value * missed - (1 - value) * passed)
    variance = rate * (1 - rate) / n + value**2 * missed + (1 - value) ** 2 * passed
    reach = Z95 * math.sqrt(variance) / gain
    return value + shift - reach, value + shift + reach


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
        return None if self.low is None or self.high is None else (self.low, self.high)

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


def number(value: float | None, *, small: bool = True) -> str:
    """Return a figure to three decimals, or ``undefined`` (also for NaN and infinities).

    If ``small``, one below a hundredth has three significant digits.
    """
    if value is None or not math.isfinite(value):
        return "undefined"
    if small and 1e-9 < abs(value) < 0.01:
        text = f"{value:.{2 - math.floor(math.log10(abs(value)))}f}".rstrip("0")
        return text if len(text.partition(".")[2]) > 3 else f"{value:.3f}"
    return f"{round(value, 3) + 0.0:.3f}"  # adding 0.0 turns a negative zero into zero


def figure(value: float, *bars: float | None) -> str:
    """Return a number to three decimals; to more where it is smaller, or would look like a bar."""
    missed = [bar for bar in bars if bar is not None and abs(value - bar) > 1e-12]
    least = (
        3 if not 1e-9 < abs(value) < 0.001 else 2 - math.floor(math.log10(abs(value)))
    )
    texts = (f"{value:.{digits}f}" for digits in range(least, 16))
    text = next(text for text in texts if float(text) not in missed)
    return "0" if float(text) == 0 else text.rstrip("0").rstrip(".")


def span_of(interval: Interval) -> str:
    """Return an interval in words, for instance ``0.35 to 0.48``."""
    return f"{figure(interval[0])} to {figure(interval[1])}"
