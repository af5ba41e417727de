"""What a question offers to choose from or to put in order, and what a text makes of it.

Where the gold stands in a list of the question ("Vienna, Sofia or Rome?"), the list says what other
answers are possible: then it is plain which one an answer names first. Where the gold is an order
such as 3142 and the question numbers its items ("1) Butan, 2) Banitsa"), an answer may write
the order in other ways: "3, 1, 4, 2", "3>1>4>2", or the names of the items one after the other.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from qagate.evaluators.extras.lexical.golds import Form
from qagate.evaluators.extras.lexical.tolerance import Tolerance
from qagate.evaluators.languages.word_lists import Tables, Text, read

Words = tuple[str, ...]

_FEWEST_IN_ORDER = 3
"""Items; an order of two is not told from a number."""
_LONGEST_OPTION = 8
"""Words between two commas of a question that may be an option."""
_BETWEEN_OPTIONS = re.compile(r"[,;/]")
_AROUND_LIST = re.compile(r"[:?\n]")
_NUMBERED_ITEM = re.compile(r"(?<!\w)(\d)[).]\s*([^\d?;\n]+)")


class Mention(NamedTuple):
    """Where a text names an option or an item: word positions, ``end`` excluded."""

    start: int
    end: int
    number: int
    """Which one, from 0."""


def other_options(question: Text, forms: Sequence[Form], tables: Tables) -> list[Words]:
    """Return what the question lists beside the gold; nothing where it does not list the gold."""
    for options in _lists(question, tables):
        others = [words for words in options if not _is_gold(words, forms, tables)]
        if len(others) < len(options):
            return others
    return []


def _lists(question: Text, tables: Tables) -> Iterator[list[Words]]:
    """Yield the parts of each list: what commas and "or" separate between two colons."""
    words, gaps = question
    articles = tables.words["articles"]
    parts: list[Words] = []
    start = 0
    for place in range(1, len(words) + 1):
        ends_list = place == len(words) or _AROUND_LIST.search(gaps[place])
        is_or = not ends_list and words[place] in tables.words["alternatives"]
        if not ends_list and not is_or and not _BETWEEN_OPTIONS.search(gaps[place]):
            continue
        part = tuple(word for word in words[start:place] if word not in articles)
        if 0 < len(part) <= _LONGEST_OPTION:
            parts.append(part)
        start = place + 1 if is_or else place
        if ends_list:
            yield parts
            parts = []


def _is_gold(words: Words, forms: Sequence[Form], tables: Tables) -> bool:
    is_alike = Tolerance(tables).alike
    for form in forms:
        same_length = len(form.text.words) == len(words)
        if same_length and all(map(is_alike, form.text.words, words)):
            return True
    return False


def mentions(names: Sequence[Words], text: Text, tables: Tables) -> list[Mention]:
    """Return where the text has these names, in any inflected form, in order of place.

    A mention inside a longer one is none: "Novo Selo" does not name "Selo".
    """
    alike = Tolerance(tables).alike
    found = []
    for number, name in enumerate(names):
        for start, end in spans_alike(name, text, alike):
            found.append(Mention(start=start, end=end, number=number))
    return sorted(mention for mention in found if not _is_inside(mention, found))


def spans_alike(
    wanted: Words, text: Text, alike: Callable[[str, str], bool]
) -> Iterator[tuple[int, int]]:
    """Yield where words alike to the wanted ones stand in a row: the first place, and the end."""
    size = len(wanted)
    for start in range(len(text.words) - size + 1):
        if all(map(alike, wanted, text.words[start : start + size])):
            yield start, start + size


def _is_inside(mention: Mention, found: Sequence[Mention]) -> bool:
    size = mention.end - mention.start
    for other in found:
        surrounds = other.start <= mention.start and mention.end <= other.end
        if surrounds and other.end - other.start > size:
            return True
    return False


def order_in(
    text: Text, question: str, forms: Sequence[Form], tables: Tables
) -> str | None:
    """Return the order in which a text puts the numbered items of a question, as digits: "3142".

    It is read from names, and where not all are named, from single digits. None where the gold
    is no order, or the text has none, or has it in one number, which is compared like any other.
    "several" where it has more than one such number.
    """
    items = _numbered_items(question)
    labels = [str(number) for number in range(1, len(items) + 1)]

    def is_order(digits: str) -> bool:
        return len(items) >= _FEWEST_IN_ORDER and sorted(digits) == labels

    if not any(is_order("".join(form.text.words)) for form in forms):
        return None
    in_one_number = {word for word in text.words if is_order(word)}
    if in_one_number:
        return None if len(in_one_number) == 1 else "several"
    by_name = _order_of_first_mentions(mentions(items, text, tables))
    if is_order(by_name):
        return by_name
    digits = "".join(word for word in text.words if word.isdecimal())
    return digits if is_order(digits) else None


def _numbered_items(question: str) -> list[Words]:
    items: list[Words] = []
    for number, name in _NUMBERED_ITEM.findall(question):
        if int(number) == len(items) + 1:
            items.append(read(name).words)
    return items


def _order_of_first_mentions(found: Sequence[Mention]) -> str:
    labels: list[str] = []
    for mention in found:
        label = str(mention.number + 1)
        if label not in labels:
            labels.append(label)
    return "".join(labels)
