"""How texts are typed: invisible characters, normal form, spaces, quotes."""

import re
import unicodedata
from collections.abc import Iterator

from cases.tools.check.findings import Note, Subject, error, warning, written
from cases.tools.check.languages import language_of
from evaluators.text import INVISIBLE, shown

_DOUBLE = re.compile(r"(?<=[^\s.!?:;])[^\S\n\r]{2,}(?=\S)")
_STRAIGHT = re.compile(r'(?<!\d)"')
_AROUND = 12


def invisible(subject: Subject) -> Iterator[Note]:
    """Yield the texts with characters that draw nothing.

    An error where the language is known to need none; others join letters with some of them.
    """
    say = error if language_of(subject.slice_.language) else warning
    for case in subject.cases:
        for field, text in written(case):
            marks = INVISIBLE.finditer(text)
            found = next((mark for mark in marks if not _is_emoji(text, mark.start())), None)
            if found:
                near = _near(text, found.start(), found.end())
                name = unicodedata.name(found[0], "a control character")
                what = f"the invisible U+{ord(found[0]):04X} ({name}) near {near}"
                yield say(case.row, f"the {field} holds {what}; delete it")


def _near(text: str, start: int, end: int) -> str:
    return shown(text[max(0, start - _AROUND) : end + _AROUND])


def _is_emoji(text: str, index: int) -> bool:
    """Return whether this is what makes the symbol before it a picture."""
    symbol = index > 0 and unicodedata.category(text[index - 1]) in ("So", "Sk", "Po", "Sm")
    return text[index] in "\ufe0e\ufe0f\u200d" and symbol


def normal_form(subject: Subject) -> Iterator[Note]:
    """Yield the texts that are not in Unicode's form NFC: they differ from their own look."""
    for case in subject.cases:
        for field, text in written(case):
            if not _is_normal(text):
                part = next((word for word in text.split() if not _is_normal(word)), text)
                message = f"the {field} is not in normal form NFC at {shown(part)}; save it as NFC"
                yield warning(case.row, message)


def _is_normal(word: str) -> bool:
    return unicodedata.is_normalized("NFC", word)


def spaces(subject: Subject) -> Iterator[Note]:
    """Yield the texts with a space before, after, or doubled (after a full stop it is a habit)."""
    for case in subject.cases:
        for field, text in written(case):
            if text.strip("\r\n") != text.strip():
                yield warning(case.row, f"the {field} begins or ends with a space; delete it")
            double = _DOUBLE.search(text)
            if double:
                near = _near(text, double.start(), double.end())
                yield warning(case.row, f"the {field} has two spaces near {near}; leave one")


def quotes(subject: Subject) -> Iterator[Note]:
    """Yield the questions and golds whose quotation marks do not close as they opened."""
    for case in subject.cases:
        texts = [("question", case.question), *(("gold", gold) for gold in case.golds)]
        for field, text in texts:
            what = _unbalanced(text)
            if what:
                message = f"the {field} has {what} in {shown(text)}; close each quote as it opened"
                yield warning(case.row, message)


def _unbalanced(text: str) -> str:
    """Return which marks are left over; a straight one after a digit is an inch or a second."""
    counted = {mark: text.count(mark) for mark in "„“”«»"}
    low, left, right = (counted[mark] for mark in "„“”")
    if text.count('"') % 2 and len(_STRAIGHT.findall(text)) % 2:
        return "an odd number of straight quotes"
    if counted["«"] != counted["»"]:
        return f"{counted['«']} of « and {counted['»']} of »"
    if low and low != left + right:
        return f"{low} of „ and {left + right} of “ or ”"
    if not low and left != right:
        return f"{left} of “ and {right} of ”"
    return ""
