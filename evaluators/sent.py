"""What was sent for a reply, as ledger and report keep it: each request once, by its ledger key.

What comes again and again is kept once, by its digest: long texts, such as rubrics, and the frame
of a request, which is all but its messages. Whoever reads a request can check it: its key is the
hash of all that it says.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from evaluators.core import Model, Request
from evaluators.text import canonical, digest, encodable, flat

REQUEST, TEXT = "request", "text"
"""The kinds of documents: a request under its ledger key, a text under its digest."""
_LONG = 1_000  # characters: a longer text of a request is kept apart
_encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))

Sent = Mapping[str, Any]
"""A kept request: ``frame`` is a text's key, and so is ``text`` in the place of a long content."""


class Document(NamedTuple):
    """What a ledger keeps under a kind and a key; ``text`` is JSON."""

    kind: str
    key: str
    text: str


def documents_of(model: Model, request: Request, key: str, fresh: str) -> tuple[Document, ...]:
    """Return what is kept of a request under its key: the texts that it names, and last itself.

    ``fresh`` is the name under which it was asked anew, empty without one.
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
        if len(message.content) > _LONG:
            texts.append(_text(message.content))
            said = {"role": message.role, "text": texts[-1].key}
        messages.append(said)
    counts = {"repeat": request.repeat, "attempt": request.attempt}
    sent = {"frame": texts[0].key, "messages": messages, **counts}
    if case := request.case:
        sent["case"] = {**flat(case), "messages": [flat(message) for message in case.messages]}
    return *texts, Document(REQUEST, key, encode(sent))


@lru_cache(maxsize=256)  # frames and rubrics; the long prompt of one item is soon forgotten
def _text(text: str) -> Document:
    return Document(TEXT, digest(text), encode(text))


def encode(value: object) -> str:
    """Return JSON that any database and file can hold, mostly readable to people."""
    text = _encoder.encode(value)
    return text if encodable(text) else canonical(value)


def texts_named(sent: Sent) -> Iterator[str]:
    """Yield the keys of the texts that a kept request names."""
    yield sent["frame"]
    yield from (one["text"] for one in sent["messages"] if "text" in one)


def whole(sent: Sent, text_of: Callable[[str], str]) -> tuple[Sent, dict[str, object]]:
    """Return the frame and the fields of a kept request; ``text_of`` finds a text by its key."""
    frame = json.loads(text_of(sent["frame"]))
    messages = [
        {"role": one["role"], "content": text_of(one["text"])} if "text" in one else one
        for one in sent["messages"]
    ]
    own = {name: frame[name] for name in ("tool", "parameters", "version")}
    counts = {name: sent[name] for name in ("repeat", "attempt")}
    return frame, {**own, **counts, "messages": messages, "case": sent.get("case")}
