"""One answer on the judge's table: question, answer and gold forms, read once."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, combinations, pairwise

from evaluators.core import Case
from evaluators.judges.lexical.dates import Date, find_dates
from evaluators.judges.lexical.folding import Text, read, without
from evaluators.judges.lexical.gold_forms import Form, forms
from evaluators.judges.lexical.language_tables import Tables, tables
from evaluators.judges.lexical.numbers import Quantity, find_quantities, find_romans

LIMIT = 32_000  # characters of an answer that are read
_HEAD = 4  # words of a question that tell what sort of thing it asks for
_COUNTS = frozenset("23456789")
_ENDS = frozenset(".!?…")
_SENTENCE = re.compile(r"[.!?][\"”»)]?\s|\n")
_CLAUSE_END = re.compile(r"[.!?\n;]")


Span = tuple[int, int]


# Without slots, and equal only to itself: what is read from the answer is kept.
@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerAnalysis:
    """One answer, its question and the gold's forms, as the rules look at them.

    ``said`` is what the answer says in the end: after the question's echo and the last change of
    mind, before the first order to the judge.

    ``full`` is the same with its articles; ``asked`` the question; ``capitals`` the words that
    begin with a capital somewhere in the answer; ``cut`` says that the answer went on after an
    order or beyond the limit.
    """

    tables: Tables
    asked: Text
    full: Text
    said: Text
    forms: tuple[Form, ...]
    capitals: frozenset[str]
    cut: bool

    @cached_property
    def dates(self) -> list[Date]:
        """The dates of the answer."""
        return find_dates(self.said, self.tables)

    @cached_property
    def quantities(self) -> list[Quantity]:
        """The quantities of the answer; Roman ones where the gold is Roman, or the answer alone."""
        found = find_quantities(self.said, self.tables)
        if len(self.own) == 1 or any(form.roman for form in self.forms):
            found += find_romans(self.said, self.capitals)
        return sorted(found, key=lambda one: one.start)

    @cached_property
    def sentences(self) -> tuple[int, ...]:
        """The number of the sentence, from 0, in which each word stands."""
        words, gaps = self.said.words, self.said.gaps
        after = zip(words[:-1], gaps[1:-1], strict=True)
        ends = (len(last) > 1 and bool(_SENTENCE.search(gap)) for last, gap in after)
        return tuple(accumulate(ends, initial=0))  # one letter is an initial

    @cached_property
    def refused(self) -> list[Span]:
        """Where the answer declines outright."""
        return refusals(self.said, self.tables)

    @cached_property
    def unsure(self) -> list[Span]:
        """Where the answer says no more than that it is not sure."""
        return [*self.tables.phrases("unsure").spans(self.said.words)]

    @cached_property
    def described(self) -> frozenset[str]:
        """The words after "a": they describe what stands before, they do not add to it."""
        article = self.tables.words("indefinite") & self.tables.words("articles")
        return frozenset(word for last, word in pairwise(self.full.words) if last in article)

    @cached_property
    def echoed(self) -> frozenset[str]:
        """The words of the question."""
        return frozenset(self.asked.words)

    @property
    def sort(self) -> frozenset[str]:
        """The words at the head of the question, where it says what sort of thing it asks for."""
        return frozenset(self.asked.words[:_HEAD])

    @cached_property
    def open_ended(self) -> bool:
        """Whether the golds name different things, so that more than one answer holds."""
        names = [frozenset(form.content) for form in self.forms]
        return any(one.isdisjoint(other) for one, other in combinations(names, 2))

    @cached_property
    def asks_several(self) -> bool:
        """Whether the question asks for several things: by its verb, or by their number."""
        numbers = self.tables.numbers
        counted = any(numbers.get(word, 1) > 1 or word in _COUNTS for word in self.asked.words)
        return counted or self.asks("several")

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
        choices = self.tables.phrases("choices").spans(self.said.words)
        marks = {*self.hedged, *(place for span in choices for place in range(*span))}
        idle = self._idle | self.echoed | self.tables.words("contrasts")
        return tuple(
            word for i, word in enumerate(self.said.words) if word not in idle and i not in marks
        )

    @cached_property
    def hedged(self) -> list[int]:
        """The places of the words that only say how sure the answer is."""
        spans = self.tables.phrases("hedges").spans(self.said.words)
        return [place for span in spans for place in range(*span)]

    @cached_property
    def content(self) -> tuple[str, ...]:
        """The words of the answer that do not only open it or hold it together."""
        return tuple(word for word in self.said.words if word not in self._idle)

    @cached_property
    def _idle(self) -> frozenset[str]:
        return self.tables.words("openers") | self.tables.words("function")

    def asks(self, key: str) -> bool:
        """Say whether the question holds a word of this list."""
        return not self.echoed.isdisjoint(self.tables.words(key))


def analyse(case: Case, answer: str) -> AnswerAnalysis:
    """Return the exam of one answer; orders to the judge and what follows them are left out."""
    known = tables(case.language)
    full = read(answer[:LIMIT])
    asked = read(case.question[:LIMIT])
    ordered = _ordered(full, asked, known)
    if ordered is not None:
        full = _before(full, ordered)
    found = tuple(form for gold in case.golds for form in forms(gold[:LIMIT], case.language))
    kept = frozenset(word for form in found for word in form.text.words)
    full = last_word(_after_echo(full, asked), known, kept)
    return AnswerAnalysis(
        tables=known,
        asked=asked,
        full=full,
        said=without(full, known.words("articles")),
        forms=found,
        capitals=_capitals(answer[:LIMIT]),
        cut=ordered is not None or len(answer) > LIMIT,
    )


def _ordered(full: Text, asked: Text, known: Tables) -> int | None:
    """Return the place of the first order to the judge; what the question says too is none."""
    orders = known.phrases("orders")
    own = {asked.words[start:end] for start, end in orders.spans(asked.words)}
    spans = orders.spans(full.words)
    return next((start for start, end in spans if full.words[start:end] not in own), None)


def _capitals(answer: str) -> frozenset[str]:
    """Return the folded words that stand with a capital, the first of later sentences left out."""
    raw = ["", *answer.split()]
    bare = (word.lstrip("\"'([“„«") for last, word in pairwise(raw) if last[-1:] not in _ENDS)
    return frozenset(read(" ".join(word for word in bare if word[:1].isupper())).words)


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


_STOP = re.compile(r"[.;!?\n…]")
_BREAK = re.compile(r"[.,:;!?\n…()—–]")
_REACH = 4  # words after a denying word within which a word of knowing makes a refusal
_BACK = 4  # words before it among which its speaker stands, where the language names one


def last_word(said: Text, known: Tables, kept: frozenset[str]) -> Text:
    """Return the text after its last change of mind; all of it where nothing of its own follows.

    ``kept`` are words of the gold, which are never a mark of a change.
    """
    starts = sorted({*_reversals(said, known, kept), *_choices(said, known)}, reverse=True)
    for start in starts:
        if start and _says_something(said.words[start:], known):
            return replace(said, words=said.words[start:], gaps=said.gaps[start:])
    return said


def _reversals(said: Text, known: Tables, kept: frozenset[str]) -> Iterator[int]:
    """Yield where the text goes on after "on second thoughts" or after a "no" of its own."""
    for start, end in known.phrases("reversals").spans(said.words):
        yield end if start else 0
    denials = known.words("denials") - kept
    for place, word in enumerate(said.words[:-1]):
        numbered = said.words[place + 1].isdecimal() and said.gaps[place + 1].startswith(".")
        alone = _BREAK.search(said.gaps[place]) and _BREAK.search(said.gaps[place + 1])
        if place and alone and word in denials and not numbered:
            yield place + 1


def _choices(said: Text, known: Tables) -> Iterator[int]:
    """Yield where a clause begins that says which candidate is chosen."""
    contrasts = known.words("contrasts")
    for start, _ in known.phrases("choices").spans(said.words):
        place = start
        while place and not _BREAK.search(said.gaps[place]) and said.words[place] not in contrasts:
            place -= 1
        yield place


def _says_something(words: tuple[str, ...], known: Tables) -> bool:
    idle = known.words("function") | known.words("openers") | known.words("contrasts")
    marks = {i for span in known.phrases("choices").spans(words) for i in range(*span)}
    return any(i not in marks and word not in idle for i, word in enumerate(words))


def refusals(said: Text, known: Tables) -> list[Span]:
    """Return where the text declines outright: set phrases, and denied knowledge or ability."""
    return [*known.phrases("refusals").spans(said.words), *_denials(said, known)]


def _denials(said: Text, known: Tables) -> Iterator[Span]:
    knowing, speakers = known.words("knowing"), known.words("speakers")
    for place, word in enumerate(said.words):
        if word in known.words("denying"):
            end = _run_end(said, place)
            met = next((i for i in range(place + 1, end) if said.words[i] in knowing), None)
            before = said.words[max(0, place - _BACK) : place]
            if met is not None and (not _needs_speaker(word, known) or speakers & {*before}):
                yield place, met + 1


def _needs_speaker(word: str, known: Tables) -> bool:
    """Say whether a denying word leaves open who speaks, as English verbs do."""
    return word in known.words("impersonal")


def _run_end(said: Text, place: int) -> int:
    """Return the end of the words that follow without a break, as far as a denial reaches."""
    end = place + 1
    while end < min(len(said.words), place + 1 + _REACH) and not _BREAK.search(said.gaps[end]):
        end += 1
    return end


def segments(said: Text, known: Tables, declined: list[Span]) -> Iterator[Span]:
    """Yield the stretches between full stops, contrasts and refusals."""
    contrasts = known.words("contrasts")
    taken = {place for span in declined for place in range(*span)}
    start = 0
    for place, word in enumerate(said.words):
        cut = word in contrasts or place in taken
        if cut or (place and _STOP.search(said.gaps[place])):
            yield start, place
            start = place + 1 if cut else place
    yield start, len(said.words)
