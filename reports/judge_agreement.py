"""How far a judge agrees with people: figures with their 95 % intervals, from labelled items."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

from cases.labels import rounded
from evaluators.core import CORRECT
from evaluators.statistics.agreement import (
    PERFECT,
    cohen_kappa,
    interval_alpha,
    kappa_parts,
    krippendorff_alpha,
    perfect_interval,
    quadratic_kappa_parts,
    spearman_parts,
)
from evaluators.statistics.intervals import Interval, clustered_rate, percentile, resample, wilson

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Array = npt.NDArray[np.float64]
    Parts = Callable[[Array], tuple[Array, Array]]

Label = str | float
FINEST = 100  # different numbers that a table of counts holds apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """One figure: ``value`` None is undefined, ``interval`` None cannot be given; ``n`` items."""

    value: float | None
    interval: Interval | None
    n: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """What the judge said (``given``) of an answer, and what people did (``label``).

    ``cluster`` is the same for answers to the same question: they are not independent.
    """

    label: str
    given: str
    cluster: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """The judge's rating, the people's on the same scale, and the answer's length in characters.

    ``cluster`` is as in Grading.
    """

    label: float
    given: int
    length: int
    cluster: str


def share(hits: Sequence[bool], clusters: Sequence[str]) -> Figure:
    """Return a share with Wilson's interval, trials of one cluster counted together."""
    n = len(hits)
    if len(set(clusters)) == n:
        return Figure(value=sum(hits) / n if n else None, interval=wilson(sum(hits), n), n=n)
    sums = _sums(clusters, [(float(hit), 1.0) for hit in hits])
    interval = clustered_rate(sums[:, 0], sums[:, 1], sums[:, 1] ** 0)
    return Figure(value=sum(hits) / n, interval=interval, n=n)


def graded_figures(pairs: Sequence[Grading]) -> dict[str, Figure]:
    """Return agreement, Cohen's kappa, and precision and recall of CORRECT."""
    said = [pair for pair in pairs if pair.given == CORRECT]
    meant = [pair for pair in pairs if pair.label == CORRECT]
    labels = sorted({label for pair in pairs for label in (pair.label, pair.given)})
    cells = [(labels.index(pair.label), labels.index(pair.given)) for pair in pairs]
    return {
        "agreement": share([pair.label == pair.given for pair in pairs], _clusters(pairs)),
        "kappa": _coefficient(cells, _clusters(pairs), (len(labels), len(labels)), kappa_parts),
        "precision of CORRECT": share([pair.label == CORRECT for pair in said], _clusters(said)),
        "recall of CORRECT": share([pair.given == CORRECT for pair in meant], _clusters(meant)),
    }


def confusion(pairs: Sequence[Grading]) -> Counter[tuple[str, str]]:
    """Return how often each label (first) met each grade of the judge."""
    return Counter((pair.label, pair.given) for pair in pairs)


def rated_figures(pairs: Sequence[Rating]) -> dict[str, Figure]:
    """Return rank correlation, quadratic-weighted kappa, mean difference, and bias by length.

    The kappa takes people's ratings as the nearest whole ones. Differences are judge - people, in
    points of the scale of 1 to 10; the slope is their change for each doubling of the answer's
    length, by least squares.
    """
    clusters = _clusters(pairs)
    differences = [pair.given - pair.label for pair in pairs]
    doublings = [math.log2(max(1, pair.length)) for pair in pairs]
    whole = [(rounded(pair.label) - 1, pair.given - 1) for pair in pairs]
    return {
        "Spearman's rho": correlation([(pair.label, pair.given) for pair in pairs], clusters),
        "quadratic-weighted kappa": _coefficient(whole, clusters, (10, 10), quadratic_kappa_parts),
        "mean difference (bias)": mean(differences, clusters),
        "bias by length: points a doubling": slope(doublings, differences, clusters),
    }


def rater_figures(units: Sequence[Mapping[str, Label]], *, numbers: bool) -> dict[str, Figure]:
    """Return the agreement of the people among themselves: alpha, and kappa for each pair.

    ``units`` holds what each rater said of each item. Numbers have Krippendorff's alpha for
    intervals and Spearman's rho in place of kappa.
    """
    names = list(dict.fromkeys(name for unit in units for name in unit))
    found = {"Krippendorff's alpha": _alpha(units, numbers=numbers)}
    for one, two in combinations(names, 2):
        both = [(unit[one], unit[two]) for unit in units if one in unit and two in unit]
        title = f"{'rho' if numbers else 'kappa'} of {one} and {two}"
        found[title] = correlation(both) if numbers else _kappa([(str(a), str(b)) for a, b in both])
    return found


def self_agreement(verdicts: Sequence[Sequence[str]]) -> Figure:
    """Return the share of items that got the same verdict every time they were judged."""
    repeated = [said for said in verdicts if len(said) > 1]
    same = [len(set(said)) == 1 for said in repeated]
    return share(same, [str(place) for place in range(len(same))])


