"""Reading a YAML mapping of settings key by key, with errors that name file, line and key."""

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from evaluators.core import UsageError
from evaluators.reading import Map, Seq, load_yaml, problem
from evaluators.secrets import mask
from evaluators.text import hint, shown

SECRET = re.compile(
    r"(?:x[-_])?(?:api[-_]?)?key|(?:(?:auth|access|api|bearer)[-_]?)?token"
    r"|(?:api[-_]?)?secret(?:[-_]key)?|password|authorization|credentials?|headers",
    re.IGNORECASE,
)
"""Keys whose value may be an API key, so that no message shows it."""
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)

Word = TypeVar("Word", bound=str)


@dataclass(frozen=True, slots=True)
class Settings:
    """One mapping of a settings file. ``name`` says whose it is, for messages."""

    path: Path
    name: str
    values: Map

    def problem(self, key: str, what: str) -> UsageError:
        """Return the error about one key, to be raised."""
        line = self.values.lines.get(key, self.values.line)
        where = f"{self.name}: " if self.name else ""
        return problem(self.path, line, f"{where}key {shown(key)}: {mask(what)}")

    def check_keys(self, known: Collection[str], required: Collection[str] = ()) -> None:
        """Raise UsageError for a key that is not known, or a required one that is missing."""
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
                raise self.problem(key, "keys come from the environment only; take it out")

    def text(self, key: str, default: str = "") -> str:
        """Return a text; the default where the key is absent, never a blank one."""
        if key not in self.values:
            return default
        value = self.values[key]
        if not isinstance(value, str) or not value.strip():
            raise self.problem(key, f"text is needed, not {shown(value)}")
        return value

    def one_of(self, key: str, known: Sequence[Word]) -> Word:
        """Return the one of these words that a key says."""
        value = self.values.get(key)
        found = next((word for word in known if word == value), None)
        if found is None:
            raise self.problem(key, f"want one of {', '.join(known)}, got {shown(value)}")
        return found

    def number(self, key: str, low: float, high: float) -> float | None:
        """Return a number from ``low`` to ``high``; None where the key is absent."""
        if key not in self.values:
            return None
        text = self.values[key]
        limits = f"a number from {low:g}" + (f" to {high:g}" if math.isfinite(high) else "")
        if not isinstance(text, str) or not NUMBER.fullmatch(text.strip()):
            raise self.problem(key, f"{limits} is needed, not {shown(text)}{_advice(text)}")
        value = float(text)
        if not math.isfinite(value) or not low <= value <= high:
            raise self.problem(key, f"{limits} is needed, not {shown(text)}")
        return value

    def share_of(self, key: str) -> float | None:
        """Return what ``20%`` says as 0.2; None where the key says no percentage from 0."""
        text = str(self.values.get(key, "")).strip()
        number = text.removesuffix("%").strip()
        is_percentage = text.endswith("%") and NUMBER.fullmatch(number)
        return float(number) / 100 if is_percentage and float(number) >= 0 else None

    def whole(self, key: str, low: int, high: float) -> int | None:
        """Return a whole number from ``low`` to ``high``; None where the key is absent."""
        value = self.number(key, low, high)
        if value is not None and not value.is_integer():
            raise self.problem(key, f"a whole number is needed, not {shown(self.values[key])}")
        return None if value is None else int(value)

    def flag(self, key: str) -> bool:
        """Return whether a key says ``true``; absent means false."""
        value = self.values.get(key, "false")
        word = value.casefold() if isinstance(value, str) else ""
        if word not in ("true", "false"):
            raise self.problem(key, f"true or false is needed, not {shown(value)}")
        return word == "true"

    def words(self, key: str) -> tuple[str, ...]:
        """Return a list of texts (one text is a list of one); empty where the key is absent."""
        value = self.values.get(key, Seq(1))
        items = [value] if isinstance(value, str) else value
        if not isinstance(items, list):
            raise self.problem(key, f"a list of names is needed, not {shown(value)}")
        for item in items:
            if not isinstance(item, str) or not item.strip():
                raise self.problem(key, f"a list of names is needed; it holds {shown(item)}")
        return tuple(str(item) for item in items)

    def part(self, key: str, name: str = "") -> "Settings":
        """Return the mapping under a key, empty where the key is absent."""
        value = self.values.get(key, Map(self.values.line))
        if not isinstance(value, Map):
            raise self.problem(key, f"a mapping is needed, not {shown(value)}")
        own = name or key
        return Settings(self.path, f"{self.name}: {own}" if self.name else own, value)

    def parts(self, key: str) -> "list[Settings]":
        """Return the mappings listed under a key, none where the key is absent."""
        value = self.values.get(key, Seq(1))
        if not isinstance(value, Seq):
            raise self.problem(key, f"a list is needed, not {shown(value)}")
        found = []
        for entry in value:
            if not isinstance(entry, Map):
                raise self.problem(key, f"a list of mappings is needed; it holds {shown(entry)}")
            found.append(Settings(self.path, self.name, entry))
        return found


def load_settings(path: Path, *, may_be_empty: bool = False) -> Settings:
    """Return the one mapping of a YAML file. Raises UsageError where it holds anything else."""
    document = load_yaml(path)
    if may_be_empty and document == "":
        document = Map(1)
    if not isinstance(document, Map):
        raise problem(path, 1, "a mapping of keys to values is needed")
    return Settings(path, "", document)


def _advice(value: object) -> str:
    text = value.strip() if isinstance(value, str) else ""
    if text.endswith("%") and NUMBER.fullmatch(text[:-1].strip()):
        return f"; write {float(text[:-1]) / 100:g}"
    if NUMBER.fullmatch(text.replace(",", ".", 1)):
        return f"; write {text.replace(',', '.', 1)}"
    return ""
