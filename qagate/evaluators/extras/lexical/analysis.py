"""A question, the gold's forms and an answer, as every rule reads them."""

import re
from collections.abc import Iterable
from functools import cached_property
from itertools import combinations

from qagate.evaluators.answers.refusals import BREAK, refusals
from qagate.evaluators.core import Case
from qagate.evaluators.extras.lexical.golds import Form, forms, numerals
from qagate.evaluators.extras.lexical.options import (
    Mention,
    mentions,
    order_in,
    other_options,
)
from qagate.evaluators.languages import numbers
from qagate.evaluators.languages.numbers import in_figures
from qagate.evaluators.languages.word_lists import (
    Tables,
    Text,
    fold,
    read,
    tables,
    within_limit,
    without,
)

_STRUCK_OUT = re.compile(
    r"~~.{1,2000}?~~|<(del|s|strike)>.{0,2000}?</\1>", re.DOTALL | re.IGNORECASE
)
_LABELLED_OPTION = re.compile(
    r"(?:^|[\s|(])([^\W_])[).][ \t]+([^\n|]+?)(?=\s+[^\W_][).]\s|\s*[\n|]|$)"
)
"""A letter or digit with a bracket or a stop, and what follows up to the next one."""
_WORD_AND_WHAT_IS_BEFORE = re.compile(
    r"(?:^|(?<=[^\s.!?…])\s)\s*[\"'(\[“„«*]*(\S*)"
)  # no word after a full stop
_ECHO = 4
"""Words in a row of the question from which an answer that has no others repeats it."""


class Answer:
    """One answer, with its question and the gold's forms."""

    def __init__(self, case: Case, answer: str) -> None:
        self.tables = tables(case.language)
        self.question_text = within_limit(case.question)
        self.question = in_figures(read(self.question_text), self.tables)
        self.question_words = frozenset(self.question.words)
        accepted: list[Form] = []
        for gold in case.golds:
            accepted += forms(within_limit(gold), self.tables)
        self.forms = tuple(accepted)
        """The accepted forms of all golds."""
        self.is_open = _name_different_things(self.forms)
        """Whether two forms name different things: neither has all words of the other."""
        self.gold_words = frozenset(
            word for form in self.forms for word in form.text.words
        )
        """The words of all forms."""
        beginning = within_limit(answer)
        self.truncated = beginning != answer
        """Whether the answer went on beyond the limit."""
        offered = _offered(beginning)
        raw = read(offered)
        text = _last_word(in_figures(raw, self.tables), self.tables)
        text = _option_of_label(text, offered, self.tables)
        self.spelt = len(raw.words) != len(text.words) or not set(text.words) <= set(
            raw.words
        )
        """Whether the answer has number words, or takes something back."""
        self.text = without(text, self.tables.words["articles"] - self.gold_words)
        """What the answer says in the end: number words in figures, no articles."""
        self.numerals = numerals(offered, self.text)
        """Its words that stand next to a numeral, with its value."""
        capitals = [
            word
            for word in _WORD_AND_WHAT_IS_BEFORE.findall(offered)
            if word[:1].isupper()
        ]
        self.capitals = frozenset(read(" ".join(capitals)).words)
        """Words that begin with a capital, the first words of later sentences left out."""
        self.dates = numbers.find_dates(self.text, self.tables)
        self.quantities = numbers.find_quantities(self.text, self.tables)
        self.refusals = list(refusals(self.text, self.tables))
        """Where the answer declines: set phrases, requests, denied knowledge or ability."""
        self.refused = _places(self.refusals)
        """The places of the words of refusals."""
        # „май“ is a hedge in Bulgarian, and the month of May.
        hedges = self.tables.phrases["hedges"].spans(self.text.words)
        of_dates = _places((date.start, date.end) for date in self.dates)
        self.hedges = _places(hedges) - of_dates
        """The places of the words that only say how sure the answer is."""
        idle = self.tables.words["idle"] | self.question_words
        own_places = [
            place
            for place, word in enumerate(self.text.words)
            if word not in idle and place not in self.hedges
        ]
        self.own_words = [self.text.words[place] for place in own_places]
        """The words that neither repeat the question nor hold the answer together."""
        self.told = [
            self.text.words[place]
            for place in own_places
            if place > 0 and place not in self.refused
        ]
        """Of these, all but the answer's first word and those of refusals."""

    def asks(self, key: str) -> bool:
        """Return whether the question holds a word of this list."""
        return self.tables.any_of(key, self.question_words)

    @cached_property
    def other_options(self) -> list[Mention]:
        """Where it names options that the question lists beside the gold."""
        options = other_options(self.question, self.forms, self.tables)
        return mentions(options, self.text, self.tables)

    @cached_property
    def order(self) -> str | None:
        """The order it gives to the question's numbered items, where the gold is one: "3142"."""
        if self.refusals:
            return None
        return order_in(self.text, self.question_text, self.forms, self.tables)

    @property
    def says_nothing(self) -> bool:
        """Whether it is idle words and words of the question; a number is an answer by itself."""
        if self.own_words or self.asks("alternatives"):
            return False
        has_number = any(word.isdecimal() for word in self.text.words)
        return not has_number or self._is_echo()

    def _is_echo(self) -> bool:
        articles = self.tables.words["articles"] - self.gold_words
        asked = without(self.question, articles).words
        said = self.text.words
        return len(said) >= _ECHO and _holds_in_a_row(asked, said)


def _holds_in_a_row(words: tuple[str, ...], wanted: tuple[str, ...]) -> bool:
    size = len(wanted)
    starts = range(len(words) - size + 1)
    return any(words[start : start + size] == wanted for start in starts)


def _places(spans: Iterable[tuple[int, int]]) -> set[int]:
    return {place for span in spans for place in range(*span)}


def _name_different_things(forms: tuple[Form, ...]) -> bool:
    contents = [set(form.content) for form in forms]
    for content, other in combinations(contents, 2):
        if not content <= other and not other <= content:
            return True
    return False


def _offered(answer: str) -> str:
    """Return the answer without what it strikes out."""
    return _STRUCK_OUT.sub(" ", answer)


def _last_word(text: Text, tables: Tables) -> Text:
    """Return the text after its last change of mind or announced answer, if something follows."""
    words, gaps = text.words, text.gaps
    contrasts = tables.words["contrasts"]
    last = 0
    for key in ("reversals", "announcements"):
        for start, end in tables.phrases[key].spans(words):
            if start == 0 or end == len(words):
                continue
            opens_clause = BREAK.search(gaps[start]) or words[start - 1] in contrasts
            needs_break = key == "announcements" or end - start == 1
            if opens_clause and (BREAK.search(gaps[end]) or not needs_break):
                last = max(last, end)
    return Text(words[last:], gaps[last:])


def _option_of_label(text: Text, answer: str, tables: Tables) -> Text:
    """Return the option that the last word names where it is but a letter: "B" of "B) Sofia"."""
    if len(text.words) != 1 or len(text.words[0]) != 1:
        return text
    for label, option in _LABELLED_OPTION.findall(answer):
        if fold(label) == text.words[0]:
            return in_figures(read(option), tables)
    return text
