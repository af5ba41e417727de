"""What asking an item several times says: pass@k, pass^k, and means over clusters of items."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evaluators.statistics.estimate import UNDEFINED, Estimate
from evaluators.statistics.intervals import percentile, resample, unseen_share

if TYPE_CHECKING:
    from evaluators.statistics.intervals import Array

ANY, ALL = "pass@", "pass^"
_NAME = re.compile(r"pass[@^][1-9][0-9]?")


def is_repeated(name: str) -> bool:
    """Return whether a measure is about k tries of an item: ``pass@k`` or ``pass^k``, k to 99."""
    return _NAME.fullmatch(name) is not None


def tries_of(name: str) -> int:
    """Return the k of ``pass@k`` or ``pass^k``."""
    return int(name[len(ANY) :])


def chance(name: str, tries: int, passed: int) -> float | None:
    """Return the chance, from an item's tries, that k further ones pass: one of them, or all.

    Unbiased, as all ways to pick k of the tries count alike. pass@k is 1 - C(n - c, k) / C(n, k):
    Chen et al. (2021), Evaluating Large Language Models Trained on Code, arXiv 2107.03374, section
    2.1. pass^k is C(c, k) / C(n, k): Yao et al. (2024), tau-bench, arXiv 2406.12045, section 3.
    None where there are fewer tries than k.
    """
    picked = tries_of(name)
    ways = math.comb(tries, picked)
    if not ways:
        return None
    if name.startswith(ALL):
        return math.comb(passed, picked) / ways
    return 1.0 - math.comb(tries - passed, picked) / ways


def clustered_mean(clusters: Sequence[Sequence[float]]) -> Estimate:
    """Return the mean of values from 0 to 1; undefined for none.

    The interval is a bootstrap over clusters, all values of one together, and never narrower than
    what unseen clusters leave open.
    """
    import numpy as np

    n = sum(map(len, clusters))
    if not n:
        return UNDEFINED
    mean = sum(map(sum, clusters)) / n
    sums: Array = np.array([[sum(values), len(values)] for values in clusters], dtype=np.float64)
    drawn = resample(sums, np.ones(len(clusters)))
    share = unseen_share(len(clusters))
    low, high = percentile(drawn[:, 0], drawn[:, 1], len(clusters), math.inf) or (mean, mean)
    least = mean * (1 - share)
    return Estimate.of(mean, (min(low, least), max(high, least + share)), n)
