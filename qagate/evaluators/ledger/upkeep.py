"""What is done with a ledger beside runs: count it, carry it elsewhere, remove old rows.

Rows travel as JSON lines, one a row: out by ``export_lines``, in by ``import_rows``, which
takes only rows that verify. The same lines save replies that a ledger did not take
(``save_unkept``) until the next run takes them in.
"""

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

from qagate.evaluators.bounded_reading import check_regular
from qagate.evaluators.core import Price, Usage, UsageError
from qagate.evaluators.kept_requests import REQUEST, TEXT
from qagate.evaluators.ledger import rows
from qagate.evaluators.ledger.place import LedgerPlace, PostgresUrl
from qagate.evaluators.ledger.rows import RowId, Sql, StoredDocument, StoredRow
from qagate.evaluators.ledger.sqlite_file import is_foreign
from qagate.evaluators.ledger.store import Store
from qagate.evaluators.output import UnwrittenError, plural, write_whole
from qagate.evaluators.text import canonical

UNKEPT_FOLDER = Path(".qa")
"""In the working folder; holds replies that a ledger did not take."""

GROUP = 500
"""So many lines of an import are looked up and added at once."""

_KEY = re.compile(r"[0-9a-f]{64}")

Where = tuple[str, Sequence[object]]
"""Which rows, as a condition for SQL and its values."""
ALL: Where = ("1 = 1", ())


def where(
    *, spec: str | None = None, since: float | None = None, before: float | None = None
) -> Where:
    """Select the rows of a model, from a time on, before a time, in seconds since 1970."""
    conditions: list[str] = []
    values: list[object] = []
    if spec is not None:
        conditions.append("spec = ?")
        values.append(spec)
    if since is not None:
        conditions.append("at >= ?")
        values.append(since)
    if before is not None:
        conditions.append("at < ?")
        values.append(before)
    if not conditions:
        return ALL
    return " AND ".join(conditions), tuple(values)


def read_rows(store: Store, wanted: Where = ALL) -> Iterator[StoredRow]:
    """Yield the selected rows by key and run, damaged ones included."""
    condition, values = wanted
    query = f"{Sql.ROWS} WHERE {condition} ORDER BY key, run"
    for row in store.stream(query, values):
        yield StoredRow._make(row)


class ModelTotal(NamedTuple):
    """What the replies of one model took, and when they came."""

    usage: Usage
    """``earlier`` is their number."""
    first: float
    """When the first came, in seconds since 1970."""
    last: float


def ledger_stats(
    store: Store, cost: Price
) -> tuple[dict[str, ModelTotal], Counter[str]]:
    """Return the sums over all rows by SPEC, and the counts of other rows and of documents."""
    totals: dict[str, ModelTotal] = {}
    counts: Counter[str] = Counter()
    signer = rows.Signer()
    for row in read_rows(store):
        reply = row.opened()
        if reply is None:
            counts["damaged"] += 1
            continue
        if not signer.accepts(row):
            counts["unsigned"] += 1
        paid = cost(row.spec, reply)
        usage = Usage(
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
            seconds=reply.seconds,
            cost=paid,
            known=paid or 0.0,
            earlier=1,
            cache_read_tokens=reply.cache_read_tokens,
        )
        before = totals.get(row.spec, ModelTotal(Usage(), row.at, row.at))
        totals[row.spec] = ModelTotal(
            usage=before.usage + usage,
            first=min(before.first, row.at),
            last=max(before.last, row.at),
        )
    counts["aside"] = _row_count(store, "damaged")
    counts["imported"] = _row_count(store, "imported")
    counts["documents"] = _row_count(store, "documents")
    return dict(sorted(totals.items())), counts


class RowCounts(NamedTuple):
    """How many replies of a ledger are what was written."""

    sound: int
    damaged: int
    unsigned: int
    """Those without the signature of this process's secret."""


