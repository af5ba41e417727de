"""Reading a YAML mapping of settings key by key, with errors that name file, line and key."""

import math
import re
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from cases.problems import hint, shown
from cases.tables import problem
from evaluators import strict_yaml
from evaluators.core import UsageError
from evaluators.models.fields import SECRET
from evaluators.strict_yaml import Map, Seq

NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.ASCII)


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
        return problem(self.path, line, f"{where}key {shown(key)}: {what}")

    def check_keys(self, known: Collection[str]) -> None:
        """Raise UsageError for a key that is not known; a secret's value is never shown."""
        for key in self.values:
            if key in known:
                continue
            if SECRET.fullmatch(key):
                raise self.problem(key, "keys come from the environment only; take it out")
            raise self.problem(key, f"not known; {hint(key, known)}")

    def text(self, key: str, default: str = "") -> str:
        """Return a text; the default where the key is absent, never a blank one."""
        if key not in self.values:
            return default
        value = self.values[key]
        if not isinstance(value, str) or not value.strip():
            raise self.problem(key, f"text is needed, not {shown(value)}")
        return value

    def number(self, key: str, low: float, high: float) -> float | None:
        """Return a number from ``low`` to ``high``; None where the key is absent."""
        if key not in self.values:
            return None
        text = self.values[key]
        limits = f"a number from {low:g} to {high:g}"
        if not isinstance(text, str) or not NUMBER.fullmatch(text.strip()):
            raise self.problem(key, f"{limits} is needed, not {shown(text)}{_advice(text)}")
        value = float(text)
        if not math.isfinite(value) or not low <= value <= high:
            raise self.problem(key, f"{limits} is needed, not {shown(text)}")
        return value

    def whole(self, key: str, low: int, high: int) -> int | None:
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


def load_settings(path: Path) -> Settings:
    """Return the one mapping of a YAML file. Raises UsageError where it holds anything else."""
    document = strict_yaml.load(path)
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
