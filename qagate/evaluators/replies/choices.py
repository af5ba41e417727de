"""Reads which option of a closed list an answer chooses: a letter, a text, yes or no, an order.

One statement of the answer has to be the choice: the first one, one that is announced ("The
correct answer is B."), or the last one, after a reason. It names an option by its letter, its
text, or both. An answer that names a second option anywhere is no choice, whichever it prefers,
so no reading of it can be right by luck. Nothing here raises.

Options with letters are named wherever letter or text stands. Those without letters are words such
as yes and no, which sentences are full of: they are named where they are a clause of their own.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import cast

from qagate.evaluators.core import NO, YES
from qagate.evaluators.languages.look_alikes import LOOK_ALIKES
from qagate.evaluators.option_letters import letters_of, place_of
from qagate.evaluators.reading import load_yaml
from qagate.evaluators.replies.labels import folded, lexicon
from qagate.evaluators.replies.readers import (
    MAX_RAW,
    Invalid,
    plain,
    without_markup,
)
from qagate.evaluators.replies.said import said_in

WORDS_FILE = Path(__file__).with_name("choices.yaml")
MOST_ANNOUNCING = 12
"""Words before a choice. No announcement is longer."""

_QUOTES = re.compile(r"[\"`´„“”‟‘’‚‛«»‹›*]")
_HEAD = re.compile(r"[\s_#>(\[{$]*(?:[-–—•·]\s+)?[\s_(\[{$]*")
_STATEMENT_END = re.compile(r"(?<=[.!?;])\s+")
_CLAUSE_END = re.compile(r"[.,;:!?\n–—]+")
_WORD = re.compile(r"[^\W_](?:[^\W_]|'(?=[^\W_]))*")
_GAP = re.compile(r"[\s:,=_()\[]*(?:[-–—→]\s)?[\s_(\[]*")
_CLOSING = re.compile(r"[)\]}$_]*")
_AFTER_TEXT = re.compile(r"[)\]}$_]*(?:!*\s*\Z|[.,;](?!\w))")
_AFTER_LETTER = re.compile(r"[)\]}$_]*(?:!*\s*\Z|[.,:;)\]](?!\w)|\s+[-–—]\s)|[)\]]")
_BEFORE_OWN_LETTER = re.compile(r"\s*[(\[,–—-]?\s*")
_BEFORE_OWN_TEXT = re.compile(r"[\s.,:;)\]}_\-–—(=]*")
_LETTER = re.compile(r"(?<![\w'-])[^\W\d_](?![\w'])(?!-\w)")
_ENDS_A_CLAUSE = re.compile(r"\s*(?:[-–—.,:;!?()\[\]/}…=]|\Z|\n)")
_ORDERED_LETTER = re.compile(r"\w(?!\w)[.)]?")
_ORDER_GAP = re.compile(r"[\s,;>→\-–—()]*")
_SHORTEST_CLAUSE = 40
"""Characters. A clause as long as this says more than an option."""


@dataclass(frozen=True, slots=True)
class AnswerOption:
    """One of the things that an answer may choose."""

    label: str
    """What the verdict says if it is chosen."""
    text: str
    letter: str = ""
    """The letter under which it is shown; empty for options that are words alone."""


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of ``choices.yaml``, of all languages."""

    announcers: frozenset[str]
    around: frozenset[str]
    approvals: frozenset[str]
    denials: frozenset[str]
    reasons: frozenset[str]
    verbs: frozenset[str]
    joiners: frozenset[str]
    above: frozenset[str]
    letter_words: frozenset[str]


@cache
def _words() -> _Words:
    data = dict(cast("Mapping[str, Mapping[str, list[str]]]", load_yaml(WORDS_FILE)))
    letter_words = str(data.pop("letter_words"))

    def of_all_languages(key: str) -> frozenset[str]:
        words: set[str] = set()
        for entries in data.values():
            words.update(entries[key])
        return frozenset(words)

    return _Words(
        announcers=of_all_languages("announcers"),
        around=of_all_languages("around"),
        approvals=of_all_languages("approvals"),
        denials=of_all_languages("denials"),
        reasons=of_all_languages("reasons"),
        verbs=of_all_languages("verbs"),
        joiners=of_all_languages("joiners"),
        above=of_all_languages("above"),
        letter_words=frozenset(letter_words),
    )


def lettered(texts: Sequence[str], language: str) -> tuple[AnswerOption, ...]:
    """Return options with the letters of a language, in the order in which they are shown."""
    letters = letters_of(language)[: len(texts)]
    return tuple(
        AnswerOption(label=letter, text=text, letter=letter)
        for letter, text in zip(letters, texts, strict=True)
    )


