"""A model that is a service of the user's own: JSON over HTTP, described in the models file."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from evaluators.core import AskedCase, RefusedError, Reply, Request
from evaluators.models.adapter import JsonObject, ProviderAdapter, as_text
from evaluators.text import PLACEHOLDER, Key, sendable

PROVIDER = "http"
METHODS = ("POST", "PUT", "GET")
OF_CASE = ("question", "context", "language", "metadata")
PLACES = (*OF_CASE, "prompt", "messages")
"""What a body may name in braces. A place that is a whole text keeps its type, such as a list."""

TOKENS = ("input", "output")
_PLACE = re.compile(r"\{(\w+)\}")
REFUSED = "bad_request"  # if the first three calls fail so, the run ends: a path is wrong


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpTarget:
    """How one service is asked and read. Each JSONPath leads to one value in its reply."""

    url: str
    method: str
    body: Mapping[str, Any]
    """The body, with places in braces; the query of a GET."""
    answer: str
    """The JSONPath of the answer."""
    tokens: Mapping[str, str] = field(default_factory=dict)
    """The JSONPaths of ``input`` and ``output`` tokens."""
    cost: str = ""
    """The JSONPath of the cost in USD."""

    @property
    def takes_case(self) -> bool:
        """Whether it asks for parts of the case, and not for the filled prompt alone."""
        return any(place in OF_CASE for place in places(self.body))

    def adapter(self, name: str) -> ProviderAdapter:
        """Return how the service is called; replies carry this name."""
        return ProviderAdapter(
            sdk="jsonpath",
            base_url=self.url,
            api_key_env="",
            address=_address,
            write=partial(_write, self),
            read=partial(_read, self, name),
            method=self.method,
        )


def places(template: object) -> Iterator[str]:
    """Yield the names in braces anywhere in a body."""
    if isinstance(template, str):
        yield from _PLACE.findall(template)
    elif isinstance(template, Mapping | list | tuple):
        for value in template.values() if isinstance(template, Mapping) else template:
            yield from places(value)


def check_path(path: str) -> str:
    """Return what is wrong with a JSONPath in a few words; empty if nothing is."""
    from jsonpath import JSONPathError  # noqa: PLC0415  # few have such entries

    try:
        _path(path)
    except JSONPathError as error:
        return str(error).splitlines()[0]
    return "" if path.startswith("$") else "a path starts with $, for instance $.answer"


@cache
def _path(text: str) -> Any:
    from jsonpath import compile as compiled  # noqa: PLC0415

    return compiled(text)


def _address(key: Key, base_url: str) -> tuple[str, Mapping[str, object]]:
    headers = {"content-type": "application/json", "accept": "application/json"}
    if key.reveal() != PLACEHOLDER:
        headers["authorization"] = f"Bearer {key.reveal()}"
    return base_url, headers


def _write(
    target: HttpTarget, name: str, request: Request, parameters: Mapping[str, object]
) -> Mapping[str, object]:
    if target.takes_case and request.case is None:
        raise RefusedError(REFUSED, "its body takes an item's question: it can only answer items")
    case = request.case or AskedCase()
    values = {
        **{name: getattr(case, name) for name in OF_CASE},
        "prompt": "\n\n".join(one.content for one in request.messages),
        "messages": [{"role": one.role, "content": one.content} for one in request.messages],
    }
    filled = {key: _filled(value, values) for key, value in target.body.items()}
    is_query = target.method == "GET"
    return {key: as_text(value) for key, value in filled.items()} if is_query else filled


def _filled(template: object, values: Mapping[str, Any]) -> Any:
    if isinstance(template, str):
        alone = _PLACE.fullmatch(template)
        if alone:
            value = json.dumps(values[alone[1]], ensure_ascii=False, default=str)
            return json.loads(sendable(value))
        return sendable(_PLACE.sub(lambda match: as_text(values[match[1]]), template))
    if isinstance(template, Mapping):
        return {key: _filled(value, values) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [_filled(value, values) for value in template]
    return template


def _read(target: HttpTarget, name: str, content: JsonObject) -> Reply:
    paths = {**target.tokens, **({"cost": target.cost} if target.cost else {})}
    said = JsonObject({what: _one(path, content) for what, path in paths.items()})
    return Reply(
        text=as_text(_one(target.answer, content)),
        model=name,
        input_tokens=said.count("input"),
        output_tokens=said.count("output"),
        cost=said.amount("cost"),
    )


def _one(path: str, content: JsonObject) -> object:
    found = _path(path).findall(content)
    if len(found) == 1 and found[0] is not None:
        return found[0]
    what = f"leads to {len(found)} values" if len(found) > 1 else "leads to nothing"
    keys = ", ".join(list(content)[:20])
    raise RefusedError(REFUSED, f"{path} {what} in the reply, which has {keys or 'no keys'}")
