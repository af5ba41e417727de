"""The one reader of JSON that somebody else may have written: data become values of a type.

Report folders, documents of a ledger, forms and plans are foreign: anybody may have altered
them, and a field may hold anything. Each is read as the dataclass that it must be. A field of
another type, one that is not known, and a number that no float can hold are refused here, and
nobody behind this reader checks a type again.

``decode`` and ``decode_text`` raise ValueError in one line that names the field; a row that a
caller can do without is set aside so. ``read_file`` raises UsageError with the path. ``Count``
and its like say what numbers a field may hold; they stand in the dataclasses.
"""

from collections.abc import Mapping
from numbers import Integral, Real
from pathlib import Path
from typing import Annotated, Any

import msgspec

from qagate.evaluators.core import UsageError
from qagate.evaluators.kinds import KINDS, Kind
from qagate.evaluators.reading import parse_json, read_text

MOST_TOKENS = 10**9
"""Of one call. No provider comes near any of these limits: what is beyond is damage."""
MOST_OF_A_RUN = 10**12
"""Items, calls or tokens."""
MOST_SECONDS = 10.0**9
MOST_USD = 10.0**9
LAST_SECOND = 253_402_300_799.0
"""Of the year 9999, in seconds since 1970: no calendar goes further."""
LARGEST_NUMBER = 1e300
"""Sums and products of a few such numbers are still floats."""

Tokens = Annotated[int, msgspec.Meta(ge=0, le=MOST_TOKENS)]
Count = Annotated[int, msgspec.Meta(ge=0, le=MOST_OF_A_RUN)]
# A float within two limits is neither NaN nor infinite.
Seconds = Annotated[float, msgspec.Meta(ge=0, le=MOST_SECONDS)]
Usd = Annotated[float, msgspec.Meta(ge=0, le=MOST_USD)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Timestamp = Annotated[float, msgspec.Meta(ge=0, le=LAST_SECOND)]
"""In seconds since 1970."""


def read_file(path: Path, kind: Any, advice: str) -> Any:
    """Return what a JSON file holds as a value of type ``kind``.

    Raises UsageError for any other file; ``advice`` says what to do then.
    """
    try:
        return decode_text(kind, read_text(path))
    except ValueError as error:
        raise UsageError(f"{path}: {error}; {advice}") from None


def decode_text(kind: Any, text: str) -> Any:
    """Return a JSON text as a value of type ``kind``. Raises ValueError."""
    return decode(kind, parse_json(text))


def decode(kind: Any, value: object) -> Any:
    """Return JSON data as a value of type ``kind``.

    Raises ValueError, naming the field, where the data do not fit or hold a field that is
    not known. A field with a default may be absent.
    """
    return _decoded(kind, value, is_whole=False)


def decode_whole(kind: Any, value: object) -> Any:
    """Return JSON data that ``encode`` made. Raises ValueError also where a field is absent."""
    return _decoded(kind, value, is_whole=True)


def encode(value: object) -> Any:
    """Return a dataclass, or what holds some, as JSON data; field names as they are."""
    return msgspec.to_builtins(value, enc_hook=plain)


def _decoded(kind: Any, value: object, *, is_whole: bool) -> Any:
    try:
        decoded = msgspec.convert(value, kind, dec_hook=_decode_ours)
        encoded = encode(decoded)
        _check(value, encoded, "$")
        if is_whole:
            _refuse_absent(value, encoded, "$")
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return decoded


def _decode_ours(kind: type, value: object) -> object:
    """Return a value of a type that msgspec does not know. Raises ValueError."""
    if kind is object:  # what a user's own columns hold
        return value
    if kind is Path and isinstance(value, str):
        return Path(value)
    if kind is Kind and isinstance(value, str) and value in KINDS:
        return KINDS[value]
    raise ValueError(f"{str(value)[:60]!r} is no {kind.__name__}")


def _check(given: Any, encoded: Any, place: str) -> None:
    """Raise ValueError for what msgspec passes over: an unknown field, an endless number."""
    if isinstance(given, dict):
        unknown = sorted(given.keys() - encoded.keys())
        if unknown:
            raise ValueError(f"unknown field {unknown[0]!r} - at `{place}`")
        for name, part in given.items():
            _check(part, encoded[name], f"{place}.{name}")
    elif isinstance(given, list):
        for number, part in enumerate(given):
            _check(part, encoded[number], f"{place}[{number}]")
    elif isinstance(given, int | float) and not abs(given) <= LARGEST_NUMBER:
        raise ValueError(f"a number beyond {LARGEST_NUMBER:g} - at `{place}`")


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


def plain(value: object) -> object:
    """Return what JSON does not know: mappings and numbers as such, the rest as text."""
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Integral):
        return int(value)
    if isinstance(value, Real):
        return float(value)
    return str(value)
