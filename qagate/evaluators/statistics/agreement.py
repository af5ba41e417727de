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
"""Returns a coefficient's numerator and denominator, from tables."""

ClosedInterval = Callable[[Array, Array, float], Interval]
"""From the tables of clusters, how many have each, and the number of trials."""

PERFECT = 1 - 1e-9
"""A coefficient of 1, allowing for rounding."""


def kappa_parts(table: Array) -> tuple[Array, Array]:
    """Return Cohen's kappa, -1 to 1; undefined for one label only.

    Cohen (1960), Educ. Psychol. Meas. 20:37: 1 less the disagreement seen, divided by that of
    chance.
    """
    import numpy as np

    return _weighted_parts(table, 1 - np.eye(table.shape[-1]))


def quadratic_kappa_parts(table: Array) -> tuple[Array, Array]:
    """Return kappa weighted by squared distances of labels, -1 to 1.

    Cohen (1968), Psychol. Bull. 70:213. The distance is that of the labels' places in the table.
    """
    import numpy as np

    steps = np.arange(table.shape[-1], dtype=np.float64)
    return _weighted_parts(table, (steps[:, None] - steps) ** 2)


def _weighted_parts(
    table: Array, weights: Array, fewer: int = 0
) -> tuple[Array, Array]:
    """Return 1 - seen / chance for the weighted disagreement that is seen, and that of chance.

    Chance pairs the labels of both sides at random. It pairs each label with ``fewer`` labels less
    than there are: 1 where both sides are one set of labels, as a label is not paired with itself.
    """
    total = table.sum(axis=(-2, -1))
    row_totals = table.sum(axis=-1)
    column_totals = table.sum(axis=-2)
    by_chance = row_totals[..., :, None] * column_totals[..., None, :]
    chance = (weights * by_chance).sum(axis=(-2, -1))
    seen = (weights * table).sum(axis=(-2, -1)) * (total - fewer)
    return chance - seen, chance


def spearman_parts(table: Array) -> tuple[Array, Array]:
    """Return Spearman's rank correlation, -1 to 1; ties share their mean rank.

    Spearman (1904), Am. J. Psychol. 15:72. Undefined if either side never varies.
    """
    row_totals = table.sum(axis=-1)
    column_totals = table.sum(axis=-2)
    row_ranks = _centred_ranks(row_totals)
    column_ranks = _centred_ranks(column_totals)
    products = table * row_ranks[..., :, None] * column_ranks[..., None, :]
    covariance = products.sum(axis=(-2, -1))
    row_variance = (row_totals * row_ranks**2).sum(axis=-1)
    column_variance = (column_totals * column_ranks**2).sum(axis=-1)
    return covariance, (row_variance * column_variance) ** 0.5


def _centred_ranks(totals: Array) -> Array:
    """Return each label's mean rank less the mean of all ranks, from how often it was given."""
    up_to_label = totals.cumsum(axis=-1)
    all_labels = totals.sum(axis=-1, keepdims=True)
    ranks: Array = up_to_label - totals / 2 - all_labels / 2
    return ranks


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """A coefficient of agreement (at most 1) over tables of counts."""

    parts: Parts
    """The coefficient as a ratio."""
    closed_interval: ClosedInterval | None = None
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
        elif self.closed_interval is not None:
            interval = self.closed_interval(patterns, items, trials)
        else:
            resamples = intervals.resample(patterns, items)
            tops, bottoms = self.parts(resamples)
            interval = intervals.percentile(tops, bottoms, items.sum(), trials)
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
    row_shares = whole.sum(axis=1) / total
    column_shares = whole.sum(axis=0) / total
    agreed = float(np.trace(whole) / total)
    chance = float(row_shares @ column_shares)
    # How much a pair in each cell moves kappa, on the scale of the agreement.
    missed = (1 - agreed) / (1 - chance)
    influence_on_chance = column_shares[:, None] + row_shares[None, :] - 2 * chance
    influence = np.eye(len(row_shares)) - agreed
    influence = influence - missed * influence_on_chance
    sizes = patterns.sum(axis=(1, 2))
    residuals = (patterns * influence).sum(axis=(1, 2))
    size = intervals.effective_size(residuals, sizes, items, agreed * (1 - agreed))
    z = intervals.quantile(float(items.sum()), trials)
    return _rescaled(agreed, chance, size, z)


def _rescaled(agreed: float, chance: float, size: float, z: float) -> Interval:
    """Return Wilson's interval of an agreement over ``size`` items, on a coefficient's scale.

    There the agreement by ``chance`` is 0, and full agreement is 1.
    """
    low, high = intervals.wilson(agreed * size, size, z) or (0.0, 1.0)
    low = (low - chance) / (1 - chance)
    high = (high - chance) / (1 - chance)
    return max(-1.0, low), high


