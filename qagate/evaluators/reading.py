"""Reading what people write: text, JSON, YAML, and settings in YAML.

Reading is strict. What two readers could take for two things (a key that stands twice, NaN,
``No`` as a truth value) is an error, and a file cannot fill the memory or the stack. Every
error is one line that names the file, the line and the key.

YAML is read in two steps: ``load_yaml`` returns Map, Seq and text, which know their lines;
Settings then reads one mapping key by key, each as the type that the caller asks for.
"""

import codecs
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
MAX_YAML_DEPTH = 40
MAX_ALIASED = 10_000
"""Values that all aliases of a YAML file may repeat. Aliases of aliases grow without bound."""
MAX_DIGITS = 400
"""Of an integer in JSON: more than any float has, and few enough to be read fast."""
MERGE_KEY = "<<"
"""The values of the mapping under it belong to the mapping around it."""
UTF_16_MARKS = (b"\xff\xfe", b"\xfe\xff")
ARCHIVES = {
    b"\x1f\x8b": "a gzip archive",
    b"PK\x03\x04": "a zip archive or a spreadsheet",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"(\xb5/\xfd": "a zstd archive",
}
"""What a file is that begins with these bytes."""
NULLS = frozenset({"~", "null", "Null", "NULL"})


def problem(path: Path, line: int, message: str) -> UsageError:
    """Return the error about one line of a file."""
    return UsageError(f"{path}:{line}: {message}")


def read_text(path: Path, limit: int = MAX_BYTES, more: str = "") -> str:
    """Return a regular file's text without BOM, its line ends untouched.

    Raises UsageError if the file is missing, a folder, a pipe or an archive, larger than ``limit``
    bytes, or not UTF-8 (naming the line of the first wrong byte). ``more`` ends the message about
    the size.
    """
    return decoded(path, read_bytes(path, limit, more))


def decoded(path: Path, content: bytes) -> str:
    """Return what a file holds as text, without BOM. Raises UsageError as ``read_text``."""
    for mark, archive in ARCHIVES.items():
        if content.startswith(mark):
            raise UsageError(
                f"{path}: {archive}; archives are not read, give the text file itself"
            )
    if b"\0" in content[:2] or content[:2] in UTF_16_MARKS:
        raise problem(path, 1, "wrong encoding: UTF-16; save the file as UTF-8")
    # Before decoding, or the place of a wrong byte would not count the BOM.
    content = content.removeprefix(codecs.BOM_UTF8)
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        message = (
            f"wrong encoding: byte 0x{content[error.start]:02x} is not UTF-8; "
            "save the file as UTF-8 (in Excel: 'CSV UTF-8')"
        )
        raise problem(path, line, message) from None


def read_bytes(path: Path, limit: int = MAX_BYTES, more: str = "") -> bytes:
    """Return a regular file's bytes, at most ``limit``. Raises UsageError as ``read_text``."""
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
        return path.read_bytes()
    except (OSError, ValueError) as error:
        # A path with a NUL character is a ValueError, which has no ``strerror``.
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{path}: cannot be read ({reason}); check the path") from None


def file_hash(path: Path) -> str:
    """Return the SHA-256 of a file's bytes, in hexadecimal. Raises OSError."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
"""A string, closed or not, or one bracket. Possessive, hence linear."""


def parse_json(text: str) -> object:
    """Return the value of a JSON text as RFC 8259 defines it.

    Raises ValueError, in one line, for wrong syntax, a repeated key in an object, NaN, a number
    beyond the range of floats, or more than 100 nested brackets.
    """
    _check_depth(text)
    try:
        return json.loads(
            text,
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_bounded,
        )
    except json.JSONDecodeError as error:
        where = f"at line {error.lineno}, column {error.colno}"
        raise ValueError(f"not JSON: {error.msg} {where}") from None


def _check_depth(text: str) -> None:
    """Raise ValueError for nested brackets that would overflow the decoder's stack."""
    depth = 0
    for token in _STRING_OR_BRACKET.finditer(text):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
        if depth > MAX_JSON_DEPTH:
            where = f"at character {token.start() + 1}"
            raise ValueError(f"nested deeper than {MAX_JSON_DEPTH} levels {where}")


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
    document: object = ""
    try:
        if next(starts, None) is not None:
            reader = _YamlReader(yaml, path, events)
            document = reader.node(next(events))
        second_start = next(starts, None)
        if second_start is not None:
            message = "a second document; one file holds one"
            raise problem(path, _line(second_start), message)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        fault = error.problem
        if _begins_with_tab(text, line):
            fault = "a tab before the text; indent by spaces"
        raise problem(path, line, f"not valid YAML: {fault}") from None
    except yaml.YAMLError as error:
        first_line = str(error).splitlines()[0]
        raise UsageError(f"{path}: not valid YAML: {first_line}") from None
    return document


