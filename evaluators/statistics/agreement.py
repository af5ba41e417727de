"""Agreement between two sets of labels, over tables of counts.

A table holds, in its last two axes, how often a first label (row) met a second one (column);
further axes in front are separate tables. The ``…_parts`` functions give numerator and
denominator, so that a caller can tell undefined (denominator 0) from a number.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from evaluators.statistics.intervals import Interval, percentile, resample, unseen_share

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    Parts = Callable[[Array], tuple[Array, Array]]

Pairs = Sequence[tuple[str, str]]
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


def cohen_kappa(pairs: Pairs) -> float | None:
    """Return Cohen's kappa of label pairs (at most 1), or None where it is undefined."""
    numerator, denominator = kappa_parts(_contingency(pairs))
    return float(numerator / denominator) if denominator else None


def cohen_kappa_interval(pairs: Pairs) -> Interval | None:
    """Return the bootstrap interval of Cohen's kappa, or None where it cannot be given.

    Where all pairs agree it is ``perfect_interval``.
    """
    return table_interval(_contingency(pairs), kappa_parts)


def table_interval(table: Array, parts: Parts) -> Interval | None:
    """Return the bootstrap interval of a coefficient of one table, items drawn one by one.

    ``perfect_interval`` where the coefficient is 1 in the sample, which leaves the bootstrap
    nothing to vary; None where the coefficient, or most of its resamples, are undefined.
    """
    import numpy as np

    numerator, denominator = parts(table)
    if not denominator:
        return None
    if numerator / denominator >= PERFECT:
        return perfect_interval(table, float(table.sum()))
    cells = np.flatnonzero(table)
    one_hot = np.eye(table.size)[cells].reshape(-1, *table.shape)
    return percentile(*parts(resample(one_hot, table.ravel()[cells])))


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


def _contingency(pairs: Pairs) -> Array:
    import numpy as np

    places = {label: place for place, label in enumerate(sorted({x for p in pairs for x in p}))}
    table = np.zeros((len(places), len(places)))
    for (first, second), count in Counter(pairs).items():
        table[places[first], places[second]] = count
    return table


Labels = Sequence[Sequence[str]]
Numbers = Sequence[Sequence[float]]


def krippendorff_alpha(units: Labels) -> float | None:
    """Return alpha of unordered labels (at most 1).

    None where nothing pairs or one label only is in use.
    """
    return _ratio(_label_parts(_label_sums(units).sum(axis=0)))


def krippendorff_alpha_interval(units: Labels) -> Interval | None:
    """Return the bootstrap interval of ``krippendorff_alpha``, units drawn one by one."""
    import numpy as np

    sums = _label_sums(units)
    if _ratio(_label_parts(sums.sum(axis=0))) is None:
        return None
    if not sums[:, -1].any():
        return perfect_interval(np.diag(sums[:, :-1].sum(axis=0)), len(sums))
    return percentile(*_label_parts(resample(sums, np.ones(len(sums)))))


def interval_alpha(units: Numbers) -> float | None:
    """Return alpha of numbers, disagreement growing with the square of their difference.

    None where nothing pairs or all numbers are the same.
    """
    return _ratio(_number_parts(_number_sums(units).sum(axis=0)))


def interval_alpha_interval(units: Numbers) -> Interval | None:
    """Return the bootstrap interval of ``interval_alpha``, units drawn one by one."""
    import numpy as np

    sums = _number_sums(units)
    value = _ratio(_number_parts(sums.sum(axis=0)))
    if value is None:
        return None
    if value >= PERFECT:
        counts = Counter(unit[0] for unit in units if len(unit) > 1)
        return perfect_interval(np.diag(np.array(list(counts.values()), dtype=float)), len(sums))
    return percentile(*_number_parts(resample(sums, np.ones(len(sums)))))


def _ratio(parts: tuple[Array, Array]) -> float | None:
    numerator, denominator = parts
    return float(numerator / denominator) if denominator > 0 else None


def _label_sums(units: Labels) -> Array:
    """Return, for each unit, how often each label stands in it, and its disagreement."""
    import numpy as np

    paired = [Counter(labels) for labels in units if len(labels) > 1]
    names = sorted({label for counts in paired for label in counts})
    rows = [[*(counts[name] for name in names), _disagreement(counts)] for counts in paired]
    return np.array(rows, dtype=np.float64).reshape(len(paired), len(names) + 1)


def _disagreement(counts: Counter[str]) -> float:
    """Return the ordered pairs of raters that differ, by all the partners that a rater has."""
    total = counts.total()
    return (total**2 - sum(count * count for count in counts.values())) / (total - 1)


def _label_parts(sums: Array) -> tuple[Array, Array]:
    counts, observed = sums[..., :-1], sums[..., -1]
    n = counts.sum(axis=-1)
    expected = n**2 - (counts**2).sum(axis=-1)
    return expected - (n - 1) * observed, expected


def _number_sums(units: Numbers) -> Array:
    """Return, for each unit, its size, sum, sum of squares, and its disagreement."""
    import numpy as np

    flat = [value for unit in units if len(unit) > 1 for value in unit]
    # Alpha does not change when all numbers move together; the sums of squares lose less then.
    middle = sum(flat) / len(flat) if flat else 0.0
    rows = [_moments([value - middle for value in unit]) for unit in units if len(unit) > 1]
    return np.array(rows, dtype=np.float64).reshape(len(rows), 4)


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
