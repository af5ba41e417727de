"""Two runs, item by item: which items pair, and how far a share of them moved.

The difference is new - old, over pairs of the same items, of the share that passes (graded:
CORRECT; rated: at or above the new run's bar; yes/no: right) or of another share of all items.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import Literal, NamedTuple

from qagate.cases.dataset import Slice
from qagate.cases.plan import draw_order
from qagate.evaluators.adjudications import Adjudications
from qagate.evaluators.kinds import Cluster
from qagate.evaluators.output import plural
from qagate.evaluators.statistics import paired
from qagate.evaluators.statistics.betting import Bounds, Evidence
from qagate.evaluators.statistics.intervals import (
    UNDEFINED,
    Z95,
    Estimate,
    Interval,
    quantile,
)
from qagate.reports.judge.slice_judge import SliceJudge
from qagate.reports.run.evidence import AuditPlan
from qagate.reports.run.record import Record
from qagate.reports.run.report import Obstacle, Role

Lone = Literal["added", "changed", "ungraded", "repeat"]
MOST_UNPAIRED = 0.05
"""The largest share of a slice's items in either run that may lack a partner or have other data."""


class Pair(NamedTuple):
    """An item that is the same in both runs, and was graded in the old one."""

    old: Record
    new: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRecords:
    """The pairs, in the new run's order, and why other items have no partner."""

    pairs: tuple[Pair, ...]
    lone: Mapping[str, Lone] = field(default_factory=dict)
    """Why an item of the new run has no partner, by its key.

    ``added``: the old run did not have it; ``changed``: its data differ; ``ungraded``: the old
    run has no grade for it; ``repeat``: the old run asked the slice's items less often.
    """
    unknown: tuple[Record, ...] = ()
    """The ``added`` and the ``ungraded`` items."""
    removed: int = 0
    """The number of answers that only the old run has."""
    gone: float = 0.0
    """The share of the old run's answers whose item the new run does not have; 0 for a sample."""
    dropped: tuple[Record, ...] = ()
    """The old records that the new run should have asked again; none for a sample."""

    def obstacle(self, role: Role) -> str:
        """Return why too few items pair: no partner, or other data; empty if enough do."""
        if self.gone > MOST_UNPAIRED:
            return (
                f"{Obstacle.LACKING} {self.gone:.0%} of the {role}'s items, and at most "
                f"{MOST_UNPAIRED:.0%} may be missing; compare with a run of the same items"
            )
        why = Counter(self.lone.values())
        lost = why["added"] + why["ungraded"]
        items = len(self.pairs) + lost + why["changed"]
        if why["changed"] > MOST_UNPAIRED * items:
            return (
                f"the data of {why['changed']:,} of {plural(items, 'item')} {Obstacle.CHANGED} "
                f"since the {role}, more than {MOST_UNPAIRED:.0%}; `qagate rejudge` judges its "
                f"answers anew"
            )
        if not lost or lost / items <= MOST_UNPAIRED:
            return ""
        reasons = f"{why['added']:,} not asked, {why['ungraded']:,} ungraded there"
        return (
            f"{lost:,} of {plural(items, 'item')} have no partner in the {role} ({reasons}), "
            f"more than {MOST_UNPAIRED:.0%}; {Obstacle.OTHER_ITEMS} a run of the same items"
        )


def unanswered(record: Record) -> Record:
    """Return the same item as a run has it that never asked it."""
    return replace(
        record,
        answer=None,
        outcome="missing",
        grade=None,
        rating=None,
        score=None,
        measures={},
    )


