"""Values of models.yaml: from text to numbers, lists and parameters, with the place in errors."""

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
from pathlib import Path
from typing import NoReturn

from evaluators.core import UsageError
from evaluators.models.secrets import mask
from evaluators.models.spec import Prices
from evaluators.strict_yaml import Map, Seq

DAY = 86_400
WRITTEN_BY_US = frozenset({"model", "messages", "system", "tools", "tool_choice", "stream", "n"})
SECRET = re.compile(
    r"(?:x[-_])?(?:api[-_]?)?key|(?:(?:auth|access|api|bearer)[-_]?)?token"
    r"|(?:api[-_]?)?secret(?:[-_]key)?|password|authorization|credentials?|headers",
    re.IGNORECASE,
)
NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a value stands, for messages: file, line, and the dotted keys that lead to it."""

    path: Path
    line: int
    keys: str

    def below(self, parent: Map, key: str) -> "Place":
        """Return the place of one key of the mapping that stands here."""
        return replace(self, line=parent.lines[key], keys=f"{self.keys}.{key}")

    def refuse(self, problem: str) -> NoReturn:
        """Raise the UsageError of this place."""
        raise UsageError(mask(f"{self.path}:{self.line}: {self.keys}: {problem}"))


def entry(place: Place, value: object, known: Collection[str]) -> Map:
    """Return a mapping that has only known keys."""
    found = mapping(place, value)
    for key in found:
        here = place.below(found, key)
        _refuse_secret(here, key)
        if key not in known:
            close = get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]!r}? " if close else ""
            here.refuse(f"unknown key; {hint}known: {', '.join(sorted(known))}")
    return found


def mapping(place: Place, value: object) -> Map:
    """Return a mapping of any keys."""
    if not isinstance(value, Map):
        place.refuse("must be a mapping")
    return value


def text(place: Place, value: object) -> str:
    """Return text that is not empty."""
    if not isinstance(value, str) or not value:
        place.refuse("must be text")
    return value


def variable(place: Place, value: object) -> str:
    """Return an environment variable's name; a key put here by mistake is not shown."""
    if not isinstance(value, str) or not VARIABLE.fullmatch(value):
        place.refuse("must be the name of an environment variable (what stands there is not shown)")
    return value


def seconds(place: Place, value: object) -> float:
    """Return a time above 0, at most a day."""
    found = _number(place, value)
    if not 0 < found <= DAY:
        place.refuse(f"must be seconds, above 0 and at most {DAY}, got {value!r}")
    return found


def whole(place: Place, value: object) -> int:
    """Return a whole number from 1."""
    found = _number(place, value)
    if found < 1 or not found.is_integer():
        place.refuse(f"must be a whole number from 1, got {value!r}")
    return int(found)


def names(place: Place, value: object) -> tuple[str, ...]:
    """Return a list of texts."""
    if not isinstance(value, Seq):
        place.refuse("must be a list, for instance [temperature, top_p]")
    return tuple(text(place, one) for one in value)


def prices(place: Place, value: object) -> Prices:
    """Return USD per million input and output tokens, both from 0."""
    found = entry(place, value, ("input", "output"))
    return Prices(input=_price(place, found, "input"), output=_price(place, found, "output"))


def _price(place: Place, parent: Map, key: str) -> float:
    if key not in parent:
        place.refuse(f"{key} is missing (USD per million tokens)")
    here = place.below(parent, key)
    found = _number(here, parent[key])
    if found < 0:
        here.refuse(f"must not be negative, got {parent[key]!r}")
    return found


def parameters(place: Place, value: object) -> Mapping[str, object]:
    """Return request parameters; what the suite writes into a request itself is refused."""
    found = mapping(place, value)
    for key in WRITTEN_BY_US.intersection(found):
        place.below(found, key).refuse("is written by the suite itself; remove it")
    return _json_map(place, found)


def _json_map(place: Place, parent: Map) -> dict[str, object]:
    for key in parent:
        _refuse_secret(place.below(parent, key), key)
    return {key: _json(place.below(parent, key), parent[key]) for key in parent}


def _json(place: Place, value: object) -> object:
    """Read a scalar as JSON would (numbers, true, false); everything else is text."""
    if isinstance(value, Map):
        return _json_map(place, value)
    if isinstance(value, Seq):
        return [_json(place, one) for one in value]
    scalar = str(value)
    if not scalar:
        place.refuse("is empty or null; take the line out, or put the parameter under omit")
    if scalar in ("true", "false"):
        return scalar == "true"
    if not NUMBER.fullmatch(scalar):
        return scalar
    return int(scalar) if scalar.lstrip("-").isdigit() else _number(place, scalar)


def _number(place: Place, value: object) -> float:
    short = isinstance(value, str) and len(value) < 40 and NUMBER.fullmatch(value)
    if not short or not math.isfinite(float(str(value))):
        place.refuse(f"must be a number, got {value!r}")
    return float(str(value))


def _refuse_secret(place: Place, key: str) -> None:
    if SECRET.fullmatch(key):
        place.refuse("no secrets in this file; name the environment variable in api_key_env")
