"""JSON as RFC 8259 has it: no duplicate keys, no NaN, no infinity, bounded depth."""

import json
import math
import re
from typing import NoReturn

MAX_DEPTH = 100
MAX_DIGITS = 400

# A whole string (also one that is never closed) or one bracket; possessive, hence linear.
_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)


def loads(text: str) -> object:
    """Return the value of a JSON text.

    Raises ValueError with one line for anything else: wrong syntax, a key that stands twice in
    one object, NaN or a number beyond the range of floats, or more than 100 nested brackets.
    """
    _check_depth(text)
    try:
        return json.loads(
            text,
            object_pairs_hook=_unique,
            parse_constant=_refuse_constant,
            parse_float=_finite,
            parse_int=_bounded,
        )
    except json.JSONDecodeError as error:
        msg = f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}"
        raise ValueError(msg) from None


def _check_depth(text: str) -> None:
    depth = 0
    for token in _TOKEN.finditer(text):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
        if depth > MAX_DEPTH:
            msg = f"nested deeper than {MAX_DEPTH} levels at character {token.start() + 1}"
            raise ValueError(msg)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    result: dict[str, object] = {}
    for key, value in pairs:
        if key in result:
            msg = f"key {key[:40]!r} stands twice in one object"
            raise ValueError(msg)
        result[key] = value
    return result


def _refuse_constant(name: str) -> NoReturn:
    msg = f"{name} is not a JSON number"
    raise ValueError(msg)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        msg = f"number {digits[:40]!r} is beyond the range of floats"
        raise ValueError(msg)
    return number


def _bounded(digits: str) -> int:
    # int() refuses long texts with a message of its own that speaks of interpreter settings
    if len(digits) > MAX_DIGITS:
        msg = f"a number of {len(digits)} digits; at most {MAX_DIGITS} are read"
        raise ValueError(msg)
    return int(digits)