def _begins_with_tab(text: str, line: int) -> bool:
    """Return whether a tab indents this line, counted from 1; the text may end before it."""
    lines = text.split("\n")
    if line > len(lines):
        return False
    line_text = lines[line - 1]
    indent = line_text[: len(line_text) - len(line_text.lstrip())]
    return "\t" in indent


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
        value = self.plain_node(event, depth)
        if event.anchor:
            self.anchored[event.anchor] = value
        return value

    def plain_node(self, event: "yaml.Event", depth: int) -> object:
        """Return the scalar, mapping or sequence that starts with this event."""
        if isinstance(event, self.yaml.ScalarEvent):
            is_plain = not event.style
            if is_plain and event.value in NULLS:
                return ""
            return str(event.value)
        if depth == MAX_YAML_DEPTH:
            raise self.refused(event, f"nested deeper than {MAX_YAML_DEPTH} levels")
        if isinstance(event, self.yaml.MappingStartEvent):
            return self.mapping(event, depth + 1)
        return self.sequence(event, depth + 1)

    def alias(self, event: "yaml.AliasEvent", depth: int) -> object:
        """Return the value that an alias repeats; ``depth`` counts the levels around the alias.

        Raises UsageError if no value before it has the anchor, if the file's aliases together
        repeat too many values, or if the value would be nested too deeply here.
        """
        if event.anchor not in self.anchored:
            raise self.refused(
                event, f"no value before it has the anchor &{event.anchor}"
            )
        value = self.anchored[event.anchor]
        count, height = _size(value)
        self.repeated += count
        if self.repeated > MAX_ALIASED:
            raise self.refused(
                event, f"aliases repeat more than {MAX_ALIASED:,} values"
            )
        if depth + height > MAX_YAML_DEPTH:
            raise self.refused(event, f"nested deeper than {MAX_YAML_DEPTH} levels")
        return value

    def sequence(self, start: "yaml.Event", depth: int) -> Seq:
        """Return the sequence that starts with this event."""
        entries = Seq(_line(start))
        for event in self.children():
            entries.append(self.node(event, depth))
            entries.lines.append(_line(event))
        return entries

    def mapping(self, start: "yaml.Event", depth: int) -> Map:
        """Return the mapping that starts with this event."""
        values = Map(_line(start))
        for event in self.children():
            if not isinstance(event, self.yaml.ScalarEvent):
                raise self.refused(event, "a key must be plain text")
            self.node(event, depth)  # notes its anchor, and refuses a tag
            key = str(event.value)
            if key in values:
                raise self.refused(event, f"key {key!r} stands twice; keep one")
            values[key] = self.node(next(self.events), depth)
            values.lines[key] = _line(event)
        _merge(values)
        return values

    def children(self) -> "Iterator[yaml.Event]":
        """Yield the first event of each value in the collection just started."""
        for event in self.events:
            if isinstance(event, self.yaml.CollectionEndEvent):
                return
            yield event

    def refused(self, event: "yaml.Event", message: str) -> UsageError:
        """Return the error about the line of an event."""
        return problem(self.path, _line(event), message)


def _merge(values: Map) -> None:
    """Take over what the mapping under ``<<`` holds; a mapping's own keys win."""
    merged = values.get(MERGE_KEY)
    if not isinstance(merged, Map):
        return
    del values[MERGE_KEY]
    del values.lines[MERGE_KEY]
    for key, value in merged.items():
        if key not in values:
            values[key] = value
            values.lines[key] = merged.lines[key]


