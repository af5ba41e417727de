"""Intervals for one sample, and the figures with intervals that reports show.

All intervals are two-sided at 95 %. None means "cannot be given"; there is never a NaN.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]


Interval = tuple[float, float]

Z95 = 1.959963984540054  # the 97.5 % point of the normal distribution
SEED = 20240913
ROUNDS = 2000
WHOLE = 1  # clusters added that move as a whole, as others add successes to a small sample
BLOCK = 4_000_000  # numbers held at once while resampling


def wilson(successes: float, n: float, z: float = Z95) -> Interval | None:
    """Return Wilson's score interval of a rate, or None for ``n`` = 0.

    Wilson (1927), J. Am. Stat. Assoc. 22:209. Neither number need be whole. ``z`` is the quantile
    of the level: 1.96 for 95 %, more where ``n`` was estimated (``quantile``).
    """
    if n <= 0:
        return None
    rate, shrinkage = successes / n, 1 + z**2 / n
    centre = (rate + z**2 / (2 * n)) / shrinkage
    half = z * math.sqrt(max(0.0, rate * (1 - rate)) / n + (z / (2 * n)) ** 2) / shrinkage
    return max(0.0, min(rate, centre - half)), min(1.0, max(rate, centre + half))


def unseen_share(n: float) -> float:
    """Return how large a share of a population may be although none of ``n`` items showed it.

    It is what Wilson's interval leaves open at ``n`` of ``n``: z² / (n + z²); 1 for ``n`` = 0.
    """
    return Z95**2 / (n + Z95**2)


def quantile(clusters: float, trials: float) -> float:
    """Return the 97.5 % point for an interval over so many trials in so many clusters.

    It is that of the normal distribution where each trial is its own cluster. Otherwise it is
    Student's with ``clusters`` - 1 degrees of freedom, for the number of independent trials
    (``effective_size``) is then estimated from how the clusters differ. Bell and McCaffrey (2002),
    Survey Methodology 28:169, compare such choices.
    """
    if trials <= clusters:
        return Z95
    from scipy.special import stdtrit

    return float(stdtrit(max(1.0, clusters - 1), 0.975))


def clustered_rate(hits: Array, sizes: Array, items: Array) -> Interval | None:
    """Return Wilson's interval of a rate over clusters of trials that hang together.

    Entry by entry: ``items`` is how many clusters had ``hits`` successes in ``sizes`` trials. The
    sample counts as the number of independent trials that would leave the same variance
    (``effective_size``). A percentile bootstrap would have no width where the rate is 0 or 1.
    """
    n = float((items * sizes).sum())
    if n <= 0:
        return None
    rate = float((items * hits).sum()) / n
    size = effective_size(hits - rate * sizes, sizes, items, rate * (1 - rate))
    estimated = 0 < rate < 1  # where nothing varies, the clusters are taken for the trials
    z = quantile(float(items[sizes > 0].sum()), n) if estimated else Z95
    return wilson(rate * size, size, z)


def effective_size(residuals: Array, sizes: Array, items: Array, variance: float) -> float:
    """Return how many independent trials are worth as much as these clustered ones.

    ``residuals`` are the deviations of a cluster's sum from its expected sum, ``variance`` that of
    a single trial. Clustered variance as in Miller (2024), arXiv 2411.00640, section 2.2; design
    effect after Kish (1965). Never above the number of trials. Where nothing varies, repeating
    an item taught nothing, so that only the clusters count. A few clusters that deviate say little
    of how much a cluster hangs together: the design effect is taken as if one more of them
    (``WHOLE``) had moved as a whole.
    """
    trials = float((items * sizes).sum())
    clusters = float(items[sizes > 0].sum())
    if clusters < 2 or variance <= 0:
        return min(clusters, trials)
    alone = trials * variance  # the spread that independent trials would have
    whole = float((items * sizes**2).sum()) / trials  # the design effect of clusters that are one
    spread, fourth = (float((items * residuals**power).sum()) for power in (2, 4))
    moved = max(spread**2 / fourth if fourth else 0.0, alone / whole)  # clusters, about
    effect = (moved * spread / alone + WHOLE * whole) / (moved + WHOLE) * clusters / (clusters - 1)
    return min(trials, max(1.0, trials / effect))


def cluster_sums(rows: Array, clusters: Sequence[Hashable]) -> Array:
    """Return the sums of the rows of each cluster, in the order in which the clusters come."""
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
    drawn = [random.multinomial(int(total), items / total, size=size) @ flat for size in sizes]
    return np.concatenate(drawn).reshape(ROUNDS, *patterns.shape[1:])


def percentile(
    numerators: Array, denominators: Array, clusters: float = 0, trials: float = 0
) -> Interval | None:
    """Return the middle 95 % of the resampled ratios.

    Rounds with denominator 0 are left out. None where they are more than half, or where all the
    rest agree: a sample without variation says nothing about how wide the interval should be.
    Where fewer ``clusters`` than ``trials`` were drawn it is the wider middle that Hesterberg
    (2015), Am. Stat. 69:371, gives for small samples: Student's quantile by √(n / (n - 1)).
    """
    import numpy as np

    defined = denominators != 0
    if 2 * int(defined.sum()) < len(denominators):
        return None
    ratios = numerators[defined] / denominators[defined]
    tail = 2.5
    if clusters < trials:
        reach = quantile(clusters, trials) * math.sqrt(clusters / max(1.0, clusters - 1))
        tail = 50 * math.erfc(reach / math.sqrt(2))
    low, high = np.percentile(ratios, [tail, 100 - tail])
    return (float(low), float(high)) if low < high else None


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


def corrected_rate(
    judged: Count, right_passed: Count, wrong_refused: Count
) -> CorrectedRate | None:
    """Return the share of truly correct answers behind the share that a judge called CORRECT.

    ``judged``: answers called CORRECT, of all. ``right_passed``: of the labelled items that are
    correct, those that the judge called CORRECT (sensitivity). ``wrong_refused``: of those that
    are not, those that it did not call CORRECT (specificity). The estimate is Rogan and Gladen's
    (1978), Am. J. Epidemiol. 107:71; the interval, from all three samples, that of Lang and
    Reiczigel (2014), Prev. Vet. Med. 113:13. Both are clipped to 0..1. None without trials, or
    where sensitivity + specificity is not above 1: such a judge tells nothing apart.
    """
    samples = (judged, right_passed, wrong_refused)
    if any(trials <= 0 for _, trials in samples):
        return None
    rate, sensitivity, specificity = (hits / trials for hits, trials in samples)
    if sensitivity + specificity <= 1:
        return None
    value = (rate + specificity - 1) / (sensitivity + specificity - 1)
    low, high = _interval(judged, right_passed, wrong_refused)
    point = _clipped(value)
    return CorrectedRate(
        value=point,
        interval=(min(point, low), max(point, high)),
        sensitivity=sensitivity,
        specificity=specificity,
    )


def _interval(judged: Count, right_passed: Count, wrong_refused: Count) -> Interval:
    rate, n = _padded(judged, Z95**2)
    sensitivity, n_right = _padded(right_passed, 2)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure with its 95 % interval.

    ``value`` is None where the figure is undefined: never 0, never NaN. ``low`` and ``high`` are
    None where no interval can be given. ``n`` counts the items behind the figure.
    """

    value: float | None
    low: float | None
    high: float | None
    n: int

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

        The templates may use ``value``, ``low``, ``high`` and ``n``: ``full`` where there is an
        interval, ``bare`` where there is none, ``undefined`` where there is no value either.
        """
        form = undefined if self.value is None else full if self.interval else bare
        numbers = {name: number(getattr(self, name)) for name in ("value", "low", "high")}
        return form.format(**numbers, n=self.n)


UNDEFINED = Estimate(value=None, low=None, high=None, n=0)


def number(value: float | None) -> str:
    """Return a figure to three decimals, or ``undefined`` (also for NaN and infinities).

    Below a hundredth, where that would say little of a price, it has three digits that count.
    """
    if value is None or not math.isfinite(value):
        return "undefined"
    if 1e-9 < abs(value) < 0.01:
        text = f"{value:.{2 - math.floor(math.log10(abs(value)))}f}".rstrip("0")
        return text if len(text.partition(".")[2]) > 3 else f"{value:.3f}"
    return f"{round(value, 3) + 0.0:.3f}"  # adding 0.0 turns a negative zero into zero


def figure(value: float, *bars: float | None) -> str:
    """Return a number to three decimals; to more where it is smaller, or would look like a bar."""
    missed = [bar for bar in bars if bar is not None and abs(value - bar) > 1e-12]
    least = 3 if not 1e-9 < abs(value) < 0.001 else 2 - math.floor(math.log10(abs(value)))
    texts = (f"{value:.{digits}f}" for digits in range(least, 16))
    text = next(text for text in texts if float(text) not in missed)
    return "0" if float(text) == 0 else text.rstrip("0").rstrip(".")


def span_of(interval: Interval) -> str:
    """Return an interval in words, for instance ``0.35 to 0.48``."""
    return f"{figure(interval[0])} to {figure(interval[1])}"
