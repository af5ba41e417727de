"""How far a share of all items moved between two runs, and what is missing at its worst.

The difference is new - old over pairs of the same items, with Tango's interval. Pairs that lack a
result have three treatments: they count as losses (the old result as a hit, the new one as none),
as gains, or not at all. A gate has to hold under each. The first alone would not do: with
clusters of dependent items an interval may get narrower as its value falls.

Filling in a result may make clusters look more alike than any real result would. So the pairs
that are filled in count as the fewest independent pairs that fit what is known
(``statistics/paired.py:lowest_shrink``). Hence an interval's lower end with items missing is
never above the one that their results would have given.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from qagate.evaluators.output import plural
from qagate.evaluators.statistics import paired
from qagate.evaluators.statistics.betting import Bounds, Evidence
from qagate.evaluators.statistics.intervals import (
    TAIL,
    UNDEFINED,
    Array,
    Estimate,
    Interval,
    Places,
    normal_quantile,
    quantile,
)
from qagate.evaluators.statistics.misclassification import (
    HIT,
    MISS,
    GradeChange,
    GradeChanges,
)
from qagate.reports.compare.sides import Hit, PairedSlice, Sides, passes
from qagate.reports.run.columns import UNKNOWN, KindColumn, numbered
from qagate.reports.run.record import Record

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Treatment = Literal["left out", "as losses", "as gains"]
"""What becomes of pairs whose result is not known in one of the runs."""
TREATMENTS: Sequence[Treatment] = ("left out", "as losses", "as gains")


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """How far the share of pairs that pass, or count by another rule, moved."""

    n: float
    """Pairs; whole, but for a sample that is only thought of (``scaled``)."""
    fixed: float
    """Pairs that count now, and did not before."""
    broke: float
    """Pairs that counted before, and do not now."""
    weight: float
    """The share of pairs that count as independent; below 1 only where clusters have several."""
    better: int
    """Clusters with more pairs fixed than broken: McNemar's test needs independent units."""
    worse: int
    """Clusters with more pairs broken than fixed."""
    clusters: float
    is_filled: bool = False
    """Whether results were assumed, so that more pairs may differ than do here."""

    @property
    def value(self) -> float:
        """New - old."""
        return (self.fixed - self.broke) / self.n

    def basis(self, of: str) -> str:
        """Return the counts of pairs in words; ``of`` is empty for the share that passes."""
        up, down = ("up", "down") if of else ("fixed", "broke")
        pairs = plural(int(self.n), "pair")
        return f"{self.fixed:,} {up}, {self.broke:,} {down} of {pairs}"

    @property
    def interval(self) -> Interval:
        """Tango's 95 % interval of independent pairs; a bootstrap of equal pairs had no width."""
        return self.interval_at(TAIL)

    def interval_at(self, tail: float) -> Interval:
        """Return the interval of which each end errs with a probability of at most ``tail``."""
        z = normal_quantile(tail)
        # Where no pair can differ, the clusters are taken for the pairs, and nothing is estimated.
        if self.fixed or self.broke or self.is_filled:
            z = quantile(self.clusters, self.n, tail)
        fixed = self.fixed * self.weight
        broke = self.broke * self.weight
        return paired.tango(fixed, broke, self.n * self.weight, z) or (-1.0, 1.0)

    @property
    def estimate(self) -> Estimate:
        """New - old with its interval; undefined where there is no pair."""
        return self.estimate_at(TAIL)

    def estimate_at(self, tail: float) -> Estimate:
        """Return new - old with the interval whose ends err with this probability."""
        if not self.n:
            return UNDEFINED
        return Estimate.of(self.value, self.interval_at(tail), int(self.n))

    def scaled(self, times: float) -> PairedDifference:
        """Return the same difference over so many times as many pairs of the same clusters."""
        return PairedDifference(
            n=self.n * times,
            fixed=self.fixed * times,
            broke=self.broke * times,
            weight=self.weight,
            better=self.better,
            worse=self.worse,
            clusters=self.clusters * times,
            is_filled=self.is_filled,
        )

    @property
    def p_value(self) -> float:
        """McNemar's exact two-sided p-value."""
        return paired.mcnemar(self.better, self.worse)

    @property
    def odds(self) -> Estimate:
        """The ratio better / worse with its exact interval; None is infinity."""
        value, low, high = paired.odds_ratio(self.better, self.worse)
        return Estimate(value=value, low=low, high=high, n=self.better + self.worse)

    @property
    def detectable(self) -> float | None:
        """The smallest drop that such pairs would exclude with 80 % power if nothing changed."""
        if not self.n:
            return None
        independent = int(self.n * self.weight)
        discordance = (self.fixed + self.broke) / self.n
        return paired.confirmed_margin(independent, discordance)


