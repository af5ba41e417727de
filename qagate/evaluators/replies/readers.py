"""Reads a reply strictly: one reading is left, or it is Invalid. Nothing here raises.

A verdict is a call of the forced function, a letter or label, or JSON. Of a longer text only a
marked verdict ("Grade: B") and a verdict alone on the last line count. Thoughts, markup and
invisible marks are taken out first.
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from qagate.evaluators.core import GRADES, Reply
from qagate.evaluators.finishes import CUT
from qagate.evaluators.reading import parse_json
from qagate.evaluators.replies.labels import Lexicon, folded, lexicon
from qagate.evaluators.replies.said import said_in
from qagate.evaluators.text import without_invisible

_WIDE = re.compile("[\uff01-\uff5e\U0001d400-\U0001d7ff]+")
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[\w+-]*[ \t]*$", re.MULTILINE)
_LATEX = re.compile(r"\\(?:boxed|text|textbf|mathrm|mathbf)\b")
_TAGS = "grade|verdict|evaluation|final|answer|output|label|result|b|i|em|strong|p|br|code|span|div"
_TAG = re.compile(rf"</?(?:{_TAGS}) ?/?>", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Invalid:
    """A reply without a single reading."""

    reason: str
    """Why, in a few words."""


def unfinished(finish: str) -> Invalid | None:
    """Return why a reply is cut or filtered; None for one that may be whole.

    A word that nobody knows says nothing about the reply.
    """
    if finish not in CUT:
        return None
    return Invalid(f"the reply ended with {finish!r}")


def plain(text: str) -> str:
    """Return a text composed, in plain width, without invisible marks, its line ends alike."""
    text = without_invisible(text)
    text = _WIDE.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
    return _LINE_END.sub("\n", unicodedata.normalize("NFC", text))


def without_markup(text: str) -> str:
    """Return a text without code fences, tags and LaTeX frames; emphasis stays."""
    text = _FENCE.sub("", text)
    return _TAG.sub(" ", _LATEX.sub("", text)).strip()


MAX_RAW = 250_000
MAX_SPOKEN = 12_000
"""Characters: a judge is given room for about 2,000 tokens, and thoughts are not counted."""
_OBJECT = re.compile(r"\{(?=\s*+[\"'}]|[^{}\n:]*+:)")
_SENTENCE = re.compile(r"(?<=[.!?;])\s+|\s+(?=[(–—-]\s?\w)")
T = TypeVar("T", str, int, dict[str, int])


def read_grade(reply: Reply, labels: tuple[str, ...] = GRADES) -> str | Invalid:
    """Return the label that a reply gives: from the forced call, a letter, or JSON.

    ``labels`` are the labels on the menu; the letter A is the first. Cut and filtered replies are
    Invalid in any case. Text next to a call may not name another label.
    """
    if cut := unfinished(reply.finish):
        return cut
    words = lexicon(labels)
    if not reply.calls:
        return _read_text(reply.text.strip(), words)
    names = frozenset({folded("grade")})
    grade = _agreed(reply, "grade", lambda value: _verdict_field(value, names, words))
    if isinstance(grade, str) and words.names_other(
        grade, plain(reply.text[:MAX_SPOKEN])
    ):
        return Invalid("the text next to the call names another grade")
    return grade


def read_rating(reply: Reply) -> int | Invalid:
    """Return the integer from 1 to 10 of the forced call, or of JSON alone; never out of prose."""
    return unfinished(reply.finish) or _called_or_alone(reply, _rating_field)


def read_scores(reply: Reply, highest: Mapping[str, int]) -> dict[str, int] | Invalid:
    """Return the score of every part, an integer from 0 to its ``highest``, by the parts' names.

    They stand in the forced call; or, from a server without functions, in a reply that is one JSON
    object and nothing else. Any other field than ``reason`` would be a second reading.
    """
    return unfinished(reply.finish) or _called_or_alone(
        reply, partial(_scores, highest=highest)
    )


def _called_or_alone(
    reply: Reply, read: Callable[[object], T | Invalid]
) -> T | Invalid:
    if reply.calls:
        return _agreed(reply, "rate", read)
    said = said_in(reply.text) if len(reply.text) <= MAX_SPOKEN else None
    return _parsed(
        without_markup(plain(said or "")), read, "no call of 'rate', and no JSON alone"
    )


def read_reason(reply: Reply) -> str:
    """Return the judge's own reason from its first call or its JSON, or an empty text."""
    text = reply.calls[0].arguments if reply.calls else ""
    said = (
        said_in(reply.text.strip())
        if not reply.calls and len(reply.text) <= MAX_RAW
        else None
    )
    if said and (start := _OBJECT.search(said)):
        text = said[start.start() : said.rfind("}") + 1]
    try:
        value = parse_json(text)
    except ValueError:
        return ""
    fields = value if isinstance(value, dict) else {}
    reason = fields.get("reason", fields.get("explanation"))
    return reason if isinstance(reason, str) else ""


def _agreed(
    reply: Reply, tool: str, read: Callable[[object], T | Invalid]
) -> T | Invalid:
    """Return what the calls of the function ``tool`` say; several must agree, and no other one."""
    results: list[T] = []
    for call in reply.calls:
        if call.name != tool:
            return Invalid(f"called {call.name[:40]!r}, not {tool!r}")
        result = _parsed(call.arguments, read, "arguments")
        if isinstance(result, Invalid):
            return result
        results.append(result)
    if not results or any(result != results[0] for result in results):
        return Invalid("calls that differ" if results else f"no call of {tool!r}")
    return results[0]


