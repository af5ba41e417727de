"""One slice of a run beside the same slice of an earlier one, as gates and figures see it.

A ``PairedSlice`` is a value: to read both runs by another setting, for instance by the
``pass_bar`` of then, ``ways.py`` makes another one.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Literal

from qagate.cases.dataset import Slice
from qagate.evaluators.adjudications import Adjudications
from qagate.evaluators.kinds import Cluster
from qagate.evaluators.statistics.intervals import Places
from qagate.reports.compare.states import KNOWN, Pair, Pairing, State, paired_as
from qagate.reports.judge.favour import JudgeFavour
from qagate.reports.judge.slice_judge import SliceJudge
from qagate.reports.run.candidates import ONE_CANDIDATE, Candidates
from qagate.reports.run.columns import (
    Clusters,
    KindColumn,
    PairColumns,
    column_of,
    graded_like,
)
from qagate.reports.run.evidence import AuditPlan
from qagate.reports.run.record import Record
from qagate.reports.run.report import Role


@dataclass(frozen=True, kw_only=True)
class PairedSlice:
    """One slice, paired with the same slice of the baseline or the anchor."""

    slice_: Slice
    pairing: Pairing
    role: Role = "baseline"
    path: str = "OLD"
    """The path of the other run."""
    blocked: str = ""
    """Why its change gates cannot be decided, for any reason; empty where they can."""
    changed: str = ""
    """How the other run's judge differs, where each run's own grades are shown; else empty."""
    narrow: str = ""
    """Why its items cannot be compared at all, whoever graded them; else empty."""
    named_alike: str = ""
    """The name in replies of both runs whose models were asked by different ones; else empty."""
    judge: SliceJudge | None = None
    """Whoever graded both runs, and their errors; None where that is not known."""
    judge_then: SliceJudge | None = None
    """The same by the labels of then; None where they are today's."""
    favour: JudgeFavour | None = None
    """How far the judge may favour one of the runs; None where no labels are on answers of both."""
    people: Adjudications = field(default_factory=dict)
    """People's verdicts on answers of either run."""
    plan: AuditPlan = field(default_factory=dict)
    slice_then: Slice | None = None
    """The slice as the other run declared it; None where that is not known."""
    pairing_then: Pairing | None = None
    """The pairs by the golds, words and checks of then; None where these do not differ."""
    tries: tuple[str, ...] = ()
    """How the earlier sets of answers of this model ended, such as ``FAIL``; oldest first."""
    candidates: Candidates = ONE_CANDIDATE
    """The models that are decided together beside the other run."""
    clusters_of: Literal["new", "old"] = "new"
    """Whose metadata say which items belong together."""
    donors: "Places | None" = None
    """Of a simulated run: by pair, the place of the one whose new record counts; None: its own."""

    @cached_property
    def bar(self) -> int | None:
        """The rating that passes in both runs, None where items are not rated."""
        return self.slice_.pass_bar if self.slice_.kind.rated else None

    @cached_property
    def pairs(self) -> Sequence[Pair]:
        """Every item of the earlier run that is not retired."""
        if self.donors is None:
            return self._kept.pairs
        pairs = []
        for place in self.columns.kept.tolist():
            pair = self.pairing.pairs[place]
            donor = self.pairing.pairs[int(self.donors[place])]
            new = pair.new
            if donor is not pair:
                new = graded_like(new, donor.new)
            pairs.append(paired_as(pair.old, new, pair.state))
        return pairs

    @cached_property
    def graded(self) -> Sequence[Pair]:
        """The pairs that are graded in both runs."""
        return [pair for pair in self.pairs if pair.state in KNOWN]

    @property
    def size(self) -> int:
        """The number of pairs."""
        return len(self.columns.kept)

    @property
    def extra_names(self) -> Sequence[str]:
        """The extra metrics that records of the new run have."""
        return self.columns.extra_names

    @property
    def added(self) -> Sequence[Record]:
        """The items of this run alone that are not retired."""
        return self._kept.added

    def count(self, *states: State) -> int:
        """Return how many pairs are in one of these states."""
        return self._kept.count(*states)

    @cached_property
    def _kept(self) -> Pairing:
        retired = set(self.slice_.retired.ids)
        return self.pairing.without(retired) if retired else self.pairing

    def cluster_of(self, pair: Pair) -> Cluster:
        """Return what is equal for this pair and all those that it is not independent of."""
        return self.slice_.cluster_of(self._placed_by(pair))

    def place_of(self, pair: Pair) -> str:
        """Return the place of a pair in the order of gates that are decided one by one."""
        return self.slice_.place_of(self._placed_by(pair))

    def _placed_by(self, pair: Pair) -> Record:
        if self.clusters_of == "old" or pair.state in ("absent", "edited"):
            return pair.old
        return pair.new

    @cached_property
    def columns(self) -> PairColumns:
        """The pairs that are not retired as columns; as the pairing has them, without donors."""
        slice_ = self.slice_
        retired = frozenset(slice_.retired.ids)
        key = (slice_.kind, slice_.cluster, retired, self.clusters_of)
        columns = self.pairing.columns.get(key)
        if columns is None:
            columns = self.pairing.columns[key] = self._make_columns(retired)
        return columns

    def _make_columns(self, retired: Collection[str]) -> PairColumns:
        import numpy as np

        pairs = self.pairing.pairs
        kept = [place for place, pair in enumerate(pairs) if pair.old.id not in retired]
        old = column_of([pairs[place].old for place in kept], self.slice_)
        new = column_of([pair.new for pair in pairs], self.slice_)
        clusters = [self.cluster_of(pairs[place]) for place in kept]
        extra_names: dict[str, None] = {}
        for place in kept:
            extra_names |= dict.fromkeys(pairs[place].new.measures)
        return PairColumns(
            kept=np.array(kept, dtype=np.int64),
            old=old,
            new=new,
            clusters=Clusters(names=clusters),
            extra_names=tuple(extra_names),
        )

    @cached_property
    def old_column(self) -> KindColumn:
        """The earlier records of the pairs that are not retired."""
        return self.columns.old

    @cached_property
    def new_column(self) -> KindColumn:
        """Their new records, or those that they count as."""
        kept = self.columns.kept
        if self.donors is not None:
            kept = self.donors[kept]
        return self.columns.new.at(kept)

    @cached_property
    def _results(self) -> "dict[Hit, tuple[Places, Places]]":
        return {}

    def results(self, hit: "Hit") -> tuple[Places, Places]:
        """Return whether the old and the new record of each pair count: 1, 0 or ``UNKNOWN``."""
        if hit not in self._results:

            def counts(record: Record) -> bool | None:
                return hit(self, record)

            before = self.old_column.asked(counts)
            now = self.new_column.asked(counts)
            self._results[hit] = before, now
        return self._results[hit]


Sides = Sequence[PairedSlice]
"""The slices of one dataset that are compared together: one of them, or all its languages."""

Compared = Mapping[str, PairedSlice]
"""The slices of a run paired with those of an earlier one, by name."""


Hit = Callable[[PairedSlice, Record], bool | None]
"""Whether a record of a slice counts; None where it has no grade, or an unknown one."""


def passes(side: PairedSlice, record: Record) -> bool | None:
    """Return whether a record passes by the slice's bar, None where it has no grade."""
    return record.passes(side.bar)


@cache
def state_hit(name: str) -> Hit:
    """Return what counts the replies in a state, such as ``declined``; None where none came."""

    def is_in_state(side: PairedSlice, record: Record) -> bool | None:
        return record.is_in_state(name)

    return is_in_state
