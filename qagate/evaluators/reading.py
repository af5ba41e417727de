"""Reading text, JSON, YAML, CSV and settings strictly; errors name file, line and key."""

import hashlib
import json
import math
import re
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from qagate.evaluators.core import UsageError
from qagate.evaluators.text import hint, mask, shown

if TYPE_CHECKING:
    import yaml


MAX_BYTES = 512 * 1024 * 1024
MAX_YAML_BYTES = 4 * 1024 * 1024
MAX_JSON_DEPTH = 100
MAX_ALIASED = 10_000
MERGE = "<<"
MAX_YAML_DEPTH = 40
MAX_DIGITS = 400
UTF_16 = (b"\xff\xfe", b"\xfe\xff")
ARCHIVES = {
    b"\x1f\x8b": "a gzip archive",
    b"PK\x03\x04": "a zip archive or a spreadsheet",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"(\xb5/\xfd": "a zstd archive",
}
NULLS = frozenset({"~", "null", "Null", "NULL"})


def problem(path: Path, line: int, what: str) -> UsageError:
    """Return the error about one line of a file."""
    return UsageError(f"{path}:{line}: {what}")


def read_text(path: Path, limit: int = MAX_BYTES, more: str = "") -> str:
    """Return a regular file's text without BOM, its line ends untouched.

    Raises UsageError if the file is missing, a folder, a pipe or an archive, larger than ``limit``
    bytes (a message that ends in ``more``), or not UTF-8 (naming the line of the first wrong byte).
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise UsageError(
                f"{path}: not a regular file; give the path of a text file"
            )
        if status.st_size > limit:
            raise UsageError(
                f"{path}: {status.st_size:,} bytes; at most {limit:,} are read{more}"
            )
        raw = path.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{path}: cannot be read ({reason}); check the path") from None
    if what := next(
        (what for mark, what in ARCHIVES.items() if raw.startswith(mark)), ""
    ):
        raise UsageError(
            f"{path}: {what}; archives are not read, give the text file itself"
        )
    if b"\0" in raw[:2] or raw[:2] in UTF_16:
        raise problem(path, 1, "wrong encoding: UTF-16; save the file as UTF-8")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        what = f"byte 0x{raw[error.start]:02x} is not UTF-8; save the file as UTF-8"
        raise problem(path, line, f"wrong encoding: {what}") from None


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


# A string, closed or not, or one bracket; possessive, hence linear.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


def parse_json(text: str) -> object:
    """Return the value of a JSON text as RFC 8259 defines it.

    Raises ValueError, in one line, for wrong syntax, a repeated key in an object, NaN, a number
    beyond the range of floats, or more than 100 nested brackets.
    """
    depth = 0
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
        if depth > MAX_JSON_DEPTH:
            where = f"at character {token.start() + 1}"
            raise ValueError(f"nested deeper than {MAX_JSON_DEPTH} levels {where}")
    try:
        return json.loads(
            text, object_pairs_hook=_unique_keys, parse_constant=_refuse_constant,
            parse_float=_finite, parse_int=_bounded,
        )  # fmt: skip
    except json.JSONDecodeError as error:
        where = f"at line {error.lineno}, column {error.colno}"
        raise ValueError(f"not JSON: {error.msg} {where}") from None


def _unique_keys(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            raise ValueError(f"key {key[:40]!r} stands twice in one object")
        result[key] = value
    return result


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError(f"number {digits[:40]!r} is beyond the range of floats")
    return number


def _bounded(digits: str) -> int:
    # int() refuses long texts with a message about interpreter settings
    if len(digits) > MAX_DIGITS:
        raise ValueError(
            f"a number of {len(digits)} digits; at most {MAX_DIGITS} are read"
        )
    return int(digits)


class Map(dict[str, object]):
    """A YAML mapping that knows its line and the line of each key (counted from 1)."""

    def __init__(self, line: int, values: Mapping[str, object] | None = None) -> None:
        super().__init__(values or {})
        self.line = line
        self.lines: dict[str, int] = {}


class Seq(list[object]):
    """A YAML sequence that knows its line and the line of each entry (counted from 1)."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: list[int] = []


