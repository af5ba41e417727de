"""Agreement among any number of raters: Krippendorff's alpha, for labels and for numbers.

Krippendorff (2011), "Computing Krippendorff's alpha-reliability", forms C and D. A unit is what
the raters of one item said; units with fewer than two ratings are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evaluators.statistics.agreement import PERFECT, perfect_interval
from evaluators.statistics.intervals import Interval, percentile, resample

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]

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
