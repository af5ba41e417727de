"""Rows and documents of an exported file, checked line by line and added to a ledger.

What is there already stands: the first reply under a key is kept, and so is the first document.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from evaluators.core import UsageError
from evaluators.ledger.database import (
    IMPORTED,
    INSERT,
    SCHEMA,
    Store,
    StoredRow,
    Transaction,
    marks,
)
from evaluators.ledger.documents import ADD, StoredDocument
from evaluators.ledger.signing import VARIABLE, Signer
from evaluators.reading import parse_json
from evaluators.secrets import one_line
from evaluators.text import canonical

GROUP = 500  # lines looked up and added at once
FIELDS = frozenset(StoredRow._fields)
DOCUMENT_FIELDS = frozenset(StoredDocument._fields)

_Parsed = StoredRow | StoredDocument | ValueError


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """How an import ended. ``refused`` says for each bad line where and why."""

    new: int
    known: int
    refused: tuple[str, ...] = ()


class _RefusedError(Exception):
    """Bad lines were found, and nothing is to be imported then."""


def import_rows(store: Store, path: Path, *, skip_bad: bool) -> Imported:
    """Add the rows of an exported file; with a bad line none, unless it is to be skipped.

    A line is bad when it is no row, fails its checksum, lacks the signature that the environment's
    secret asks for, or brings another reply for a key that has one. Documents are not counted.
    Raises UsageError where the file cannot be read.
    """
    signer = Signer.of_environment()
    done: list[Imported] = []

    def work(transaction: Transaction) -> None:
        done.clear()  # the work is begun again where a connection was lost
        lines = enumerate(_read_lines(path), start=1)
        while group := list(islice(lines, GROUP)):
            parsed = {f"{path}:{number}": _parse(line, signer) for number, line in group}
            done.append(_add(transaction, parsed))
        if not skip_bad and any(one.refused for one in done):
            raise _RefusedError

    with suppress(_RefusedError):
        store.change(work)
    return Imported(
        new=sum(one.new for one in done),
        known=sum(one.known for one in done),
        refused=tuple(line for one in done for line in one.refused),
    )


def _read_lines(path: Path) -> Iterator[bytes]:
    try:
        with path.open("rb") as file:
            yield from file
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be read ({error.strerror}); give the path of an exported file"
        ) from None


def _parse(line: bytes, signer: Signer) -> _Parsed:
    """Return what a line holds, or the error that says why it is not taken."""
    try:
        values: Any = parse_json(line.decode("utf-8"))
        if isinstance(values, dict) and values.keys() == DOCUMENT_FIELDS:
            return _document(values, signer)
        return _row(values, signer)
    except UnicodeDecodeError:
        return ValueError("not UTF-8; give a file that `ledger export` wrote")
    except ValueError as error:
        return error


def _row(values: Any, signer: Signer) -> StoredRow:
    if not isinstance(values, dict) or values.keys() != FIELDS:
        raise ValueError(f"not a row of a ledger; needed are {', '.join(sorted(FIELDS))}")
    if values["schema"] != SCHEMA:
        raise ValueError(
            f"format {one_line(str(values['schema']), 20)}, this version reads format {SCHEMA}"
        )
    row = StoredRow(**{**values, "reply": canonical(values["reply"])})
    if not row.is_sound:
        raise ValueError("the row is not what was exported: its checksum is wrong; export it again")
    if not signer.accepts(row):
        raise ValueError(f"unsigned: it was not written with this {VARIABLE}")
    return row


def _document(values: dict[str, Any], signer: Signer) -> StoredDocument:
    document = StoredDocument(**values)
    if not all(isinstance(text, str) for text in document) or document.opened(signer) is None:
        raise ValueError(
            f"a document that is damaged, or was not written with this {VARIABLE}; export again"
        )
    return document


def _add(transaction: Transaction, parsed: dict[str, _Parsed]) -> Imported:
    """Insert what is new of a group of lines, by where each of them stands."""
    keys = [one.key for one in parsed.values() if isinstance(one, StoredRow)]
    query = f"SELECT key, reply FROM calls WHERE key IN ({marks(keys)})"
    kept: dict[str, str] = dict(transaction.read(query, keys))
    new: list[StoredRow] = []
    refused: list[str] = []
    for where, one in parsed.items():
        if isinstance(one, ValueError):
            refused.append(f"{where}: {one}")
        elif isinstance(one, StoredRow):
            if one.key not in kept:
                kept[one.key] = one.reply
                new.append(one)
            elif kept[one.key] != one.reply:
                another = f"another reply stands under {one.key[:12]}…; the first is kept"
                refused.append(f"{where}: {another}")
    transaction.run(INSERT, new)
    transaction.run(IMPORTED, [(row.key,) for row in new])
    documents: Sequence[StoredDocument]
    documents = [one for one in parsed.values() if isinstance(one, StoredDocument)]
    transaction.run(ADD, documents)
    known = len(keys) - len(new) - sum("another reply" in line for line in refused)
    return Imported(new=len(new), known=known, refused=tuple(refused))
