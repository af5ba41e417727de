"""What a ledger holds and cost; its rows as JSON lines, out and in, for CI; removing old rows."""

import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from qagate.evaluators.core import LedgerPlace, PostgresUrl, Price, Usage, UsageError
from qagate.evaluators.ledger import rows
from qagate.evaluators.ledger.rows import Sql, StoredDocument, StoredRow
from qagate.evaluators.ledger.sqlite import is_foreign
from qagate.evaluators.ledger.store import Store
from qagate.evaluators.output import plural, write_whole
from qagate.evaluators.reading import parse_json
from qagate.evaluators.text import REQUEST, TEXT, canonical, one_line

UNKEPT_FOLDER = Path(".qa")
GROUP = 500  # lines of an import that are looked up and added at once
_KEY = re.compile(r"[0-9a-f]{64}")


Where = tuple[str, Sequence[object]]
"""Which rows, as a condition for SQL and its values."""
ALL: Where = ("1 = 1", ())


def where(
    *, spec: str | None = None, since: float | None = None, before: float | None = None
) -> Where:
    """Select the rows of a model, from a time on, before a time, in seconds since 1970."""
    tests = {"spec = ?": spec, "at >= ?": since, "at < ?": before}
    given = {test: value for test, value in tests.items() if value is not None}
    return (" AND ".join(given), tuple(given.values())) if given else ALL


def read_rows(store: Store, wanted: Where = ALL) -> Iterator[StoredRow]:
    """Yield the selected rows by key, damaged ones included."""
    condition, values = wanted
    return map(
        StoredRow._make,
        store.stream(f"{Sql.ROWS} WHERE {condition} ORDER BY key", values),
    )


ModelTotal = tuple[Usage, float, float]
"""What the replies of one model took (``earlier``: their number), and when the first and last came,
in seconds since 1970."""


def ledger_stats(
    store: Store, cost: Price
) -> tuple[dict[str, ModelTotal], Counter[str]]:
    """Return the sums over all rows by SPEC, and the counts of other rows and of documents."""
    models: dict[str, ModelTotal] = {}
    counts, signer = Counter[str](), rows.Signer()
    for row in read_rows(store):
        reply = row.opened()
        if reply is None:
            counts["damaged"] += 1
            continue
        if not signer.accepts(row):
            counts["unsigned"] += 1
        paid = cost(row.spec, reply)
        usage, first, last = models.get(row.spec, (Usage(), row.at, row.at))
        usage += Usage(
            input_tokens=reply.input_tokens,
            output_tokens=reply.output_tokens,
            seconds=reply.seconds,
            cost=paid,
            known=paid or 0.0,
            earlier=1,
            cache_read_tokens=reply.cache_read_tokens,
        )
        models[row.spec] = usage, min(first, row.at), max(last, row.at)
    counts["aside"] = _row_count(store, "damaged")
    counts["imported"] = _row_count(store, "imported")
    counts["documents"] = _row_count(store, "documents")
    return dict(sorted(models.items())), counts


def _row_count(store: Store, table: str) -> int:
    ((count,),) = store.read(f"SELECT count(*) FROM {table}")
    return int(count)


def export_lines(store: Store, wanted: Where, left_out: list[str]) -> Iterator[str]:
    """Yield sound rows, if all are wanted documents too, as JSON lines; others to ``left_out``."""
    for row in read_rows(store, wanted):
        if row.opened() is not None:
            yield row.line
        else:
            left_out.append(str(row.key))
    if wanted == ALL:
        for one in store.stream(
            "SELECT kind, key, text FROM documents ORDER BY kind, key"
        ):
            yield StoredDocument._make(one).line


def save_unkept(
    place: LedgerPlace, unkept: Sequence[StoredRow | StoredDocument]
) -> Path:
    """Return the private file in the working folder to which these rows were saved, or OSError."""
    name = f"unkept-{datetime.now(UTC):%Y%m%dT%H%M%SZ}-{uuid4().hex[:8]}.jsonl"
    UNKEPT_FOLDER.mkdir(mode=0o700, parents=True, exist_ok=True)
    lines = (_first_line(place), *(row.line for row in unkept))
    write_whole(UNKEPT_FOLDER / name, map(str.encode, lines))
    return UNKEPT_FOLDER / name


def _first_line(place: LedgerPlace) -> str:
    shown = str(place if isinstance(place, PostgresUrl) else place.resolve())
    return canonical({"ledger": shown}) + "\n"


