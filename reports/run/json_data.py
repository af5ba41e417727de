"""Dataclasses from JSON data and back, checked and derived by msgspec."""

import json
import math
from collections.abc import Mapping
from dataclasses import is_dataclass
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import msgspec

from evaluators.kinds import KINDS, Kind
from evaluators.text import flat
from reports.run import clean


def decode(kind: Any, value: object) -> Any:
    """Return JSON data as a value of type ``kind``; raises ValueError, naming the field."""
    made = msgspec.convert(value, kind, dec_hook=_custom)
    _refuse_unknown(value, msgspec.to_builtins(made, enc_hook=plain), "$")
    return made


def encode(value: object) -> Any:
    """Return a dataclass, or what holds some, as JSON data; field names as they are."""
    return msgspec.to_builtins(value, enc_hook=plain)


def inner(value: object, *names: str) -> Mapping[str, Any]:
    """Return the mapping under these names in data of any version; empty where none is."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def _custom(kind: type, value: object) -> object:
    if kind is object:  # what a user's own columns hold
        return value
    if kind is Path and isinstance(value, str):
        return Path(value)
    if kind is Kind and isinstance(value, str) and value in KINDS:
        return KINDS[value]
    raise ValueError(f"{str(value)[:60]!r} is no {kind.__name__}")


def _refuse_unknown(given: object, known: object, where: str) -> None:
    """Raise ValueError for a field that was given and not understood: msgspec passes it over."""
    if isinstance(given, Mapping) and isinstance(known, Mapping):
        if unknown := sorted(given.keys() - known.keys()):
            raise ValueError(f"unknown field {unknown[0]!r} - at `{where}`")
        for name, part in given.items():
            _refuse_unknown(part, known[name], f"{where}.{name}")
    elif isinstance(given, list) and isinstance(known, (list, tuple)):
        for number, (part, one) in enumerate(zip(given, known, strict=False)):
            _refuse_unknown(part, one, f"{where}[{number}]")


def dump(value: object, indent: int | None = None) -> str:
    """Return strict JSON, hidden characters and lone surrogates as escapes that read back."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    except (TypeError, ValueError):  # a number or a type that strict JSON does not have
        text = json.dumps(plain(value), ensure_ascii=False, indent=indent)
    return clean.HIDDEN.sub(lambda match: json.dumps(match.group())[1:-1], text)


def plain(value: object) -> object:
    """Return a value as JSON data: NaN and infinities None, numbers as such, the rest as text."""
    if value is None or type(value) in (str, int, bool):
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if is_dataclass(value) and not isinstance(value, type):
        return plain(flat(value))
    if isinstance(value, Real):
        number = int(value) if isinstance(value, Integral) else float(value)
        return number if math.isfinite(number) else None
    return str(value)


def ordered(value: object) -> object:
    """Return free-form data with its mappings by key: they may have been filled in any order."""
    if isinstance(value, Mapping):
        items = sorted(value.items(), key=lambda pair: str(pair[0]))
        return {str(key): ordered(part) for key, part in items}
    if isinstance(value, (list, tuple)):
        return [ordered(part) for part in value]
    return value
