"""What became of each item between two runs: paired, with exactly one state.

Every item of the earlier run is in a pair, whatever this run has of it. Nothing vanishes: an
item that was left out, edited or not graded stays, and counts at its worst (``shares.py``).
An item of this run alone is ``added``: there is nothing to compare it with.

An edited item has another question or context. Its new answer is no answer to the earlier
question, so it is unknown. Other golds are no edit: answers can be read by both (``ways.py``).
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from qagate.reports.run.record import Record

State = Literal["right", "wrong", "ungraded", "absent", "edited", "stopped"]
"""``right`` and ``wrong`` say how the new answer ended, where both are graded."""

KNOWN: Collection[State] = ("right", "wrong")
MISSING: Collection[State] = ("ungraded", "absent", "edited")
"""These count at their worst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """An item of the earlier run, and what this run has of it."""

    old: Record
    """The earlier answer as it is read now; without a grade where that is unknown."""
    new: Record
    """This run's; without an answer where the item is absent or was edited."""
    state: State


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """The items of a slice in two runs."""

    pairs: tuple[Pair, ...] = ()
    """One for each item of the earlier run: in this run's order, absent ones last."""
    added: tuple[Record, ...] = ()
    """The items of this run alone, repeats that the earlier run lacks too."""

    @property
    def graded(self) -> tuple[Pair, ...]:
        """The pairs that have a grade on both sides."""
        return tuple(pair for pair in self.pairs if pair.state in KNOWN)

    @property
    def missing(self) -> tuple[Pair, ...]:
        """The pairs that count at their worst."""
        return tuple(pair for pair in self.pairs if pair.state in MISSING)

    def count(self, *states: State) -> int:
        """Return how many pairs are in one of these states."""
        return sum(pair.state in states for pair in self.pairs)

    def without(self, ids: Collection[str]) -> "Pairing":
        """Return the same items but for those with these ids."""
        return Pairing(
            pairs=tuple(pair for pair in self.pairs if pair.old.id not in ids),
            added=tuple(record for record in self.added if record.id not in ids),
        )


def pair_records(
    new: Sequence[Record],
    old: Sequence[Record],
    read: Iterable[Record] | None = None,
) -> Pairing:
    """Pair a slice's records by id and repeat.

    ``read`` are the earlier answers as this run reads them. Then an earlier grade is what stands
    there, and unknown where nothing does. None takes the grades of the earlier run itself.
    """
    new_of = {(record.id, record.repeat): record for record in new}
    old_of = {(record.id, record.repeat): record for record in old}
    read_of = None
    if read is not None:
        read_of = {(record.id, record.repeat): record for record in read}

    def as_read(earlier: Record) -> Record:
        if read_of is None:
            return earlier
        reading = read_of.get((earlier.id, earlier.repeat))
        if reading is None:
            return ungraded(earlier)
        return with_usage_of(reading, earlier)

    pairs = []
    added = []
    for identity, record in new_of.items():
        earlier = old_of.get(identity)
        if earlier is None:
            added.append(record)
        else:
            pairs.append(_pair(as_read(earlier), record, is_edited(earlier, record)))
    for identity, earlier in old_of.items():
        if identity not in new_of:
            read_now = as_read(earlier)
            absent = unanswered(read_now)
            pairs.append(Pair(old=read_now, new=absent, state="absent"))
    return Pairing(pairs=tuple(pairs), added=tuple(added))


def _pair(old: Record, new: Record, edited: bool) -> Pair:
    if edited:
        return Pair(old=old, new=unanswered(new), state="edited")
    return Pair(old=old, new=new, state=_state(old, new))


def _state(old: Record, new: Record) -> State:
    if new.outcome == "stopped":
        return "stopped"
    if not old.is_graded or not new.is_graded:
        return "ungraded"
    return "right" if new.outcome == "passed" else "wrong"


def paired_as(old: Record, new: Record, state: State) -> Pair:
    """Return a pair of records that were read otherwise; one left out stays so."""
    if state in ("absent", "edited"):
        return Pair(old=old, new=new, state=state)
    return Pair(old=old, new=new, state=_state(old, new))


def is_edited(old: Record, new: Record) -> bool:
    """Return whether another question was asked under the same id."""
    return old.question != new.question or old.context != new.context


def added_to(old: Iterable[Record], new: Iterable[Record]) -> tuple[Record, ...]:
    """Return the records of a slice that an earlier run does not have.

    Beside a baseline a bar has to hold with them and without them.
    """
    known = {(record.id, record.repeat) for record in old}
    return tuple(record for record in new if (record.id, record.repeat) not in known)


def unanswered(record: Record) -> Record:
    """Return the same item as a run has it that did not ask it."""
    blank = ungraded(record)
    return replace(
        blank,
        answer=None,
        outcome="missing",
        answer_seconds=None,
        answer_tokens_in=None,
        answer_tokens_out=None,
        answer_cost=None,
    )


def ungraded(record: Record) -> Record:
    """Return the same answer without a grade."""
    return replace(
        record,
        outcome="error",
        grade=None,
        rating=None,
        score=None,
        reason="",
        measures={},
        votes=(),
        parts={},
        adjudicated_by="",
        judge_grade=None,
        judge_rating=None,
    )


def with_usage_of(reading: Record, earlier: Record) -> Record:
    """Return a reading of an answer with what the answer itself took when it was given."""
    return replace(
        reading,
        key=earlier.key,
        metadata=earlier.metadata,
        answer=earlier.answer,
        asked_at=earlier.asked_at,
        asked_by=earlier.asked_by,
        answer_seconds=earlier.answer_seconds,
        answer_tokens_in=earlier.answer_tokens_in,
        answer_tokens_out=earlier.answer_tokens_out,
        answer_cost=earlier.answer_cost,
    )