def yes_or_no(yes: str, no: str) -> tuple[AnswerOption, ...]:
    """Return the two options of a question that is answered by one of these words."""
    return AnswerOption(label=YES, text=yes), AnswerOption(label=NO, text=no)


def flat(text: str) -> str:
    """Return an option's text without case; ``bare`` says what else does not count."""
    return bare(text).casefold()


def bare(text: str) -> str:
    """Return what tells an option's text from others: no quotes, markup and outer signs."""
    unquoted = " ".join(_QUOTES.sub("", without_markup(plain(text))).split())
    return unquoted.strip(".,;:!? ") or unquoted


def points_at_others(text: str) -> bool:
    """Return whether an option speaks of others: "all of the above", "both A and C"."""
    words = {word.casefold() for word in _WORD.findall(text)}
    if not words.isdisjoint(_words().above):
        return True
    letters = [
        letter for letter in _LETTER.findall(text) if place_of(letter) is not None
    ]
    return len(letters) > 1 and not words.isdisjoint(_words().joiners)


def read_choice(text: str, options: Sequence[AnswerOption]) -> str | Invalid:
    """Return the label of the one option that an answer chooses.

    Invalid means that the model under test did not choose: a result, not an error.
    """
    answer = _outside_markup(text)
    if isinstance(answer, Invalid):
        return answer
    menu = _menu(tuple(options))
    chosen = menu.chosen(answer)
    if not chosen:
        return Invalid("no statement of the answer is one of the options alone")
    named = chosen | menu.named(answer)
    if len(named) > 1:
        return Invalid("it names more than one option")
    return chosen.pop()


def read_order(text: str, options: Sequence[AnswerOption]) -> str | Invalid:
    """Return the labels of all options in the order that an answer gives, such as ``CADB``.

    ``C, A, D, B``, ``C > A > D > B``, ``CADB`` and the texts in order are read, announced or not;
    of several lines, one may say it.
    """
    answer = _outside_markup(text)
    if isinstance(answer, Invalid):
        return answer
    menu = _menu(tuple(options))
    orders = {menu.order(statement) for statement in (answer, *answer.split("\n"))}
    orders.discard("")
    if len(orders) != 1:
        return Invalid("it does not name every option once, in one order")
    return orders.pop()


def _outside_markup(text: str) -> str | Invalid:
    """Return what an answer says besides thoughts, quotes and markup."""
    if len(text) > MAX_RAW:
        return Invalid(f"{len(text):,} characters; no choice is that long")
    said = said_in(text)
    if said is None:
        return Invalid("no answer outside of thoughts")
    return _QUOTES.sub("", without_markup(plain(said))).strip()


@lru_cache(1024)
def _menu(options: tuple[AnswerOption, ...]) -> "_Menu":
    return _Menu(options)


@dataclass(frozen=True, slots=True)
class _Statement:
    text: str
    is_first: bool
    is_last: bool
    before: str
    """The statement before it."""


