"""What became of each item between two runs: paired, with exactly one state.

Every item of the earlier run is in a pair, whatever this run has of it. Nothing vanishes: an
item that was left out, edited or not graded stays, and counts at its worst (``shares.py``).
An item of this run alone is ``added``: there is nothing to compare it with.

An edited item has another question or context. Its new answer is no answer to the earlier
question, so it is unknown. Other golds are no edit: answers can be read by both (``ways.py``).
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

from qagate.reports.run.columns import PairColumns
from qagate.reports.run.partners import (
    EarlierRecords,
    identity_of,
    is_edited,
    wording_of,
)
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


@dataclass(frozen=True, kw_only=True)
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

    @cached_property
    def columns(self) -> dict[Hashable, PairColumns]:
        """What ``PairedSlice`` keeps of these pairs, by all that it depends on."""
        return {}

    @cached_property
    def _states(self) -> Counter[State]:
        return Counter(pair.state for pair in self.pairs)

    def count(self, *states: State) -> int:
        """Return how many pairs are in one of these states."""
        return sum(self._states[state] for state in states)

    @cached_property
    def earlier_ids(self) -> frozenset[str]:
        """The ids of the earlier run's items."""
        return frozenset(pair.old.id for pair in self.pairs)

    @cached_property
    def of_other_metadata(self) -> Sequence[Pair]:
        """The pairs of one question that has other metadata now."""
        pairs = []
        for pair in self.pairs:
            is_same_item = pair.state not in ("absent", "edited")
            if is_same_item and pair.old.metadata != pair.new.metadata:
                pairs.append(pair)
        return pairs

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
    *,
    by_digest: bool = False,
) -> Pairing:
    """Pair the records of a slice: by id and repeat, else by question, context and repeat.

    ``read`` are the earlier answers as this run reads them, by today's ids. Then an earlier grade
    is what stands there, and unknown where nothing does. None takes the earlier run's own grades.
    ``by_digest``: each word of an item counts, its gold too, as of labelled answers.
    """
    readings = None
    if read is not None:
        readings = {(record.id, record.repeat): record for record in read}
    partners = _partners(new, old)
    pairs = []
    added = []
    for record in new:
        earlier = partners.get(record.key)
        if earlier is None:
            added.append(record)
            continue
        as_read = earlier
        if readings is not None:
            reading = readings.get((record.id, record.repeat))
            as_read = ungraded(earlier) if reading is None else reading
        edited = is_edited(record, earlier)
        if by_digest:
            edited = record.digest != earlier.digest
        pairs.append(_pair(as_read, record, edited=edited))
    claimed = {earlier.key for earlier in partners.values()}
    for earlier in old:
        if earlier.key not in claimed:
            pairs.append(_absent(earlier, is_read=readings is None))
    return Pairing(pairs=tuple(pairs), added=tuple(added))


def _partners(new: Sequence[Record], old: Sequence[Record]) -> Mapping[str, Record]:
    """Return the earlier record of each new one that has any, by the new one's key.

    Each earlier record is claimed once: an item that was copied would else count several times.
    """
    earlier = EarlierRecords.of(old)
    partners: dict[str, Record] = {}
    claimed: set[str] = set()
    for record in new:
        partner = earlier.by_identity.get(identity_of(record, record.repeat))
        if partner is not None:
            partners[record.key] = partner
            claimed.add(partner.key)
    for record in new:
        if record.key in partners:
            continue
        partner = earlier.by_wording.get(wording_of(record, record.repeat))
        if partner is not None and partner.key not in claimed:
            partners[record.key] = partner
            claimed.add(partner.key)
    return partners


def _pair(old: Record, new: Record, *, edited: bool) -> Pair:
    if edited:
        return Pair(old=old, new=unanswered(new), state="edited")
    return Pair(old=old, new=new, state=_state(old, new))


def _absent(earlier: Record, *, is_read: bool) -> Pair:
    """Return the pair of an item that this run lacks; only the earlier run's own grade is known."""
    old = earlier if is_read else ungraded(earlier)
    return Pair(old=old, new=unanswered(earlier), state="absent")


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


def added_to(old: Sequence[Record], new: Sequence[Record]) -> tuple[Record, ...]:
    """Return the records of a slice that an earlier run does not have.

    Beside a baseline a bar has to hold with them and without them.
    """
    partners = _partners(new, old)
    return tuple(record for record in new if record.key not in partners)


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
        answer_state="",
        adjudicated_by="",
        judge_grade=None,
        judge_rating=None,
    )
