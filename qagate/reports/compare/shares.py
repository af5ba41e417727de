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

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from qagate.evaluators.kinds import Cluster
from qagate.evaluators.output import plural
from qagate.evaluators.statistics import paired
from qagate.evaluators.statistics.betting import Bounds, Evidence
from qagate.evaluators.statistics.intervals import (
    TAIL,
    UNDEFINED,
    Estimate,
    Interval,
    normal_quantile,
    quantile,
)
from qagate.evaluators.statistics.misclassification import (
    HIT,
    MISS,
    GradeChange,
    GradeChanges,
)
from qagate.reports.compare.sides import Hit, PairedSlice, Result, Sides, passes
from qagate.reports.run.record import Record

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

    def scaled(self, times: float) -> "PairedDifference":
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


def difference_of(changes: Collection[list[int]]) -> PairedDifference:
    """Return the difference over clusters, each with the changes of all its pairs."""
    flat = [change for cluster in changes for change in cluster]
    sums = [sum(cluster) for cluster in changes]
    weight = 1.0
    if len(flat) > len(changes):
        import numpy as np

        rows = [
            (sum(cluster), sum(map(abs, cluster)), len(cluster)) for cluster in changes
        ]
        weight = paired.shrink(*np.array(rows, dtype=np.float64).T)
    return PairedDifference(
        n=len(flat),
        fixed=flat.count(1),
        broke=flat.count(-1),
        weight=weight,
        better=sum(total > 0 for total in sums),
        worse=sum(total < 0 for total in sums),
        clusters=len(sums),
    )


def share_difference(
    sides: Sides, hit: Hit = passes, treatment: Treatment = "left out"
) -> PairedDifference:
    """Return the difference of the share that ``hit`` counts, over all pairs of these slices."""
    changes: dict[Cluster, list[int]] = defaultdict(list)
    is_filled = False
    for side in sides:
        for result in side.results(hit):
            if result.before is not None and result.now is not None:
                changes[result.cluster].append(result.now - result.before)
            elif treatment != "left out":
                changes[result.cluster].append(_filled_change(result, treatment))
                is_filled = True
    difference = difference_of(changes.values())
    if not is_filled:
        return difference
    weight = min(difference.weight, _lowest_weight(sides, hit))
    return PairedDifference(
        n=difference.n,
        fixed=difference.fixed,
        broke=difference.broke,
        weight=weight,
        better=difference.better,
        worse=difference.worse,
        clusters=difference.clusters,
        is_filled=True,
    )


def _filled_change(result: Result, treatment: Treatment) -> int:
    """Return new - old of a pair with the results that its treatment assumes."""
    new_counts = treatment == "as gains"
    before = not new_counts if result.before is None else result.before
    now = new_counts if result.now is None else result.now
    return now - before


def _lowest_weight(sides: Sides, hit: Hit) -> float:
    """Return the fewest pairs that may be independent, as a share, whatever is missing."""
    import numpy as np

    clusters: dict[Cluster, list[Bounds]] = defaultdict(list)
    for side in sides:
        for result in side.results(hit):
            ends = change_ends(result.before, result.now)
            clusters[result.cluster].append(ends)
    rows = []
    for bounds in clusters.values():
        low_sum = sum(low for low, _ in bounds)
        high_sum = sum(high for _, high in bounds)
        low_squares = sum(low > 0 or high < 0 for low, high in bounds)
        high_squares = sum(low < 0 or high > 0 for low, high in bounds)
        rows.append((len(bounds), low_sum, high_sum, low_squares, high_squares))
    sizes, low_sums, high_sums, least, most = np.array(rows, dtype=np.float64).T
    return paired.lowest_shrink(
        paired.ClusterBounds(
            sizes=sizes,
            low_sums=low_sums,
            high_sums=high_sums,
            low_squares=least,
            high_squares=most,
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
        changes = GradeChanges.of(self._changes())
        return replace(changes, clusters=changes.clusters * self.times)

    def _changes(self) -> Iterator[tuple[Cluster, GradeChange]]:
        new_counts = self.treatment == "as gains"
        for side in self.sides:
            for pair, result in zip(side.pairs, side.results(self.hit), strict=True):
                is_known = result.before is not None and result.now is not None
                if self.treatment == "left out" and not is_known:
                    continue
                change = GradeChange(
                    group=side.slice_.name,
                    before=_grade_of(pair.old, result.before, assumed=not new_counts),
                    now=_grade_of(pair.new, result.now, assumed=new_counts),
                )
                yield result.cluster, change


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
