"""Two runs, item by item: which items can be compared, and which changed sides."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from reports.record import Record

Identity = tuple[str, str, str, int]
Lone = Literal["added", "changed", "ungraded"]


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
    for it). ``removed`` counts the items that only the old run has.
    """

    pairs: tuple[Pair, ...]
    lone: Mapping[str, Lone] = field(default_factory=dict)
    removed: int = 0

    @property
    def unpaired(self) -> int:
        """How many items of the new run are in no pair."""
        return len(self.lone)

    @property
    def reasons(self) -> Mapping[Lone, int]:
        """How many items of the new run have no partner, by reason."""
        return Counter(self.lone.values())

    @property
    def fixed(self) -> tuple[Pair, ...]:
        """The pairs that failed before and pass now."""
        return tuple(p for p in self.pairs if right(p.new) and not right(p.old))

    @property
    def broke(self) -> tuple[Pair, ...]:
        """The pairs that passed before and fail now."""
        return tuple(p for p in self.pairs if right(p.new) is False and right(p.old))


def right(record: Record, bar: int | None = None) -> bool | None:
    """Return whether an item passed, None where it has no grade.

    With ``bar`` a rating counts by that bar, whatever bar its own run had.
    """
    if record.outcome not in ("passed", "failed"):
        return None
    if bar is not None and record.rating is not None:
        return record.rating >= bar
    return record.outcome == "passed"


def pair_records(new: Sequence[Record], old: Sequence[Record]) -> PairedRecords:
    """Pair the records by dataset, language, id and repeat, where the item's digest is the same.

    Old records of slices that the new run does not have are left out of account.
    """
    before = {_identity(record): record for record in old}
    fates = {record.key: _fate(record, before) for record in new}
    present = {_identity(record) for record in new}
    slices = {key[:2] for key in present}
    return PairedRecords(
        pairs=tuple(fate for fate in fates.values() if isinstance(fate, Pair)),
        lone={key: fate for key, fate in fates.items() if not isinstance(fate, Pair)},
        removed=sum(key[:2] in slices and key not in present for key in before),
    )


def _identity(record: Record) -> Identity:
    return (record.dataset, record.language, record.id, record.repeat)


def _fate(record: Record, before: Mapping[Identity, Record]) -> Pair | Lone:
    old = before.get(_identity(record))
    if old is None:
        return "added"
    if old.digest != record.digest:
        return "changed"
    return "ungraded" if right(old) is None else Pair(new=record, old=old)