def count_rows(store: Store) -> RowCounts:
    """Return how many replies are sound; each is read. Raises StoreError for a damaged file."""
    signer = rows.Signer()
    sound = 0
    damaged = 0
    unsigned = 0
    for row in read_rows(store):
        if row.opened() is None:
            damaged += 1
        elif not signer.accepts(row):
            unsigned += 1
        else:
            sound += 1
    return RowCounts(sound=sound, damaged=damaged, unsigned=unsigned)


def _row_count(store: Store, table: str) -> int:
    ((count,),) = store.read(f"SELECT count(*) FROM {table}")
    return int(count)


def export_lines(store: Store, wanted: Where, left_out: list[str]) -> Iterator[str]:
    """Yield the wanted rows that are sound as JSON lines; if all are wanted, documents too.

    The keys of those that are not sound are added to ``left_out``.
    """
    for row in read_rows(store, wanted):
        if row.opened() is not None:
            yield row.line
        else:
            left_out.append(str(row.key))
    if wanted == ALL:
        query = "SELECT kind, key, text FROM documents ORDER BY kind, key"
        for document in store.stream(query):
            yield StoredDocument._make(document).line


def save_unkept(
    place: LedgerPlace, unkept: Sequence[StoredRow | StoredDocument]
) -> Path:
    """Save rows to a private file in the working folder; return its path. Raises OSError."""
    now = datetime.now(UTC)
    path = UNKEPT_FOLDER / f"unkept-{now:%Y%m%dT%H%M%SZ}-{uuid4().hex[:8]}.jsonl"
    UNKEPT_FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
    lines = [_first_line(place), *(row.line for row in unkept)]
    write_whole(path, (line.encode() for line in lines))
    return path


def _first_line(place: LedgerPlace) -> str:
    """Return the line that says to which ledger a file of unkept rows belongs."""
    if not isinstance(place, PostgresUrl):
        place = place.resolve()
    return canonical({"ledger": str(place)}) + "\n"


def take_unkept(store: Store, place: LedgerPlace) -> Iterator[str]:
    """Take in what this ledger did not take in earlier runs of the working folder; yield notes.

    What cannot be taken in would be paid for once more: raises UsageError, or UnwrittenError
    if the disk is full. Lines that do not verify are no such replies, and are named.
    """
    for path in sorted(UNKEPT_FOLDER.glob("unkept-*.jsonl")):
        try:
            first_line = next(_read_lines(path), b"").decode("utf-8", "replace")
            if first_line != _first_line(place):
                continue
            if not _is_trusted(path):
                yield f"{path} is not taken in: other users could have changed it"
                continue
            new, _, refused = import_rows(store, path)
            if not refused:
                path.unlink(missing_ok=True)
        except (OSError, rows.StoreError, UsageError) as error:
            if not path.exists():
                continue  # another run took it in at the same time
            raise _not_taken_in(path, error) from None
        note = f"{plural(new, 'row')} taken in from {path}"
        if refused:
            note += f"; {len(refused)} refused: {refused[0]}"
        yield note


def _not_taken_in(path: Path, error: Exception) -> UsageError | UnwrittenError:
    """Return the error that ends a run before it pays anew for replies that lie in a file."""
    message = (
        f"{path}: replies that an earlier run paid for cannot be taken into the ledger "
        f"({error}); nothing was asked: "
    )
    if isinstance(error, rows.StoreError) and error.is_full:
        return UnwrittenError(f"{message}free some space and run again")
    return UsageError(
        f"{message}mend that, or move the file away to pay for them again"
    )


def _is_trusted(path: Path) -> bool:
    """Return whether no other user could have changed a file, or every row in it is signed."""
    status = path.lstat()
    if not stat.S_ISREG(status.st_mode):
        return False
    if rows.VARIABLE in os.environ:
        return True
    others_may_write = status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return not (is_foreign(status) or others_may_write)


class Imported(NamedTuple):
    """What became of the lines of an import."""

    new: int
    known: int
    """Rows that were there already."""
    refused: Sequence[str]
    """Where each bad line is, and what is wrong."""


