"""Reading the JSON of a reply without trust: every field has its type, or the body is bad."""

import json
import re
from collections.abc import Mapping
from typing import NoReturn, TypeVar

from evaluators.models.failures import refuse_body

Object = Mapping[str, object]
T = TypeVar("T")

# A dated or numbered release of the same model: -2024-08-06, @20241022, -002.
_RELEASE = re.compile(r"[-@:][0-9][0-9.-]*")


def parse(content: bytes) -> Object:
    """Return the one JSON object of a body; duplicate keys and NaN are not JSON."""
    try:
        value = _DECODER.decode(content.decode(json.detect_encoding(content), "surrogatepass"))
    except (ValueError, RecursionError):
        start = content[:80].decode("utf-8", "replace")
        refuse_body(f"the body is not JSON: {start!r}" if start.strip() else "the body is empty")
    return _typed(value, dict, "the body")


def mapping(parent: Object, key: str) -> Object:
    """Return a field that must be an object."""
    return _typed(parent.get(key), dict, key)


def text(parent: Object, key: str) -> str:
    """Return a field that must be text."""
    return _typed(parent.get(key), str, key)


def text_or_none(parent: Object, key: str) -> str | None:
    """Return a field that must be text where it is there."""
    value = parent.get(key)
    return None if value is None else _typed(value, str, key)


def objects(parent: Object, key: str) -> list[Object]:
    """Return a field that must be a list of objects."""
    entries = _typed(parent.get(key), list, key)
    return [_typed(entry, dict, f"an entry of {key}") for entry in entries]


def count(parent: Object, key: str) -> int:
    """Return a number of tokens: 0 where it is missing, otherwise an integer from 0."""
    value = parent.get(key)
    number = 0 if value is None else value
    if not isinstance(number, int) or isinstance(number, bool) or number < 0:
        refuse_body(f"{key} is {str(number)[:40]!r}, not a number of tokens")
    return number


def usage(parent: Object) -> Object:
    """Return the token counts of a reply; empty where a server gives none."""
    return {} if parent.get("usage") is None else mapping(parent, "usage")


def model(parent: Object, asked: str, also: tuple[str, ...]) -> str:
    """Return the model that answered; another one than the one asked is a bad body.

    A release of the name, or the name of a release, is the same model; so are those in ``also``.
    """
    name = text(parent, "model")
    if "*" not in also and not any(_same(name, known) for known in (asked, *also)):
        refuse_body(
            f"model {name[:80]!r} answered in place of {asked!r}; "
            "if they are the same, put that name under answers_as in models.yaml"
        )
    return name


def _same(name: str, known: str) -> bool:
    short, long = sorted((_bare(name), _bare(known)), key=len)
    rest = long[len(short) :]
    return bool(short) and long.startswith(short) and (not rest or bool(_RELEASE.fullmatch(rest)))


def _bare(name: str) -> str:
    """Drop what gateways put before a name, and the words for its newest release."""
    last = name.casefold().rstrip("/").rpartition("/")[2]
    return last.removesuffix(":latest").removesuffix("-latest")


def _typed(value: object, kind: type[T], key: str) -> T:
    if not isinstance(value, kind):
        refuse_body(f"{key} is {_json_type(value)}, not {_JSON_TYPES[kind]}")
    return value


_JSON_TYPES: Mapping[type, str] = {
    dict: "an object",
    list: "a list",
    str: "text",
    bool: "true or false",
    type(None): "missing or null",
}


def _json_type(value: object) -> str:
    return _JSON_TYPES.get(type(value), "a number")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) != len(pairs):
        msg = "duplicate key"
        raise ValueError(msg)
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
