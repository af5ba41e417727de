"""Agreement of raters: kappa and rank correlation of two, Krippendorff's alpha of any number.

A table counts, in its last two axes, pairs of a first label (row) and a second one (column); axes
before them are separate tables. The ``…_parts`` functions return numerator and denominator, so that
callers can tell undefined (denominator 0) from a number. Alpha sums over units: the labels of one
item by its raters. Ratings have quadratic weights for kappa and the interval metric for alpha.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable, Sequence, Sized
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from evaluators.statistics.count_table import RATINGS, count_patterns
from evaluators.statistics.intervals import (
    Estimate,
    Interval,
    cluster_sums,
    clustered_rate,
    effective_size,
    percentile,
    quantile,
    resample,
    unseen_share,
    wilson,
)

if TYPE_CHECKING:
    from evaluators.statistics.intervals import Array

    Parts = Callable[[Array], tuple[Array, Array]]


PERFECT = 1 - 1e-9  # a coefficient of 1, allowing for rounding


def kappa_parts(table: Array) -> tuple[Array, Array]:
    """Return Cohen's kappa as a ratio: agreement beyond chance by the most possible beyond chance.

    Cohen (1960), Educ. Psychol. Meas. 20:37. Undefined if both sides use one label only.
    """
    total = table.sum(axis=(-2, -1))
    chance = (table.sum(axis=-1) * table.sum(axis=-2)).sum(axis=-1)
    agreed = table.diagonal(axis1=-2, axis2=-1).sum(axis=-1)
    return total * agreed - chance, total**2 - chance


def quadratic_kappa_parts(table: Array) -> tuple[Array, Array]:
    """Return kappa weighted by the square of the distance between ordered labels.

    Cohen (1968), Psychol. Bull. 70:213. Undefined if both sides use one label only.
    """
    import numpy as np

    steps = np.arange(table.shape[-1], dtype=np.float64)
    weights = (steps[:, None] - steps) ** 2
    margins = table.sum(axis=-1)[..., :, None] * table.sum(axis=-2)[..., None, :]
    chance = (weights * margins).sum(axis=(-2, -1))
    seen = (weights * table).sum(axis=(-2, -1)) * table.sum(axis=(-2, -1))
    return chance - seen, chance


def spearman_parts(table: Array) -> tuple[Array, Array]:
    """Return Spearman's rank correlation (ties share their mean rank) as covariance by deviations.

    Spearman (1904), Am. J. Psychol. 15:72. Undefined if either side never varies.
    """
    import numpy as np

    rows, columns = _centred_ranks(table.sum(axis=-1)), _centred_ranks(table.sum(axis=-2))
    covariance = (table * rows[..., :, None] * columns[..., None, :]).sum(axis=(-2, -1))
    row_variance = (table.sum(axis=-1) * rows**2).sum(axis=-1)
    column_variance = (table.sum(axis=-2) * columns**2).sum(axis=-1)
    return covariance, np.sqrt(row_variance * column_variance)


def _centred_ranks(margin: Array) -> Array:
    """Return each label's mean rank less the mean of all ranks."""
    half: Array = margin.sum(axis=-1, keepdims=True) / 2
    return margin.cumsum(axis=-1) - margin / 2 - half


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient of agreement (at most 1) over tables of counts."""

    parts: Parts
    """The coefficient as a ratio."""
    closed: Callable[[Array, Array], Interval] | None = None
    """A formula of the interval, from the tables of clusters and how many have each; without one it
    is a bootstrap."""

    def of(
        self,
        cells: Sequence[tuple[int, int]],
        shape: tuple[int, int],
        clusters: Sequence[Hashable] = (),
    ) -> Estimate:
        """Return the coefficient of pairs of labels, each a cell of a table of this shape.

        ``clusters`` names the cluster of each pair; without it all pairs are independent.
        """
        groups = defaultdict(list)
        for place, cell in enumerate(cells):
            groups[clusters[place] if clusters else place].append(cell)
        patterns, items = count_patterns(groups.values(), shape)
        numerator, denominator = self.parts((patterns.T @ items).T)
        if not cells or not denominator:
            return Estimate.of(None, None, len(cells))
        value = float(numerator / denominator)
        return Estimate.of(value, self.interval(patterns, items), len(cells))

    def interval(self, patterns: Array, items: Array) -> Interval | None:
        """Return the 95 % interval if ``items[i]`` clusters have the table ``patterns[i]``.

        For a coefficient of 1, which has no variation, it is ``perfect_interval``. None if the
        coefficient is undefined, here or in most resamples.
        """
        whole = (patterns.T @ items).T
        numerator, denominator = self.parts(whole)
        if not denominator:
            return None
        if numerator / denominator >= PERFECT:
            return perfect_interval(whole, float(items.sum()))
        if self.closed:
            return self.closed(patterns, items)
        return percentile(*self.parts(resample(patterns, items)), items.sum(), whole.sum())


def kappa_interval(patterns: Array, items: Array) -> Interval:
    """Return the interval of a defined kappa below 1, for clusters with these tables.

    It is Wilson's interval of the agreement on kappa's scale, for as many independent items as give
    kappa the same variance: Fleiss, Cohen and Everitt (1969), Psychol. Bull. 72:323, summed by
    cluster. A bootstrap is too narrow near 1.
    """
    import numpy as np

    whole = (patterns.T @ items).T
    total = whole.sum()
    rows, columns = whole.sum(axis=1) / total, whole.sum(axis=0) / total
    agreed, chance = float(np.trace(whole) / total), float(rows @ columns)
    missed = (1 - agreed) / (1 - chance)
    weights = np.eye(len(rows)) - agreed
    weights = weights - missed * (columns[:, None] + rows[None, :] - 2 * chance)
    sizes = patterns.sum(axis=(1, 2))
    residuals = (patterns * weights).sum(axis=(1, 2))
    size = effective_size(residuals, sizes, items, agreed * (1 - agreed))
    return rescaled(agreed, chance, size, quantile(float(items.sum()), float(total)))


def rescaled(agreed: float, chance: float, size: float, z: float) -> Interval:
    """Return Wilson's interval of an agreement, corrected for agreement by chance."""
    low, high = wilson(agreed * size, size, z) or (0.0, 1.0)
    return max(-1.0, (low - chance) / (1 - chance)), (high - chance) / (1 - chance)


