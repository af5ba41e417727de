"""Calls to one model over HTTP, one request each.

``ApiModel.complete`` is one attempt: it opens the model's Endpoint if there is none, lets
the provider's adapter write the body, sends it, and lets the adapter read the reply.
Whatever goes wrong comes out as a CallError, whose class says whether to try again, and
which never shows the key. Retries, limits and money are the engine's.
"""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import replace
from weakref import WeakKeyDictionary

from qagate.evaluators.core import CallError, Reply, Request, ToolCall, TransientError
from qagate.evaluators.models import failures
from qagate.evaluators.models.adapter import JsonObject, parse_body, refuse_body
from qagate.evaluators.models.endpoint import Endpoint, open_endpoint
from qagate.evaluators.models.keys import no_key, no_key_sent
from qagate.evaluators.models.spec import Spec
from qagate.evaluators.models.versions import may_be_one_model
from qagate.evaluators.negotiation import AS_MOST, MAX_TOKENS, without_system
from qagate.evaluators.text import Key, mask, one_line

TIMEOUT_ADVICE = (
    " ({seconds:g} s); if the reply has no end, give parameters: {{max_tokens: 1024}} in a "
    "models file, or a longer deadline: for a slow server"
)
"""What a person can do about a call that timed out."""


class ApiModel:
    """The calls to one model through its provider's adapter. It never shows its key.

    Attributes::

    :negotiated: How the model is written to.
    """

    def __init__(self, spec: Spec, key: Key | None) -> None:
        self._spec = spec
        self._key = key
        self._adapter = spec.adapter
        self.negotiated = AS_MOST
        # A connection works only in the event loop that opened it.
        self._endpoints = WeakKeyDictionary[asyncio.AbstractEventLoop, Endpoint]()

    async def complete(self, request: Request) -> Reply:
        """Send a request once, within the Spec's deadline. Raises only CallErrors."""
        if self._key is None:
            raise no_key(self._spec)
        try:
            endpoint = self._open(self._key)
            start = time.perf_counter()
            async with asyncio.timeout(self._spec.deadline):
                status, headers, body = await endpoint.send(self.body(request))
            if not 200 <= status < 300:
                raise failures.of_response(status, headers, body)
            reply = self.read(parse_body(body), headers)
            return replace(reply, seconds=time.perf_counter() - start)
        except Exception as error:  # noqa: BLE001 - HTTP libraries raise more than they document
            problem = self.explained(failures.of_exception(error))
        # Raised out here, it has no HTTP exception as its context: that would hold the key.
        raise problem

    async def close(self) -> None:
        """Close the connections of the running loop."""
        endpoint = self._endpoints.pop(asyncio.get_running_loop(), None)
        if endpoint is not None:
            await endpoint.session.close()

    def body(self, request: Request) -> Mapping[str, object]:
        """Return the body to send for a request."""
        negotiated = self.negotiated
        if not negotiated.takes_system:
            messages = without_system(request.messages)
            request = replace(request, messages=messages)
        wanted = {
            name: value
            for name, value in request.parameters.items()
            if name not in negotiated.omit
        }
        parameters = self._spec.merged(wanted)
        if negotiated.max_tokens_as and MAX_TOKENS in parameters:
            parameters[negotiated.max_tokens_as] = parameters.pop(MAX_TOKENS)
        return self._adapter.write(self._spec.name, request, parameters)

    def read(self, content: JsonObject, headers: Mapping[str, str]) -> Reply:
        """Return the reply in a body, without the key.

        Raises a CallError if the body holds an error, or the reply of another model.
        """
        if content.get("error") or content.get("type") == "error":
            raise failures.of_error_body(content, headers)
        reply = self._adapter.read(content)
        _check_model(reply.model, self._spec.name, self._spec.answers_as)
        if self._key is None:
            return reply
        return _without_key(reply, self._key)

    def explained(self, error: CallError) -> CallError:
        """Return an error as the user is to see it.

        It begins with the model's SPEC, says what to do about a key that is missing, stands
        in one line and holds nothing that looks like a key.
        """
        text = f"{self._spec.text}: {error}"
        if error.kind == "timeout":
            text += TIMEOUT_ADVICE.format(seconds=self._spec.deadline)
        advice = no_key_sent(self._spec, self._key)
        if advice:
            text = text.replace(failures.ADVICE["auth"], advice)
        text = mask(text) if self._key is None else self._key.mask(text)
        message = one_line(text)
        if isinstance(error, TransientError):
            return TransientError(error.kind, message, error.retry_after)
        return type(error)(error.kind, message)

    def _open(self, key: Key) -> Endpoint:
        """Return the endpoint of the running loop; the first call opens it."""
        loop = asyncio.get_running_loop()
        endpoint = self._endpoints.get(loop)
        if endpoint is None:
            endpoint = open_endpoint(self._spec, key)
            self._endpoints[loop] = endpoint
        return endpoint


def _without_key(reply: Reply, key: Key) -> Reply:
    """Return the reply without the key, which a server may echo: replies are kept and shown."""
    calls = []
    for call in reply.calls:
        hidden = ToolCall(name=key.hide(call.name), arguments=key.hide(call.arguments))
        calls.append(hidden)
    return replace(
        reply,
        text=key.hide(reply.text),
        calls=tuple(calls),
        finish=key.hide(reply.finish),
        model=key.hide(reply.model),
    )


def _check_model(name: str, wanted: str, answers_as: tuple[str, ...]) -> None:
    """Raise TransientError if another model answered than the one that was asked.

    ``answers_as`` are further names that the user allows; ``*`` allows any. A reply without
    a name says nothing about who gave it.
    """
    if not name:
        return
    for allowed in (wanted, *answers_as):
        if allowed == "*" or may_be_one_model(name, allowed):
            return
    refuse_body(
        f"model {name[:80]!r} answered in place of {wanted!r}; "
        "if they are the same, put that name under answers_as in models.yaml"
    )
