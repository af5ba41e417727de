"""Reads models.yaml: models with their server, parameters, limits and prices, by name."""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluators.core import UsageError
from evaluators.models.keys import VARIABLE
from evaluators.models.spec import PROVIDERS, Prices, Spec, build, check_name
from evaluators.reading import Map, Seq
from evaluators.settings import Settings, load_settings

DEFAULT_PATH = Path(__file__).parents[1] / "models.yaml"
RESERVED = frozenset({"recorded", "lexical", *PROVIDERS})
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
DAY = 86_400
WRITTEN_BY_US = frozenset({"model", "messages", "system", "tools", "tool_choice", "stream", "n"})
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")


def load_catalogue(path: Path = DEFAULT_PATH) -> Mapping[str, Spec]:
    """Return the models of a file by name; none for an empty file.

    Raises UsageError naming file, line and key for anything unknown or out of range; keys that
    would hold an API key are refused, and their value is not shown.
    """
    top = load_settings(path, may_be_empty=True)
    return {name: _spec(top, name) for name in top.values}


def _spec(top: Settings, name: str) -> Spec:
    if name in RESERVED or not NAME.fullmatch(name):
        taken = ", ".join(sorted(RESERVED))
        what = f"a name is letters, digits and . _ / -, and none of {taken}"
        raise top.problem(name, what)
    entry = top.part(name)
    entry.check_keys(KNOWN, required=("provider", "model"))
    provider = entry.one_of("provider", tuple(PROVIDERS))
    base_url = entry.text("base_url") or None
    try:
        spec = build(provider, check_name(entry.text("model"), name), base_url, name)
    except UsageError as error:
        raise entry.problem("base_url" if base_url else "model", str(error)) from None
    return replace(spec, **{key: FIELDS[key](entry, key) for key in FIELDS if key in entry.values})


def _variable(entry: Settings, key: str) -> str:
    """Return an environment variable's name; a key put here by mistake is not shown."""
    name = entry.values[key]
    if not isinstance(name, str) or not VARIABLE.fullmatch(name):
        what = "must be the name of an environment variable (what stands there is not shown)"
        raise entry.problem(key, what)
    return name


def _seconds(entry: Settings, key: str) -> float:
    seconds = entry.number(key, 0, DAY)
    if not seconds:
        raise entry.problem(key, "more than 0 seconds are needed")
    return seconds


def _count(entry: Settings, key: str) -> int | None:
    return entry.whole(key, 1, math.inf)


def _names(entry: Settings, key: str) -> tuple[str, ...]:
    if isinstance(entry.values[key], str):
        raise entry.problem(key, "a list is needed, for instance [temperature, top_p]")
    return entry.words(key)


def _prices(entry: Settings, key: str) -> Prices:
    """Return USD per million input and output tokens, both from 0."""
    part = entry.part(key)
    part.check_keys(("input", "output"), required=("input", "output"))
    prices = {name: part.number(name, 0, math.inf) or 0.0 for name in ("input", "output")}
    return Prices(**prices)


def _parameters(entry: Settings, key: str) -> Mapping[str, object]:
    """Return request parameters; what the suite writes into a request itself is refused."""
    part = entry.part(key)
    for name in WRITTEN_BY_US.intersection(part.values):
        raise part.problem(name, "is written by the suite itself; remove it")
    return _json_map(part)


def _json_map(part: Settings) -> dict[str, object]:
    part.refuse_secrets()
    return {key: _json(part, key, value) for key, value in part.values.items()}


def _json(part: Settings, key: str, value: object) -> object:
    """Read a scalar as JSON would (numbers, true, false); everything else is text."""
    if isinstance(value, Map):
        return _json_map(Settings(part.path, f"{part.name}: {key}", value))
    if isinstance(value, Seq):
        return [_json(part, key, one) for one in value]
    scalar = str(value)
    if not scalar:
        what = "is empty or null; take the line out, or put the parameter under omit"
        raise part.problem(key, what)
    if scalar in ("true", "false"):
        return scalar == "true"
    if not _JSON_NUMBER.fullmatch(scalar):
        return scalar
    if len(scalar) >= 40 or not math.isfinite(float(scalar)):
        raise part.problem(key, "a number that a float can hold is needed")
    return int(scalar) if scalar.lstrip("-").isdigit() else float(scalar)


FIELDS: Mapping[str, Callable[[Settings, str], Any]] = {
    "api_key_env": _variable,
    "parameters": _parameters,
    "omit": _names,
    "max_tokens_as": Settings.text,
    "answers_as": _names,
    "deadline": _seconds,
    "item_deadline": _seconds,
    "concurrency": _count,
    "rpm": _count,
    "tpm": _count,
    "prices": _prices,
}
"""How each optional key of an entry becomes the field of that name in Spec."""
KNOWN = ("provider", "model", "base_url", *FIELDS)