def load_yaml(path: Path, limit: int = MAX_YAML_BYTES, more: str = "") -> object:
    """Return the one document of a YAML file as Map, Seq and str; ``""`` for an empty file.

    Every scalar is the text in the file: PyYAML's safe loader turns ``No``, ``010`` and dates into
    other types. A null (``~`` or ``null`` without quotes) reads as ``""``. Raises UsageError naming
    file and line for tags, repeated keys, deep nesting, a second document, and aliases that repeat
    more than ``MAX_ALIASED`` values; and as ``read_text``.
    """
    import yaml  # workers do not need it

    text = read_text(path, limit, more)
    events = yaml.parse(text, Loader=yaml.CSafeLoader)
    starts = (event for event in events if isinstance(event, yaml.DocumentStartEvent))
    try:
        document = (
            _YamlReader(yaml, path, events).node(next(events))
            if next(starts, None)
            else ""
        )
        if second := next(starts, None):
            raise problem(path, _line(second), "a second document; one file holds one")
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise problem(path, line, f"not valid YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise UsageError(
            f"{path}: not valid YAML: {str(error).splitlines()[0]}"
        ) from None
    return document


@dataclass(slots=True)
class _YamlReader:
    """Builds Map, Seq and str from PyYAML's events, in one pass."""

    yaml: Any
    """PyYAML: workers do not load it."""
    path: Path
    events: "Iterator[yaml.Event]"
    anchored: dict[str, object] = field(default_factory=dict)
    """The values that an alias may repeat, by the anchor's name."""
    repeated: int = 0
    """How many values the aliases so far stand for."""

    def node(self, event: "yaml.Event", depth: int = 0) -> object:
        """Return the value that starts with this event, inside ``depth`` collections."""
        if isinstance(event, self.yaml.AliasEvent):
            return self.alias(event, depth)
        if getattr(event, "tag", None) not in (None, "!"):
            raise self.refused(
                event, f"tag {event.tag!r} is not allowed; write a plain value"
            )
        if isinstance(event, self.yaml.ScalarEvent):
            made: object = (
                "" if not event.style and event.value in NULLS else str(event.value)
            )
        elif depth == MAX_YAML_DEPTH:
            raise self.refused(event, f"nested deeper than {MAX_YAML_DEPTH} levels")
        elif isinstance(event, self.yaml.MappingStartEvent):
            made = self.mapping(event, depth + 1)
        else:
            made = items = Seq(_line(event))
            for child in self.children():
                items.append(self.node(child, depth + 1))
                items.lines.append(_line(child))
        if event.anchor:
            self.anchored[event.anchor] = made
        return made

    def alias(self, event: "yaml.AliasEvent", depth: int) -> object:
        """Return the value that an alias repeats, if all of them together stay small."""
        if event.anchor not in self.anchored:
            raise self.refused(
                event, f"no value before it has the anchor &{event.anchor}"
            )
        values, height = _size(found := self.anchored[event.anchor])
        self.repeated += values
        if self.repeated > MAX_ALIASED:
            raise self.refused(
                event, f"aliases repeat more than {MAX_ALIASED:,} values"
            )
        if depth + height > MAX_YAML_DEPTH:
            raise self.refused(event, f"nested deeper than {MAX_YAML_DEPTH} levels")
        return found

    def mapping(self, start: "yaml.Event", depth: int) -> Map:
        """Return the mapping that starts with this event."""
        found = Map(_line(start))
        for event in self.children():
            if not isinstance(event, self.yaml.ScalarEvent):
                raise self.refused(event, "a key must be plain text")
            self.node(event, depth)
            key = str(event.value)
            if key in found:
                raise self.refused(event, f"key {key!r} stands twice; keep one")
            found[key] = self.node(next(self.events), depth)
            found.lines[key] = _line(event)
        if isinstance(merged := found.get(MERGE), Map):  # its own keys win
            del found[MERGE], found.lines[MERGE]
            for key in [one for one in merged if one not in found]:
                found[key], found.lines[key] = merged[key], merged.lines[key]
        return found

    def children(self) -> "Iterator[yaml.Event]":
        """Yield the first event of each value in the collection just started."""
        while not isinstance(event := next(self.events), self.yaml.CollectionEndEvent):
            yield event

    def refused(self, event: "yaml.Event", what: str) -> UsageError:
        """Return the error about the line of an event."""
        return problem(self.path, _line(event), what)