def mean(values: Sequence[float], clusters: Sequence[str]) -> Figure:
    """Return a mean with Student's interval, or a bootstrap's where clusters have several values.

    No interval where nothing varies, or one value or cluster is all.
    """
    if not values:
        return Figure(value=None, interval=None, n=0)
    n, middle = len(values), math.fsum(values) / len(values)
    if len(set(clusters)) < n:
        drawn = _drawn(_sums(clusters, [(value, 1.0) for value in values]))
        return Figure(value=middle, interval=percentile(drawn[:, 0], drawn[:, 1]), n=n)
    from scipy.stats import sem, t

    error = float(sem(values)) if n > 1 else 0.0
    reach = float(t.ppf(0.975, n - 1)) * error if error else 0.0
    return Figure(value=middle, interval=(middle - reach, middle + reach) if reach else None, n=n)


def slope(places: Sequence[float], values: Sequence[float], clusters: Sequence[str]) -> Figure:
    """Return the least-squares slope of values over places, with an interval as ``mean`` has it.

    Undefined with fewer than three items or where no place differs.
    """
    n = len(values)
    if n < 3 or len(set(places)) < 2:
        return Figure(value=None, interval=None, n=n)
    from scipy.stats import linregress, t

    fit = linregress(places, values)
    value, interval = float(fit.slope), None
    if len(set(clusters)) < n:
        rows = [(1.0, x, y, x * y, x * x) for x, y in zip(places, values, strict=True)]
        ones, xs, ys, xy, xx = _drawn(_sums(clusters, rows)).T
        interval = percentile(ones * xy - xs * ys, ones * xx - xs**2)
    elif reach := float(t.ppf(0.975, n - 2) * fit.stderr):
        interval = (value - reach, value + reach)
    return Figure(value=value, interval=interval, n=n)


def correlation(pairs: Sequence[tuple[Label, Label]], clusters: Sequence[str] = ()) -> Figure:
    """Return Spearman's rank correlation of numbers with its bootstrap interval.

    Numbers of more than 100 different values are taken to the nearest tenth.
    """
    axes = [_levels([float(pair[side]) for pair in pairs]) for side in (0, 1)]
    cells = list(zip(*axes, strict=True))
    shape = (max(axes[0], default=0) + 1, max(axes[1], default=0) + 1)
    return _coefficient(
        cells, clusters or [str(n) for n in range(len(cells))], shape, spearman_parts
    )


def _levels(values: Sequence[float]) -> list[int]:
    """Return the rank of each value among the different ones, from 0."""
    if len(set(values)) > FINEST:
        values = [round(value, 1) for value in values]
    places = {value: place for place, value in enumerate(sorted(set(values)))}
    return [places[value] for value in values]


def _kappa(pairs: Sequence[tuple[str, str]]) -> Figure:
    kappa = cohen_kappa(pairs)
    return Figure(value=kappa.value, interval=kappa.interval, n=kappa.n)


def _alpha(units: Sequence[Mapping[str, Label]], *, numbers: bool) -> Figure:
    if numbers:
        alpha = interval_alpha([[float(value) for value in unit.values()] for unit in units])
    else:
        alpha = krippendorff_alpha([[str(value) for value in unit.values()] for unit in units])
    return Figure(value=alpha.value, interval=alpha.interval, n=alpha.n)


def _coefficient(
    cells: Sequence[tuple[int, int]], clusters: Sequence[str], shape: tuple[int, int], parts: Parts
) -> Figure:
    """Return a coefficient of a table of counts; whole clusters are drawn for its interval."""
    import numpy as np

    if not cells:
        return Figure(value=None, interval=None, n=0)
    groups = defaultdict(list)
    for cell, cluster in zip(cells, clusters, strict=True):
        groups[cluster].append(cell)
    kinds = Counter(tuple(sorted(group)) for group in groups.values())
    patterns = np.zeros((len(kinds), *shape))
    for place, group in enumerate(kinds):
        np.add.at(patterns[place], tuple(zip(*group, strict=True)), 1)
    items = np.array(list(kinds.values()), dtype=np.float64)
    whole = np.tensordot(items, patterns, 1)
    numerator, denominator = parts(whole)
    if not denominator:
        return Figure(value=None, interval=None, n=len(cells))
    value = float(numerator / denominator)
    if value >= PERFECT:
        interval = perfect_interval(whole, len(groups))
    else:
        interval = percentile(*parts(resample(patterns, items)))
    return Figure(value=value, interval=interval, n=len(cells))


def _clusters(pairs: Sequence[Grading] | Sequence[Rating]) -> list[str]:
    return [pair.cluster for pair in pairs]


def _sums(clusters: Sequence[str], rows: Sequence[Sequence[float]]) -> Array:
    """Return the sums of the rows of each cluster."""
    import numpy as np

    places = {cluster: place for place, cluster in enumerate(dict.fromkeys(clusters))}
    sums = np.zeros((len(places), len(rows[0])))
    np.add.at(sums, [places[cluster] for cluster in clusters], np.array(rows, dtype=np.float64))
    return sums


def _drawn(sums: Array) -> Array:
    import numpy as np

    return resample(sums, np.ones(len(sums)))
