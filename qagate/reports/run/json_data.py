"""Our dataclasses as JSON data and back, by msgspec, which checks what it reads.

``encode`` and ``decode`` keep the names of fields as they are. ``dump`` writes strict JSON,
the same text for the same data. ``inner`` and ``mappings`` look into free-form data, such
as a run's provenance, which a report folder may hold in any form.
"""

import json
from collections.abc import Mapping
from functools import partial
from numbers import Integral, Real
from pathlib import Path
from typing import Any

import msgspec

from qagate.evaluators.kinds import KINDS, Kind
from qagate.evaluators.output import visible


def decode(kind: Any, value: object) -> Any:
    """Return JSON data as a value of type ``kind``.

    Raises ValueError, naming the field, where the data do not fit or hold a field that is
    not known. A field with a default may be absent.
    """
    decoded = msgspec.convert(value, kind, dec_hook=_decode_ours)
    _refuse_unknown(value, encode(decoded), "$")
    return decoded


def decode_whole(kind: Any, value: object) -> Any:
    """Return JSON data that ``encode`` made. Raises ValueError also where a field is absent."""
    decoded = msgspec.convert(value, kind, dec_hook=_decode_ours)
    encoded = encode(decoded)
    _refuse_unknown(value, encoded, "$")
    _refuse_absent(value, encoded, "$")
    return decoded


def encode(value: object) -> Any:
    """Return a dataclass, or what holds some, as JSON data; field names as they are."""
    return msgspec.to_builtins(value, enc_hook=_plain)


def _decode_ours(kind: type, value: object) -> object:
    """Return a value of a type that msgspec does not know. Raises ValueError."""
    if kind is object:  # what a user's own columns hold
        return value
    if kind is Path and isinstance(value, str):
        return Path(value)
    if kind is Kind and isinstance(value, str) and value in KINDS:
        return KINDS[value]
    raise ValueError(f"{str(value)[:60]!r} is no {kind.__name__}")


def _refuse_unknown(given: Any, encoded: Any, place: str) -> None:
    """Raise ValueError for a field that was given and not understood: msgspec passes it over."""
    if isinstance(given, dict):
        unknown = sorted(given.keys() - encoded.keys())
        if unknown:
            raise ValueError(f"unknown field {unknown[0]!r} - at `{place}`")
        for name, part in given.items():
            _refuse_unknown(part, encoded[name], f"{place}.{name}")
    elif isinstance(given, list):
        for number, part in enumerate(given):
            _refuse_unknown(part, encoded[number], f"{place}[{number}]")


def _refuse_absent(given: Any, encoded: Any, place: str) -> None:
    """Raise ValueError for a field that was not given: its default is not what was written."""
    if isinstance(encoded, dict):
        absent = sorted(encoded.keys() - given.keys())
        if absent:
            raise ValueError(f"no field {absent[0]!r} - at `{place}`")
        for name, part in encoded.items():
            _refuse_absent(given[name], part, f"{place}.{name}")
    elif isinstance(encoded, (list, tuple)):
        for number, part in enumerate(encoded):
            _refuse_absent(given[number], part, f"{place}[{number}]")


def dump(value: object, indent: int | None = None) -> str:
    """Return strict JSON: null for NaN and infinities; what is hidden as escapes that read back."""
    dumps = partial(json.dumps, ensure_ascii=False, default=_plain, indent=indent)
    try:
        text = dumps(value, allow_nan=False)
    except ValueError:
        finite = json.loads(dumps(value), parse_constant=lambda _: None)
        text = dumps(finite)
    return visible(text)


def ordered(value: object) -> Any:
    """Return free-form data with its mappings by key: they may have been filled in any order."""
    return msgspec.to_builtins(
        value, enc_hook=_plain, str_keys=True, order="deterministic"
    )


def _plain(value: object) -> object:
    """Return what JSON does not know: mappings and numbers as such, the rest as text."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    return str(value)


def inner(value: object, *names: str) -> Mapping[str, Any]:
    """Return the mapping under these names in free-form data; empty where none is."""
    for name in names:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, Mapping) else {}


def mappings(value: object) -> list[Mapping[str, Any]]:
    """Return the mappings in a list of free-form data; none where there is no list."""
    if not isinstance(value, (list, tuple)):
        return []
    return [part for part in value if isinstance(part, Mapping)]
