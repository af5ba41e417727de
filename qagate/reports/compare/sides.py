"""One slice of a run beside the same slice of an earlier one, as gates and figures see it.

A ``PairedSlice`` is a value: to read both runs by another setting, for instance by the
``pass_bar`` of then, ``ways.py`` makes another one.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from typing import Literal

from qagate.cases.dataset import Slice
from qagate.evaluators.adjudications import Adjudications
from qagate.evaluators.kinds import Cluster
from qagate.reports.compare.states import Pair, Pairing, State
from qagate.reports.judge.favour import JudgeFavour
from qagate.reports.judge.slice_judge import SliceJudge
from qagate.reports.run.candidates import ONE_CANDIDATE, Candidates
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

    @cached_property
    def bar(self) -> int | None:
        """The rating that passes in both runs, None where items are not rated."""
        return self.slice_.pass_bar if self.slice_.kind.rated else None

    @cached_property
    def pairs(self) -> Sequence[Pair]:
        """Every item of the earlier run that is not retired."""
        return self._kept.pairs

    @cached_property
    def graded(self) -> Sequence[Pair]:
        """The pairs that are graded in both runs."""
        return self._kept.graded

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
    def _results(self) -> "dict[Hit, Sequence[Result]]":
        return {}

    def results(self, hit: "Hit") -> "Sequence[Result]":
        """Return each pair's cluster, and whether its old and its new record count."""
        if hit not in self._results:
            self._results[hit] = [
                Result(
                    cluster=self.cluster_of(pair),
                    before=hit(self, pair.old),
                    now=hit(self, pair.new),
                )
                for pair in self.pairs
            ]
        return self._results[hit]


Sides = Sequence[PairedSlice]
"""The slices of one dataset that are compared together: one of them, or all its languages."""

Compared = Mapping[str, PairedSlice]
"""The slices of a run paired with those of an earlier one, by name."""


@dataclass(frozen=True, slots=True)
class Result:
    """Whether a pair's answers count in a share; None where that is not known."""

    cluster: Cluster
    before: bool | None
    now: bool | None


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
