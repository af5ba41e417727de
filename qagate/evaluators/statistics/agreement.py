"""Agreement of raters: kappa and rank correlation of two, Krippendorff's alpha of any number.

A table counts, in its last two axes, pairs of a first label (row) and a second one (column); axes
before them are separate tables. The ``…_parts`` functions return numerator and denominator, so that
callers can tell undefined (denominator 0) from a number. A unit is the labels of one item by its
raters. Ratings have quadratic weights for kappa and the interval metric for alpha.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any

from qagate.evaluators.output import plural
from qagate.evaluators.statistics import intervals
from qagate.evaluators.statistics.count_table import RATINGS, count_patterns
from qagate.evaluators.statistics.intervals import Array, Estimate, Interval

Parts = Callable[[Array], tuple[Array, Array]]
Closed = Callable[[Array, Array, float], Interval]
"""From the tables of clusters, how many have each, and the number of trials."""

PERFECT = 1 - 1e-9  # a coefficient of 1, allowing for rounding


def kappa_parts(table: Array) -> tuple[Array, Array]:
    """Return Cohen's kappa (1960, Educ. Psychol. Meas. 20:37); undefined for one label only."""
    import numpy as np

    return _weighted_parts(table, 1 - np.eye(table.shape[-1]))


def quadratic_kappa_parts(table: Array) -> tuple[Array, Array]:
    """Return kappa weighted by squared distances of labels: Cohen (1968), Psychol. Bull. 70:213."""
    import numpy as np

    steps = np.arange(table.shape[-1], dtype=np.float64)
    return _weighted_parts(table, (steps[:, None] - steps) ** 2)


def _weighted_parts(
    table: Array, weights: Array, fewer: int = 0
) -> tuple[Array, Array]:
    margins = table.sum(axis=-1)[..., :, None] * table.sum(axis=-2)[..., None, :]
    chance = (weights * margins).sum(axis=(-2, -1))
    seen = (weights * table).sum(axis=(-2, -1)) * (table.sum(axis=(-2, -1)) - fewer)
    return chance - seen, chance


def spearman_parts(table: Array) -> tuple[Array, Array]:
    """Return Spearman's rank correlation (1904, Am. J. Psychol. 15:72); ties share their mean rank.

    Undefined if either side never varies.
    """
    margins = table.sum(axis=-1), table.sum(axis=-2)
    rows, columns = (  # each label's mean rank less the mean of all ranks
        one.cumsum(axis=-1) - one / 2 - one.sum(axis=-1, keepdims=True) / 2
        for one in margins
    )
    covariance = (table * rows[..., :, None] * columns[..., None, :]).sum(axis=(-2, -1))
    variances = (margins[0] * rows**2).sum(axis=-1) * (margins[1] * columns**2).sum(
        axis=-1
    )
    return covariance, variances**0.5


@dataclass(frozen=True, slots=True)
class Coefficient:
    """A coefficient of agreement (at most 1) over tables of counts."""

    parts: Parts
    """The coefficient as a ratio."""
    closed: Closed | None = None
    """A formula of the interval; without one it is a bootstrap."""

    def estimate(self, patterns: Array, items: Array, trials: int) -> Estimate:
        """Return the coefficient if ``items[i]`` clusters have the table ``patterns[i]``.

        ``trials`` counts pairs, or units. The interval of a coefficient of 1, which has no
        variation, is ``perfect_interval``; there is none if most resamples leave it undefined.
        """
        whole = (patterns.T @ items).T
        numerator, denominator = self.parts(whole)
        if not denominator:
            return Estimate.of(None, None, trials)
        value = float(numerator / denominator)
        if value >= PERFECT:
            interval = perfect_interval(whole, float(items.sum()))
        elif self.closed:
            interval = self.closed(patterns, items, trials)
        else:
            interval = intervals.percentile(
                *self.parts(intervals.resample(patterns, items)), items.sum(), trials
            )
        return Estimate.of(value, interval, trials)