def share_difference(
    sides: Sides, hit: Hit = passes, treatment: Treatment = "left out"
) -> PairedDifference:
    """Return the difference of the share that ``hit`` counts, over all pairs of these slices."""
    pairs = _PairResults.of(sides, hit)
    changes = pairs.changes(treatment)
    clusters = pairs.clusters
    are_known = pairs.are_known
    if treatment == "left out":
        return _difference(changes[are_known], clusters[are_known])
    difference = _difference(changes, clusters)
    if are_known.all():
        return difference
    weight = min(difference.weight, _lowest_weight(pairs))
    return replace(difference, weight=weight, is_filled=True)


def difference_of(changes: Collection[list[int]]) -> PairedDifference:
    """Return the difference over clusters, each with the changes of all its pairs."""
    import numpy as np

    flat = [change for cluster in changes for change in cluster]
    sizes = [len(cluster) for cluster in changes]
    clusters = np.repeat(np.arange(len(sizes)), sizes)
    return _difference(np.array(flat, dtype=np.int64), clusters)


def _difference(changes: Places, clusters: Places) -> PairedDifference:
    """Return the difference over pairs, each with its change and the number of its cluster."""
    import numpy as np

    sizes = np.bincount(clusters).astype(np.float64)
    are_there = sizes > 0
    sizes = sizes[are_there]
    sums = _by_cluster(changes, clusters)[are_there]
    weight = 1.0
    if len(changes) > len(sizes):
        squares = _by_cluster(abs(changes), clusters)[are_there]
        weight = paired.shrink(sums, squares, sizes)
    return PairedDifference(
        n=len(changes),
        fixed=int((changes > 0).sum()),
        broke=int((changes < 0).sum()),
        weight=weight,
        better=int((sums > 0).sum()),
        worse=int((sums < 0).sum()),
        clusters=len(sizes),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _PairResults:
    """Whether the records of all pairs of some slices count, and their clusters by number."""

    before: Places
    """1, 0 or ``UNKNOWN``, as ``now``."""
    now: Places
    clusters: Places

    @classmethod
    def of(cls, sides: Sides, hit: Hit) -> _PairResults:
        import numpy as np

        results = [side.results(hit) for side in sides]
        return cls(
            before=np.concatenate([before for before, _ in results]),
            now=np.concatenate([now for _, now in results]),
            clusters=numbered(*(side.columns.clusters for side in sides)),
        )

    @property
    def are_known(self) -> npt.NDArray[np.bool_]:
        """Whether both results of each pair are known."""
        known: npt.NDArray[np.bool_] = (self.before != UNKNOWN) & (self.now != UNKNOWN)
        return known

    def changes(self, treatment: Treatment) -> Places:
        """Return new - old of each pair, with the results that its treatment assumes."""
        import numpy as np

        new_counts = int(treatment == "as gains")
        before = np.where(self.before == UNKNOWN, 1 - new_counts, self.before)
        now = np.where(self.now == UNKNOWN, new_counts, self.now)
        changes: Places = now - before
        return changes


def _by_cluster(values: npt.NDArray[np.generic], clusters: Places) -> Array:
    """Return the sum of each cluster."""
    import numpy as np

    sums: Array = np.bincount(clusters, values.astype(np.float64)).astype(np.float64)
    return sums


def _lowest_weight(pairs: _PairResults) -> float:
    """Return the fewest pairs that may be independent, as a share, whatever is missing."""
    import numpy as np

    def possible(results: Places) -> tuple[Places, Places]:
        is_unknown = results == UNKNOWN
        return np.where(is_unknown, 0, results), np.where(is_unknown, 1, results)

    low_before, high_before = possible(pairs.before)
    low_now, high_now = possible(pairs.now)
    low = low_now - high_before
    high = high_now - low_before

    return paired.lowest_shrink(
        paired.ClusterBounds(
            sizes=_by_cluster(np.ones_like(low), pairs.clusters),
            low_sums=_by_cluster(low, pairs.clusters),
            high_sums=_by_cluster(high, pairs.clusters),
            low_squares=_by_cluster((low > 0) | (high < 0), pairs.clusters),
            high_squares=_by_cluster((low < 0) | (high > 0), pairs.clusters),
        )
    )


@dataclass(frozen=True, kw_only=True)
class JudgedShare:
    """The pairs of a gate on a share under one treatment, as a judge's errors are asked of them."""

    difference: PairedDifference
    sides: Sides
    hit: Hit
    treatment: Treatment
    times: float = 1.0
    """So many times as many pairs are thought of."""

    @property
    def value(self) -> float:
        """New - old of the share, as judged."""
        return self.difference.value

    @property
    def count(self) -> float:
        """The number of pairs."""
        return self.difference.n

    def interval_at(self, tail: float) -> Interval:
        """Return its interval; each end has an error of ``tail``."""
        return self.difference.interval_at(tail)

    @cached_property
    def changes(self) -> GradeChanges:
        """How both answers of each pair were graded; what is missing as it is treated."""
        import numpy as np

        cells: dict[GradeChange, int] = {}
        columns = []
        for side in self.sides:
            columns.append(self._cells_of(side, cells))
        places = np.concatenate(columns)
        clusters = numbered(*(side.columns.clusters for side in self.sides))
        if self.treatment == "left out":
            are_known = _PairResults.of(self.sides, self.hit).are_known
            places = places[are_known]
            clusters = clusters[are_known]
        changes = GradeChanges.counted(tuple(cells), places, clusters)
        return replace(changes, clusters=changes.clusters * self.times)

    def _cells_of(self, side: PairedSlice, cells: dict[GradeChange, int]) -> Places:
        """Return the place in ``cells`` of how each pair was graded; new cells are added."""
        import numpy as np

        new_counts = self.treatment == "as gains"
        grades_before = self._grades(side, side.old_column, assumed=not new_counts)
        grades_now = self._grades(side, side.new_column, assumed=new_counts)
        table = np.empty((len(grades_before), len(grades_now)), dtype=np.int64)
        for row, before in enumerate(grades_before):
            for column, now in enumerate(grades_now):
                cell = GradeChange(group=side.slice_.name, before=before, now=now)
                table[row, column] = cells.setdefault(cell, len(cells))
        places: Places = table[side.old_column.places, side.new_column.places]
        return places

    def _grades(
        self, side: PairedSlice, column: KindColumn, *, assumed: bool
    ) -> Sequence[str]:
        """Return the grade of each kind of record."""
        grades = []
        for record in column.kinds:
            grades.append(_grade_of(record, self.hit(side, record), assumed=assumed))
        return grades


def _grade_of(record: Record, counts: bool | None, *, assumed: bool) -> str:
    """Return the judge's grade; whether it counts where no judge gave one."""
    if counts is None:
        counts = assumed
    elif not record.adjudicated_by:
        return record.result
    return HIT if counts else MISS


def change_ends(before: bool | None, now: bool | None) -> Bounds:
    """Return the lowest and the highest that new - old can be; None is unknown."""
    low_before, high_before = _possible(before)
    low_now, high_now = _possible(now)
    return low_now - high_before, high_now - low_before


def _possible(result: bool | None) -> Bounds:
    """Return the lowest and the highest that a result can count: 1 for a pass, 0 for a miss."""
    if result is None:
        return 0, 1
    return (1, 1) if result else (0, 0)


def interval_at_any_look(
    pairs: Iterable[tuple[str, bool | None, bool | None]],
) -> Interval | None:
    """Return the interval of new - old, over pairs by their place, that holds at any look."""
    units: dict[str, list[Bounds]] = defaultdict(list)
    for place, before, now in pairs:
        units[place].append(change_ends(before, now))
    return Evidence.of(units[place] for place in sorted(units)).interval


def passing_difference(side: PairedSlice) -> PairedDifference:
    """Return how far the share that passes moved, over the pairs graded in both runs."""
    return share_difference([side])
