"""Frozen dataclasses from the JSON data that ``dataclasses.asdict`` makes of them."""

import types
from collections.abc import Mapping
from dataclasses import is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from evaluators.kinds import KINDS, Kind

T = TypeVar("T")


def decode(kind: type[T], value: object) -> T:
    """Return the dataclass ``kind`` that this JSON object stands for; absent fields default.

    Fields may be text, numbers, truth values, None, literals, dataclasses, tuples of one type and
    mappings from text. Raises ValueError, naming the field, for anything that does not fit.
    """
    if not isinstance(value, Mapping):
        raise ValueError(f"an object is needed for {kind.__name__}, not {type(value).__name__}")
    hints = _hints(kind)  # type: ignore[arg-type]  # every class is hashable
    if unknown := sorted(set(value) - hints.keys()):
        raise ValueError(f"{kind.__name__} has no {unknown[0]!r}")
    try:
        return kind(**{name: _read(hints[name], part, name) for name, part in value.items()})
    except TypeError as error:
        raise ValueError(str(error)) from None


_hints = cache(get_type_hints)


def _read(hint: Any, value: object, name: str) -> object:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (one,) = [one for one in arguments if one is not types.NoneType]  # one type or None
        return None if value is None else _read(one, value, name)
    if origin is Literal:
        return _checked(value in arguments, value, name)
    if origin is tuple:
        parts = value if isinstance(value, (list, tuple)) else _checked(False, value, name)
        return tuple(_read(arguments[0], part, name) for part in parts)  # type: ignore[attr-defined]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        _checked(isinstance(value, dict), value, name)
        return {key: _read(arguments[1], part, name) for key, part in value.items()}  # type: ignore[attr-defined]
    return decode(hint, value) if is_dataclass(hint) else _scalar(hint, value, name)  # type: ignore[arg-type]


def _scalar(hint: Any, value: object, name: str) -> object:
    if hint is object:  # what a user's own columns hold
        return value
    if hint is Kind:
        return KINDS[str(_checked(value in KINDS, value, name))]
    if hint is float:
        return _checked(
            isinstance(value, (int, float)) and not isinstance(value, bool), value, name
        )
    return _checked(type(value) is hint, value, name)


def _checked(fits: bool, value: object, name: str) -> object:
    if not fits:
        raise ValueError(f"{name!r} is {str(value)[:60]!r}")
    return value
