"""One answer on the judge's table: question, answer and gold forms, read once."""

import re
from dataclasses import dataclass, replace
from functools import cached_property

from evaluators.core import Case
from evaluators.lexical.dates import Date, find_dates
from evaluators.lexical.folding import Text, read, without
from evaluators.lexical.golds import Form, forms
from evaluators.lexical.language import Tables, tables
from evaluators.lexical.numbers import Quantity, find_quantities

LIMIT = 32_000  # characters of an answer that are read
_HEAD = 4  # words of a question that tell what sort of thing it asks for
_CLAUSE_END = re.compile(r"[.!?\n;]")


@dataclass(frozen=True, kw_only=True)  # without slots: what is read from the answer is kept
class Exam:
    """``said`` is the answer after the question's echo and before the first order to the judge.

    ``full`` is the same with its articles; ``asked`` the question; ``cut`` says that the answer
    went on after an order or beyond the limit.
    """

    tables: Tables
    asked: Text
    full: Text
    said: Text
    forms: tuple[Form, ...]
    cut: bool

    @cached_property
    def dates(self) -> list[Date]:
        """The dates of the answer."""
        return find_dates(self.said, self.tables)

    @cached_property
    def quantities(self) -> list[Quantity]:
        """The quantities of the answer."""
        return find_quantities(self.said, self.tables)

    @cached_property
    def echoed(self) -> frozenset[str]:
        """The words of the question."""
        return frozenset(self.asked.words)

    @property
    def sort(self) -> frozenset[str]:
        """The words at the head of the question, where it says what sort of thing it asks for."""
        return frozenset(self.asked.words[:_HEAD])

    @property
    def asks_only_year(self) -> bool:
        """Whether the question asks for a year, so that month and day of a gold are extra."""
        return self.tables.phrases("year_questions").find(self.asked.words) is not None

    @property
    def asks_one_place(self) -> bool:
        """Whether the question asks where, and not for town *and* land."""
        return self.asks("places") and not self.asks("joiners")

    @cached_property
    def own(self) -> tuple[str, ...]:
        """The words of the answer that neither repeat the question nor only hold it together."""
        return tuple(word for word in self.content if word not in self.echoed)

    @cached_property
    def content(self) -> tuple[str, ...]:
        """The words of the answer that do not only open it or hold it together."""
        idle = self.tables.words("openers") | self.tables.words("function")
        return tuple(word for word in self.said.words if word not in idle)

    def asks(self, key: str) -> bool:
        """Say whether the question holds a word of this list."""
        return not self.echoed.isdisjoint(self.tables.words(key))


def lay_out(case: Case, answer: str) -> Exam:
    """Return the exam of one answer; orders to the judge and what follows them are left out."""
    known = tables(case.language)
    full = read(answer[:LIMIT])
    asked = read(case.question[:LIMIT])
    ordered = known.phrases("orders").find(full.words)
    if ordered is not None:
        full = _before(full, ordered)
    full = _after_echo(full, asked)
    return Exam(
        tables=known,
        asked=asked,
        full=full,
        said=without(full, known.words("articles")),
        forms=tuple(form for gold in case.golds for form in forms(gold[:LIMIT], case.language)),
        cut=ordered is not None or len(answer) > LIMIT,
    )


def _before(said: Text, place: int) -> Text:
    """Return the text up to the clause in which the word at a place stands."""
    while place and not _CLAUSE_END.search(said.gaps[place]):
        place -= 1
    return replace(said, words=said.words[:place], gaps=said.gaps[: place + 1])


def _after_echo(said: Text, asked: Text) -> Text:
    """Return the text without the question, where it begins by repeating it."""
    size = len(asked.words)
    if size and said.words[:size] == asked.words:
        return replace(said, words=said.words[size:], gaps=said.gaps[size:])
    return said
