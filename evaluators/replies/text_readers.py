"""A grade from a reply's text: a lone label, JSON, or prose with one verdict."""

import re

from evaluators.reading import parse_json
from evaluators.replies.calls import reason_of
from evaluators.replies.expression import whole
from evaluators.replies.lexicon import Lexicon, folded
from evaluators.replies.prose import beside, read_prose
from evaluators.replies.reply_text import Invalid, plain, spoken, without_markup

MAX_RAW = 250_000
MAX_SPOKEN = 12_000
"""Characters: a judge is given room for about 2,000 tokens, and thoughts are not counted."""

_OBJECT = re.compile(r"\{(?=\s*+[\"'}]|[^{}\n:]*+:)")


def read_text(text: str, lexicon: Lexicon) -> str | Invalid:
    """Return the one grade that a text says."""
    text = text.strip()
    said = spoken(text) if len(text) <= MAX_RAW else text
    if said is None:
        return Invalid("thoughts that are never closed")
    if len(said) > MAX_SPOKEN:
        return Invalid(f"{len(said):,} characters; no verdict is that long")
    if start := _OBJECT.search(said):
        return _read_json(said, start.start(), lexicon)
    said = without_markup(plain(said))
    if not said:
        return Invalid("an empty reply")
    expression = whole(said, lexicon)
    if expression is None:
        return read_prose(said, lexicon)
    return expression.grade or Invalid("no single grade among the labels")


def read_json_reason(text: str) -> str:
    """Return the reason in the JSON object that a text holds, or an empty text."""
    said = spoken(text.strip()) if len(text) <= MAX_RAW else None
    start = _OBJECT.search(said) if said else None
    if said is None or start is None:
        return ""
    try:
        return reason_of(parse_json(said[start.start() : said.rfind("}") + 1]))
    except ValueError:
        return ""


def read_label(text: str, lexicon: Lexicon) -> str | Invalid:
    """Return the grade of a text that must be a label and nothing else."""
    expression = whole(without_markup(plain(text)), lexicon)
    if expression is None or expression.marked or expression.grade is None:
        return Invalid(f"{text[:60]!r} is not on the menu")
    return expression.grade


def verdict_field(value: object, names: frozenset[str], lexicon: Lexicon) -> str | Invalid:
    """Return the grade in the one verdict field of a JSON object; a list of one is its entry."""
    if not isinstance(value, dict):
        return Invalid("want a JSON object")
    keys = [key for key in value if folded(key) in lexicon.fields]
    if len(keys) != 1 or folded(keys[0]) not in names:
        return Invalid(f"want exactly one verdict field, got {keys!r:.80}")
    grade = value[keys[0]]
    if isinstance(grade, list) and len(grade) == 1:
        grade = grade[0]
    if not isinstance(grade, str):
        return Invalid(f"the verdict must be a word, got {grade!r:.60}")
    return read_label(grade, lexicon)


def _read_json(text: str, start: int, lexicon: Lexicon) -> str | Invalid:
    in_list = text[:start].rstrip().endswith("[")
    start = text.rindex("[", 0, start) if in_list else start
    end = text.rfind("]" if in_list else "}") + 1
    try:
        value = parse_json(text[start:end])
    except ValueError as error:
        return Invalid(f"{error}")
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    grade = verdict_field(value, lexicon.fields, lexicon)
    if isinstance(grade, Invalid):
        return grade
    before, after = (without_markup(plain(side)) for side in (text[:start], text[end:]))
    own_line = text[:start].rstrip(" \t").endswith("\n")
    return beside(grade, before + "\n" if own_line else before, after, lexicon)