def _size(value: object) -> tuple[int, int]:
    """Return how many values a value holds, itself included, and how deep they are nested."""
    if not isinstance(value, Map | Seq):
        return 1, 0
    sizes = [
        _size(one) for one in (value.values() if isinstance(value, Map) else value)
    ]
    height = 1 + max((one for _, one in sizes), default=0)
    return 1 + sum(one for one, _ in sizes), height


def _line(event: "yaml.Event") -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


SECRET = re.compile(
    r"(?:x[-_])?(?:api[-_]?)?key|(?:(?:auth|access|api|bearer)[-_]?)?token"
    r"|(?:api[-_]?)?secret(?:[-_]key)?|password|authorization|credentials?|headers",
    re.IGNORECASE,
)
"""Settings whose value may be an API key and is never shown."""
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)

Word = TypeVar("Word", bound=str)


@dataclass(frozen=True, slots=True)
class Settings:
    """One mapping of a settings file."""

    path: Path
    name: str
    """What the mapping belongs to, for messages."""
    values: Map

    def problem(self, key: str, what: str) -> UsageError:
        """Return the error about one key."""
        line = self.values.lines.get(key, self.values.line)
        where = f"{self.name}: " if self.name else ""
        return problem(self.path, line, f"{where}key {shown(key)}: {mask(what)}")

    def check_keys(
        self, known: Collection[str], required: Collection[str] = ()
    ) -> None:
        """Raise UsageError for an unknown key, or a missing required one."""
        self.refuse_secrets(known)
        for key in self.values:
            if key not in known:
                raise self.problem(key, f"not known; {hint(key, known)}")
        for key in required:
            if not self.values.get(key):
                raise self.problem(key, "missing or empty")

    def refuse_secrets(self, known: Collection[str] = ()) -> None:
        """Raise UsageError for a key that may hold an API key; its value is not shown."""
        for key in self.values:
            if SECRET.fullmatch(key) and key not in known:
                raise self.problem(
                    key, "keys come from the environment only; take it out"
                )

    def text(self, key: str, default: str = "") -> str:
        """Return a text that is not blank; the default if the key is absent."""
        if key not in self.values:
            return default
        value = self.values[key]
        if not isinstance(value, str) or not value.strip():
            raise self.problem(key, f"text is needed, not {shown(value)}")
        return value

    def one_of(self, key: str, known: Sequence[Word]) -> Word:
        """Return the value of a key, which must be one of these words."""
        value = self.values.get(key)
        found = next((word for word in known if word == value), None)
        if found is None:
            raise self.problem(
                key, f"want one of {', '.join(known)}, got {shown(value)}"
            )
        return found

    def number(self, key: str, low: float, high: float) -> float | None:
        """Return a number from ``low`` to ``high``; None where the key is absent."""
        if key not in self.values:
            return None
        text = self.values[key]
        is_number = isinstance(text, str) and NUMBER.fullmatch(text.strip())
        value = float(str(text)) if is_number else math.nan
        if not math.isfinite(value) or not low <= value <= high:
            limits = f"a number from {low:g}" + (
                f" to {high:g}" if math.isfinite(high) else ""
            )
            advice = "" if is_number else _advice(text)
            raise self.problem(key, f"{limits} is needed, not {shown(text)}{advice}")
        return value

    def share_of(self, key: str) -> float | None:
        """Return ``20%`` as 0.2; None if the value is no percentage from 0."""
        text = str(self.values.get(key, "")).strip()
        number = text.removesuffix("%").strip()
        is_percentage = text.endswith("%") and NUMBER.fullmatch(number)
        return float(number) / 100 if is_percentage and float(number) >= 0 else None

    def whole(self, key: str, low: int, high: float) -> int | None:
        """Return a whole number from ``low`` to ``high``; None where the key is absent."""
        value = self.number(key, low, high)
        if value is not None and not value.is_integer():
            raise self.problem(
                key, f"a whole number is needed, not {shown(self.values[key])}"
            )
        return None if value is None else int(value)

    def flag(self, key: str) -> bool:
        """Return whether a key is ``true``; an absent key is false."""
        value = self.values.get(key, "false")
        word = value.casefold() if isinstance(value, str) else ""
        if word not in ("true", "false"):
            raise self.problem(key, f"true or false is needed, not {shown(value)}")
        return word == "true"

    def words(self, key: str) -> tuple[str, ...]:
        """Return a list of texts (a single text is a list of one); empty if the key is absent."""
        value = self.values.get(key, Seq(1))
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list):
            raise self.problem(key, f"a list of names is needed, not {shown(value)}")
        for item in items:
            if not isinstance(item, str) or not item.strip():
                raise self.problem(
                    key, f"a list of names is needed; it holds {shown(item)}"
                )
        return tuple(items)

    def pattern(self, key: str, text: str) -> re.Pattern[str]:
        """Return a regular expression that stands under a key; letter case does not count."""
        try:
            return re.compile(text, re.IGNORECASE)
        except re.error as error:
            raise self.problem(key, f"not a regular expression: {error}") from None

    def part(self, key: str) -> "Settings":
        """Return the mapping under a key, empty if the key is absent."""
        value = self.values.get(key, Map(self.values.line))
        if not isinstance(value, Map):
            raise self.problem(key, f"a mapping is needed, not {shown(value)}")
        return Settings(self.path, f"{self.name}: {key}" if self.name else key, value)

    def parts(self, key: str) -> "list[Settings]":
        """Return the list of mappings under a key, empty if the key is absent."""
        value = self.values.get(key, Seq(1))
        if not isinstance(value, Seq):
            raise self.problem(key, f"a list is needed, not {shown(value)}")
        found = []
        for entry in value:
            if not isinstance(entry, Map):
                raise self.problem(
                    key, f"a list of mappings is needed; it holds {shown(entry)}"
                )
            found.append(Settings(self.path, self.name, entry))
        return found


