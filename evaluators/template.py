"""Templates: their places, filling them in one pass, and the chat messages made of them.

Values are never searched for places: ``{target}`` in a file's or a model's text stays unchanged.
"""

import json
import re
from collections.abc import Mapping

from evaluators.core import Message
from evaluators.text import UNSAFE, escaped, sendable

ANSWER_BYTES = 32_000
"""The most of an answer that a judge is shown, in bytes of UTF-8."""

_NAMES: Mapping[str, str] = {
    "question": "question",
    "input": "question",
    "context": "context",
    "passage": "context",
    "paragraph": "context",
    "target": "target",
    "expected": "target",
    "answer": "target",
    "gold": "target",
    "predicted_answer": "predicted_answer",
    "prediction": "predicted_answer",
    "output": "predicted_answer",
    "submission": "predicted_answer",
    "examples": "examples",
}
_NAME = "|".join(_NAMES)
_CHAT_TOKEN = re.compile(
    r"<|\[(?=/?(?:[A-Z]|[a-z]MASK\]"
    r"|(?i:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]))"
)
"""What may begin a token of a chat template: every ``<``, and every ``[`` before a capital."""
_PLACE = re.compile(rf"\{{\{{ ?({_NAME}) ?\}}\}}|\{{({_NAME})\}}")


def canonical_places(text: str) -> str:
    """Return a template in which other common names of places are replaced by ours.

    ``{input}``, ``{{input}}`` become ``{question}``; ``{expected}``, ``{answer}`` become
    ``{target}``; ``{output}``, ``{prediction}`` become ``{predicted_answer}``. Other braces stay.
    """
    return _PLACE.sub(lambda match: f"{{{_NAMES[match[1] or match[2]]}}}", text)


def places(text: str) -> list[str]:
    """Return the names of a canonical template's places, in order and with repetitions."""
    return [match[2] for match in _PLACE.finditer(text) if match[2]]


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return a canonical template with each place of ``values`` filled, in one pass."""
    return _PLACE.sub(lambda match: values.get(match[2] or "", match[0]), template)


def encode(value: str | list[str]) -> str:
    """Return a value as JSON on one line, readable and without hidden characters.

    Letters stay; control, bidi, zero-width and tag characters, line and paragraph separators,
    spaces but the plain one and lone surrogates are escaped. So is the start of chat templates'
    tokens such as ``<|im_end|>``, ``</s>`` and ``[INST]``, which some servers read anywhere.
    """
    text = UNSAFE.sub(escaped, json.dumps(value, ensure_ascii=False))
    return _CHAT_TOKEN.sub(escaped, text)


def encode_fixed(value: str) -> str:
    """Return ``encode(value)`` without places, for text that becomes part of a template."""
    return _PLACE.sub(lambda match: match[0].replace("{", "\\u007b"), encode(value))


def shortened(answer: str, limit: int = ANSWER_BYTES) -> str:
    """Return the answer, or its first ``limit`` bytes of UTF-8 with a note of the cut."""
    raw = answer.encode("utf-8", "surrogatepass")
    if len(raw) <= limit:
        return answer
    end = limit
    while raw[end] & 0xC0 == 0x80:  # the middle of a character
        end -= 1
    head = raw[:end].decode("utf-8", "surrogatepass")
    return f"{head} [... cut: {len(raw):,} bytes in all]"


def chat_messages(system: str, user: str) -> tuple[Message, ...]:
    """Return filled texts as chat messages; a blank system text is left out."""
    question = Message(role="user", content=sendable(user))
    if not system.strip():
        return (question,)
    return (Message(role="system", content=sendable(system)), question)
