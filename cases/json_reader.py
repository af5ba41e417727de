"""JSON lists and JSON lines as tables: no duplicate keys, no NaN, bounded depth, exact numbers."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NoReturn

from cases.problems import shown
from cases.tables import Number, Record, Table, normal, problem
from evaluators.core import UsageError

MAX_DEPTH = 40
SPACE = re.compile(r"[ \t\r\n]*")


def read_jsonl(path: Path, text: str) -> Table:
    """Return the table of one JSON object a line; blank lines are skipped.

    Raises UsageError naming row and line for anything else.
    """
    return _table(path, _each_line(path, text))


def read_json(path: Path, text: str) -> Table:
    """Return the table of one JSON list of objects.

    Raises UsageError naming row and line for anything else.
    """
    return _table(path, _each_item(path, text))


Entry = tuple[int, int, object]
"""Row, line, value."""


def _each_line(path: Path, text: str) -> Iterator[Entry]:
    # Not splitlines(): U+2028, U+2029 and U+0085 may stand inside a JSON string.
    row = 0
    for line, part in enumerate(text.split("\n"), 1):
        if part.strip(" \t\r"):
            row += 1
            value, end = _decode(path, part, _skip(part, 0), (row, line))
            if part[end:].strip(" \t\r"):
                raise _refused(path, row, line, "more text after the object; one object a line")
            yield row, line, value


def _each_item(path: Path, text: str) -> Iterator[Entry]:
    start = _skip(text, 0)
    if not text.startswith("[", start):
        lines = "; name it .jsonl if each line is an object" if text.startswith("{", start) else ""
        raise problem(path, 1, f"a JSON list of objects is needed, not {shown(text[:40])}{lines}")
    row, line, seen = 0, 1, 0
    index = _skip(text, start + 1)
    closed = text.startswith("]", index)
    while not closed:
        row += 1
        line, seen = line + text.count("\n", seen, index), index
        value, index = _decode(path, text, index, (row, line))
        yield row, line, value
        index = _skip(text, index)
        closed = text.startswith("]", index)
        if not closed and not text.startswith(",", index):
            raise _refused(path, row, line, "no comma or ] after this item; is the file cut?")
        index = index if closed else _skip(text, index + 1)
    if _skip(text, index + 1) != len(text):
        raise problem(path, line, "more text after the end of the list; one file holds one list")


def _skip(text: str, index: int) -> int:
    match = SPACE.match(text, index)
    return match.end() if match else index


def _decode(path: Path, text: str, index: int, where: tuple[int, int]) -> tuple[object, int]:
    row, line = where
    try:
        value, end = _DECODER.raw_decode(text, index)
        if text.count("[", index, end) + text.count("{", index, end) > MAX_DEPTH:
            _check_depth(value)
    except json.JSONDecodeError as error:
        at = line + text.count("\n", index, error.pos)
        rest = text[error.pos :].strip()
        cut = "; is the file cut?" if not rest or error.msg.startswith("Unterminated") else ""
        raise _refused(path, row, at, f"{error.msg}{cut}") from None
    except RecursionError:
        raise _refused(path, row, line, f"nested deeper than {MAX_DEPTH} levels") from None
    except ValueError as error:
        raise _refused(path, row, line, str(error)) from None
    return value, end


def _refused(path: Path, row: int, line: int, what: str) -> UsageError:
    return problem(path, line, f"row {row}: not valid JSON: {what}")


def _check_depth(value: object) -> None:
    level: list[object] = [value]
    for _ in range(MAX_DEPTH + 1):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return
    msg = f"nested deeper than {MAX_DEPTH} levels"
    raise ValueError(msg)


def _children(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        twice = next(key for key, count in counts.items() if count > 1)
        msg = f"key {shown(twice)} stands twice in one object; keep one"
        raise ValueError(msg)
    return found


def _no_constant(name: str) -> NoReturn:
    msg = f"{name} is not a JSON value; write text in quotes"
    raise ValueError(msg)


_DECODER = json.JSONDecoder(
    object_pairs_hook=_unique,
    parse_int=Number,
    parse_float=Number,
    parse_constant=_no_constant,
)


def _table(path: Path, entries: Iterable[Entry]) -> Table:
    names: dict[str, str] = {}
    normals: dict[str, str] = {}
    records = []
    for row, line, value in entries:
        if not isinstance(value, dict):
            raise problem(path, line, f"row {row}: an object is needed, not {shown(value)}")
        for key in value:
            if key not in normals:
                normals[key] = normal(key)
                names.setdefault(normals[key], key)
        values = {normals[key]: item for key, item in value.items()}
        if len(values) != len(value):
            raise problem(path, line, f"row {row}: {_twin(value)}")
        records.append(Record(row, line, values))
    if not records:
        msg = f"{path}: no rows"
        raise UsageError(msg)
    return Table(path=path, names=names, records=records)


def _twin(value: dict[str, object]) -> str:
    seen: dict[str, str] = {}
    for key in value:
        first = seen.setdefault(normal(key), key)
        if first != key:
            return f"keys {shown(first)} and {shown(key)} name the same column; keep one"
    return ""  # pragma: no cover - the caller has counted
