"""The work folder and its files: items, one JSONL file a step, and the steps' settings.

A step's file appears as a whole or not at all. It is written beside its place first, then its hash
is put into ``settings.json``, then it is renamed; a kill between any two of these is mended when
the folder is opened again.
"""

import hashlib
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

from evaluators.core import QAError, UsageError
from evaluators.output import PRIVATE_FOLDER, write_part, write_whole
from evaluators.reading import file_hash, parse_json, read_text
from evaluators.text import shown

SETTINGS, REPORT = "settings.json", "report.json"
LOCK = "lock"
FAILURES = frozenset(
    {
        *("timeout", "connection", "unreachable", "bad_body", "error_body"),
        *("server", "overloaded", "rate_limit", "conflict"),
    }
)
"""Kinds of failure that may concern one call alone; a wrong key or an empty budget does not."""

State = Literal["kept", "dropped", "pending"]
Values = Mapping[str, Any]
"""A JSON object."""
Say = Callable[[str], None]
"""Shows the user a line."""


class BuildError(QAError):
    """A step cannot be done, though the command was right."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a text came from. ``group`` is the kind of source, such as ``news``.

    ``source`` is the file or address as the user gave it; ``page`` is the source's own id.
    """

    group: str
    source: str
    page: str
    title: str
    url: str = ""
    licence: str = ""
    revision: str = ""

    @property
    def key(self) -> str:
        """What tells the article from every other, also after its file was moved."""
        is_address = "://" in self.source
        source = self.source if is_address else self.source.rstrip("/").rpartition("/")[2]
        return "\x1f".join((self.group, source, self.page))

    def item_id(self, language: str) -> str:
        """Return the id of the article's item: ASCII, and the same in every run."""
        return f"{language}-{sha256(self.key)[:12]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Article:
    """One article of a source as it was found."""

    origin: Origin
    text: str
    markup: Literal["plain", "wiki"] = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One paragraph on its way to a question.

    ``state`` is how it left the step whose file it is in: ``dropped`` with a ``reason`` that is
    counted and a ``detail`` that explains, ``pending`` where a call failed that a re-run repeats.
    ``wanted`` and ``answer`` are YES or NO. ``batch`` holds the ids that were asked for together.
    ``generator`` and ``validator`` hold the model, the prompt and what the model returned;
    ``probe`` what models answered without the text; ``review`` the reviewers' names and verdicts.
    ``split`` is its part of the frozen set.
    """

    id: str
    language: str
    paragraph: str
    origin: Origin
    state: State = "kept"
    reason: str = ""
    detail: str = ""
    wanted: str = ""
    question: str = ""
    answer: str = ""
    batch: tuple[str, ...] = ()
    generator: Values = field(default_factory=dict)
    validator: Values = field(default_factory=dict)
    probe: Values = field(default_factory=dict)
    review: Values = field(default_factory=dict)
    split: str = ""

    def dropped(self, reason: str, detail: str, **changes: Any) -> "Item":
        """Return the item as dropped for this reason, changed otherwise as given."""
        return replace(self, state="dropped", reason=reason, detail=detail, **changes)

    def pending(self, reason: str, detail: str, **changes: Any) -> "Item":
        """Return the item as waiting for another run, changed otherwise as given."""
        return replace(self, state="pending", reason=reason, detail=detail, **changes)


def kept(items: Sequence[Item]) -> list[Item]:
    """Return the items that are still in."""
    return [item for item in items if item.state == "kept"]


def drop_failed(items: Sequence[Item]) -> list[Item]:
    """Return the items with those dropped whose call failed by itself, the failure as reason.

    Where no call at all succeeded the fault is not theirs, and they stay pending; so do those
    that were not asked because the budget, the time or the user ended the work.
    """
    some = any(item.state != "pending" for item in items)
    return [
        replace(item, state="dropped", reason=f"failed_{item.reason}")
        if some and item.state == "pending" and item.reason in FAILURES
        else item
        for item in items
    ]


def to_row(item: Item) -> dict[str, object]:
    """Return an item as the JSON object of a step's file; what is empty is left out."""
    return {key: value for key, value in asdict(item).items() if value or key == "paragraph"}


