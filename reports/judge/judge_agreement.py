"""How far a judge agrees with people: figures with their 95 % intervals, from labelled items."""

import math
from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy.stats import linregress, sem, t

from cases.labels import Label, rounded
from evaluators.core import CORRECT
from evaluators.statistics.agreement import (
    KAPPA,
    QUADRATIC_KAPPA,
    SPEARMAN,
    cohen_kappa,
    interval_alpha,
    krippendorff_alpha,
)
from evaluators.statistics.count_table import CountTable, count_patterns
from evaluators.statistics.intervals import (
    UNDEFINED,
    Estimate,
    cluster_sums,
    clustered_rate,
    percentile,
    resample,
    wilson,
)
from evaluators.statistics.youden import class_rates, youden_interval

Array = npt.NDArray[np.float64]
FINEST = 100  # different numbers that a table of counts holds apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """What a judge gave an answer (``given``) and the people's label: grades, or ratings 1 to 10.

    ``cluster`` is the same for answers to the same question: they are not independent. ``length``
    is that of the answer, in characters.
    """

    label: Label
    given: Label
    cluster: Hashable
    length: int = 0


def share(hits: Sequence[bool], clusters: Sequence[Hashable]) -> Estimate:
    """Return a share with Wilson's interval, trials of one cluster counted together."""
    n = len(hits)
    if len(set(clusters)) == n:
        return Estimate.of(sum(hits) / n if n else None, wilson(sum(hits), n), n)
    sums = cluster_sums(np.array([(float(hit), 1.0) for hit in hits]), clusters)
    interval = clustered_rate(sums[:, 0], sums[:, 1], sums[:, 1] ** 0)
    return Estimate.of(sum(hits) / n, interval, n)


def graded_figures(pairs: Sequence[Pair]) -> dict[str, Estimate]:
    """Return agreement, Cohen's kappa, Youden's J, and precision and recall of CORRECT."""
    called = [pair for pair in pairs if pair.given == CORRECT]
    right = [pair for pair in pairs if pair.label == CORRECT]
    labels = sorted({str(label) for pair in pairs for label in (pair.label, pair.given)})
    cells = [(labels.index(str(pair.label)), labels.index(str(pair.given))) for pair in pairs]
    return {
        "agreement": share([pair.label == pair.given for pair in pairs], _clusters(pairs)),
        "kappa": KAPPA.of(cells, (len(labels), len(labels)), _clusters(pairs)),
        "Youden's J": _youden(pairs),
        "precision of CORRECT": share(
            [pair.label == CORRECT for pair in called], _clusters(called)
        ),
        "recall of CORRECT": share([pair.given == CORRECT for pair in right], _clusters(right)),
    }


def _youden(pairs: Sequence[Pair]) -> Estimate:
    """Return how well the judge tells CORRECT from all else, as a run's gates have it."""
    groups: dict[Hashable, list[tuple[int, int]]] = defaultdict(list)
    for pair in pairs:
        cell = int(pair.label == CORRECT), int(pair.given == CORRECT)
        groups[pair.cluster].append(cell)
    counts, clusters = count_patterns(groups.values(), (2, 2))
    table = CountTable(counts=counts, golds=("", CORRECT), outcomes=("", CORRECT))
    rates = class_rates(table, clusters, (CORRECT,))
    value = sum(one.value for one in rates) - 1 if rates else None
    return Estimate.of(value, youden_interval(table, clusters, (CORRECT,)), len(pairs))


def confusion(pairs: Sequence[Pair]) -> Counter[tuple[str, str]]:
    """Return how often each label (first) met each grade of the judge."""
    return Counter((str(pair.label), str(pair.given)) for pair in pairs)


def rated_figures(pairs: Sequence[Pair], pass_bar: int) -> dict[str, Estimate]:
    """Return rank correlation, quadratic-weighted kappa, bias and bias by length, and one more.

    That is how often judge and people are on one side of the pass bar. It and the kappa take
    people's ratings as the nearest whole ones. Differences are judge - people, in
    points of the scale of 1 to 10; the slope is their change for each doubling of the answer's
    length, by least squares.
    """
    clusters = _clusters(pairs)
    numbers = [(float(pair.label), float(pair.given)) for pair in pairs]
    differences = [given - label for label, given in numbers]
    doublings = [math.log2(max(1, pair.length)) for pair in pairs]
    whole = [(rounded(label) - 1, int(given) - 1) for label, given in numbers]
    return {
        "Spearman's rho": correlation(numbers, clusters),
        "quadratic-weighted kappa": QUADRATIC_KAPPA.of(whole, (10, 10), clusters),
        "mean difference (bias)": mean(differences, clusters),
        "bias by length: points a doubling": slope(doublings, differences, clusters),
        f"pass/fail agreement at {pass_bar}": share(
            [(rounded(label) >= pass_bar) == (given >= pass_bar) for label, given in numbers],
            clusters,
        ),
    }