def load_settings(path: Path, *, may_be_empty: bool = False) -> Settings:
    """Return the mapping in a YAML file. Raises UsageError if it holds anything else."""
    document = load_yaml(path)
    document = Map(1) if may_be_empty and document == "" else document
    if not isinstance(document, Map):
        raise problem(path, 1, "a mapping of keys to values is needed")
    return Settings(path, "", document)


def load_entries(
    path: Path, what: str, known: Sequence[str], required: Collection[str]
) -> list[Settings]:
    """Return the mappings in a YAML list, none if the file is empty. Raises UsageError."""
    document, found = load_yaml(path) or Seq(1), []
    if not isinstance(document, Seq):
        raise problem(
            path, 1, f"a YAML list of {what} is needed: each begins with '- '"
        )
    for entry, line in zip(document, document.lines, strict=True):
        if not isinstance(entry, Map):
            raise problem(path, line, f"a mapping of {', '.join(known)} is needed")
        found.append(Settings(path, "", entry))
        found[-1].check_keys(known, required)
    return found


def project_settings(here: Path) -> Settings:
    """Return ``[tool.qagate]`` of the nearest pyproject.toml upwards. Raises UsageError."""
    import tomllib  # the controller's, and of no use to most workers

    paths = (folder / "pyproject.toml" for folder in (here, *here.parents))
    path = next((one for one in paths if one.is_file()), here / "pyproject.toml")
    try:
        read = tomllib.loads(read_text(path)) if path.is_file() else {}
    except tomllib.TOMLDecodeError as error:
        raise UsageError(f"{path}: not valid TOML: {error}") from None
    values = read.get("tool", {}).get("qagate", {})
    if not isinstance(values, dict):
        raise UsageError(
            f"{path}: [tool.qagate]: a table is needed, not {shown(values)}"
        )
    settings = Settings(path, "[tool.qagate]", Map(1, values))
    settings.check_keys(("baseline", "words"))
    if "baseline" in values:
        settings.one_of("baseline", ("required",))
    return settings


def _advice(value: object) -> str:
    text = value.strip() if isinstance(value, str) else ""
    if text.endswith("%") and NUMBER.fullmatch(text[:-1].strip()):
        return f"; write {float(text[:-1]) / 100:g}"
    if NUMBER.fullmatch(text.replace(",", ".", 1)):
        return f"; write {text.replace(',', '.', 1)}"
    return ""
