"""Requests as the ledger keeps them, each under its key.

The ledger key of a request is the hash of all that it says and of the model that is asked. What
is kept must therefore lead back to the same key: ``key_of`` counts it again from the kept text.

Most of a request repeats from item to item. So long texts, such as rubrics, and the frame
(everything but the messages) are documents of their own, kept once under their hash; the
request names them.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from qagate.evaluators.core import Request
from qagate.evaluators.models.urls import without_local_port
from qagate.evaluators.text import canonical, digest, encodable, flat

REQUEST = "request"
"""The kind of a document that is a request, under its ledger key."""
TEXT = "text"
"""The kind of a document that is a text or a frame, under its hash."""
MAX_INLINE_CHARACTERS = 1_000
"""A longer message is a document of its own."""
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

Sent = Mapping[str, Any]
"""A kept request. ``frame`` is the key of a text; so is ``text``, in place of a long content."""


class Document(NamedTuple):
    """A text that a ledger keeps under a kind and a key."""

    kind: str
    key: str
    text: str
    """JSON."""


def request_key(identity: Mapping[str, object], request: Request) -> str:
    """Return the ledger key of a request to the model with this identity."""
    fields = flat(request)
    fields["messages"] = [flat(message) for message in request.messages]
    if request.tool is not None:
        fields["tool"] = flat(request.tool)
    if not request.as_json:
        del fields["as_json"]  # most requests have none: then the key has no such field
    del fields["own_limit"]  # what is sent of it stands in the parameters
    if request.case is None:
        del fields["case"]  # as above
    else:
        messages = [flat(message) for message in request.case.messages]
        fields["case"] = {**flat(request.case), "messages": messages}
    return digest({"model": dict(identity), "request": fields})


def judge_identity(identity: Mapping[str, object]) -> Mapping[str, object]:
    """Return what tells a judge from every other: the port of this machine does not.

    A grade is kept longer than a local server runs at one port. An answer is looked up with
    the port, as a model under test at another port may be another one.
    """
    url = identity.get("base_url")
    if not isinstance(url, str):
        return identity
    return {**identity, "base_url": without_local_port(url)}


def fresh_key(key: str, name: str) -> str:
    """Return a request's key for ``--fresh NAME``; without a name the key itself."""
    if not name:
        return key
    return digest([name, key])


def documents_of(
    spec: str,
    identity: Mapping[str, object],
    request: Request,
    key: str,
    fresh: str,
) -> tuple[Document, ...]:
    """Return what is kept of a request: its texts, then itself.

    ``identity`` is the one that its key was made of; ``fresh`` is a name or empty.
    """
    frame: dict[str, object] = {
        "fresh": fresh,
        "model": dict(identity),
        "spec": spec,
        "tool": None if request.tool is None else flat(request.tool),
        "parameters": request.parameters,
        "version": request.version,
    }
    if request.as_json:
        frame["as_json"] = True
    frame_document = _text_document(canonical(frame))
    texts = [frame_document]
    messages = []
    for message in request.messages:
        if len(message.content) <= MAX_INLINE_CHARACTERS:
            messages.append(flat(message))
            continue
        text = _text_document(message.content)
        texts.append(text)
        messages.append({"role": message.role, "text": text.key})
    sent: dict[str, object] = {
        "frame": frame_document.key,
        "messages": messages,
        "repeat": request.repeat,
        "attempt": request.attempt,
    }
    case = request.case
    if case is not None:
        case_messages = [flat(message) for message in case.messages]
        sent["case"] = {**flat(case), "messages": case_messages}
    return *texts, Document(REQUEST, key, encode(sent))


@lru_cache(maxsize=256)  # for frames and rubrics; long prompts of items soon leave it
def _text_document(text: str) -> Document:
    return Document(TEXT, digest(text), encode(text))


def encode(value: object) -> str:
    """Return JSON that any database and file can hold, readable to people where it can be."""
    text = _encoder.encode(value)
    if encodable(text):
        return text
    return canonical(value)


def parse_sent(text: str) -> Sent | None:
    """Return a kept request; None for JSON of another shape."""
    try:
        sent: Sent = json.loads(text)
        names = list(texts_named(sent))
        roles = [message["role"] for message in sent["messages"]]
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None
    if not all(isinstance(name, str) for name in (*names, *roles)):
        return None
    return sent


def texts_named(sent: Sent) -> Iterator[str]:
    """Yield the keys of the texts that a kept request names."""
    yield sent["frame"]
    for message in sent["messages"]:
        if "text" in message:
            yield message["text"]


def key_of(sent: Sent, texts: Mapping[str, str]) -> str:
    """Return the ledger key of what a kept request says, given its texts; empty if it is odd."""
    try:
        frame, fields = whole(sent, lambda name: json.loads(texts[name]))
        if fields["case"] is None:
            del fields["case"]
        key = digest({"model": frame["model"], "request": fields})
        return fresh_key(key, frame["fresh"])
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return ""


def whole(sent: Sent, text_of: Callable[[str], str]) -> tuple[Sent, dict[str, object]]:
    """Return the frame and the fields of a kept request; ``text_of`` returns a text by its key."""
    frame = json.loads(text_of(sent["frame"]))
    messages = []
    for message in sent["messages"]:
        if "text" in message:
            content = text_of(message["text"])
            messages.append({"role": message["role"], "content": content})
        else:
            messages.append(message)
    fields = {
        "tool": frame["tool"],
        "parameters": frame["parameters"],
        "version": frame["version"],
        "repeat": sent["repeat"],
        "attempt": sent["attempt"],
        "messages": messages,
        "case": sent.get("case"),
    }
    if frame.get("as_json"):
        fields["as_json"] = True
    return frame, fields
