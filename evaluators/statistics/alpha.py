"""Krippendorff's alpha: how far any number of raters agree on labels, or on numbers.

Numerators and denominators are sums over units; a unit is what the raters of one item said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Sequence, Sized
from typing import TYPE_CHECKING

from evaluators.statistics.agreement import PERFECT, perfect_interval, rescaled
from evaluators.statistics.estimate import Estimate
from evaluators.statistics.intervals import (
    Interval,
    cluster_sums,
    effective_size,
    percentile,
    quantile,
    resample,
)

if TYPE_CHECKING:
    from evaluators.statistics.intervals import Array

    Parts = Callable[[Array], tuple[Array, Array]]


def krippendorff_alpha(
    units: Sequence[Sequence[str]], clusters: Sequence[Hashable] = ()
) -> Estimate:
    """Return Krippendorff's alpha of unordered labels (at most 1); ``n`` counts paired units.

    A unit is what the raters of one item said; units with fewer than two ratings are left out.
    Krippendorff (2011), "Computing Krippendorff's alpha-reliability", form C. Undefined where
    nothing pairs or one label only is in use. ``clusters`` says of each unit what it is not
    independent of. The interval is made as kappa's is (``kappa_interval``).
    """
    import numpy as np

    paired = [Counter(labels) for labels in units if len(labels) > 1]
    names = sorted({label for counts in paired for label in counts})
    rows = [[*(counts[name] for name in names), _disagreement(counts)] for counts in paired]
    sums = np.array(rows, dtype=np.float64).reshape(len(paired), len(names) + 1)
    agreed = np.diag(sums[:, :-1].sum(axis=0)) if not sums[:, -1].any() else None
    return _alpha(sums, _label_parts, agreed, _of_paired(units, clusters), _label_interval)


def interval_alpha(units: Sequence[Sequence[float]], clusters: Sequence[Hashable] = ()) -> Estimate:
    """Return alpha of numbers, disagreement growing with the square of their difference.

    Form D of the source of ``krippendorff_alpha``, whose ``clusters`` these are. Undefined where
    nothing pairs or all numbers are the same. The interval is a bootstrap over clusters.
    """
    import numpy as np

    paired = [unit for unit in units if len(unit) > 1]
    flat = [value for unit in paired for value in unit]
    # Alpha does not change when all numbers move together; the sums of squares lose less then.
    middle = sum(flat) / len(flat) if flat else 0.0
    rows = [_moments([value - middle for value in unit]) for unit in paired]
    sums = np.array(rows, dtype=np.float64).reshape(len(rows), 4)
    numerator, denominator = _number_parts(sums.sum(axis=0))
    agreed = None
    if denominator > 0 and numerator / denominator >= PERFECT:
        counts = Counter(unit[0] for unit in paired)
        agreed = np.diag(np.array([*counts.values()], dtype=np.float64))
    return _alpha(sums, _number_parts, agreed, _of_paired(units, clusters))


def _of_paired(units: Sequence[Sized], clusters: Sequence[Hashable]) -> list[Hashable]:
    """Return the clusters of the units that pair; each is its own where none are given."""
    every = clusters or range(len(units))
    return [own for unit, own in zip(units, every, strict=True) if len(unit) > 1]


def _alpha(
    units: Array,
    parts: Parts,
    agreed: Array | None,
    clusters: Sequence[Hashable],
    closed: Callable[[Array, int], Interval] | None = None,
) -> Estimate:
    """Return alpha from the sums of each unit; ``agreed`` counts labels where no unit differs."""
    import numpy as np

    n, sums = len(units), cluster_sums(units, clusters)
    numerator, denominator = parts(sums.sum(axis=0))
    if not denominator > 0:
        return Estimate.of(None, None, n)
    value = float(numerator / denominator)
    if agreed is not None:
        interval = perfect_interval(agreed, len(sums))
    elif closed:
        interval = closed(sums, n)
    else:
        drawn = resample(sums, np.ones(len(sums)))
        interval = percentile(*parts(drawn), len(sums), n)
    return Estimate.of(value, interval, n)


def _label_interval(sums: Array, units: int) -> Interval:
    """Return the interval of an alpha of labels below 1, from the sums of clusters of units.

    As ``kappa_interval``: alpha is 1 - (n - 1) D / S of the n labels, D the disagreement within
    units and S that of all pairs of labels; each cluster's part in it by the delta method.
    """
    import numpy as np

    counts, observed = sums[:, :-1], sums[:, -1]
    totals, sizes = counts.sum(axis=0), counts.sum(axis=1)
    n, differing = float(totals.sum()), float(observed.sum())
    pairs = n**2 - float((totals**2).sum())
    residuals = 2 * differing / pairs * (n * sizes - counts @ totals)
    residuals = residuals - observed - differing / (n - 1) * sizes
    agreed, chance = 1 - differing / n, 1 - pairs / (n * (n - 1))
    size = effective_size(residuals, sizes, np.ones(len(sums)), agreed * (1 - agreed))
    return rescaled(agreed, chance, size, quantile(len(sums), units))


def _disagreement(counts: Counter[str]) -> float:
    """Return the ordered pairs of raters that differ, by all the partners that a rater has."""
    total = counts.total()
    return (total**2 - sum(count * count for count in counts.values())) / (total - 1)


def _label_parts(sums: Array) -> tuple[Array, Array]:
    counts, observed = sums[..., :-1], sums[..., -1]
    n = counts.sum(axis=-1)
    expected = n**2 - (counts**2).sum(axis=-1)
    return expected - (n - 1) * observed, expected


def _moments(values: Sequence[float]) -> tuple[float, float, float, float]:
    size, total = len(values), sum(values)
    mean = total / size
    spread = sum((value - mean) ** 2 for value in values)
    return size, total, sum(value**2 for value in values), 2 * size * spread / (size - 1)


def _number_parts(sums: Array) -> tuple[Array, Array]:
    n, total, squares, observed = (sums[..., place] for place in range(4))
    expected = 2 * (n * squares - total**2)
    # Rounding may leave a trace where all numbers of a round are the same.
    expected = expected * (expected > 1e-9 * (1 + n * squares))
    return expected - (n - 1) * observed, expected
