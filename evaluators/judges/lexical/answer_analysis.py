"""One answer beside its question and its gold forms, as all rules look at it."""

import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, combinations, pairwise

from evaluators.core import Case
from evaluators.judges.lexical.dates import Date, find_dates
from evaluators.judges.lexical.folding import Text, read, without
from evaluators.judges.lexical.gold_forms import Form, forms
from evaluators.judges.lexical.language_tables import Tables, tables
from evaluators.judges.lexical.number_words import in_figures
from evaluators.judges.lexical.numbers import Quantity, find_quantities, find_romans
from evaluators.judges.lexical.word_matching import Span

LIMIT = 32_000  # characters of an answer that are read
_LONGEST = 18  # characters that one can be in NFKC
_HEAD = 4  # words of a question that tell what sort of thing it asks for
_REACH = 4  # words after a denying word within which a word of knowing makes a refusal
_BACK = 4  # words before it among which its speaker is named, where the language names one
_COUNTS = frozenset("23456789")
_NAMES = 2  # names of one thing that share no word: Toruń, Thorn
_ENDS = frozenset(".!?…")
_SENTENCE = re.compile(r"[.!?][\"”»)]?\s|\n")
_CLAUSE_END = re.compile(r"[.!?\n;]")
_BREAK = re.compile(r"[.,:;!?\n…()—–]")