def import_rows(store: Store, path: Path) -> Imported:
    """Add what verifies in an exported file; what is there stays. Raises UsageError."""
    signer = rows.Signer()
    new = 0
    known = 0
    refused: list[str] = []
    lines = enumerate(_read_lines(path), start=1)
    while group := list(islice(lines, GROUP)):
        replies: dict[RowId, StoredRow] = {}
        documents: list[StoredDocument] = []
        for number, line in group:
            if number == 1 and line.startswith(b'{"ledger":'):
                continue  # of unkept replies: where they belong
            try:
                row = _parse(line, signer)
            except ValueError as error:
                refused.append(f"{path}:{number}: {error}")
                continue
            if isinstance(row, StoredDocument):
                documents.append(row)
            elif row.id in replies:
                known += 1
            else:
                replies[row.id] = row
        ids_before = _ids_under(store, [row.key for row in replies.values()])
        added = [row for row in replies.values() if row.id not in ids_before]
        store.change(
            [
                (Sql.INSERT, added),
                (Sql.MARK_IMPORTED, [row.id for row in added]),
                (Sql.ADD_DOCUMENT, documents),
            ]
        )
        new += len(added)
        known += len(replies) - len(added)
    return Imported(new=new, known=known, refused=refused)


def _ids_under(store: Store, keys: Sequence[str]) -> set[RowId]:
    """Return what tells the replies apart that a ledger has under some keys."""
    marks = ", ".join("?" * len(keys)) or "NULL"
    stored = store.read(f"SELECT key, run FROM calls WHERE key IN ({marks})", keys)
    return {RowId(key, run) for key, run in stored}


def _read_lines(path: Path) -> Iterator[bytes]:
    check_regular(path)
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be read ({error.strerror}); give the path of an exported file"
        ) from None


def _parse(line: bytes, signer: rows.Signer) -> StoredRow | StoredDocument:
    """Return the row or the document of a line. Raises ValueError if it does not verify."""
    values = rows.values_in(line)
    if values.keys() == set(StoredDocument._fields):
        return _parse_document(values, signer)
    return rows.row_of(values, signer)


def _parse_document(values: dict[str, Any], signer: rows.Signer) -> StoredDocument:
    document = StoredDocument(
        kind=values["kind"], key=values["key"], text=values["text"]
    )
    if document.opened(signer) is None:
        raise ValueError(
            "a document that is damaged, or was not written with this "
            f"{rows.VARIABLE}; export again"
        )
    return document


def prune(store: Store, wanted: Where, *, remove: bool) -> tuple[int, int]:
    """Return how many rows are selected, and the bytes of their replies.

    With ``remove`` they go with what was sent for them, and their space is returned.
    """
    condition, values = wanted
    query = (
        f"SELECT count(*), coalesce(sum(length(reply)), 0) FROM calls WHERE {condition}"
    )
    ((count, size),) = store.read(query, values)
    if remove and count:
        _remove(store, wanted)
    return int(count), int(size)


def _remove(store: Store, wanted: Where) -> None:
    """Remove rows, then the requests of rows that are gone, then texts that no request names."""
    condition, values = wanted
    store.change(
        [
            (f"DELETE FROM calls WHERE {condition}", [values]),
            (
                "DELETE FROM imported WHERE NOT EXISTS "
                "(SELECT 1 FROM calls WHERE calls.key = imported.key "
                "AND calls.run = imported.run)",
                [()],
            ),
            (
                "DELETE FROM documents WHERE kind = ? AND NOT EXISTS "
                "(SELECT 1 FROM calls WHERE calls.key = documents.key)",
                [(REQUEST,)],
            ),
        ]
    )
    named: set[str] = set()
    for (text,) in store.stream(
        "SELECT text FROM documents WHERE kind = ?", (REQUEST,)
    ):
        named.update(_KEY.findall(text))
    texts = store.read("SELECT kind, key FROM documents WHERE kind = ?", (TEXT,))
    unnamed = [(kind, key) for kind, key in texts if key not in named]
    store.change([("DELETE FROM documents WHERE kind = ? AND key = ?", unnamed)])
    store.shrink()
