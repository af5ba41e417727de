"""What was sent for a reply, as ledger and report keep it: each request once, by its ledger key.

Long texts such as rubrics, and the frame of a request (everything but its messages), repeat, so
each is kept once by its digest. A reader can check a request: its key is the hash of what it says.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from evaluators.core import Model, Request
from evaluators.text import canonical, digest, encodable, flat, fresh_key

REQUEST, TEXT = "request", "text"
"""The kinds of documents: a request under its ledger key, a text under its digest."""
_MAX_INLINE = 1_000  # characters; a longer text is a document of its own
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

Sent = Mapping[str, Any]
"""A kept request. ``frame`` is the key of a text; so is ``text``, in place of a long content."""


class Document(NamedTuple):
    """A text that a ledger keeps under a kind and a key."""

    kind: str
    key: str
    text: str
    """JSON."""


def documents_of(model: Model, request: Request, key: str, fresh: str) -> tuple[Document, ...]:
    """Return what is kept of a request: the texts that it names, then the request itself.

    ``fresh`` is the name given as --fresh, or empty.
    """
    tool = request.tool and flat(request.tool)
    frame = {
        "fresh": fresh,
        "model": dict(model.identity),
        "spec": model.spec,
        "tool": tool,
        "parameters": request.parameters,
        "version": request.version,
    }
    texts = [_text(canonical(frame))]
    messages = []
    for message in request.messages:
        said = flat(message)
        if len(message.content) > _MAX_INLINE:
            texts.append(_text(message.content))
            said = {"role": message.role, "text": texts[-1].key}
        messages.append(said)
    counts = {"repeat": request.repeat, "attempt": request.attempt}
    sent = {"frame": texts[0].key, "messages": messages, **counts}
    if case := request.case:
        sent["case"] = {**flat(case), "messages": [flat(message) for message in case.messages]}
    return *texts, Document(REQUEST, key, encode(sent))


@lru_cache(maxsize=256)  # enough for frames and rubrics; an item's long prompt soon leaves it
def _text(text: str) -> Document:
    return Document(TEXT, digest(text), encode(text))


def encode(value: object) -> str:
    """Return JSON that any database and file can hold, readable to people where it can be."""
    text = _encoder.encode(value)
    return text if encodable(text) else canonical(value)


def parse_sent(text: str) -> Sent | None:
    """Return a kept request; None for JSON of another shape."""
    try:
        sent: Sent = json.loads(text)
        named = [*texts_named(sent), *(one["role"] for one in sent["messages"])]
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None
    return sent if all(isinstance(name, str) for name in named) else None


def texts_named(sent: Sent) -> Iterator[str]:
    """Yield the keys of the texts that a kept request names."""
    yield sent["frame"]
    yield from (one["text"] for one in sent["messages"] if "text" in one)


def key_of(sent: Sent, texts: Mapping[str, str]) -> str:
    """Return the ledger key of what a kept request says, given its texts; empty if it is odd."""
    try:
        frame, asked = whole(sent, lambda name: json.loads(texts[name]))
        if asked["case"] is None:
            del asked["case"]
        return fresh_key(digest({"model": frame["model"], "request": asked}), frame["fresh"])
    except (AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return ""


def whole(sent: Sent, text_of: Callable[[str], str]) -> tuple[Sent, dict[str, object]]:
    """Return the frame and the fields of a kept request; ``text_of`` returns a text by its key."""
    frame = json.loads(text_of(sent["frame"]))
    messages = [
        {"role": one["role"], "content": text_of(one["text"])} if "text" in one else one
        for one in sent["messages"]
    ]
    own = {name: frame[name] for name in ("tool", "parameters", "version")}
    counts = {name: sent[name] for name in ("repeat", "attempt")}
    return frame, {**own, **counts, "messages": messages, "case": sent.get("case")}
