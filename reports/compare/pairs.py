"""Two runs, item by item: which items pair, and how far a share of them moved.

The difference is new - old, over pairs of the same items, of the share that passes (graded:
CORRECT; rated: at or above the new run's bar; yes/no: right) or of another share of all items.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from cases.dataset import Slice
from evaluators.judges.adjudicated import Adjudications
from evaluators.kinds import Cluster
from evaluators.output import plural
from evaluators.statistics.intervals import UNDEFINED, Z95, Estimate, Interval, quantile
from evaluators.statistics.paired import (
    confirmed_margin,
    mcnemar,
    odds_ratio,
    pairs_needed,
    shrink,
    tango,
)
from reports.run.evidence import Calibration
from reports.run.record import Record
from reports.run.report import Role

Lone = Literal["added", "changed", "ungraded", "repeat"]
MOST_UNPAIRED = 0.05
"""The share of either run's items in a slice that may have no partner, unless for new data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The same item, unchanged, in the new run and in the old one, where it was graded."""

    new: Record
    old: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedRecords:
    """The pairs, in the new run's order, and why other items have no partner.

    ``lone`` maps the keys of the new run's items without a partner to the reason: ``added`` (the
    old run did not have it), ``changed`` (its data differ), ``ungraded`` (the old run has no grade
    for it), ``repeat`` (the old run asked the slice's items less often). ``unknown`` are the
    ``added`` and the ``ungraded`` ones. ``removed`` counts the answers that only the old run has,
    and ``gone`` those of them, as a share of all its answers, whose item the new run does not have.
    ``dropped`` are the old records that the new run should have asked again: none for a sample.
    """

    pairs: tuple[Pair, ...]
    lone: Mapping[str, Lone] = field(default_factory=dict)
    unknown: tuple[Record, ...] = ()
    removed: int = 0
    gone: float = 0.0
    dropped: tuple[Record, ...] = ()

    def obstacle(self, role: Role) -> str:
        """Say that too many items have no partner for another reason than new data, if so."""
        if self.gone > MOST_UNPAIRED:
            return (
                f"{self.gone:.0%} of the {role}'s items are not in this run, more than "
                f"{MOST_UNPAIRED:.0%}; compare with a run of the same items"
            )
        why = Counter(self.lone.values())
        lost = why["added"] + why["ungraded"]
        items = len(self.pairs) + lost + why["changed"]
        if not lost or lost / items <= MOST_UNPAIRED:
            return ""
        reasons = f"{why['added']:,} not asked, {why['ungraded']:,} ungraded there"
        return (
            f"{lost:,} of {plural(items, 'item')} have no partner in the {role} ({reasons}), "
            f"more than {MOST_UNPAIRED:.0%}; compare with a run of the same items"
        )


def unanswered(record: Record) -> Record:
    """Return what stands for the same item in a run that knows nothing of it."""
    return replace(
        record, answer=None, outcome="missing", grade=None, rating=None, score=None, measures={}
    )


def pair_records(
    new: Sequence[Record], old: Sequence[Record], *, sampled: bool = False
) -> PairedRecords:
    """Pair the records by dataset, language, id and repeat, where the item's digest is the same.

    Old records of slices that the new run does not have are left out of account. ``sampled`` says
    that the new run is a sample, which need not have all of the old one's items.
    """
    before = {(one.dataset, one.language, one.id, one.repeat): one for one in old}
    after = {(one.dataset, one.language, one.id, one.repeat): one for one in new}
    repeats, asked = _repeats(before), _repeats(after)
    pairs: list[Pair] = []
    lone: dict[str, Lone] = {}
    for identity, record in after.items():
        former = before.get(identity)
        if record.repeat > repeats.get(identity[:2], record.repeat):
            lone[record.key] = "repeat"
        elif former is None:
            lone[record.key] = "added"
        elif former.digest != record.digest:
            lone[record.key] = "changed"
        elif not former.is_graded:
            lone[record.key] = "ungraded"
        else:
            pairs.append(Pair(new=record, old=former))
    compared = [identity for identity in before if identity[:2] in asked]
    items = {identity[:3] for identity in after}
    gone = sum(identity[:3] not in items for identity in compared)
    removed = [identity for identity in compared if identity not in after]
    dropped = (before[one] for one in removed if one[3] <= asked[one[:2]])
    return PairedRecords(
        pairs=tuple(pairs),
        lone=lone,
        unknown=tuple(one for one in after.values() if lone.get(one.key) in ("added", "ungraded")),
        removed=len(removed),
        gone=gone / len(compared) if compared and not sampled else 0.0,
        dropped=() if sampled else tuple(dropped),
    )


def _repeats(identities: Iterable[tuple[str, str, str, int]]) -> dict[tuple[str, str], int]:
    """Return how often at most each slice asks an item."""
    found: dict[tuple[str, str], int] = {}
    for dataset, language, _, repeat in identities:
        found[dataset, language] = max(repeat, found.get((dataset, language), 1))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedSlice:
    """One slice beside the baseline's.

    ``blocked`` says why its drop gates cannot be decided (another judge or rubric, a partial
    slice, a judge that is not trusted), empty where they can; ``changed`` is the first of these
    reasons alone, ``narrow`` the one that lies in the items and not in the judge.
    ``calibrations`` say how its judge errs: in its own language, then in the others of the same
    labelled items; empty where nothing measures it. ``role`` is what the other run is for,
    ``people`` holds people's verdicts on answers of either run. ``elsewhere`` are the languages of
    its data set that only the other run has.
    """

    slice_: Slice
    pairing: PairedRecords
    role: Role = "baseline"
    blocked: str = ""
    changed: str = ""
    narrow: str = ""
    calibrations: tuple[Calibration, ...] = ()
    people: Adjudications = field(default_factory=dict)
    elsewhere: tuple[str, ...] = ()

    @property
    def bar(self) -> int | None:
        """The rating that passes in both runs, None where items are not rated."""
        return self.slice_.pass_bar if self.slice_.kind.rated else None

    @property
    def matches(self) -> Iterator[tuple[Record | None, Record]]:
        """The pairs (old, new); old is None for items of which the old run knows nothing.

        What is not asked again is a pair too, as if it had not been answered.
        """
        yield from ((pair.old, pair.new) for pair in self.pairing.pairs)
        yield from ((None, record) for record in self.pairing.unknown)
        yield from ((record, unanswered(record)) for record in self.pairing.dropped)

    @property
    def graded(self) -> Iterator[Pair]:
        """The pairs that are graded in both runs."""
        return (pair for pair in self.pairing.pairs if pair.new.is_graded)