class _Menu:
    """The options of one item, and how an answer may name them."""

    def __init__(self, options: tuple[AnswerOption, ...]) -> None:
        self._has_letters = any(option.letter for option in options)
        self._labels = tuple(option.label for option in options)
        self._label_of_letter = {
            option.letter: option.label for option in options if option.letter
        }
        self._label_of_word = {flat(option.text): option.label for option in options}
        longest_first = sorted(options, key=lambda option: -len(bare(option.text)))
        self._label_of_group = tuple(option.label for option in longest_first)
        groups = []
        for option in longest_first:
            words = map(re.escape, bare(option.text).split())
            groups.append("(" + r"\s+".join(words) + ")")
        flags = re.IGNORECASE
        if len(self._label_of_word) < len(options):  # ``AaBb`` is another than ``AABb``
            flags = re.NOFLAG
        # No \b: a text may begin or end with a sign.
        self._text = re.compile(rf"(?<!\w)(?:{'|'.join(groups)})(?!\w)", flags)

    def chosen(self, answer: str) -> set[str]:
        """Return the labels of the options that statements of an answer are."""
        labels: set[str] = set()
        for statement in _statements(answer):
            label = self._label_of(statement)
            if label:
                labels.add(label)
        return labels

    def _label_of(self, statement: _Statement) -> str:
        """Return the label of the option that a statement is; empty if it is none."""
        if statement.text.endswith("?"):
            return ""
        start, is_announced = 0, False
        for _ in range(MOST_ANNOUNCING):
            start = _end_of(_HEAD, statement.text, start)
            label, end = self._option_at(statement.text, start)
            if label:
                break
            word = _WORD.match(statement.text, start)
            key = word[0].casefold() if word else ""
            if word is None or key not in _words().announcers | _words().around:
                return ""
            is_announced = is_announced or key in _words().announcers
            start = _end_of(_GAP, statement.text, word.end())
        else:
            return ""
        if self._is_approved(statement.text, end):
            return label
        tail = statement.text[end:].strip(" .,;:!)]_\n")
        if self._has_letters and _first_word(tail) in _words().denials:
            return ""
        if statement.is_first or is_announced:
            return label
        follows_a_whole = statement.before.endswith((".", "!", "?", ";", ")"))
        if (
            statement.is_last
            and not tail
            and (follows_a_whole or _announces(statement.before))
        ):
            return label
        return ""

    def _option_at(self, text: str, start: int) -> tuple[str, int]:
        """Return the label of the option that a text names at a place, and where that ends."""
        by_text, text_end = self._text_at(text, start)
        by_letter, letter_end = self._letter_at(text, start)
        if by_text and by_letter and by_text != by_letter:
            return "", start  # one option's text looks like another one's letter
        return by_text or by_letter, max(text_end, letter_end)

    def _text_at(self, text: str, start: int) -> tuple[str, int]:
        match = self._text.match(text, start)
        if not match:
            return "", start
        label = self._label_of_match(match)
        end = match.end()
        own_letter = _LETTER.match(text, _end_of(_BEFORE_OWN_LETTER, text, end))
        if own_letter and self._labels_of_letter(own_letter[0]) == {label}:
            end = _end_of(_CLOSING, text, own_letter.end())
        if (
            _AFTER_TEXT.match(text, end)
            or _gives_a_reason(text, end)
            or self._is_approved(text, end)
        ):
            return label, end
        return "", start

    def _letter_at(self, text: str, start: int) -> tuple[str, int]:
        match = _LETTER.match(text, start)
        labels = self._labels_of_letter(match[0]) if match else set()
        if match is None or len(labels) != 1:
            return "", start
        label = labels.pop()
        end = match.end()
        own_text = self._text.match(text, _end_of(_BEFORE_OWN_TEXT, text, end))
        if own_text and self._label_of_match(own_text) == label:
            return label, _end_of(_CLOSING, text, own_text.end())
        mark = _AFTER_LETTER.match(text, end)
        if match[0].islower():
            is_last = not text[end:].strip(")]}_.! ")
            return (label, end) if is_last or (mark and ")" in mark[0]) else ("", start)
        if mark or _gives_a_reason(text, end) or self._is_approved(text, end):
            return label, end
        return "", start

    def _is_approved(self, text: str, start: int) -> bool:
        """Return whether all that follows an option is its approval: "B" and then "is correct".

        Words without letters may be part of it: "No that is right" has two readings.
        """
        words = [word.casefold() for word in text[start:].rstrip(" .!").split()]
        known = _words().announcers | _words().around
        return (
            self._has_letters
            and known.issuperset(words)
            and not _words().approvals.isdisjoint(words)
        )

    def _label_of_match(self, match: re.Match[str]) -> str:
        assert match.lastindex is not None  # each text is a group
        return self._label_of_group[match.lastindex - 1]

    def _labels_of_letter(self, letter: str) -> set[str]:
        """Return the options that a letter may stand for.

        It is the letter shown, in either case. A letter of another script is one that looks the
        same, or stands at the same place of its alphabet: if these are two, it may be either.
        """
        capital = letter.upper()
        if capital in self._label_of_letter:
            return {self._label_of_letter[capital]}
        looks = capital.translate(LOOK_ALIKES)
        place = place_of(capital)
        labels = set()
        for shown, label in self._label_of_letter.items():
            is_alike = shown.translate(LOOK_ALIKES) == looks
            if is_alike or (place is not None and place == place_of(shown)):
                labels.add(label)
        return labels

    def named(self, answer: str) -> set[str]:
        """Return the labels of all options that an answer names anywhere."""
        if not self._has_letters:
            return self._words_named(answer)
        labels = {self._label_of_match(match) for match in self._text.finditer(answer)}
        without_texts = self._text.sub("…", answer)
        for match in _LETTER.finditer(without_texts):
            if _is_a_label(match, without_texts):
                labels |= self._labels_of_letter(match[0])
        return labels

    def _words_named(self, answer: str) -> set[str]:
        """Return the labels of words that are clauses of their own, as in ``Yes, but no``."""
        labels = set()
        for clause in _CLAUSE_END.split(answer):
            label = self._label_of_word.get(_without_fillers(clause))
            if label:
                labels.add(label)
        return labels

    def order(self, statement: str) -> str:
        """Return the labels of all options in the order of a statement; empty if it has none."""
        start = 0
        for _ in range(MOST_ANNOUNCING):
            order = self._order_from(statement, _end_of(_HEAD, statement, start))
            word = _WORD.match(statement, _end_of(_HEAD, statement, start))
            known = _words().announcers | _words().around
            if order or word is None or word[0].casefold() not in known:
                return order
            start = _end_of(_GAP, statement, word.end())
        return ""

    def _order_from(self, statement: str, start: int) -> str:
        """Return the order that a statement is from a place on; empty if it is none."""
        rest = statement[start:].rstrip(" .!)]}_$\n")
        labels: list[str] = []
        if len(rest) == len(self._labels):  # perhaps ``CADB``
            for letter in rest:
                labels += self._labels_of_letter(letter)
            if self._is_complete(labels):
                return "".join(labels)
        labels = []
        place = 0
        while place < len(rest):
            label, place = self._ordered_at(rest, place)
            if not label:
                return ""
            labels.append(label)
        return "".join(labels) if self._is_complete(labels) else ""

    def _ordered_at(self, text: str, start: int) -> tuple[str, int]:
        """Return the option named at a place of an order, and where the next one begins."""
        by_text = self._text.match(text, start)
        by_letter = _ORDERED_LETTER.match(text, start)
        if by_text:
            label, end = self._label_of_match(by_text), by_text.end()
        elif by_letter:
            labels = self._labels_of_letter(by_letter[0][0])
            label = labels.pop() if len(labels) == 1 else ""
            end = by_letter.end()
            own_text = self._text.match(text, _end_of(_BEFORE_OWN_TEXT, text, end))
            if own_text and self._label_of_match(own_text) == label:
                end = own_text.end()
        else:
            return "", start
        end = _end_of(_ORDER_GAP, text, end)
        joiner = _WORD.match(text, end)
        if joiner and joiner[0].casefold() in _words().joiners:
            end = _end_of(_ORDER_GAP, text, joiner.end())
        return label, end

    def _is_complete(self, labels: Sequence[str]) -> bool:
        return sorted(labels) == sorted(self._labels)