KAPPA = Coefficient(kappa_parts, kappa_interval)
QUADRATIC_KAPPA = Coefficient(quadratic_kappa_parts)
SPEARMAN = Coefficient(spearman_parts)


def cohen_kappa(
    pairs: Sequence[tuple[str, str]], ordered: Sequence[str] = (), clusters: Sequence[Hashable] = ()
) -> Estimate:
    """Return Cohen's kappa of label pairs; undefined without variation.

    It has quadratic weights if ``ordered`` gives all labels in order. ``clusters`` as in
    ``Coefficient.of``.
    """
    labels = ordered or sorted({label for pair in pairs for label in pair})
    places = {label: place for place, label in enumerate(labels)}
    cells = [(places[first], places[second]) for first, second in pairs]
    return (QUADRATIC_KAPPA if ordered else KAPPA).of(cells, (len(labels), len(labels)), clusters)


def perfect_interval(table: Array, items: float) -> Interval | None:
    """Return the interval of a coefficient (kappa, rank correlation) that is 1 in this table.

    Its lower end is Wilson's for the agreement of ``items`` items on the coefficient's scale:
    (low - c) / (1 - c), with c the agreement by chance. A judge that guesses a share g of the items
    by the labels' frequencies agrees on 1 - g(1 - c), and its kappa, weighted kappa and rank
    correlation are all 1 - g; so one bound serves all. At least -1; None if only one label is used.
    """
    shares = table.sum(axis=-1) / table.sum()
    chance = float((shares**2).sum())
    if chance >= PERFECT:
        return None
    return max(-1.0, 1 - unseen_share(items) / (1 - chance)), 1.0


def krippendorff_alpha(
    units: Sequence[Sequence[str]], clusters: Sequence[Hashable] = ()
) -> Estimate:
    """Return Krippendorff's alpha of unordered labels (at most 1); ``n`` counts paired units.

    Units with fewer than two labels are left out. Krippendorff (2011), "Computing Krippendorff's
    alpha-reliability", form C. Undefined without pairs, or if only one label is used. ``clusters``
    names the cluster of each unit. The interval is like kappa's (``kappa_interval``).
    """
    import numpy as np

    paired = [Counter(labels) for labels in units if len(labels) > 1]
    names = sorted({label for counts in paired for label in counts})
    rows = [[*(counts[name] for name in names), _disagreement(counts)] for counts in paired]
    sums = np.array(rows, dtype=np.float64).reshape(len(paired), len(names) + 1)
    agreed = np.diag(sums[:, :-1].sum(axis=0)) if not sums[:, -1].any() else None
    return _alpha(sums, _label_parts, agreed, (units, clusters), _label_interval)


