"""Reads models.yaml: models with their server, parameters, limits and prices, by name."""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evaluators.core import UsageError
from evaluators.models import fields
from evaluators.models.fields import Place
from evaluators.models.spec import PROVIDERS, Spec, build, check_name
from evaluators.strict_yaml import Map, load

DEFAULT_PATH = Path(__file__).parents[1] / "models.yaml"
RESERVED = frozenset({"recorded", "lexical", *PROVIDERS})
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")

FIELDS: Mapping[str, Callable[[Place, object], Any]] = {
    "api_key_env": fields.variable,
    "parameters": fields.parameters,
    "omit": fields.names,
    "max_tokens_as": fields.text,
    "answers_as": fields.names,
    "deadline": fields.seconds,
    "item_deadline": fields.seconds,
    "concurrency": fields.whole,
    "rpm": fields.whole,
    "tpm": fields.whole,
    "prices": fields.prices,
}
KNOWN = ("provider", "model", "base_url", *FIELDS)


def load_catalogue(path: Path = DEFAULT_PATH) -> Mapping[str, Spec]:
    """Return the models of a file by name; none for an empty file.

    Raises UsageError naming file, line and key for anything unknown or out of range; keys that
    would hold an API key are refused, and their value is not shown.
    """
    content = load(path)
    if content == "":
        return {}
    top = fields.mapping(Place(path=path, line=1, keys="models"), content)
    return {
        name: _entry(Place(path=path, line=top.lines[name], keys=name), name, value)
        for name, value in top.items()
    }


def _entry(place: Place, name: str, value: object) -> Spec:
    if name in RESERVED or not NAME.fullmatch(name):
        taken = ", ".join(sorted(RESERVED))
        place.refuse(f"a name is letters, digits and . _ / -, and none of {taken}")
    entry = fields.entry(place, value, KNOWN)
    spec = _built(place, entry, name)
    given = [key for key in FIELDS if key in entry]
    return replace(spec, **{key: FIELDS[key](place.below(entry, key), entry[key]) for key in given})


def _built(place: Place, entry: Map, name: str) -> Spec:
    provider = _required(place, entry, "provider")
    if provider not in PROVIDERS:
        known = ", ".join(PROVIDERS)
        place.below(entry, "provider").refuse(f"must be one of {known}, got {provider!r}")
    model = _required(place, entry, "model")
    base_url = _required(place, entry, "base_url") if "base_url" in entry else None
    try:
        spec = build(provider, check_name(model, name), base_url, name)
    except UsageError as error:
        place.refuse(str(error))
    return spec


def _required(place: Place, entry: Map, key: str) -> str:
    if key not in entry:
        place.refuse(f"{key} is missing")
    return fields.text(place.below(entry, key), entry[key])