def from_row(row: object) -> Item:
    """Return the item that ``to_row`` wrote. Raises ValueError saying what is wrong."""
    if not isinstance(row, dict):
        raise ValueError("a JSON object is needed")
    try:
        item = Item(**{**row, "origin": Origin(**row["origin"])})
    except (TypeError, KeyError) as error:
        raise ValueError(f"not an item of this step ({error})") from None
    if item.state not in get_args(State):
        raise ValueError(f"state {item.state!r} is none of {', '.join(get_args(State))}")
    return replace(item, batch=tuple(item.batch))


def sha256(text: str) -> str:
    """Return the SHA-256 of a text in hexadecimal; lone surrogates are no obstacle."""
    return hashlib.sha256(_encoded(text)).hexdigest()


class Folder:
    """A work folder at a path. Raises UsageError for files that are not as they were written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        with _writing(path):
            path.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        self._records = self._read_settings()
        self._recover()

    def file(self, step: str) -> Path:
        """Return where a step's rows stand."""
        return self.path / f"{step}.jsonl"

    def record(self, step: str) -> Values:
        """Return what settings.json says of a step; empty where it was not made.

        ``options`` are those it was made with, ``input`` and ``output`` the hashes of the file it
        was made from and of its own.
        """
        record = self._records.get(step) if self.file(step).is_file() else None
        return record if isinstance(record, dict) else {}

    def options(self, step: str) -> Values:
        """Return the options that a step was made with; empty where it was not made."""
        options = self.record(step).get("options")
        return options if isinstance(options, dict) else {}

    def made(self, step: str) -> bool:
        """Return whether a step's file is there. Raises UsageError where somebody changed it."""
        path = self.file(step)
        if not path.is_file():
            return False
        if file_hash(path) != self.record(step).get("output"):
            raise UsageError(
                f"{path}: changed since it was made; delete it to make it again, or put it back"
            )
        return True

    def read(self, step: str) -> list[Item]:
        """Return a step's rows in their order."""
        path = self.file(step)
        items = []
        for line, text in enumerate(read_text(path).split("\n"), 1):
            try:
                items += [from_row(parse_json(text))] if text else []
            except ValueError as error:
                raise UsageError(
                    f"{path}:{line}: {error}; got {shown(text)}; delete the file to make it again"
                ) from None
        return items

    def publish(self, step: str, items: Sequence[Item], options: Values, source: str) -> None:
        """Put a step's rows in place with what they were made with and from."""
        rows = "".join(f"{json.dumps(to_row(item), ensure_ascii=False)}\n" for item in items)
        file = self.file(step)
        with _writing(file):
            part = write_part(file, [_encoded(rows)])
            record = {"options": dict(options), "input": source, "output": sha256(rows)}
            self._records = {**self._records, step: record}
            self.write_json(SETTINGS, self._records)
            part.replace(file)

    def write_json(self, name: str, value: object) -> None:
        """Put a JSON file in place, whole."""
        path = self.path / name
        with _writing(path):
            write_whole(path, [_encoded(json.dumps(value, ensure_ascii=False, indent=2) + "\n")])

    def _read_settings(self) -> Values:
        path = self.path / SETTINGS
        if not path.is_file():
            return {}
        try:
            value = parse_json(read_text(path))
        except ValueError as error:
            raise UsageError(f"{path}: {error}; take another --folder") from None
        if not isinstance(value, dict):
            raise UsageError(f"{path}: a mapping of steps is needed; take another --folder")
        return value

    def _recover(self) -> None:
        for part in self.path.glob(".*.jsonl.part"):
            step = part.name.removeprefix(".").removesuffix(".jsonl.part")
            record = self._records.get(step)
            with _writing(part):
                if isinstance(record, dict) and record.get("output") == file_hash(part):
                    part.replace(self.file(step))
                else:
                    part.unlink()


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename or path
        raise BuildError(
            f"{where}: cannot be written ({error.strerror}); mend that and run again"
        ) from None


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Keep other commands out of a folder for a block; the lock ends with the process.

    Raises BuildError where another command is at work there, or the folder cannot be written.
    """
    try:
        folder.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
        lock = sqlite3.connect(folder / LOCK, timeout=0, isolation_level=None)
    except (OSError, sqlite3.Error) as error:
        raise BuildError(
            f"{folder}: cannot be written ({error}); mend that and run again"
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
