"""How far raters agree on labels, judges or people: raw, kappa of each pair, alpha of all.

Where all labels are ratings, kappa has quadratic weights and alpha the metric for numbers.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations

from evaluators.statistics.agreement import cohen_kappa
from evaluators.statistics.alpha import interval_alpha, krippendorff_alpha
from evaluators.statistics.count_table import RATINGS
from evaluators.statistics.estimate import Estimate
from evaluators.statistics.intervals import clustered_rate

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

    ``clusters`` says of each unit what it is not independent of; without it, all units are
    independent.
    """
    if _are_ratings(units):
        numbers = [[float(label) for label in unit] for unit in units]
        return interval_alpha(numbers, clusters)
    return krippendorff_alpha(units, clusters)


def kappas(
    raters: Sequence[str], rows: Sequence[Sequence[str]], clusters: Sequence[Hashable] = ()
) -> tuple[PairAgreement, ...]:
    """Return the kappa of each two raters.

    A row holds an item's labels in the order of the raters, ``""`` where one gave none;
    ``clusters`` are those of the rows, as in ``alpha_of``.
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
