"""Reads models.yaml: models with their server, parameters, limits and prices, by name.

An entry becomes a Spec in two steps: the keys that each provider needs (``_spec``, ``_service``),
then every optional key by its row in FIELDS. To add a key, add a field to Spec and a row there.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from qagate.bundled import EVALUATORS
from qagate.evaluators.core import UsageError
from qagate.evaluators.models import spec
from qagate.evaluators.models.keys import VARIABLE
from qagate.evaluators.models.spec import Spec
from qagate.evaluators.models.targets import (
    HTTP,
    METHODS,
    PLACES,
    PYTHON,
    TOKEN_KINDS,
    HttpTarget,
    check_path,
    places,
)
from qagate.evaluators.models.urls import is_same_host, normalise_url
from qagate.evaluators.reading import Map, Seq, Settings, load_settings
from qagate.evaluators.text import hint

DEFAULT_PATH = EVALUATORS / "models.yaml"
RESERVED = frozenset({"recorded", "lexical", PYTHON, HTTP, *spec.PROVIDERS})
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/-]*")
HEADER = re.compile(r"[A-Za-z][A-Za-z-]{1,39}")
DAY_SECONDS = 86_400
MAX_NUMBER_LENGTH = 39
"""Characters of a number among the parameters."""
WRITTEN_BY_US = frozenset(
    {"model", "messages", "system", "tools", "tool_choice", "stream", "n"}
)
_JSON_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")


def load_catalogue(
    path: Path = DEFAULT_PATH, *, own: Path | None = None
) -> Mapping[str, Spec]:
    """Return the models of a file by name; entries of a further one, ``own``, win.

    Raises UsageError naming file, line and key, never a value that may be an API key.
    """
    top = load_settings(path, may_be_empty=True)
    models = {name: _spec(top, name) for name in top.values}
    if own is not None:
        models |= load_catalogue(own)
    return models


def replaced_entries(own: Path | None) -> str:
    """Return a note on bundled names that a user's file has too; empty without any."""
    if own is None:
        return ""
    bundled = load_settings(DEFAULT_PATH, may_be_empty=True).values
    users = load_settings(own, may_be_empty=True).values
    replaced = [name for name in users if name in bundled]
    if not replaced:
        return ""
    return f"--models {own}: {', '.join(replaced)} as there, not as bundled"


def _spec(top: Settings, name: str) -> Spec:
    """Return the Spec of an entry. Raises UsageError."""
    if name in RESERVED or not NAME.fullmatch(name):
        taken = ", ".join(sorted(RESERVED))
        raise top.problem(
            name, f"a name is letters, digits and . _ / -, and none of {taken}"
        )
    entry = top.part(name)
    if entry.values.get("provider") == HTTP:
        return _service(entry, name)
    entry.check_keys(KNOWN, required=("provider", "model"))
    # HTTP cannot be chosen any more; it is here for the message, which lists all providers.
    provider = entry.one_of("provider", (*spec.PROVIDERS, PYTHON, HTTP))
    if provider == PYTHON:
        return _with_optional_keys(entry, spec.of_function(entry.text("model"), name))
    base_url = entry.text("base_url") or None
    try:
        model_name = spec.check_name(entry.text("model"), name)
    except UsageError as error:
        raise entry.problem("model", str(error)) from None
    try:
        model = spec.build(provider, model_name, base_url, name)
    except UsageError as error:
        raise entry.problem("base_url", str(error)) from None
    model = _with_optional_keys(entry, model)
    _check_keys_stay_at_provider(entry, model)
    return model


def _with_optional_keys(entry: Settings, model: Spec) -> Spec:
    """Return the Spec with what the entry says besides provider and model."""
    model = replace(model, file=str(entry.path))
    for key, with_key in FIELDS.items():
        if key in entry.values:
            model = with_key(model, entry, key)
    return model


def _service(entry: Settings, name: str) -> Spec:
    """Return the Spec of a service; its version alone tells a changed one from what it was."""
    entry.check_keys(
        KNOWN_HTTP, required=("provider", "url", "body", "answer", "version")
    )
    try:
        url = normalise_url(entry.text("url"))
    except UsageError as error:
        raise entry.problem(key="url", message=str(error)) from None
    tokens = entry.part("tokens")
    tokens.check_keys(TOKEN_KINDS)
    method = METHODS[0]
    if "method" in entry.values:
        method = entry.one_of("method", METHODS)
    target = HttpTarget(
        url=url,
        method=method,
        body=_body(entry),
        answer=_path(entry, "answer"),
        tokens={kind: _path(tokens, kind) for kind in tokens.values},
        cost=_path(entry, "cost") if "cost" in entry.values else "",
    )
    model = Spec(
        text=name,
        provider=HTTP,
        name=name,
        base_url=url,
        answers_as=("*",),
        http=target,
    )
    model = _with_optional_keys(entry, model)
    _check_keys_stay_at_provider(entry, model)
    return model


def _body(entry: Settings) -> Mapping[str, object]:
    body = _json_map(entry.part("body"))
    for place in places(body):
        if place not in PLACES:
            raise entry.problem(
                key="body", message=f"{{{place}}} is no place; {hint(place, PLACES)}"
            )
    if not any(places(body)):
        known = ", ".join(f"{{{place}}}" for place in PLACES)
        raise entry.problem(key="body", message=f"it asks nothing; name one of {known}")
    return body


def _path(holder: Settings, key: str) -> str:
    path = holder.text(key)
    fault = check_path(path)
    if fault:
        raise holder.problem(key, f"{path!r} is no JSONPath: {fault}")
    return path


