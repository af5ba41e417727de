"""The measures of yes/no answers with their intervals, as the suite's own reports define them.

A table counts how often each answer (last axis) met each gold label (last but one); axes in front
are separate tables. The positive class is yes. An unanswered item is wrong: a false negative where
the gold is yes, no prediction where it is no. Each measure is a ratio of two sums over items.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from evaluators.core import NO, UNANSWERED, YES
from evaluators.statistics.intervals import Interval, percentile, resample, unseen_share, wilson

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    Parts = tuple[Array, Array]

GOLDS = (YES, NO)
ANSWERS = (YES, NO, UNANSWERED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure with its 95 % interval over ``n`` items; None is undefined, never 0."""

    value: float | None
    low: float | None
    high: float | None
    n: int


def _of(table: Array, gold: str, answer: str) -> Array:
    count: Array = table[..., GOLDS.index(gold), ANSWERS.index(answer)]
    return count


def _golds(table: Array, gold: str) -> Array:
    count: Array = table[..., GOLDS.index(gold), :].sum(axis=-1)
    return count


def _answered(table: Array, answer: str) -> Array:
    return _of(table, YES, answer) + _of(table, NO, answer)


def _total(table: Array) -> Array:
    return _golds(table, YES) + _golds(table, NO)


def accuracy(table: Array) -> Parts:
    """Return the share of right answers."""
    return _of(table, YES, YES) + _of(table, NO, NO), _total(table)


def precision(table: Array) -> Parts:
    """Return the share of right ones among the answers yes."""
    return _of(table, YES, YES), _answered(table, YES)


def recall(table: Array) -> Parts:
    """Return the share of the items with gold yes that were answered yes."""
    return _of(table, YES, YES), _golds(table, YES)


def f1(table: Array) -> Parts:
    """Return the F1 of yes."""
    return _f1(table, YES)


def macro_f1(table: Array) -> Parts:
    """Return the mean of the F1 of yes and of no; undefined where either is."""
    (yes_top, yes_bottom), (no_top, no_bottom) = _f1(table, YES), _f1(table, NO)
    return yes_top * no_bottom + no_top * yes_bottom, 2 * yes_bottom * no_bottom


def _f1(table: Array, label: str) -> Parts:
    return 2 * _of(table, label, label), _golds(table, label) + _answered(table, label)


def unanswered(table: Array) -> Parts:
    """Return the share of items without exactly one yes/no word."""
    return _answered(table, UNANSWERED), _total(table)


def majority_baseline(table: Array) -> Parts:
    """Return the accuracy of always giving the more frequent gold label."""
    yes, no = _golds(table, YES), _golds(table, NO)
    return (yes + no + abs(yes - no)) / 2, yes + no


RATES: Mapping[str, Callable[[Array], Parts]] = {
    "accuracy": accuracy,
    "precision": precision,
    "recall": recall,
    "unanswered": unanswered,
}
"""Successes by trials, item by item, so that Wilson's interval fits."""

RATIOS: Mapping[str, Callable[[Array], Parts]] = {
    "f1": f1,
    "macro_f1": macro_f1,
    "majority_baseline": majority_baseline,
}
"""Resampled by item, with a fixed seed."""

NAMES = ("accuracy", "precision", "recall", "f1", "macro_f1", "unanswered", "majority_baseline")
"""All measures in the order to show them."""


def scores(pairs: Iterable[tuple[str, str]]) -> dict[str, Estimate]:
    """Return each measure of pairs of gold label (YES, NO) and answer (or UNANSWERED)."""
    import numpy as np

    table = np.zeros((len(GOLDS), len(ANSWERS)))
    for gold, answer in pairs:
        table[GOLDS.index(gold), ANSWERS.index(answer)] += 1
    found = {name: _rate(parts, table) for name, parts in RATES.items()}
    drawn = _drawn(table)
    found |= {name: _resampled(parts, table, drawn) for name, parts in RATIOS.items()}
    return {name: found[name] for name in NAMES}


def _rate(parts: Callable[[Array], Parts], table: Array) -> Estimate:
    hits, trials = (float(part) for part in parts(table))
    value = hits / trials if trials else None
    return _estimate(value, wilson(hits, trials), int(trials))


def _drawn(table: Array) -> Array | None:
    import numpy as np

    cells = np.flatnonzero(table)
    if not len(cells):
        return None
    one_hot = np.eye(table.size)[cells].reshape(-1, *table.shape)
    return resample(one_hot, table.ravel()[cells])


def _resampled(parts: Callable[[Array], Parts], table: Array, drawn: Array | None) -> Estimate:
    value, n = _ratio(parts, table), int(table.sum())
    if value is None or drawn is None:
        return _estimate(None, None, n)
    return _estimate(value, percentile(*parts(drawn)) or _unvaried(parts, table, value), n)


def _unvaried(parts: Callable[[Array], Parts], table: Array, value: float) -> Interval:
    """Return the interval of a measure that no resample moved.

    So many items may all have come out alike although a share of all items (``unseen_share``) does
    not; the measure lies between what the worst and the best fate of that share would make of it.
    """
    share = unseen_share(float(table.sum()))
    ends = [value]
    for yes_fate in range(len(ANSWERS)):
        for no_fate in range(len(ANSWERS)):
            mixed = table * (1 - share)
            for gold, fate in enumerate((yes_fate, no_fate)):
                mixed[gold, fate] += share * table[gold].sum()
            end = _ratio(parts, mixed)
            ends += [] if end is None else [end]
    return min(ends), max(ends)


def _ratio(parts: Callable[[Array], Parts], table: Array) -> float | None:
    numerator, denominator = parts(table)
    return float(numerator / denominator) if denominator else None


def _estimate(value: float | None, interval: Interval | None, n: int) -> Estimate:
    low, high = interval or (None, None)
    return Estimate(value=value, low=low, high=high, n=n)
