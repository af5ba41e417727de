"""How a service of the user's is called: its body is filled, its reply read by JSONPaths."""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from qagate.evaluators import core
from qagate.evaluators.core import AskedCase, RefusedError, Reply
from qagate.evaluators.models.adapter import JsonObject, ProviderAdapter, as_text
from qagate.evaluators.models.targets import PLACE, HttpTarget, compiled_path
from qagate.evaluators.text import PLACEHOLDER, Key, sendable

REFUSED = "bad_request"
"""The kind of error for a path that leads nowhere: a run ends if its first calls fail so."""

MAX_KEYS_SHOWN = 20


def adapter_of(target: HttpTarget, name: str) -> ProviderAdapter:
    """Return how the service is called; its replies carry the name."""
    return ProviderAdapter(
        sdk="jsonpath",
        base_url=target.url,
        api_key_env="",
        address=_address,
        write=partial(_write, target),
        read=partial(_read, target, name),
        method=target.method,
    )


def _address(key: Key, base_url: str) -> tuple[str, Mapping[str, object]]:
    headers = {"content-type": "application/json", "accept": "application/json"}
    if key.reveal() != PLACEHOLDER:
        headers["authorization"] = f"Bearer {key.reveal()}"
    return base_url, headers


def _write(
    target: HttpTarget,
    name: str,
    request: core.Request,
    parameters: Mapping[str, object],
) -> Mapping[str, object]:
    """Return the body with its places filled; the service takes no name and no parameters."""
    if target.takes_case and request.case is None:
        raise RefusedError(
            REFUSED, "its body takes an item's question: it can only answer items"
        )
    case = request.case or AskedCase()
    values = {
        "question": case.question,
        "context": case.context,
        "language": case.language,
        "metadata": case.metadata,
        "prompt": "\n\n".join(message.content for message in request.messages),
        "messages": [
            {"role": message.role, "content": message.content}
            for message in request.messages
        ],
    }
    body = {key: _filled(template, values) for key, template in target.body.items()}
    if target.method == "GET":
        return {key: as_text(value) for key, value in body.items()}
    return body


def _filled(template: object, values: Mapping[str, Any]) -> Any:
    """Return a template with the values at its places."""
    if isinstance(template, str):
        whole = PLACE.fullmatch(template)
        if whole:
            value = json.dumps(values[whole[1]], ensure_ascii=False, default=str)
            return json.loads(sendable(value))
        text = PLACE.sub(lambda place: as_text(values[place[1]]), template)
        return sendable(text)
    if isinstance(template, Mapping):
        return {key: _filled(value, values) for key, value in template.items()}
    if isinstance(template, list | tuple):
        return [_filled(value, values) for value in template]
    return template


def _read(target: HttpTarget, name: str, content: JsonObject) -> Reply:
    """Return the reply in a body. Raises RefusedError for a path that leads nowhere."""
    paths = dict(target.tokens)
    if target.cost:
        paths["cost"] = target.cost
    usage = JsonObject({kind: _value_at(path, content) for kind, path in paths.items()})
    return Reply(
        text=as_text(_value_at(target.answer, content)),
        model=name,
        input_tokens=usage.tokens("input"),
        output_tokens=usage.tokens("output"),
        cost=usage.amount("cost"),
    )


def _value_at(path: str, content: JsonObject) -> object:
    """Return the one value that a path leads to."""
    values = compiled_path(path).findall(content)
    if len(values) == 1 and values[0] is not None:
        return values[0]
    problem = "leads to nothing"
    if len(values) > 1:
        problem = f"leads to {len(values)} values"
    keys = ", ".join(list(content)[:MAX_KEYS_SHOWN]) or "no keys"
    raise RefusedError(REFUSED, f"{path} {problem} in the reply, which has {keys}")