def _statements(answer: str) -> Iterator[_Statement]:
    """Yield the sentences of an answer, line by line."""
    texts: list[str] = []
    for line in answer.split("\n"):
        texts += [text for text in _STATEMENT_END.split(line.strip()) if text]
    before = ""
    for place, text in enumerate(texts):
        yield _Statement(text, place == 0, place == len(texts) - 1, before)
        before = text.rstrip("_ ")


def _announces(statement: str) -> bool:
    """Return whether a statement does nothing but announce a choice: ``My answer is:``."""
    words = [word.casefold() for word in _WORD.findall(statement)]
    known = _words().announcers | _words().around
    return set(words) <= known and not _words().announcers.isdisjoint(words)


def _is_a_label(match: re.Match[str], text: str) -> bool:
    """Return whether a letter in a text names an option, rather than being a word."""
    letter, before, after = match[0], text[: match.start()], text[match.end() :]
    if letter.islower():
        return after.startswith(")")
    if letter not in _words().letter_words or before.endswith(("(", "[")):
        return True
    if _ENDS_A_CLAUSE.match(after):
        return True
    words_before = _WORD.findall(before[-40:])
    if words_before and words_before[-1].casefold() in _words().announcers:
        return True  # "option A"
    following = _next_word(after)
    if len(following) == 1:
        return True  # "A B": no article stands before a letter that is not meant
    return following in _words().verbs or folded(following) in lexicon().fillers


def _gives_a_reason(text: str, start: int) -> bool:
    return _next_word(text[start:]) in _words().reasons


def _next_word(text: str) -> str:
    """Return the word behind one space; empty where a sign or more stands between."""
    word = _WORD.match(text, 1) if text.startswith(" ") else None
    return word[0].casefold() if word else ""


def _first_word(text: str) -> str:
    word = _WORD.search(text)
    return word[0].casefold() if word else ""


def _without_fillers(clause: str) -> str:
    """Return a short clause without conjunctions and words of correction: ``but no`` is ``no``."""
    if len(clause) >= _SHORTEST_CLAUSE:
        return ""
    words = clause.casefold().strip("'<>_()[] ").split()
    while len(words) > 1 and folded(words[0]) in lexicon().fillers:
        words = words[1:]
    return " ".join(words)


def _end_of(pattern: re.Pattern[str], text: str, start: int) -> int:
    """Return where a pattern that may be empty ends in a text."""
    match = pattern.match(text, start)
    return match.end() if match else start