@dataclass(frozen=True, slots=True, kw_only=True)
class PairedDifference:
    """How far the share of pairs that pass, or count otherwise, moved.

    ``fixed`` pairs count now and did not before, ``broke`` the reverse. ``weight`` is the share of
    pairs that count as independent: 1 unless some are of one cluster (``Slice.cluster_of``).
    ``better`` and ``worse`` count those of the ``clusters`` that moved, all pairs of each taken
    together: McNemar's exact test asks for independent pairs.
    """

    n: int
    fixed: int
    broke: int
    weight: float
    better: int
    worse: int
    clusters: int

    @property
    def value(self) -> float:
        """New - old."""
        return (self.fixed - self.broke) / self.n

    def basis(self, of: str) -> str:
        """Return the pairs that it rests on, in words; ``of`` names the share unless it passes."""
        up, down = ("up", "down") if of else ("fixed", "broke")
        return f"{self.fixed:,} {up}, {self.broke:,} {down} of {plural(self.n, 'pair')}"

    @property
    def interval(self) -> Interval:
        """Tango's 95 % interval, with as many pairs as count as independent.

        Not a bootstrap: where no pair differs that would have no width, and pass any slice.
        """
        fixed, broke, n = (count * self.weight for count in (self.fixed, self.broke, self.n))
        estimated = fixed or broke  # where no pair differs, the clusters are taken for the pairs
        z = quantile(self.clusters, self.n) if estimated else Z95
        return tango(fixed, broke, n, z) or (-1.0, 1.0)

    @property
    def estimate(self) -> Estimate:
        """New - old with its interval; undefined where there is no pair."""
        return Estimate.of(self.value, self.interval, self.n) if self.n else UNDEFINED

    @property
    def p_value(self) -> float:
        """McNemar's exact two-sided p-value."""
        return mcnemar(self.better, self.worse)

    @property
    def odds(self) -> Estimate:
        """The ratio better / worse with its exact interval; None stands for infinity."""
        value, low, high = odds_ratio(self.better, self.worse)
        return Estimate(value=value, low=low, high=high, n=self.better + self.worse)

    @property
    def detectable(self) -> float | None:
        """The smallest drop that such pairs would exclude with 80 % power if nothing changed."""
        if not self.n:
            return None
        return confirmed_margin(int(self.n * self.weight), (self.fixed + self.broke) / self.n)

    def pairs_to_decide(self, bound: float) -> int | None:
        """Return how many pairs would show, with 80 % power, on which side of a bound it lies.

        The difference is taken to be as seen. None where no number would.
        """
        needed = pairs_needed(bound, (self.fixed + self.broke) / self.n, self.value)
        return None if needed is None else max(self.n + 1, math.ceil(needed / self.weight))


def difference_of(changes: Collection[list[int]]) -> PairedDifference:
    """Return the difference over clusters, each with the changes of all its pairs."""
    flat = [change for cluster in changes for change in cluster]
    sums = [sum(cluster) for cluster in changes]
    weight = 1.0
    if len(flat) > len(changes):
        import numpy as np

        squares = np.array([sum(map(abs, one)) for one in changes], dtype=np.float64)
        sizes = np.array([len(one) for one in changes], dtype=np.float64)
        weight = shrink(np.array(sums, dtype=np.float64), squares, sizes)
    return PairedDifference(
        n=len(flat),
        fixed=flat.count(1),
        broke=flat.count(-1),
        weight=weight,
        better=sum(total > 0 for total in sums),
        worse=sum(total < 0 for total in sums),
        clusters=len(sums),
    )


Hit = Callable[[PairedSlice, Record], bool | None]
"""Whether a record of a slice counts; None where it has no grade, or none that is known here."""


def passes(side: PairedSlice, record: Record) -> bool | None:
    """Return whether a record passes by the new run's bar, None where it has no grade."""
    return record.passes(side.bar)


def paired_difference(
    sides: Sequence[PairedSlice], ungraded: bool | None = None, hit: Hit = passes
) -> PairedDifference:
    """Return the difference, over all pairs of these slices, of the share that ``hit`` counts.

    What is not known of the new run counts (True) or does not (False), and the reverse for what is
    not known of the old one; None leaves out the pairs of which anything is unknown.
    """
    changes: dict[Cluster, list[int]] = defaultdict(list)
    for one in sides:
        for old, new in one.matches:
            before, now = (hit(one, record) if record else None for record in (old, new))
            if ungraded is not None:
                before = (not ungraded) if before is None else before
                now = ungraded if now is None else now
            if before is not None and now is not None:
                changes[one.slice_.cluster_of(new)].append(now - before)
    return difference_of(changes.values())
