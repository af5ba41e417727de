"""Which records hold only text that every report file may show as it is: nearly all of them."""

from collections.abc import Iterable, Iterator, Mapping
from operator import attrgetter

from reports.record import Record
from reports.render import clean

_texts = attrgetter(
    *("key", "id", "dataset", "language", "digest", "question", "context", "expected", "answer"),
    *("outcome", "grade", "reason", "error", "label", "model", "judge", "adjudicated_by"),
)
_vote_texts = attrgetter("judge", "grade", "reason", "error")


def find_plain(records: Iterable[Record]) -> frozenset[str]:
    """Return the keys of the records in whose text nothing is to be masked or made visible.

    Each text goes into three files; to look at all texts of a record at once, and once for all
    files, takes a tenth of the time.
    """
    return frozenset(record.key for record in records if clean.is_plain(_of(record)))


def _of(record: Record) -> Iterable[str]:
    """Return every text of a record that is not empty."""
    found = [text for text in _texts(record) if text]
    for vote in record.votes:
        found += filter(None, _vote_texts(vote))
    if record.measures or record.metadata:
        found += _inside((record.measures, record.metadata))
    return found


def _inside(value: object) -> Iterator[str]:
    """Yield every text of a value, the text of whatever is no number included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield str(key)
            yield from _inside(part)
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _inside(part)
    else:
        yield str(value)
