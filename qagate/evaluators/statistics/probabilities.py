"""Probabilities and quantiles of the binomial, the beta and Student's distribution.

They have eight digits or more. scipy has them all, but would take 140 MB of memory.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache

_HALVINGS = 60
"""They give all the digits that a float has."""

_NEGLIGIBLE = 1e-17
"""A share of a sum that no longer changes it."""


def root(function: Callable[[float], float], low: float, high: float) -> float:
    """Return where a function that falls, or rises, from ``low`` to ``high`` is 0, by bisection."""
    falls = function(low) > 0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        root_is_above = (function(middle) > 0) is falls
        if root_is_above:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def binomial(hits: int, trials: int, share: float) -> float:
    """Return the binomial probability of exactly so many hits, each with probability ``share``."""
    if share <= 0:
        return float(hits == 0)
    if share >= 1:
        return float(hits == trials)
    log_of_ways = (
        math.lgamma(trials + 1) - math.lgamma(hits + 1) - math.lgamma(trials - hits + 1)
    )
    return math.exp(
        log_of_ways + hits * math.log(share) + (trials - hits) * math.log1p(-share)
    )


def binomial_at_most(hits: int, trials: int, share: float) -> float:
    """Return the binomial probability of at most so many hits, each with probability ``share``.

    It is the sum of the shorter tail, from its largest term outwards: each term follows from the
    one before, until terms are negligible.
    """
    if hits < 0:
        return 0.0
    if hits >= trials:
        return 1.0
    if hits + 1 <= trials * share:
        return _lower_tail(hits, trials, share)
    # At most so many hits: all but the cases of at most so few misses.
    return 1.0 - _lower_tail(trials - hits - 1, trials, 1 - share)


def _lower_tail(hits: int, trials: int, share: float) -> float:
    term = binomial(hits, trials, share)
    total = term
    odds_against = (1 - share) / share if share else 0.0
    while hits and term > _NEGLIGIBLE * total:
        term *= hits / (trials - hits + 1) * odds_against
        total += term
        hits -= 1
    return total


def beta_quantile(a: int, b: int, level: float) -> float:
    """Return the quantile of the beta distribution with whole parameters, both above 0.

    A beta variable is above a share if, of a + b - 1 trials with that share, less than a are hits.
    """

    def excess(share: float) -> float:
        return binomial_at_most(a - 1, a + b - 1, share) - (1 - level)

    return root(excess, 0.0, 1.0)


@cache
def student_quantile(freedom: float, tail: float = 0.025) -> float:
    """Return the point of Student's distribution above which a share of ``tail`` lies.

    ``freedom`` are the degrees of freedom, from 1. With t = sqrt(freedom) tan(angle) the density is
    a power of the cosine, and is integrated by Gauss and Legendre's rule of 64 nodes. The point is
    the angle within which all but the two tails lie.
    """
    import numpy as np

    nodes, weights = np.polynomial.legendre.leggauss(64)
    factor = math.exp(math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2))

    def missing(angle: float) -> float:
        density = np.cos(angle * (nodes + 1) / 2) ** (freedom - 1)
        integral = (weights * density).sum() * angle / 2
        return 0.5 - tail - float(factor / math.sqrt(math.pi) * integral)

    widest = min(math.pi / 2, 20 / math.sqrt(freedom))
    return math.sqrt(freedom) * math.tan(root(missing, 0.0, widest))
