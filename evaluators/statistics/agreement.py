"""Agreement between two sets of labels, over tables of counts.

A table holds, in its last two axes, how often a first label (row) met a second one (column);
further axes in front are separate tables. The ``…_parts`` functions give numerator and
denominator, so that a caller can tell undefined (denominator 0) from a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evaluators.statistics.intervals import Interval, percentile, resample

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

Pairs = Sequence[tuple[str, str]]


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


def cohen_kappa(pairs: Pairs) -> float | None:
    """Return Cohen's kappa of label pairs (at most 1), or None where it is undefined."""
    numerator, denominator = kappa_parts(_contingency(pairs))
    return float(numerator / denominator) if denominator else None


def cohen_kappa_interval(pairs: Pairs) -> Interval | None:
    """Return the bootstrap interval of Cohen's kappa, or None where it cannot be given."""
    import numpy as np

    table = _contingency(pairs)
    cells = np.flatnonzero(table)
    if not len(cells):
        return None
    one_hot = np.eye(table.size)[cells].reshape(-1, *table.shape)
    return percentile(*kappa_parts(resample(one_hot, table.ravel()[cells])))


def _contingency(pairs: Pairs) -> Array:
    import numpy as np

    places = {label: place for place, label in enumerate(sorted({x for p in pairs for x in p}))}
    table = np.zeros((len(places), len(places)))
    for (first, second), count in Counter(pairs).items():
        table[places[first], places[second]] = count
    return table


def krippendorff_alpha(units: Sequence[Sequence[str]]) -> float | None:
    """Return Krippendorff's alpha for unordered labels by any number of raters (at most 1).

    ``units`` holds the labels that each item received; items with fewer than two are left out.
    None where nothing pairs or one label only is in use. Krippendorff (2011), "Computing
    Krippendorff's alpha-reliability", form C.
    """
    paired = [Counter(labels) for labels in units if len(labels) > 1]
    totals = sum(paired, Counter[str]())
    n = totals.total()
    expected = n * n - sum(count * count for count in totals.values())
    if not expected:
        return None
    observed = sum(_disagreements(counts) / (counts.total() - 1) for counts in paired)
    return 1 - (n - 1) * observed / expected


def _disagreements(counts: Counter[str]) -> int:
    """Return how many ordered pairs of raters gave an item different labels."""
    return counts.total() ** 2 - sum(count * count for count in counts.values())