def interval_alpha(units: Sequence[Sequence[float]], clusters: Sequence[Hashable] = ()) -> Estimate:
    """Return alpha of numbers, whose disagreement is the square of their difference.

    Form D of the source of ``krippendorff_alpha``; ``clusters`` as there. Undefined without pairs,
    or if all numbers are equal. The interval is a bootstrap over clusters.
    """
    import numpy as np

    paired = [unit for unit in units if len(unit) > 1]
    flat = [value for unit in paired for value in unit]
    # Shifting all numbers does not change alpha, and sums of squares lose less precision.
    middle = sum(flat) / len(flat) if flat else 0.0
    rows = [_moments([value - middle for value in unit]) for unit in paired]
    sums = np.array(rows, dtype=np.float64).reshape(len(rows), 4)
    numerator, denominator = _number_parts(sums.sum(axis=0))
    agreed = None
    if denominator > 0 and numerator / denominator >= PERFECT:
        counts = Counter(unit[0] for unit in paired)
        agreed = np.diag(np.array([*counts.values()], dtype=np.float64))
    return _alpha(sums, _number_parts, agreed, (units, clusters))


def _alpha(
    rows: Array,
    parts: Parts,
    agreed: Array | None,
    clustered: tuple[Sequence[Sized], Sequence[Hashable]],
    closed: Callable[[Array, int], Interval] | None = None,
) -> Estimate:
    """Return alpha from the sums of each unit that pairs; ``agreed`` counts labels if all agree.

    ``clustered`` has all units and their clusters; by default each unit is its own.
    """
    import numpy as np

    units, clusters = clustered
    every = zip(units, clusters or range(len(units)), strict=True)
    n, sums = len(rows), cluster_sums(rows, [own for unit, own in every if len(unit) > 1])
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

    As ``kappa_interval``: alpha is 1 - (n - 1) D / S for n labels, with D the disagreement within
    units and S that of all pairs of labels. The delta method gives each cluster's part.
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
    """Return the number of ordered pairs of raters that differ, divided by raters - 1."""
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
    # Rounding may leave a trace if all numbers of a resample are equal.
    expected = expected * (expected > 1e-9 * (1 + n * squares))
    return expected - (n - 1) * observed, expected


_NUMBERS = ("0", *RATINGS)  # people's own scales may begin at 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PairAgreement:
    """Cohen's kappa of two raters on the items that both labelled."""

    first: str
    second: str
    kappa: Estimate


def raw_agreement(units: Sequence[Sequence[str]]) -> Estimate:
    """Return the share of pairs of labels that are equal; the interval is clustered by unit."""
    import numpy as np

    pairs = [[one == two for one, two in combinations(unit, 2)] for unit in units]
    hits = np.array([sum(unit) for unit in pairs], dtype=np.float64)
    sizes = np.array([len(unit) for unit in pairs], dtype=np.float64)
    n = int(sizes.sum())
    value = float(hits.sum()) / n if n else None
    return Estimate.of(value, clustered_rate(hits, sizes, np.ones_like(hits)), n)


def alpha_of(units: Sequence[Sequence[str]], clusters: Sequence[Hashable] = ()) -> Estimate:
    """Return Krippendorff's alpha of each unit's labels; ``n`` counts units with two or more.

    ``clusters`` names the cluster of each unit; without it all units are independent.
    """
    if _are_ratings(units):
        return interval_alpha([[float(label) for label in unit] for unit in units], clusters)
    return krippendorff_alpha(units, clusters)


def kappas(
    raters: Sequence[str], rows: Sequence[Sequence[str]], clusters: Sequence[Hashable] = ()
) -> tuple[PairAgreement, ...]:
    """Return the kappa of every two raters.

    A row has an item's labels in the order of the raters, ``""`` if one gave none; ``clusters`` are
    those of the rows, as in ``alpha_of``.
    """
    found = []
    for one, two in combinations(range(len(raters)), 2):
        places = [place for place, row in enumerate(rows) if row[one] and row[two]]
        pairs = [(rows[place][one], rows[place][two]) for place in places]
        own = [clusters[place] for place in places] if clusters else ()
        kappa = cohen_kappa(pairs, _NUMBERS if _are_ratings(pairs) else (), own)
        found.append(PairAgreement(first=raters[one], second=raters[two], kappa=kappa))
    return tuple(found)


def _are_ratings(units: Iterable[Sequence[str]]) -> bool:
    found = {label for unit in units for label in unit}
    return bool(found) and found <= set(_NUMBERS)