def pair_records(
    new: Sequence[Record], old: Sequence[Record], *, seed: int | None = None
) -> PairedRecords:
    """Pair a slice's records by id, repeat and digest.

    A new run that is a sample, drawn with a ``seed``, may lack items that come after its last one.
    """
    before = {(one.id, one.repeat): one for one in old}
    after = {(one.id, one.repeat): one for one in new}
    repeats_then, repeats = (
        max((one.repeat for one in run), default=0) for run in (old, new)
    )
    pairs: list[Pair] = []
    lone: dict[str, Lone] = {}
    unknown: list[Record] = []
    for identity, record in after.items():
        former = before.get(identity)
        if former and former.digest == record.digest and former.is_graded:
            pairs.append(Pair(new=record, old=former))
        elif former and former.digest != record.digest:
            lone[record.key] = "changed"
        elif repeats_then and record.repeat > repeats_then:
            lone[record.key] = "repeat"
        else:
            lone[record.key] = "ungraded" if former else "added"
            unknown.append(record)
    removed = (
        [identity for identity in before if identity not in after] if after else []
    )
    ids, lost = {one.id for one in new}, removed
    if seed is not None and removed:
        last = max(draw_order(id_, seed) for id_ in ids)
        lost = [one for one in removed if draw_order(one[0], seed) <= last]
    gone = sum(id_ not in ids for id_, _ in lost)
    dropped = (before[id_, repeat] for id_, repeat in lost if repeat <= repeats)
    return PairedRecords(
        pairs=tuple(pairs),
        lone=lone,
        unknown=tuple(unknown),
        removed=len(removed),
        gone=gone / len(before) if lost else 0.0,
        dropped=tuple(dropped),
    )


@dataclass(frozen=True, kw_only=True)
class PairedSlice:
    """One slice, paired with the same slice of the baseline or the anchor."""

    slice_: Slice
    pairing: PairedRecords
    role: Role = "baseline"
    path: str = "OLD"
    """The path of the other run."""
    blocked: str = ""
    """Why its change gates cannot be decided, for any reason; empty where they can."""
    changed: str = ""
    """How the other run's judge or rubric differs; empty if they are the same."""
    retaken: Collection[str] = ()
    """The checks and extra metrics that the other run took in another way."""
    narrow: str = ""
    """Why the items cannot be compared: a partial slice, or too few pairs; else empty."""
    judge: SliceJudge | None = None
    """Who reads the answers of both runs; None where that is not asked."""
    people: Adjudications = field(default_factory=dict)
    """People's verdicts on answers of either run."""
    plan: AuditPlan = field(default_factory=dict)
    elsewhere: tuple[str, ...] = ()
    """The languages of the dataset that only the other run has."""

    @cached_property
    def bar(self) -> int | None:
        """The rating that passes in both runs, None where items are not rated."""
        return self.slice_.pass_bar if self.slice_.kind.rated else None

    @cached_property
    def matches(self) -> Sequence[tuple[Record | None, Record]]:
        """The pairs (old, new): None for an ungraded old one; new ones may lack an answer."""
        return (
            *self.pairing.pairs,
            *((None, record) for record in self.pairing.unknown),
            *((record, unanswered(record)) for record in self.pairing.dropped),
        )

    @cached_property
    def _results(self) -> "dict[Hit, Sequence[Result]]":
        return {}

    def results(self, hit: "Hit") -> "Sequence[Result]":
        """Return each pair's cluster, and whether its old and its new record count."""
        if hit not in self._results:
            self._results[hit] = [
                (
                    self.slice_.cluster_of(new),
                    hit(self, old) if old else None,
                    hit(self, new),
                )
                for old, new in self.matches
            ]
        return self._results[hit]

    @cached_property
    def difference(self) -> "PairedDifference":
        """How far the share that passes moved, over the pairs graded in both runs."""
        return paired_difference([self])

    @property
    def graded(self) -> Iterator[Pair]:
        """The pairs that are graded in both runs."""
        return (pair for pair in self.pairing.pairs if pair.new.is_graded)


_CHANCE = 20  # pairs: so few may all have the same answers in two runs
Sides = Sequence[PairedSlice]
"""The slices of one dataset that are compared together: one of them, or all its languages."""


def unless_own(sides: Mapping[str, PairedSlice]) -> dict[str, PairedSlice]:
    """Return the slices, blocked where the earlier run's answers and verdicts are this run's own.

    All of them, or those of one slice, unless they are so few or so alike that it may be chance.
    """
    identical = {
        name: [_is_own(pair) for pair in side.graded] for name, side in sides.items()
    }
    every_pair = list(chain.from_iterable(identical.values()))
    is_same_run = bool(every_pair) and all(every_pair)
    checked = dict(sides)
    for name, side in sides.items():
        answers = {pair.new.answer for pair in side.graded}
        pair_count = len(identical[name])
        is_beyond_chance = pair_count > _CHANCE and 2 * len(answers) > pair_count
        is_same_slice = is_beyond_chance and all(identical[name])
        if not (is_same_run or is_same_slice):
            continue
        obstacle = (
            f"the {side.role} holds this run's own answers, and nothing differs from "
            f"itself; {Obstacle.OTHER_ITEMS} the release before"
        )
        checked[name] = replace(
            side, blocked=side.blocked or obstacle, narrow=side.narrow or obstacle
        )
    return checked