KAPPA = Coefficient(parts=kappa_parts, closed_interval=kappa_interval)
QUADRATIC_KAPPA = Coefficient(parts=quadratic_kappa_parts)
SPEARMAN = Coefficient(parts=spearman_parts)


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
    cluster_names = clusters or range(len(pairs))
    for cluster, (first, second) in zip(cluster_names, pairs, strict=True):
        cells[cluster].append((places[first], places[second]))
    patterns, items = count_patterns(cells.values(), (len(labels), len(labels)))
    coefficient = QUADRATIC_KAPPA if ordered else KAPPA
    return coefficient.estimate(patterns, items, len(pairs))


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
    low = 1 - intervals.unseen_share(items) / (1 - chance)
    return max(-1.0, low), 1.0


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

    paired_units = []
    clusters_of_units = []
    cluster_names = clusters or range(len(units))
    for unit, cluster in zip(units, cluster_names, strict=True):
        if len(unit) > 1:
            paired_units.append(unit)
            clusters_of_units.append(cluster)
    labels = sorted({label for unit in paired_units for label in unit})
    has_words = any(isinstance(label, str) for label in labels)
    closed_interval: ClosedInterval | None
    if has_words and not _are_ratings(units):
        weights = 1 - np.eye(len(labels))
        closed_interval = _label_interval
    else:
        scale = np.array(labels, dtype=np.float64)
        weights = (scale[:, None] - scale) ** 2
        closed_interval = None

    def parts(table: Array) -> tuple[Array, Array]:
        return _weighted_parts(table, weights, fewer=1)

    alpha = Coefficient(parts=parts, closed_interval=closed_interval)
    tables = _coincidences(paired_units, labels)
    sums = intervals.cluster_sums(tables, clusters_of_units)
    return alpha.estimate(sums, np.ones(len(sums)), len(paired_units))


def _coincidences(units: Sequence[Sequence[Any]], labels: Sequence[Any]) -> Array:
    """Return each unit's table of coincidences: how often one label stands beside another.

    Every ordered pair of a unit's n labels counts 1 / (n - 1), so that each label counts once.
    """
    import numpy as np

    places = {label: place for place, label in enumerate(labels)}
    tables = np.zeros((len(units), len(labels), len(labels)))
    for table, unit in zip(tables, units, strict=True):
        for first, second in permutations(unit, 2):
            table[places[first], places[second]] += 1 / (len(unit) - 1)
    return tables


def _label_interval(patterns: Array, items: Array, trials: float) -> Interval:
    """Return the interval of an alpha of labels below 1, from the coincidences of clusters.

    As ``kappa_interval``: alpha is 1 - (n - 1) D / S for n labels, with D the disagreement within
    units and S that of all pairs of labels. The delta method gives each cluster's part.
    """
    counts = patterns.sum(axis=2)
    totals = counts.sum(axis=0)
    sizes = counts.sum(axis=1)
    disagreements = sizes - patterns.trace(axis1=1, axis2=2)
    n = float(totals.sum())
    disagreement = float(disagreements.sum())
    differing_pairs = n**2 - float((totals**2).sum())
    residuals = 2 * disagreement / differing_pairs * (n * sizes - counts @ totals)
    residuals = residuals - disagreements - disagreement / (n - 1) * sizes
    agreed = 1 - disagreement / n
    chance = 1 - differing_pairs / (n * (n - 1))
    size = intervals.effective_size(residuals, sizes, items, agreed * (1 - agreed))
    z = intervals.quantile(len(patterns), trials)
    return _rescaled(agreed, chance, size, z)


_NUMBERS = ("0", *RATINGS)
"""People's own scales may begin at 0."""


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
    agreements = []
    for first, second in combinations(range(len(raters)), 2):
        pairs = []
        clusters_of_pairs = []
        for place, labels in enumerate(rows):
            if not labels[first] or not labels[second]:
                continue
            pairs.append((labels[first], labels[second]))
            if clusters:
                clusters_of_pairs.append(clusters[place])
        ordered = _NUMBERS if _are_ratings(pairs) else ()
        agreements.append(
            PairAgreement(
                first=raters[first],
                second=raters[second],
                kappa=cohen_kappa(pairs, ordered, clusters_of_pairs),
            )
        )
    return tuple(agreements)


def _are_ratings(units: Iterable[Sequence[str]]) -> bool:
    labels = {label for unit in units for label in unit}
    return bool(labels) and labels <= set(_NUMBERS)


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
            raw = self.raw.text(*forms)
            alpha = self.alpha.text(*forms)
            units = f"{plural(self.items, noun)} seen by more than one"
            yield f"{units}: agreement {raw}, alpha {alpha}"
        for pair in self.pairs:
            yield f"  {pair.first} and {pair.second}: kappa {pair.kappa.text(*forms)}"


def agreement_among(
    units: Sequence[Mapping[str, str]],
    clusters: Sequence[Hashable] = (),
    group: str = "",
) -> Agreement:
    """Return how far raters agree; a unit has the label that each of its raters gave, by name."""
    labels_of_units = [list(unit.values()) for unit in units]
    raters = sorted({rater for unit in units for rater in unit})
    rows = [[unit.get(rater, "") for rater in raters] for unit in units]
    pairs = kappas(raters, rows, clusters)
    return Agreement(
        group=group,
        items=len([labels for labels in labels_of_units if len(labels) > 1]),
        raw=_raw_agreement(labels_of_units),
        alpha=krippendorff_alpha(labels_of_units, clusters),
        pairs=tuple(pair for pair in pairs if pair.kappa.n),
    )


def _raw_agreement(units: Sequence[Sequence[str]]) -> Estimate:
    """Return the share of pairs of labels of one unit that are equal; ``n`` counts pairs."""
    import numpy as np

    equal_pairs = []
    all_pairs = []
    for labels in units:
        if len(labels) > 1:
            are_equal = [first == second for first, second in combinations(labels, 2)]
            equal_pairs.append(are_equal.count(True))
            all_pairs.append(len(are_equal))
    hits = np.array(equal_pairs, dtype=np.float64)
    sizes = np.array(all_pairs, dtype=np.float64)
    n = int(sizes.sum())
    value = float(hits.sum()) / n if n else None
    interval = intervals.clustered_rate(hits, sizes, np.ones_like(hits))
    return Estimate.of(value, interval, n)
