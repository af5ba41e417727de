"""Binomial, beta and Student's probabilities to eight digits; scipy would take 140 MB more."""

import math
from collections.abc import Callable
from functools import cache

_STEPS = 60  # halvings of an interval, for all the digits that a float has
_NEGLIGIBLE = 1e-17  # share of a sum
_NODES = 64


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function that falls, or rises, from ``low`` to ``high`` is 0."""
    falls = function(low) > 0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        low, high = (middle, high) if (function(middle) > 0) is falls else (low, middle)
    return (low + high) / 2


def chance(hits: int, trials: int, share: float) -> float:
    """Return the binomial probability of exactly so many hits, each with probability ``share``."""
    if not 0 < share < 1:
        return float(hits == (trials if share >= 1 else 0))
    ways = math.lgamma(trials + 1) - math.lgamma(hits + 1) - math.lgamma(trials - hits + 1)
    return math.exp(ways + hits * math.log(share) + (trials - hits) * math.log1p(-share))


def at_most(hits: int, trials: int, share: float) -> float:
    """Return the binomial probability of at most so many hits."""
    if hits < 0 or hits >= trials:
        return float(hits >= trials)
    if hits + 1 > trials * share:  # the other tail is the shorter one
        return 1.0 - _tail(trials - hits - 1, trials, 1 - share)
    return _tail(hits, trials, share)


def _tail(hits: int, trials: int, share: float) -> float:
    """Sum the chances of ``hits`` and fewer, which fall."""
    total = term = chance(hits, trials, share)
    odds = (1 - share) / share if share else 0.0
    while hits and term > _NEGLIGIBLE * total:
        term *= hits / (trials - hits + 1) * odds
        total += term
        hits -= 1
    return total


def beta_quantile(a: int, b: int, level: float) -> float:
    """Return the quantile of the beta distribution with whole parameters, both above 0."""
    return root(lambda share: at_most(a - 1, a + b - 1, share) - (1 - level), 0.0, 1.0)


@cache
def student_quantile(freedom: float) -> float:
    """Return the 97.5 % point of Student's distribution with so many degrees of freedom, from 1."""
    import numpy as np

    # With t = sqrt(freedom) tan(angle) the density is a power of the cosine.
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    factor = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))

    def missing(angle: float) -> float:
        inside = (weights * np.cos(angle * (nodes + 1) / 2) ** (freedom - 1)).sum() * angle / 2
        return 0.475 - float(factor / math.sqrt(math.pi) * inside)

    widest = min(math.pi / 2, 20 / math.sqrt(freedom))
    return math.sqrt(freedom) * math.tan(root(missing, 0.0, widest))