def rater_figures(
    units: Sequence[Mapping[str, Label]], clusters: Sequence[Hashable], *, numbers: bool
) -> dict[str, Estimate]:
    """Return the agreement of the people among themselves: alpha, and kappa for each pair.

    ``units`` holds what each rater said of each item, ``clusters`` what the item is not independent
    of. Numbers have Krippendorff's alpha for intervals and Spearman's rho in place of kappa.
    """
    names = list(dict.fromkeys(name for unit in units for name in unit))
    if numbers:
        alpha = interval_alpha([[float(v) for v in unit.values()] for unit in units], clusters)
    else:
        alpha = krippendorff_alpha([[str(v) for v in unit.values()] for unit in units], clusters)
    found = {"Krippendorff's alpha": alpha}
    for one, two in combinations(names, 2):
        shared = [place for place, unit in enumerate(units) if one in unit and two in unit]
        both = [(units[place][one], units[place][two]) for place in shared]
        own = [clusters[place] for place in shared]
        title = f"{'rho' if numbers else 'kappa'} of {one} and {two}"
        if numbers:
            found[title] = correlation(both, own)
        else:
            texts = [(str(first), str(second)) for first, second in both]
            found[title] = cohen_kappa(texts, clusters=own)
    return found


def self_agreement(verdicts: Sequence[Sequence[str]]) -> Estimate:
    """Return the share of items that got the same verdict every time they were judged."""
    same = [len(set(repeats)) == 1 for repeats in verdicts if len(repeats) > 1]
    return share(same, [str(place) for place in range(len(same))])


def mean(values: Sequence[float], clusters: Sequence[Hashable]) -> Estimate:
    """Return a mean with Student's interval, or a bootstrap's where clusters have several values.

    No interval where nothing varies, or one value or cluster is all.
    """
    if not values:
        return UNDEFINED
    n, middle = len(values), math.fsum(values) / len(values)
    if len(set(clusters)) < n:
        drawn = _resampled(clusters, [(value, 1.0) for value in values])
        return Estimate.of(middle, percentile(drawn[:, 0], drawn[:, 1], len(set(clusters)), n), n)
    error = float(sem(values)) if n > 1 else 0.0
    reach = float(t.ppf(0.975, n - 1)) * error if error else 0.0
    return Estimate.of(middle, (middle - reach, middle + reach) if reach else None, n)


def slope(
    places: Sequence[float], values: Sequence[float], clusters: Sequence[Hashable]
) -> Estimate:
    """Return the least-squares slope of values over places, with an interval as ``mean`` has it.

    Undefined with fewer than three items or where no place differs.
    """
    n = len(values)
    if n < 3 or len(set(places)) < 2:
        return Estimate.of(None, None, n)
    fit = linregress(places, values)
    value, interval = float(fit.slope), None
    if len(set(clusters)) < n:
        rows = [(1.0, x, y, x * y, x * x) for x, y in zip(places, values, strict=True)]
        ones, xs, ys, xy, xx = _resampled(clusters, rows).T
        interval = percentile(ones * xy - xs * ys, ones * xx - xs**2, len(set(clusters)), n)
    elif reach := float(t.ppf(0.975, n - 2) * fit.stderr):
        interval = (value - reach, value + reach)
    return Estimate.of(value, interval, n)


def correlation(
    pairs: Sequence[tuple[Label, Label]], clusters: Sequence[Hashable] = ()
) -> Estimate:
    """Return Spearman's rank correlation of numbers with its bootstrap interval.

    Numbers of more than 100 different values are taken to the nearest tenth.
    """
    axes = [_levels([float(pair[side]) for pair in pairs]) for side in (0, 1)]
    cells = list(zip(*axes, strict=True))
    shape = (max(axes[0], default=0) + 1, max(axes[1], default=0) + 1)
    return SPEARMAN.of(cells, shape, clusters)


def _levels(values: Sequence[float]) -> list[int]:
    """Return the rank of each value among the different ones, from 0."""
    if len(set(values)) > FINEST:
        values = [round(value, 1) for value in values]
    places = {value: place for place, value in enumerate(sorted(set(values)))}
    return [places[value] for value in values]


def _clusters(pairs: Sequence[Pair]) -> list[Hashable]:
    return [pair.cluster for pair in pairs]


def _resampled(clusters: Sequence[Hashable], rows: Sequence[Sequence[float]]) -> Array:
    """Return the sums over clusters drawn again and again, for a bootstrap."""
    sums = cluster_sums(np.array(rows, dtype=np.float64), clusters)
    return resample(sums, np.ones(len(sums)))
