"""Which record of an earlier run is about the same item as one of this run.

Items pair by id and repeat. An item without an id of its own has one made of question and gold,
so that a gold that changes gives it another id: such an item pairs by question and context.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from qagate.evaluators.core import ItemView
from qagate.reports.run.record import Record

Identity = tuple[str, str, str, int]
"""Data set, language, id and repeat."""
Wording = tuple[str, str, str, str, int]
"""Data set, language, question, context and repeat."""


def identity_of(item: ItemView, repeat: int) -> Identity:
    """Return what names an item in both runs."""
    return item.dataset, item.language, item.id, repeat


def wording_of(item: ItemView, repeat: int) -> Wording:
    """Return what was asked: an item keeps it while its question and context are the same."""
    return item.dataset, item.language, item.question, item.context, repeat


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierRecords:
    """The records of an earlier run, to be found for the items of this one."""

    by_identity: Mapping[Identity, Record] = field(default_factory=dict)
    by_wording: Mapping[Wording, Record] = field(default_factory=dict)

    @classmethod
    def of(cls, records: Iterable[Record]) -> "EarlierRecords":
        """Return these records by id and by wording; of equal wordings the first."""
        by_identity: dict[Identity, Record] = {}
        by_wording: dict[Wording, Record] = {}
        for record in records:
            by_identity[identity_of(record, record.repeat)] = record
            by_wording.setdefault(wording_of(record, record.repeat), record)
        return cls(by_identity=by_identity, by_wording=by_wording)

    def partner(self, item: ItemView, repeat: int) -> Record | None:
        """Return the record of the same item; None if the earlier run had none."""
        record = self.by_identity.get(identity_of(item, repeat))
        if record is not None:
            return record
        return self.by_wording.get(wording_of(item, repeat))


def is_edited(item: ItemView, earlier: Record) -> bool:
    """Return whether the item asks something else than its earlier record."""
    return (item.question, item.context) != (earlier.question, earlier.context)