def _size(value: object) -> tuple[int, int]:
    """Return how many values a value holds, itself included, and how deep they are nested."""
    if not isinstance(value, Map | Seq):
        return 1, 0
    inner_values = value.values() if isinstance(value, Map) else value
    count = 1
    height = 0
    for inner in inner_values:
        inner_count, inner_height = _size(inner)
        count += inner_count
        height = max(height, inner_height)
    return count, height + 1


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

    def problem(self, key: str, message: str) -> UsageError:
        """Return the error about one key."""
        line = self.values.lines.get(key, self.values.line)
        where = f"{self.name}: " if self.name else ""
        return problem(self.path, line, f"{where}key {shown(key)}: {mask(message)}")

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
        for word in known:
            if word == value:
                return word
        raise self.problem(key, f"want one of {', '.join(known)}, got {shown(value)}")

    def number(self, key: str, low: float, high: float) -> float | None:
        """Return a number from ``low`` to ``high``; None where the key is absent."""
        if key not in self.values:
            return None
        value = self.values[key]
        if not isinstance(value, str) or not NUMBER.fullmatch(value.strip()):
            wanted = _range(low, high)
            message = f"{wanted} is needed, not {shown(value)}{_advice(value)}"
            raise self.problem(key, message)
        number = float(value)
        if not math.isfinite(number) or not low <= number <= high:
            message = f"{_range(low, high)} is needed, not {shown(value)}"
            if (low, high) == (0, 1) and 1 < number <= 100:
                message += f"; write {number / 100:g} for {number:g} %"
            raise self.problem(key, message)
        return number

    def share_of(self, key: str) -> float | None:
        """Return ``20%`` as 0.2; None if the value is no percentage from 0."""
        text = str(self.values.get(key, "")).strip()
        digits = text.removesuffix("%").strip()
        if not text.endswith("%") or not NUMBER.fullmatch(digits):
            return None
        percentage = float(digits)
        if percentage < 0:
            return None
        return percentage / 100

    def whole(self, key: str, low: int, high: float) -> int | None:
        """Return a whole number from ``low`` to ``high``; None where the key is absent."""
        value = self.number(key, low, high)
        if value is None:
            return None
        if not value.is_integer():
            raise self.problem(
                key, f"a whole number is needed, not {shown(self.values[key])}"
            )
        return int(value)

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
        name = f"{self.name}: {key}" if self.name else key
        return Settings(self.path, name, value)

    def parts(self, key: str) -> "list[Settings]":
        """Return the list of mappings under a key, empty if the key is absent."""
        value = self.values.get(key, Seq(1))
        if not isinstance(value, Seq):
            raise self.problem(key, f"a list is needed, not {shown(value)}")
        entries = []
        for entry in value:
            if not isinstance(entry, Map):
                raise self.problem(
                    key, f"a list of mappings is needed; it holds {shown(entry)}"
                )
            entries.append(Settings(self.path, self.name, entry))
        return entries


def _range(low: float, high: float) -> str:
    if math.isfinite(high):
        return f"a number from {low:g} to {high:g}"
    return f"a number from {low:g}"


def load_settings(path: Path, *, may_be_empty: bool = False) -> Settings:
    """Return the mapping in a YAML file. Raises UsageError if it holds anything else."""
    document = load_yaml(path)
    if may_be_empty and document == "":
        document = Map(1)
    if not isinstance(document, Map):
        raise problem(path, 1, "a mapping of keys to values is needed")
    return Settings(path, "", document)


def load_entries(
    path: Path, kind: str, known: Sequence[str], required: Collection[str]
) -> list[Settings]:
    """Return the mappings in a YAML list, none if the file is empty. Raises UsageError.

    ``kind`` says what they are; ``known`` and ``required`` are keys of each.
    """
    document = load_yaml(path) or Seq(line=1)  # an empty file is an empty list
    if not isinstance(document, Seq):
        raise problem(
            path, 1, f"a YAML list of {kind} is needed: each begins with '- '"
        )
    entries = []
    for value, line in zip(document, document.lines, strict=True):
        if not isinstance(value, Map):
            raise problem(path, line, f"a mapping of {', '.join(known)} is needed")
        entry = Settings(path, "", value)
        entry.check_keys(known, required)
        entries.append(entry)
    return entries


def project_settings(here: Path) -> Settings:
    """Return ``[tool.qagate]`` of the nearest pyproject.toml upwards. Raises UsageError."""
    import tomllib  # the controller's, and of no use to most workers

    path = _project_file(here)
    project = {}
    if path.is_file():
        try:
            project = tomllib.loads(read_text(path))
        except tomllib.TOMLDecodeError as error:
            raise UsageError(f"{path}: not valid TOML: {error}") from None
    values = project.get("tool", {}).get("qagate", {})
    if not isinstance(values, dict):
        raise UsageError(
            f"{path}: [tool.qagate]: a table is needed, not {shown(values)}"
        )
    settings = Settings(path, "[tool.qagate]", Map(1, values))
    settings.check_keys(("baseline", "words"))
    if "baseline" in values:
        settings.one_of("baseline", ("required",))
    return settings


def _project_file(here: Path) -> Path:
    """Return the nearest pyproject.toml upwards, or where it would be."""
    for folder in (here, *here.parents):
        path = folder / "pyproject.toml"
        if path.is_file():
            return path
    return here / "pyproject.toml"


def _advice(value: object) -> str:
    """Return how to write a percentage or a decimal comma as a number; empty for neither."""
    text = value.strip() if isinstance(value, str) else ""
    if text.endswith("%") and NUMBER.fullmatch(text[:-1].strip()):
        return f"; write {float(text[:-1]) / 100:g}"
    if NUMBER.fullmatch(text.replace(",", ".", 1)):
        return f"; write {text.replace(',', '.', 1)}"
    return ""
