"""Reading a generator's list of questions: matched by number, all or nothing.

A list is trusted only where each number that was asked for stands in it exactly once. Otherwise
nobody knows which text a question belongs to, and the whole list is refused. Where the numbers are
right, an entry with a wrong label or no question is refused alone.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from cases.problems import encodable
from evaluators import strict_json
from evaluators.core import Reply
from evaluators.replies import Invalid
from evaluators.replies.reply_text import plain, spoken, unfinished, without_markup

MAX_CHARS = 100_000
TOOL = "submit"
_START = re.compile(r"\[\s*\{|\{\s*\"")


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """One question with its answer, YES or NO."""

    question: str
    answer: str


Listing = Mapping[int, Written | Invalid]
"""What was written for each number, counted from 1."""


def read_listing(reply: Reply, count: int, labels: Mapping[str, str]) -> Listing | Invalid:
    """Return what a reply gives for the numbers 1 to ``count``.

    ``labels`` maps YES and NO to their words. The list is the field ``items`` of the forced call,
    or the one JSON list of the text, whatever prose stands around it.
    """
    if cut := unfinished(reply.finish):
        return cut
    try:
        value = strict_json.loads(_json_text(reply))
    except ValueError as error:
        return Invalid(f"{error}")
    entries = _entries(value, count)
    if entries is None:
        return Invalid("no list of objects with number, question and answer")
    numbers = [entry.get("number") for entry in entries]
    if any(isinstance(one, bool) or not isinstance(one, int) for one in numbers):
        return Invalid("an entry without a number")
    if sorted(str(one) for one in numbers) != sorted(str(one) for one in range(1, count + 1)):
        return Invalid(f"{len(entries)} entries for {count} texts, or a number twice")
    meanings = {word.casefold(): meaning for meaning, word in labels.items()}
    return {int(str(entry["number"])): _written(entry, meanings) for entry in entries}


def _json_text(reply: Reply) -> str:
    """Return the JSON of a reply. Raises ValueError where there is none, or more than one."""
    if reply.calls:
        if len(reply.calls) != 1 or reply.calls[0].name != TOOL:
            msg = f"want one call of {TOOL!r}"
            raise ValueError(msg)
        return reply.calls[0].arguments
    said = spoken(reply.text[:MAX_CHARS])
    if said is None:
        msg = "thoughts that are never closed"
        raise ValueError(msg)
    said = without_markup(plain(said))
    start = _START.search(said)
    if start is None:
        msg = "no JSON list"
        raise ValueError(msg)
    end = said.rfind("]" if said[start.start()] == "[" else "}") + 1
    return said[start.start() : end]


def _entries(value: object, count: int) -> list[dict[str, object]] | None:
    if isinstance(value, dict):
        value = [value] if count == 1 and "question" in value else value.get("items")
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        return None
    return value


def _written(entry: Mapping[str, object], meanings: Mapping[str, str]) -> Written | Invalid:
    question, answer = entry.get("question"), entry.get("answer")
    if not isinstance(question, str) or not question.strip() or not encodable(question):
        return Invalid("no question")
    meaning = meanings.get(answer.strip().casefold()) if isinstance(answer, str) else None
    if meaning is None:
        return Invalid(f"answer {answer!r:.40} is no label")
    return Written(question=" ".join(question.split()), answer=meaning)