def _parsed(text: str, read: Callable[[object], T | Invalid], what: str) -> T | Invalid:
    """Return what ``read`` makes of JSON; a number as its reason is a verdict at a wrong place."""
    try:
        value = parse_json(text)
    except ValueError as error:
        return Invalid(f"{what}: {error}")
    reason = value.get("reason") if isinstance(value, dict) else None
    if reason is None or isinstance(reason, str):
        return read(value)
    return Invalid(f"reason: want text, got {reason!r:.60}")


def _rating_field(value: object) -> int | Invalid:
    """Return the integer from 1 to 10 in the field ``rating``, also as 7.0 or "7"."""
    if (
        not isinstance(value, dict)
        or [key.casefold() for key in value].count("rating") != 1
    ):
        return Invalid("want an object with one field 'rating'")
    return _whole(value.get("rating"), "rating", range(1, 11))


def _scores(value: object, highest: Mapping[str, int]) -> dict[str, int] | Invalid:
    if not isinstance(value, dict) or value.keys() - {"reason"} != highest.keys():
        return Invalid(
            f"want an object with 'reason' and the fields {', '.join(highest)}"
        )
    read = {
        name: _whole(value[name], name, range(top + 1)) for name, top in highest.items()
    }
    scores = {
        name: score for name, score in read.items() if not isinstance(score, Invalid)
    }
    return next((one for one in read.values() if isinstance(one, Invalid)), scores)


def _whole(given: object, name: str, allowed: range) -> int | Invalid:
    if isinstance(given, str) and given in map(str, allowed):
        given = int(given)
    if (
        isinstance(given, bool)
        or not isinstance(given, int | float)
        or given not in allowed
    ):
        return Invalid(
            f"{name}: want an integer from {allowed[0]} to {allowed[-1]}, got {given!r:.60}"
        )
    return int(given)


def _verdict_field(
    value: object, names: frozenset[str], words: Lexicon
) -> str | Invalid:
    """Return the label in the one verdict field of a JSON object; a list of one is its entry."""
    if not isinstance(value, dict):
        return Invalid("want a JSON object")
    keys = [key for key in value if folded(key) in words.fields]
    if len(keys) != 1 or folded(keys[0]) not in names:
        return Invalid(f"want exactly one verdict field, got {keys!r:.80}")
    grade = value[keys[0]]
    if isinstance(grade, list) and len(grade) == 1:
        grade = grade[0]
    if not isinstance(grade, str):
        return Invalid(f"the verdict must be a word, got {grade!r:.60}")
    label = words.expression(without_markup(plain(grade)))
    if label is None or label.marked or label.grade is None:
        return Invalid(f"{grade[:60]!r} is not on the menu")
    return label.grade


def _read_text(text: str, words: Lexicon) -> str | Invalid:
    said = said_in(text) if len(text) <= MAX_RAW else text
    if said is None:
        return Invalid("thoughts that are never closed")
    if len(said) > MAX_SPOKEN:
        return Invalid(f"{len(said):,} characters; no verdict is that long")
    if start := _OBJECT.search(said):
        return _read_json(said, start.start(), words)
    said = without_markup(plain(said))
    if not said:
        return Invalid("an empty reply")
    verdict = words.expression(said)
    if verdict is None:
        return _read_sentences(said, words)
    return verdict.grade or Invalid("no single grade among the labels")


def _read_sentences(text: str, words: Lexicon) -> str | Invalid:
    """Return the label of a text whose verdict is marked, or alone on its last line."""
    grades, said, added, before = set[str | None](), list[str](), list[str](), ""
    for sentence, closing in _sentences(text):
        found = words.expression(sentence)
        if found is None:
            (added if grades else said).append(sentence)
        elif before.endswith(":") and not words.announces(before):
            return Invalid("the verdict is quoted, or not announced as the judge's own")
        elif found.marked or closing or words.announces(before):
            grades.add(found.grade)
        else:
            said.append(sentence)
        before = sentence.rstrip("*_ ") or before
    if not grades:
        return Invalid("no verdict is marked, and none stands alone on the last line")
    grade = grades.pop()
    if grades or grade is None:
        return Invalid("two different grades")
    return _unless_contradicted(grade, "\n".join(said), "\n".join(added), words)


def _sentences(text: str) -> Iterator[tuple[str, bool]]:
    """Yield each sentence outside of quoted lines, and whether it is the whole of the last line."""
    lines = [
        line for line in text.split("\n") if line.strip() and not line.startswith(">")
    ]
    for line in lines:
        parts = _SENTENCE.split(line)
        yield from ((part, line is lines[-1] and len(parts) == 1) for part in parts)


def _unless_contradicted(
    grade: str, before: str, after: str, words: Lexicon
) -> str | Invalid:
    alone = (words.expression(line) for line in before.split("\n"))
    doubted = words.names_other(grade, before) or words.names_other(
        grade, after, strict=True
    )
    if doubted or any(one and one.grade != grade for one in alone):
        return Invalid("two different grades")
    return grade


def _read_json(text: str, start: int, words: Lexicon) -> str | Invalid:
    in_list = text[:start].rstrip().endswith("[")
    start = text.rindex("[", 0, start) if in_list else start
    end = text.rfind("]" if in_list else "}") + 1
    try:
        value = parse_json(text[start:end])
    except ValueError as error:
        return Invalid(f"{error}")
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    grade = _verdict_field(value, words.fields, words)
    if isinstance(grade, Invalid):
        return grade
    before, after = (without_markup(plain(side)) for side in (text[:start], text[end:]))
    last = before.rpartition("\n")[2]
    own_line = not before or text[:start].rstrip(" \t`").endswith("\n")
    if not words.announces(last) and (not own_line or last.endswith(":")):
        return Invalid("the verdict is quoted, or not announced as the judge's own")
    return _unless_contradicted(grade, before, after, words)