def kappa_interval(patterns: Array, items: Array, trials: float) -> Interval:
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
    size = intervals.effective_size(residuals, sizes, items, agreed * (1 - agreed))
    return _rescaled(
        agreed, chance, size, intervals.quantile(float(items.sum()), trials)
    )


def _rescaled(agreed: float, chance: float, size: float, z: float) -> Interval:
    low, high = intervals.wilson(agreed * size, size, z) or (0.0, 1.0)
    return max(-1.0, (low - chance) / (1 - chance)), (high - chance) / (1 - chance)


KAPPA = Coefficient(kappa_parts, kappa_interval)
QUADRATIC_KAPPA = Coefficient(quadratic_kappa_parts)
SPEARMAN = Coefficient(spearman_parts)


def cohen_kappa(
    pairs: Sequence[tuple[str, str]],
    ordered: Sequence[str] = (),
    clusters: Sequence[Hashable] = (),
) -> Estimate:
    """Return Cohen's kappa of label pairs; undefined without variation.

    It has quadratic weights if ``ordered`` gives all labels in order. ``clusters`` names the
    cluster of each pair; without it all pairs are independent.
    """
    labels = ordered or sorted({label for pair in pairs for label in pair})
    places = {label: place for place, label in enumerate(labels)}
    cells = defaultdict(list)
    for cluster, (first, second) in zip(
        clusters or range(len(pairs)), pairs, strict=True
    ):
        cells[cluster].append((places[first], places[second]))
    patterns, items = count_patterns(cells.values(), (len(labels), len(labels)))
    return (QUADRATIC_KAPPA if ordered else KAPPA).estimate(patterns, items, len(pairs))


def perfect_interval(table: Array, items: float) -> Interval | None:
    """Return the interval of a coefficient (kappa, rank correlation) that is 1 in this table.

    Its lower end is Wilson's for the agreement of ``items`` items on the coefficient's scale:
    (low - c) / (1 - c), at least -1, with c the agreement by chance. It serves all, as a judge that
    guesses a share g by the labels' frequencies has 1 - g in each. None if only one label is used.
    """
    shares = table.sum(axis=-1) / table.sum()
    chance = float((shares**2).sum())
    if chance >= PERFECT:
        return None
    return max(-1.0, 1 - intervals.unseen_share(items) / (1 - chance)), 1.0


def krippendorff_alpha(
    units: Sequence[Sequence[Any]], clusters: Sequence[Hashable] = ()
) -> Estimate:
    """Return Krippendorff's alpha of labels, or of numbers (at most 1); ``n`` counts paired units.

    Krippendorff (2011), "Computing Krippendorff's alpha-reliability", forms C and D: two labels
    agree or not; numbers, and ratings in digits, disagree by the square of their difference. Units
    with fewer than two are left out. Undefined without pairs, or if all are equal. ``clusters``
    names the cluster of each unit. The interval of labels is like kappa's (``kappa_interval``), of
    numbers a bootstrap.
    """
    import numpy as np

    every = zip(units, clusters or range(len(units)), strict=True)
    paired = [(unit, own) for unit, own in every if len(unit) > 1]
    labels = sorted({label for unit, _ in paired for label in unit})
    places = {label: place for place, label in enumerate(labels)}
    tables = np.zeros(
        (len(paired), len(labels), len(labels))
    )  # the coincidences of each unit
    for table, (unit, _) in zip(tables, paired, strict=True):
        for one, two in permutations(unit, 2):
            table[places[one], places[two]] += 1 / (len(unit) - 1)
    named = any(isinstance(label, str) for label in labels) and not _are_ratings(units)
    weights = 1 - np.eye(len(labels))
    if not named:
        scale = np.array(labels, dtype=np.float64)
        weights = (scale[:, None] - scale) ** 2
    closed = _label_interval if named else None
    alpha = Coefficient(lambda table: _weighted_parts(table, weights, 1), closed)
    sums = intervals.cluster_sums(tables, [own for _, own in paired])
    return alpha.estimate(sums, np.ones(len(sums)), len(paired))


