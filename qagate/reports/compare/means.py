"""How far the mean of an extra metric moved, such as a check's or a deepeval metric's, 0 to 1."""

import math
from functools import partial

from qagate.evaluators.statistics import intervals
from qagate.evaluators.statistics.intervals import (
    TAIL,
    UNDEFINED,
    Estimate,
    cluster_sums,
    unseen_share,
)
from qagate.evaluators.statistics.paired import moved, resample_pairs
from qagate.reports.compare.change import ChangeCase, MetricChange
from qagate.reports.compare.sides import Sides
from qagate.reports.compare.tables import pairs_of


def mean_change(sides: Sides, name: str, tail: float = TAIL) -> MetricChange:
    """Return the change; what is missing counts as 0 and as 1, an old value the other way."""
    cases = [_case(_sums(sides, name), tail, 1.0)]
    if cases[0].change.n < sum(len(side.pairs) for side in sides):
        for fill in (0.0, 1.0):
            cases.append(_case(_sums(sides, name, fill), tail, 1.0))
    units = {side.cluster_of(pair) for side, pair in pairs_of(sides)}
    return MetricChange(cases=cases, units=len(units))


def mean_difference(sides: Sides, name: str) -> Estimate:
    """Return new - old of the mean over the pairs that are known in both runs."""
    return _case(_sums(sides, name), TAIL, 1.0).change


def _sums(sides: Sides, name: str, fill: float | None = None) -> intervals.Array:
    """Return the sums of each cluster: by run, of the values and of the number of items.

    ``fill`` is for unknown new values, and 1 less it for old ones; None leaves such pairs out.
    """
    import numpy as np

    values = []
    clusters = []
    for side, pair in pairs_of(sides):
        old = pair.old.measures.get(name)
        new = pair.new.measures.get(name)
        if fill is not None:
            old = 1 - fill if old is None else old
            new = fill if new is None else new
        if old is not None and new is not None:
            values.append([[[old, 1.0]], [[new, 1.0]]])
            clusters.append(side.cluster_of(pair))
    if not values:
        return np.zeros((0, 2, 1, 2))
    return cluster_sums(np.array(values), clusters)


def _case(sums: intervals.Array, tail: float, times: float) -> ChangeCase:
    change = _estimate(sums, TAIL, times)
    strict = change if tail == TAIL else _estimate(sums, tail, times)
    return ChangeCase(change=change, strict=strict, scaled=partial(_case, sums, tail))


def _estimate(sums: intervals.Array, tail: float, times: float) -> Estimate:
    """Return the change of the mean if each cluster were there so many times, a whole number."""
    import numpy as np

    if not len(sums):
        return UNDEFINED

    def mean(sums: intervals.Array) -> tuple[intervals.Array, intervals.Array]:
        return sums[..., 0, 0], sums[..., 0, 1]

    clusters = len(sums) * times
    items = int(sums[:, 0, 0, 1].sum() * times)
    value = float(moved(mean, sums.sum(axis=0))[0])
    drawn = intervals.percentile(
        *moved(mean, resample_pairs(sums, np.full(len(sums), times), tail)),
        clusters,
        math.inf,
        tail,
    )
    unseen = unseen_share(clusters, tail)  # few items may vary little by chance
    centre = value * (1 - unseen)
    low, high = drawn or (centre, centre)
    interval = min(low, centre - unseen), max(high, centre + unseen)
    return Estimate.of(value, interval, items)