# Without slots, and equal only to itself: the cached properties need a dictionary.
@dataclass(frozen=True, kw_only=True, eq=False)
class AnswerAnalysis:
    """One answer, its question and the gold's forms.

    ``answer`` is what the answer says in the end: after the question's echo and the last change of
    mind, before the first order to the judge.

    ``full`` is the same with its articles; ``capitals`` the words that begin with a capital
    somewhere in the answer; ``truncated`` says that the answer went on after an order or beyond
    the limit.
    """

    tables: Tables
    question: Text
    full: Text
    answer: Text
    forms: tuple[Form, ...]
    capitals: frozenset[str]
    truncated: bool

    @cached_property
    def dates(self) -> list[Date]:
        """The dates of the answer."""
        return find_dates(self.answer, self.tables)

    @cached_property
    def quantities(self) -> list[Quantity]:
        """The quantities of the answer; Roman ones where the gold is Roman, or the answer alone."""
        quantities = find_quantities(self.answer, self.tables)
        if len(self.own_words) == 1 or any(form.roman for form in self.forms):
            quantities += find_romans(self.answer, self.capitals)
        return sorted(quantities, key=lambda quantity: quantity.start)

    @cached_property
    def sentences(self) -> tuple[int, ...]:
        """The number of the sentence, from 0, that each word is in."""
        words, gaps = self.answer.words, self.answer.gaps
        after = zip(words[:-1], gaps[1:-1], strict=True)
        ends = (len(last) > 1 and bool(_SENTENCE.search(gap)) for last, gap in after)
        return tuple(accumulate(ends, initial=0))  # one letter is an initial

    @cached_property
    def refusals(self) -> list[Span]:
        """Where the answer declines outright."""
        return refusals(self.answer, self.tables)

    @cached_property
    def doubts(self) -> list[Span]:
        """Where the answer says no more than that it is not sure."""
        return [*self.tables.phrases("unsure").spans(self.answer.words)]

    @cached_property
    def hedges(self) -> set[int]:
        """The places of the words that only say how sure the answer is."""
        words, dated = self.answer.words, {i for d in self.dates for i in range(d.start, d.end)}
        small = self.tables.words("function")
        months = {  # „май“ says "it seems", and is a month in a date and after a preposition
            place for place, word in enumerate(words)
            if word in self.tables.months
            and (place in dated or not small.isdisjoint(words[max(0, place - 1) : place]))
        }  # fmt: skip
        return self.tables.phrases("hedges").places(words) - months

    @cached_property
    def descriptions(self) -> frozenset[str]:
        """The words after "a": they describe what is before them, they do not add to it."""
        article = self.tables.words("indefinite") & self.tables.words("articles")
        return frozenset(word for last, word in pairwise(self.full.words) if last in article)

    @cached_property
    def question_words(self) -> frozenset[str]:
        """The words of the question."""
        return frozenset(self.question.words)

    @property
    def question_head(self) -> frozenset[str]:
        """The first words of the question, where it says what sort of thing it asks for."""
        return frozenset(self.question.words[:_HEAD])

    @cached_property
    def open_ended(self) -> bool:
        """Whether the golds name different things, so that more than one answer holds."""
        names = [frozenset(form.content) for form in self.forms]
        return any(one.isdisjoint(other) for one, other in combinations(names, 2))

    @cached_property
    def asks_several(self) -> bool:
        """Whether the question asks for several things: by its verb, or by their number."""
        numbers = self.tables.numbers
        words = self.question.words
        counted = any(numbers.get(word, 1) > 1 or word in _COUNTS for word in words)
        return counted or self.asks("several")

    @cached_property
    def asks_more(self) -> bool:
        """Whether one of the golds may not be enough: the question asks for several, or twice."""
        asking, function = self.tables.words("interrogatives"), self.tables.words("function")
        joiners, words = self.tables.words("joiners"), [*self.question.words, "", ""]
        for place, word in enumerate(words[1:-2], start=1):
            near, far = words[place + 1 : place + 3]
            if word in joiners and (near in asking or (near in function and far in asking)):
                return True
        return self.open_ended and self.asks_several

    @cached_property
    def wants_several(self) -> bool:
        """Whether the golds are several answers, and not only two names of one."""
        names = [frozenset(form.content) for form in self.forms]
        apart: list[frozenset[str]] = []
        for name in names:
            if all(map(name.isdisjoint, apart)):
                apart.append(name)
        return len(apart) > _NAMES or (len(apart) == _NAMES and self.asks_several)

    @property
    def asks_only_year(self) -> bool:
        """Whether the question asks for a year alone, so that month and day of a gold are extra."""
        asked = self.tables.has_phrase("year_questions", self.question.words)
        return asked and not self.asks("finer_dates")

    @property
    def asks_one_place(self) -> bool:
        """Whether the question asks where, and not for town *and* land."""
        return self.asks("places") and not self.asks("joiners")

    @cached_property
    def own_words(self) -> tuple[str, ...]:
        """The words of the answer that neither repeat the question nor only hold it together."""
        marks = self.hedges | self.tables.phrases("choices").places(self.answer.words)
        idle = self.idle_words | self.question_words | self.tables.words("contrasts")
        return tuple(
            word for i, word in enumerate(self.answer.words) if word not in idle and i not in marks
        )

    @cached_property
    def idle_words(self) -> frozenset[str]:
        """The words that only open an answer or hold it together."""
        return self.tables.words("openers") | self.tables.words("function")

    def asks(self, key: str) -> bool:
        """Say whether the question holds a word of this list."""
        return self.tables.any_of(key, self.question_words)

    def is_own_name(self, word: str) -> bool:
        """Say whether a word is the answer's own, and written with a capital."""
        return word in self.capitals and word in self.own_words


