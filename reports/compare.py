"""Two runs, item by item: which items can be compared, and which changed sides."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from reports.record import Record

Identity = tuple[str, str, str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """The same item, unchanged, in the new run and in the old one, where it was graded."""

    new: Record
    old: Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Pairing:
    """The pairs, in the new run's order, and why other items have no partner.

    ``added``: new items that the old run did not have; ``removed``: the reverse; ``changed``: the
    item's data differ; ``ungraded``: the old run has no grade for it (ERROR or MISSING).
    """

    pairs: tuple[Pair, ...]
    added: int = 0
    removed: int = 0
    changed: int = 0
    ungraded: int = 0

    @property
    def unpaired(self) -> int:
        """How many items of the new run are in no pair."""
        return self.added + self.changed + self.ungraded

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


def pair(new: Sequence[Record], old: Sequence[Record]) -> Pairing:
    """Pair the records by dataset, language, id and repeat, where the item's digest is the same.

    Old records of slices that the new run does not have are left out of account.
    """
    before = {_identity(record): record for record in old}
    fates = [_fate(record, before) for record in new]
    present = {_identity(record) for record in new}
    slices = {key[:2] for key in present}
    return Pairing(
        pairs=tuple(fate for fate in fates if isinstance(fate, Pair)),
        added=fates.count("added"),
        removed=sum(key[:2] in slices and key not in present for key in before),
        changed=fates.count("changed"),
        ungraded=fates.count("ungraded"),
    )


def _identity(record: Record) -> Identity:
    return (record.dataset, record.language, record.id, record.repeat)


def _fate(record: Record, before: Mapping[Identity, Record]) -> Pair | str:
    old = before.get(_identity(record))
    if old is None:
        return "added"
    if old.digest != record.digest:
        return "changed"
    return "ungraded" if right(old) is None else Pair(new=record, old=old)
