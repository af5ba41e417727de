"""How far reviewers agree beyond chance: raw, Cohen's kappa by pair, Krippendorff's alpha."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from cases.tools.review.reviews import Review
from evaluators.statistics.agreement import (
    cohen_kappa,
    cohen_kappa_interval,
    interval_alpha,
    interval_alpha_interval,
    krippendorff_alpha,
    krippendorff_alpha_interval,
    quadratic_kappa_parts,
    table_interval,
)
from evaluators.statistics.intervals import Interval, clustered_rate

EVERY = ""
"""The group of all items together."""

_RATINGS = tuple(map(str, range(1, 11)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A figure with its 95 % interval over ``n`` items or pairs; None is undefined, never 0."""

    value: float | None
    low: float | None
    high: float | None
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PairAgreement:
    """Two reviewers on the items that both saw."""

    first: str
    second: str
    kappa: Figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """The agreement on one group of items.

    ``items`` counts those with two verdicts or more, ``raw`` is the share of pairs of verdicts
    that are equal (its interval clustered by item).
    """

    group: str
    items: int
    raw: Figure
    alpha: Figure
    pairs: tuple[PairAgreement, ...]


def agreement(
    reviews: Iterable[Review], groups: Mapping[str, str] | None = None
) -> tuple[Agreement, ...]:
    """Return the agreement on all items first, then on each group of them by name.

    ``groups`` maps items to the names of their groups, such as a question's type. Where all
    verdicts are ratings, kappa has quadratic weights and alpha the interval metric.
    """
    given: dict[str, dict[str, str]] = defaultdict(dict)
    for review in reviews:
        if review.verdict:
            given[review.item][review.reviewer] = review.verdict
    known = groups or {}
    names = sorted({known[item] for item in given if known.get(item)})
    return tuple(
        _agreement(name, {i: said for i, said in given.items() if name in (EVERY, known.get(i))})
        for name in (EVERY, *names)
    )


def _agreement(group: str, given: Mapping[str, Mapping[str, str]]) -> Agreement:
    units = [list(said.values()) for said in given.values() if len(said) > 1]
    reviewers = sorted({name for said in given.values() for name in said})
    both = {
        pair: [
            tuple(said[name] for name in pair) for said in given.values() if said.keys() >= {*pair}
        ]
        for pair in combinations(reviewers, 2)
    }
    return Agreement(
        group=group,
        items=len(units),
        raw=_raw(units),
        alpha=_alpha(units),
        pairs=tuple(
            PairAgreement(first=first, second=second, kappa=_kappa([(a, b) for a, b in pairs]))
            for (first, second), pairs in both.items()
            if pairs
        ),
    )


def _raw(units: Sequence[Sequence[str]]) -> Figure:
    import numpy as np

    pairs = [[one == two for one, two in combinations(unit, 2)] for unit in units]
    hits = np.array([sum(unit) for unit in pairs], dtype=np.float64)
    sizes = np.array([len(unit) for unit in pairs], dtype=np.float64)
    n = int(sizes.sum())
    value = float(hits.sum()) / n if n else None
    return _figure(value, clustered_rate(hits, sizes, np.ones_like(hits)), n)


def _alpha(units: Sequence[Sequence[str]]) -> Figure:
    if _are_ratings(units):
        numbers = [[float(label) for label in unit] for unit in units]
        return _figure(interval_alpha(numbers), interval_alpha_interval(numbers), len(units))
    return _figure(krippendorff_alpha(units), krippendorff_alpha_interval(units), len(units))


def _kappa(pairs: Sequence[tuple[str, str]]) -> Figure:
    if not _are_ratings(pairs):
        return _figure(cohen_kappa(pairs), cohen_kappa_interval(pairs), len(pairs))
    import numpy as np

    table = np.zeros((len(_RATINGS), len(_RATINGS)))
    for first, second in pairs:
        table[_RATINGS.index(first), _RATINGS.index(second)] += 1
    numerator, denominator = quadratic_kappa_parts(table)
    value = float(numerator / denominator) if denominator else None
    return _figure(value, table_interval(table, quadratic_kappa_parts), len(pairs))


def _are_ratings(units: Sequence[Sequence[str]]) -> bool:
    found = {label for unit in units for label in unit}
    return bool(found) and found <= set(_RATINGS)


def _figure(value: float | None, interval: Interval | None, n: int) -> Figure:
    low, high = interval or (None, None)
    return Figure(value=value, low=low, high=high, n=n)