def within_limit(text: str) -> str:
    """Return the beginning of a text that is read: 32,000 characters at most, in NFKC too."""
    cut = text[:LIMIT]
    grown = not cut.isascii() and len(unicodedata.normalize("NFKC", cut)) > LIMIT
    return cut[: LIMIT // _LONGEST] if grown else cut


def analyse(case: Case, answer: str) -> AnswerAnalysis:
    """Return the analysis of an answer; orders to the judge and what follows them are left out."""
    known = tables(case.language)
    beginning, asked = within_limit(answer), within_limit(case.question)
    full, question = (in_figures(read(raw), known) for raw in (beginning, asked))
    orders = known.phrases("orders")
    echoes = {question.words[start:end] for start, end in orders.spans(question.words)}
    spans = orders.spans(full.words)  # those that the question has too are none
    order = next((start for start, end in spans if full.words[start:end] not in echoes), None)
    if order is not None:  # the clause with the order, and what follows, are not part of the answer
        while order and not _CLAUSE_END.search(full.gaps[order]):
            order -= 1
        full = replace(full, words=full.words[:order], gaps=full.gaps[: order + 1])
    size = len(question.words)
    if size and full.words[:size] == question.words:  # the answer begins by repeating the question
        full = _from(size, full)
    accepted = tuple(
        form for gold in case.golds for form in forms(within_limit(gold), case.language)
    )
    gold_words = frozenset(word for form in accepted for word in form.text.words)
    full = last_word(full, known, gold_words)
    return AnswerAnalysis(
        tables=known,
        question=question,
        full=full,
        answer=without(full, known.words("articles") - gold_words),
        forms=accepted,
        capitals=_capitals(beginning),
        truncated=order is not None or beginning != answer,
    )


def _from(place: int, text: Text) -> Text:
    return replace(text, words=text.words[place:], gaps=text.gaps[place:])


def _capitals(answer: str) -> frozenset[str]:
    """Return the folded words written with a capital, the first of later sentences left out."""
    raw = ["", *answer.split()]
    bare = (word.lstrip("\"'([“„«") for last, word in pairwise(raw) if last[-1:] not in _ENDS)
    return frozenset(read(" ".join(word for word in bare if word[:1].isupper())).words)


def last_word(answer: Text, known: Tables, gold_words: frozenset[str]) -> Text:
    """Return the text after its last change of mind; all of it where nothing of its own follows.

    Words of the gold are never a mark of a change.
    """
    idle = known.words("function") | known.words("openers") | known.words("contrasts")
    marks = known.phrases("choices").places(answer.words)
    said = (i for i, word in enumerate(answer.words) if word not in idle and i not in marks)
    last = max(said, default=-1)  # word that says something
    starts = {*_reversals(answer, known, gold_words), *_choices(answer, known)}
    start = max((start for start in starts if 0 < start <= last), default=0)
    return _from(start, answer) if start else answer


def _reversals(answer: Text, known: Tables, gold_words: frozenset[str]) -> Iterator[int]:
    """Yield where the text goes on after "on second thoughts" or after a "no" of its own."""
    for start, end in known.phrases("reversals").spans(answer.words):
        runs_on = answer.words[end - 1] in known.words("negations") and answer.gaps[end] == " "
        if not runs_on:  # "actually not Graz" denies Graz
            yield end if start else 0
    denials = known.words("denials") - gold_words
    for place, word in enumerate(answer.words[:-1]):
        numbered = answer.words[place + 1].isdecimal() and answer.gaps[place + 1].startswith(".")
        alone = _BREAK.search(answer.gaps[place]) and _BREAK.search(answer.gaps[place + 1])
        if place and alone and word in denials and not numbered:
            yield place + 1


def _choices(answer: Text, known: Tables) -> Iterator[int]:
    """Yield where a clause begins that says which candidate it chooses."""
    contrasts, begin = known.words("contrasts"), 0
    chosen = {place for place, _ in known.phrases("choices").spans(answer.words)}
    for place, word in enumerate(answer.words):
        if word in contrasts or _BREAK.search(answer.gaps[place]):
            begin = place
        if place in chosen:
            yield begin


def refusals(answer: Text, known: Tables) -> list[Span]:
    """Return where the text declines outright: set phrases, and denied knowledge or ability.

    Where the words are part of an assurance ("I don't have to look it up") they are no refusal.
    """
    spans = [*known.phrases("refusals").spans(answer.words)]
    for place, word in enumerate(answer.words):
        if word in known.words("denying"):
            end = place + 1  # of the words that follow without a break, as far as a denial reaches
            while end < min(len(answer.words), place + 1 + _REACH):
                if _BREAK.search(answer.gaps[end]):
                    break
                end += 1
            knowing = known.words("knowing")
            met = next((i for i in range(place + 1, end) if answer.words[i] in knowing), None)
            before = answer.words[max(0, place - _BACK) : place]
            open_speaker = word in known.words("impersonal")  # English verbs do not say who speaks
            if met is not None and (not open_speaker or known.any_of("speakers", before)):
                spans.append((place, met + 1))
    assured = known.phrases("assuring").places(answer.words)
    return [span for span in spans if assured.isdisjoint(range(*span))]