def _check_keys_stay_at_provider(entry: Settings, model: Spec) -> None:
    """Raise UsageError if a known provider's API key would go to another server.

    Only a server on this machine may get it: the user may not have written the models file.
    """
    key_of_variable = {model.api_key_env: "api_key_env"}
    for variable in model.headers.values():
        key_of_variable[variable] = "headers"
    for adapter in spec.PROVIDERS.values():
        variable = adapter.api_key_env
        if variable not in key_of_variable:
            continue
        if model.is_loopback or is_same_host(model.base_url, adapter.base_url):
            continue
        raise entry.problem(
            key_of_variable[variable],
            f"{variable} goes to {adapter.base_url} only; name another variable here, "
            f"or say --key-env URL={variable}",
        )


def _variable(entry: Settings, key: str) -> str:
    name = entry.values[key]
    if not isinstance(name, str) or not VARIABLE.fullmatch(name):
        raise entry.problem(
            key,
            "must be the name of an environment variable (what stands there is not shown)",
        )
    return name


def _seconds(entry: Settings, key: str) -> float:
    seconds = entry.number(key, 0, DAY_SECONDS)
    if not seconds:
        raise entry.problem(key, "more than 0 seconds are needed")
    return seconds


def _names(entry: Settings, key: str) -> tuple[str, ...]:
    if isinstance(entry.values[key], str):
        raise entry.problem(key, "a list is needed, for instance [temperature, top_p]")
    return entry.words(key)


def _prices(entry: Settings, key: str) -> spec.Prices:
    part = entry.part(key)
    required = ("input", "output")
    part.check_keys((*required, "cache_read", "cache_write"), required=required)
    return spec.Prices(
        input=part.number("input", 0, math.inf) or 0.0,
        output=part.number("output", 0, math.inf) or 0.0,
        cache_read=part.number("cache_read", 0, math.inf),
        cache_write=part.number("cache_write", 0, math.inf),
    )


def _batch(entry: Settings, key: str) -> spec.BatchLimits:
    part = entry.part(key)
    part.check_keys(("calls", "megabytes", "price"))
    megabytes = part.number("megabytes", 0.001, math.inf)
    return spec.BatchLimits(
        calls=part.whole("calls", 1, math.inf),
        size=None if megabytes is None else int(1e6 * megabytes),
        price=part.number("price", 0, 1),
    )


def _parameters(entry: Settings, key: str) -> Mapping[str, object]:
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
        return [_json(part, key, element) for element in value]
    scalar = str(value)
    if not scalar:
        raise part.problem(
            key, "is empty or null; take the line out, or put the parameter under omit"
        )
    if scalar in ("true", "false"):
        return scalar == "true"
    if not _JSON_NUMBER.fullmatch(scalar):
        return scalar
    if len(scalar) > MAX_NUMBER_LENGTH or not math.isfinite(float(scalar)):
        raise part.problem(key, "a number that a float can hold is needed")
    if scalar.lstrip("-").isdigit():
        return int(scalar)
    return float(scalar)


def _headers(entry: Settings, key: str) -> Mapping[str, str]:
    part = entry.part(key)
    for name in part.values:
        if not HEADER.fullmatch(name):
            raise part.problem(name, "a header's name is needed, for instance api-key")
    return {name: _variable(part, name) for name in part.values}


def _query(entry: Settings, key: str) -> Mapping[str, str]:
    part = entry.part(key)
    part.refuse_secrets()
    return {name: part.text(name) for name in part.values}


def _limit(entry: Settings, key: str) -> int | None:
    return entry.whole(key, 1, math.inf)


WithKey = Callable[[Spec, Settings, str], Spec]
"""Returns the Spec with what an entry says under a key."""

FIELDS: Mapping[str, WithKey] = {
    "api_key_env": lambda model, entry, key: replace(
        model, api_key_env=_variable(entry, key)
    ),
    "parameters": lambda model, entry, key: replace(
        model, parameters=_parameters(entry, key)
    ),
    "omit": lambda model, entry, key: replace(model, omit=_names(entry, key)),
    "max_tokens_as": lambda model, entry, key: replace(
        model, max_tokens_as=entry.text(key)
    ),
    "answers_as": lambda model, entry, key: replace(
        model, answers_as=_names(entry, key)
    ),
    "headers": lambda model, entry, key: replace(model, headers=_headers(entry, key)),
    "query": lambda model, entry, key: replace(model, query=_query(entry, key)),
    "version": lambda model, entry, key: replace(model, version=entry.text(key)),
    "deadline": lambda model, entry, key: replace(model, deadline=_seconds(entry, key)),
    "item_deadline": lambda model, entry, key: replace(
        model, item_deadline=_seconds(entry, key)
    ),
    "concurrency": lambda model, entry, key: replace(
        model, concurrency=_limit(entry, key)
    ),
    "rpm": lambda model, entry, key: replace(model, rpm=_limit(entry, key)),
    "tpm": lambda model, entry, key: replace(model, tpm=_limit(entry, key)),
    "prices": lambda model, entry, key: replace(model, prices=_prices(entry, key)),
    "batch": lambda model, entry, key: replace(model, batch=_batch(entry, key)),
}
"""How each optional key of an entry changes its Spec."""
KNOWN = ("provider", "model", "base_url", *FIELDS)
_OF_HTTP = ("provider", "url", "method", "body", "answer", "tokens", "cost")
_NOT_HTTP = ("parameters", "omit", "max_tokens_as", "answers_as")
KNOWN_HTTP = (*_OF_HTTP, *(key for key in FIELDS if key not in _NOT_HTTP))