def _label_interval(patterns: Array, items: Array, trials: float) -> Interval:
    """Return the interval of an alpha of labels below 1, from the coincidences of clusters.

    As ``kappa_interval``: alpha is 1 - (n - 1) D / S for n labels, with D the disagreement within
    units and S that of all pairs of labels. The delta method gives each cluster's part.
    """
    counts = patterns.sum(axis=2)
    totals, sizes = counts.sum(axis=0), counts.sum(axis=1)
    observed = sizes - patterns.trace(axis1=1, axis2=2)
    n, differing = float(totals.sum()), float(observed.sum())
    pairs = n**2 - float((totals**2).sum())
    residuals = 2 * differing / pairs * (n * sizes - counts @ totals)
    residuals = residuals - observed - differing / (n - 1) * sizes
    agreed, chance = 1 - differing / n, 1 - pairs / (n * (n - 1))
    size = intervals.effective_size(residuals, sizes, items, agreed * (1 - agreed))
    return _rescaled(agreed, chance, size, intervals.quantile(len(patterns), trials))


_NUMBERS = ("0", *RATINGS)  # people's own scales may begin at 0


@dataclass(frozen=True, slots=True, kw_only=True)
class PairAgreement:
    """Cohen's kappa of two raters on the items that both labelled."""

    first: str
    second: str
    kappa: Estimate


def kappas(
    raters: Sequence[str],
    rows: Sequence[Sequence[str]],
    clusters: Sequence[Hashable] = (),
) -> tuple[PairAgreement, ...]:
    """Return the kappa of every two raters.

    A row has an item's labels in the order of the raters, ``""`` if one gave none; ``clusters`` are
    those of the rows.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far raters agree on one group of units."""

    group: str = ""
    """Empty for all units."""
    items: int
    """The units with two labels or more."""
    raw: Estimate
    """The share of pairs of labels that are equal; the interval is clustered by unit."""
    alpha: Estimate
    """Krippendorff's."""
    pairs: tuple[PairAgreement, ...]
    """Cohen's kappa of raters who labelled units in common."""

    def lines(self, noun: str) -> Iterator[str]:
        """Say how far raters agree on these units, then how far every two of them do."""
        forms = (
            "{value} [{low}, {high}] (n={n})",
            "{value} [interval undefined] (n={n})",
        )
        if self.items:
            raw, alpha = self.raw.text(*forms), self.alpha.text(*forms)
            seen = f"{plural(self.items, noun)} seen by more than one"
            yield f"{seen}: agreement {raw}, alpha {alpha}"
        for pair in self.pairs:
            yield f"  {pair.first} and {pair.second}: kappa {pair.kappa.text(*forms)}"


def agreement_among(
    units: Sequence[Mapping[str, str]],
    clusters: Sequence[Hashable] = (),
    group: str = "",
) -> Agreement:
    """Return how far raters agree; a unit has the label that each of its raters gave, by name."""
    import numpy as np

    labels = [[*said.values()] for said in units]
    equal = [
        [a == b for a, b in combinations(said, 2)] for said in labels if len(said) > 1
    ]
    hits, sizes = (
        np.array([*map(count, equal)], dtype=np.float64) for count in (sum, len)
    )
    n = int(sizes.sum())
    interval = intervals.clustered_rate(hits, sizes, np.ones_like(hits))
    names = sorted({name for said in units for name in said})
    pairs = kappas(
        names, [[said.get(name, "") for name in names] for said in units], clusters
    )
    return Agreement(
        group=group,
        items=len(equal),
        raw=Estimate.of(float(hits.sum()) / n if n else None, interval, n),
        alpha=krippendorff_alpha(labels, clusters),
        pairs=tuple(pair for pair in pairs if pair.kappa.n),
    )