def take_unkept(store: Store, place: LedgerPlace) -> Iterator[str]:
    """Take in what this ledger did not take in earlier runs of the working folder; yield notes."""
    for path in sorted(UNKEPT_FOLDER.glob("unkept-*.jsonl")):
        try:
            if next(_read_lines(path), b"").decode() != _first_line(place):
                continue
            file = path.lstat()
            others = is_foreign(file) or file.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
            if not stat.S_ISREG(file.st_mode) or (
                others and rows.VARIABLE not in os.environ
            ):
                yield f"{path} is not taken in: other users could have changed it"
                continue
            new, _, refused = import_rows(store, path)
            if not refused:
                path.unlink(missing_ok=True)
        except (OSError, rows.StoreError, UsageError, ValueError) as error:
            yield f"{path} is not taken in: {error}"
        else:
            bad = f"; {len(refused)} refused: {refused[0]}" if refused else ""
            yield f"{plural(new, 'row')} taken in from {path}{bad}"


def import_rows(store: Store, path: Path) -> tuple[int, int, Sequence[str]]:
    """Add what verifies in an exported file; what is there stays. Raises UsageError.

    Returns how many rows are new or known, and where bad lines are, with what is wrong.
    """
    signer = rows.Signer()
    new = known = 0
    refused: list[str] = []
    lines = enumerate(_read_lines(path), start=1)
    while group := list(islice(lines, GROUP)):
        replies: dict[str, StoredRow] = {}
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
            elif row.key in replies:
                known += 1
            else:
                replies[row.key] = row
        marks = ", ".join("?" * len(replies)) or "NULL"
        keys_found = store.read(
            f"SELECT key FROM calls WHERE key IN ({marks})", list(replies)
        )
        keys_before = {key for (key,) in keys_found}
        added = [row for row in replies.values() if row.key not in keys_before]
        store.change(
            [
                (Sql.INSERT, added),
                (Sql.MARK_IMPORTED, [(row.key,) for row in added]),
                (Sql.ADD_DOCUMENT, documents),
            ]
        )
        new += len(added)
        known += len(keys_before)
    return new, known, refused


def _read_lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be read ({error.strerror}); give the path of an exported file"
        ) from None


def _parse(line: bytes, signer: rows.Signer) -> StoredRow | StoredDocument:
    try:
        values: Any = parse_json(line.decode("utf-8"))
    except UnicodeDecodeError:
        raise ValueError("not UTF-8; give a file that `ledger export` wrote") from None
    fields = values.keys() if isinstance(values, dict) else set()
    if fields == set(StoredDocument._fields):
        document = StoredDocument(
            kind=values["kind"], key=values["key"], text=values["text"]
        )
        if (
            not all(isinstance(text, str) for text in document)
            or document.opened(signer) is None
        ):
            why = f"was not written with this {rows.VARIABLE}; export again"
            raise ValueError(f"a document that is damaged, or {why}")
        return document
    if fields != set(StoredRow._fields):
        wanted = ", ".join(sorted(StoredRow._fields))
        raise ValueError(f"not a row of a ledger; needed are {wanted}")
    if values["schema"] != rows.SCHEMA:
        schema = one_line(str(values["schema"]), 20)
        raise ValueError(f"format {schema}, this version reads format {rows.SCHEMA}")
    row = StoredRow(
        key=values["key"],
        schema=values["schema"],
        at=values["at"],
        spec=values["spec"],
        reply=canonical(values["reply"]),
        checksum=values["checksum"],
    )
    if row.opened() is None:
        raise ValueError(
            "the row is not what was exported: its checksum is wrong; export it again"
        )
    if not signer.accepts(row):
        raise ValueError(f"unsigned: it was not written with this {rows.VARIABLE}")
    return row


def prune(store: Store, wanted: Where, *, remove: bool) -> tuple[int, int]:
    """Return how many rows are selected, and the bytes of their replies.

    With ``remove`` they go with what was sent for them, and their space is returned.
    """
    condition, values = wanted
    query = (
        f"SELECT count(*), coalesce(sum(length(reply)), 0) FROM calls WHERE {condition}"
    )
    ((number, size),) = store.read(query, values)
    if remove and number:
        gone = "NOT EXISTS (SELECT 1 FROM calls WHERE calls.key = {}.key)"
        requests = (
            f"DELETE FROM documents WHERE kind = ? AND {gone.format('documents')}"
        )
        imported = f"DELETE FROM imported WHERE {gone.format('imported')}"
        rows_gone = f"DELETE FROM calls WHERE {condition}", [values]
        store.change([rows_gone, (imported, [()]), (requests, [(REQUEST,)])])
        sent = store.stream("SELECT text FROM documents WHERE kind = ?", (REQUEST,))
        named = {key for (text,) in sent for key in _KEY.findall(text)}
        texts = store.read("SELECT kind, key FROM documents WHERE kind = ?", (TEXT,))
        left = [one for one in texts if one[1] not in named]
        store.change([("DELETE FROM documents WHERE kind = ? AND key = ?", left)])
        store.shrink()
    return int(number), int(size)