def _is_own(pair: Pair) -> bool:
    """Whether both records of a pair tell of the same replies."""
    new, old = pair.new, pair.old
    return (
        new.answer == old.answer
        and new.result == old.result
        and new.reason == old.reason
        and new.measures == old.measures
        and new.seconds == old.seconds
        and new.answer_seconds == old.answer_seconds
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """How far the share of pairs that pass, or count by another rule, moved."""

    n: int
    fixed: int
    """Pairs that count now, and did not before."""
    broke: int
    """Pairs that counted before, and do not now."""
    weight: float
    """The share of pairs that count as independent; below 1 only where clusters have several."""
    better: int
    """Clusters with more pairs fixed than broken: McNemar's test needs independent units."""
    worse: int
    """Clusters with more pairs broken than fixed."""
    clusters: int

    @property
    def value(self) -> float:
        """New - old."""
        return (self.fixed - self.broke) / self.n

    def basis(self, of: str) -> str:
        """Return the counts of pairs in words; ``of`` is empty for the share that passes."""
        up, down = ("up", "down") if of else ("fixed", "broke")
        return f"{self.fixed:,} {up}, {self.broke:,} {down} of {plural(self.n, 'pair')}"

    @property
    def interval(self) -> Interval:
        """Tango's 95 % interval of independent pairs; a bootstrap of equal pairs had no width."""
        fixed, broke, n = (
            count * self.weight for count in (self.fixed, self.broke, self.n)
        )
        estimated = (
            fixed or broke
        )  # where no pair differs, the clusters are taken for the pairs
        z = quantile(self.clusters, self.n) if estimated else Z95
        return paired.tango(fixed, broke, n, z) or (-1.0, 1.0)

    @property
    def estimate(self) -> Estimate:
        """New - old with its interval; undefined where there is no pair."""
        return Estimate.of(self.value, self.interval, self.n) if self.n else UNDEFINED

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
        independent, differ = (
            int(self.n * self.weight),
            (self.fixed + self.broke) / self.n,
        )
        return paired.confirmed_margin(independent, differ)

    def pairs_to_decide(self, bound: float) -> int | None:
        """Return how many pairs would decide the bound with 80 % power, if it is as seen."""
        needed = paired.pairs_needed(
            bound, (self.fixed + self.broke) / self.n, self.value
        )
        return (
            None if needed is None else max(self.n + 1, math.ceil(needed / self.weight))
        )


def difference_of(changes: Collection[list[int]]) -> PairedDifference:
    """Return the difference over clusters, each with the changes of all its pairs."""
    flat = [change for cluster in changes for change in cluster]
    sums = [sum(cluster) for cluster in changes]
    weight = 1.0
    if len(flat) > len(changes):
        import numpy as np

        rows = [(sum(one), sum(map(abs, one)), len(one)) for one in changes]
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


Result = tuple[Cluster, bool | None, bool | None]
Hit = Callable[[PairedSlice, Record], bool | None]
"""Whether a record of a slice counts; None where it has no grade, or an unknown one."""


def passes(side: PairedSlice, record: Record) -> bool | None:
    """Return whether a record passes by the new run's bar, None where it has no grade."""
    return record.passes(side.bar)


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


def paired_difference(
    sides: Sides, ungraded: bool | None = None, hit: Hit = passes
) -> PairedDifference:
    """Return the difference, over all pairs of these slices, of the share that ``hit`` counts.

    ``ungraded``: whether unknown new results count, and old ones do not; None leaves both out.
    """
    changes: dict[Cluster, list[int]] = defaultdict(list)
    for one in sides:
        for cluster, before, now in one.results(hit):
            if before is not None and now is not None:
                changes[cluster].append(now - before)
            elif ungraded is not None:
                then = not ungraded if before is None else before
                changes[cluster].append((ungraded if now is None else now) - then)
    return difference_of(changes.values())
