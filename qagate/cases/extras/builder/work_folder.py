"""The work folder of a build: a JSONL file a step, whole or not at all, its settings in line 1."""

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from qagate.evaluators.core import QAError, UsageError
from qagate.evaluators.output import PRIVATE_FOLDER, write_whole
from qagate.evaluators.reading import parse_json, read_text
from qagate.evaluators.text import shown
from qagate.evaluators.typed_data import decode, decode_text, encode

REPORT, LOCK = "report.json", "lock"
FAILURES = (
    *("timeout", "connection", "unreachable", "bad_body", "error_body"),
    *("server", "overloaded", "rate_limit", "conflict"),
)
"""Kinds of failure that may concern one call alone, unlike a wrong key or an empty budget."""

State = Literal["kept", "dropped", "pending"]
Values = Mapping[str, Any]  # a JSON object
Say = Callable[[str], None]  # shows the user a line


class BuildError(QAError):
    """A step cannot be finished, although the command was correct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a text came from."""

    group: str
    """The kind of source, such as ``news``."""
    source: str
    """The file or folder, as the recipe names it."""
    page: str
    """The article's id in its source."""
    title: str
    url: str = ""
    licence: str = ""
    revision: str = ""

    @property
    def key(self) -> str:
        """Identify the article among all others, even after its file was moved."""
        source = (
            self.source
            if "://" in self.source
            else self.source.rstrip("/").rpartition("/")[2]
        )
        return "\x1f".join((self.group, source, self.page))

    def item_id(self, language: str) -> str:
        """Return the id of the article's item: ASCII, and the same in every run."""
        return f"{language}-{sha256(self.key)[:12]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftItem:
    """One paragraph on its way to becoming a question of the dataset."""

    id: str
    language: str
    paragraph: str
    origin: Origin
    state: State = "kept"
    """How the item left the step; a pending one is tried again by the next run."""
    reason: str = ""
    """Why it is dropped or pending, as one word that is counted."""
    detail: str = ""
    wanted: str = ""
    """YES or NO: the answer that the generator was asked for."""
    question: str = ""
    answer: str = ""
    """YES or NO."""
    batch: tuple[str, ...] = ()
    """Ids of the items of the same request."""
    generator: Values = field(default_factory=dict)
    """Model, prompt, and the model name that the provider returned; ``validator`` likewise."""
    validator: Values = field(default_factory=dict)
    probe: Values = field(default_factory=dict)
    """What each model answered without the paragraph."""
    review: Values = field(default_factory=dict)
    """Who was asked, and what they said."""
    split: str = ""

    def dropped(self, reason: str, detail: str) -> "DraftItem":
        """Return the item as dropped for this reason."""
        return replace(self, state="dropped", reason=reason, detail=detail)

    def pending(self, reason: str, detail: str) -> "DraftItem":
        """Return the item as waiting for another run."""
        return replace(self, state="pending", reason=reason, detail=detail)


Items = Sequence[DraftItem]


def kept(items: Items) -> list[DraftItem]:
    """Return the items that are still in."""
    return [item for item in items if item.state == "kept"]


def drop_failed(items: Items) -> list[DraftItem]:
    """Return the items; those whose own call failed are dropped as ``failed_KIND``.

    They stay pending when no call succeeded at all, and where budget, time or user ended the work.
    """
    done = list(items)
    for at, item in enumerate(
        items if any(one.state != "pending" for one in items) else ()
    ):
        if item.state == "pending" and item.reason in FAILURES:
            done[at] = replace(item, state="dropped", reason=f"failed_{item.reason}")
    return done


def to_row(item: DraftItem) -> dict[str, object]:
    """Return an item as the JSON object of a step's file, without its empty fields."""
    return {
        key: value for key, value in asdict(item).items() if value or key == "paragraph"
    }


def from_row(row: object) -> DraftItem:
    """Return the item that ``to_row`` wrote. Raises ValueError saying what is wrong."""
    item: DraftItem = decode(DraftItem, row)
    return item


def sha256(text: str) -> str:
    """Return the SHA-256 of a text in hexadecimal; lone surrogates are allowed."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class StepRecord:
    """The first line of a step's file: how its rows were made, and of what."""

    options: dict[str, Any]
    input: str
    """The hash of the rows of the step before."""
    output: str
    """The hash of its own rows."""


@dataclass(frozen=True, slots=True)
class WorkFolder:
    """A work folder at a path."""

    path: Path

    def file(self, step: str) -> Path:
        """Return the path of a step's rows."""
        return self.path / f"{step}.jsonl"

    def record(self, step: str) -> StepRecord | None:
        """Return a step's first line; None if it is not done. Raises UsageError."""
        path = self.file(step)
        if not path.is_file():
            return None
        first, _, rows = read_text(path).partition("\n")
        record: StepRecord | None = None
        with suppress(ValueError):
            record = decode_text(StepRecord, first)
        if record is None or record.output != sha256(rows):
            raise UsageError(
                f"{path}: changed since it was made; delete it to make it again, "
                "or put it back"
            )
        return record

    def options(self, step: str) -> dict[str, Any]:
        """Return the settings that a step was done with; empty if it is not done."""
        record = self.record(step)
        return {} if record is None else record.options

    def read(self, step: str) -> list[DraftItem]:
        """Return a step's items in their order."""
        path, items = self.file(step), []
        for line, text in enumerate(read_text(path).split("\n")[1:], 2):
            try:
                items += [from_row(parse_json(text))] if text else []
            except ValueError as error:
                raise UsageError(
                    f"{path}:{line}: {error}; got {shown(text)}; delete the file to make it again"
                ) from None
        return items

    def publish(self, step: str, items: Items, options: Values, source: str) -> None:
        """Put a step's rows in place; ``source`` is the hash of the rows they were made from."""
        rows = "".join(
            f"{json.dumps(to_row(item), ensure_ascii=False)}\n" for item in items
        )
        record = StepRecord(options=dict(options), input=source, output=sha256(rows))
        first = json.dumps(encode(record), ensure_ascii=False)
        _write(self.file(step), f"{first}\n{rows}")

    def write_json(self, name: str, value: object) -> None:
        """Write a JSON file, whole."""
        _write(self.path / name, json.dumps(value, ensure_ascii=False, indent=2) + "\n")


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        write_whole(path, [text.encode("utf-8", "surrogatepass")])
    except OSError as error:
        where = error.filename or path
        what = f"{where}: cannot be written ({error.strerror}); fix that and run again"
        raise BuildError(what) from None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other commands out of a folder for a block. Raises BuildError if one is at work."""
    try:
        folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        lock = sqlite3.connect(folder / LOCK, timeout=0, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        raise BuildError(
            f"{folder}: cannot be written ({error}); fix that and run again"
        ) from None
    with closing(lock):
        try:
            lock.execute("BEGIN EXCLUSIVE")
        except sqlite3.Error as error:
            is_busy = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_BUSY
            why = "another command is at work there; wait for it"
            why = why if is_busy else f"no lock ({error})"
            raise BuildError(f"{folder}: {why}, or take another --folder") from None
        yield
