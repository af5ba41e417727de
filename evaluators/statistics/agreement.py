"""Agreement between two sets of labels, over tables of counts: kappa and rank correlation.

A table holds, in its last two axes, how often a first label (row) met a second one (column);
further axes in front are separate tables. The ``…_parts`` functions give numerator and
denominator, so that a caller can tell undefined (denominator 0) from a number.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluators.statistics.count_table import count_patterns
from evaluators.statistics.estimate import Estimate
from evaluators.statistics.intervals import (
    Interval,
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

PERFECT = 1 - 1e-9  # a coefficient of 1, whatever the order of the additions


def kappa_parts(table: Array) -> tuple[Array, Array]:
    """Return Cohen's kappa as a ratio: agreement beyond chance by all that chance leaves.

    Cohen (1960), Educ. Psychol. Meas. 20:37. Undefined where both sides use one label only.
    """
    total = table.sum(axis=(-2, -1))
    chance = (table.sum(axis=-1) * table.sum(axis=-2)).sum(axis=-1)
    agreed = table.diagonal(axis1=-2, axis2=-1).sum(axis=-1)
    return total * agreed - chance, total**2 - chance


def quadratic_kappa_parts(table: Array) -> tuple[Array, Array]:
    """Return kappa with weights growing as the square of the distance between ordered labels.

    Cohen (1968), Psychol. Bull. 70:213. Undefined where both sides use one label only.
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

    Spearman (1904), Am. J. Psychol. 15:72. Undefined where either side never varies.
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
    """A coefficient of agreement (at most 1) over tables of counts.

    ``parts`` gives it as a ratio. ``closed`` returns its interval where there is a formula for it,
    from the tables of clusters and how many have each; others have a bootstrap.
    """

    parts: Parts
    closed: Callable[[Array, Array], Interval] | None = None

    def of(
        self,
        cells: Sequence[tuple[int, int]],
        shape: tuple[int, int],
        clusters: Sequence[Hashable] = (),
    ) -> Estimate:
        """Return the coefficient of pairs of labels, each a cell of a table of this shape.

        ``clusters`` says of each pair what it is not independent of; without it, all pairs are
        independent.
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
        """Return the 95 % interval where ``items[i]`` clusters have the table ``patterns[i]``.

        Where the coefficient is 1, which leaves nothing to vary, it is ``perfect_interval``. None
        where the coefficient is undefined, or would be in most samples like this one.
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

    It is Wilson's of the agreement on kappa's scale, the agreement taken for that of as many
    independent items as would leave kappa the same variance: Fleiss, Cohen and Everitt (1969),
    Psychol. Bull. 72:323, summed by cluster. A bootstrap is too narrow near 1, where its draws
    vary as little as the sample does.
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
    """Return Wilson's interval of an agreement as one of a coefficient freed of chance."""
    low, high = wilson(agreed * size, size, z) or (0.0, 1.0)
    return max(-1.0, (low - chance) / (1 - chance)), (high - chance) / (1 - chance)


KAPPA = Coefficient(kappa_parts, kappa_interval)
QUADRATIC_KAPPA = Coefficient(quadratic_kappa_parts)
SPEARMAN = Coefficient(spearman_parts)


def cohen_kappa(
    pairs: Sequence[tuple[str, str]],
    ordered: Sequence[str] = (),
    clusters: Sequence[Hashable] = (),
) -> Estimate:
    """Return Cohen's kappa of label pairs, undefined where there is no variation.

    It has quadratic weights where ``ordered`` gives all labels in their order; ``clusters`` are
    those of ``Coefficient.of``.
    """
    labels = ordered or sorted({label for pair in pairs for label in pair})
    places = {label: place for place, label in enumerate(labels)}
    cells = [(places[first], places[second]) for first, second in pairs]
    coefficient = QUADRATIC_KAPPA if ordered else KAPPA
    return coefficient.of(cells, (len(labels), len(labels)), clusters)


def perfect_interval(table: Array, items: float) -> Interval | None:
    """Return the interval of a coefficient (kappa, rank correlation) that is 1 in this table.

    Its lower end is Wilson's lower end of the agreement of ``items`` items, put on the
    coefficient's scale: with agreement by chance c it is (low - c) / (1 - c). For a judge that
    guesses a share g of the items from the labels' own frequencies, exact agreement is
    1 - g(1 - c) and kappa, weighted kappa and the rank correlation are all 1 - g, so that one
    bound serves them. Never below -1; None where one label only is in use.
    """
    shares = table.sum(axis=-1) / table.sum()
    chance = float((shares**2).sum())
    if chance >= PERFECT:
        return None
    return max(-1.0, 1 - unseen_share(items) / (1 - chance)), 1.0
