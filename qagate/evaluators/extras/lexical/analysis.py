"""A question, the gold's forms and an answer, as every rule reads them."""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from itertools import combinations
from typing import NamedTuple

from qagate.evaluators.core import Case
from qagate.evaluators.languages import numbers
from qagate.evaluators.languages.numbers import (
    DASHES,
    YEAR,
    Date,
    Quantity,
    in_figures,
)
from qagate.evaluators.languages.word_lists import (
    Tables,
    Text,
    fold,
    read,
    tables,
    within_limit,
    without,
)

BREAK = re.compile(r"[.,:;!?\n…()—–]")
"""What ends a clause."""
_PARENTHESIS = re.compile(r"\s*\(([^()]*)\)")
_RANGE = re.compile(r"\(acceptable range[^()]*\)", re.IGNORECASE)
_STOP = re.compile(r"(?<=\w\w\w\w)\.\s+(?=[^\Wa-zа-я])|;\s+|(?<=[^\W\d_])\s[-–—]\s")
_TOWN = re.compile(r"([^,]+)(?:,\s[^\W\d_a-z][^,]*){1,3}")
_ACRONYM = re.compile(r"[A-Z][A-Z0-9]{1,7}")
_SAID = re.compile(
    r"(?:^|(?<=[^\s.!?…])\s)\s*[\"'(\[“„«*]*(\S*)"
)  # no word after a full stop
_FIRST = re.compile(
    r"(?:(?<!\w)([^\W\d_]{3,})\s)?(?<!\w)[IІ](?![\w'’])(?:\.?\s([^\W\d_]{3,}))?"
)
_NUMERALS = range(2, 40)
_REACH = 4  # words after a denying word within which a word of knowing makes a refusal
_BACK = 4  # words before it within which English names the speaker
_HEAVY = 3  # words next to a number above which the gold is more than the number


class Form(NamedTuple):
    """One accepted form of a gold."""

    text: Text
    """Number words in figures, without articles."""
    content: tuple[str, ...]
    """The words that mean something."""
    common: frozenset[str]
    """The words in small letters."""
    named: bool
    """Whether it looks like a name: every meaning word has a capital."""
    quantity: Quantity | None = None
    """The number, where the form is little else; a stated range is in its ``limits``."""
    date: Date | None = None
    """The date, where the form is nothing else."""
    place: bool = False
    """Whether it is the part before the comma of "town, land"."""
    listed: bool = False
    """Whether it is a list of names."""
    numerals: frozenset[tuple[str, int]] = frozenset()
    """Its words that stand next to a numeral, with its value: the first Elizabeth is no second."""

    @property
    def bare_number(self) -> float | None:
        """The number or year, where the form is nothing else; None with a unit or other words."""
        one, date = self.quantity, self.date
        if one and not one.unit and one.end - one.start == len(self.text.words):
            return one.values[0]
        return date.year if date and date.year and not date.month else None


@lru_cache(maxsize=8192)
def forms(gold: str, known: Tables) -> tuple[Form, ...]:
    """Return a gold's forms, the fullest first; none for a gold without words."""
    bare, limits = _RANGE.sub("", gold), None
    if stated := _RANGE.search(gold):
        ends = [
            one.values[0] for one in numbers.find_quantities(read(stated[0]), known)
        ]
        limits = (min(ends), max(ends)) if len(ends) == 2 else None
    accepted = [
        _form(raw, known, limits) for raw in dict.fromkeys(_variants(bare, known))
    ]
    if town := _TOWN.fullmatch(_PARENTHESIS.sub("", bare).strip(" .")):
        accepted.append(_form(town[1], known, None)._replace(place=True))
    return tuple(form for form in accepted if form.text.words)


def _variants(gold: str, known: Tables) -> Iterable[str]:
    """Yield the gold itself, then what is left without asides and explanations."""
    yield gold
    head = _PARENTHESIS.sub("", gold).strip()
    if head:
        yield head
        yield from (
            aside for aside in _PARENTHESIS.findall(gold) if _ACRONYM.fullmatch(aside)
        )
    if stop := _STOP.search(head):
        head = head[: stop.start()]
        yield head
    words = head.split()
    for place, word in enumerate(words[1:-1], start=1):
        before, after = " ".join(words[:place]), " ".join(words[place + 1 :])
        both = before[-1:].isdecimal() == after[:1].isdecimal()  # not "16 or older"
        if both and fold(word) in known.words["alternatives"]:
            yield from (before, after)
    first = next(
        (place for place, word in enumerate(words) if not word[:1].islower()), 0
    )
    if (
        first
        and words[first][:1].isupper()
        and not known.any_of("function", map(fold, words))
    ):
        yield " ".join(words[first:])  # "the physician Ida Noddack"


def _form(raw: str, known: Tables, limits: tuple[float, float] | None) -> Form:
    text = in_figures(read(raw), known)
    text = without(text, known.words["articles"].difference(text.words[-1:]))
    spare = (
        known.words["function"]
        | known.words["date_fillers"]
        | known.words["approximate"]
    )
    quantity = _only_quantity(raw, text, known, spare)
    if quantity and limits:
        quantity = quantity._replace(limits=limits)
    dates = [] if quantity and quantity.limits else numbers.find_dates(text, known)
    told = {
        word for word in text.words if word not in spare and word not in known.weekdays
    }
    alone = len(dates) == 1 and told <= {*text.words[dates[0].start : dates[0].end]}
    light = known.words["function"] | known.words["titles"]
    small = [word for word in raw.split() if word[:1].islower()]
    heavy = [
        word for word in raw.split() if fold(word) not in light | known.words["joiners"]
    ]
    named = bool(heavy) and all(
        word[:1].isupper() or not word[:1].isalnum() for word in heavy
    )
    return Form(
        text=text,
        content=tuple(word for word in text.words if word not in light) or text.words,
        common=frozenset(read(" ".join(small)).words),
        named=named,
        quantity=None if alone else quantity,
        date=dates[0] if alone else None,
        listed=named and known.any_of("joiners", text.words[1:-1]),
        numerals=numerals(raw, text),
    )


def numerals(raw: str, text: Text) -> frozenset[tuple[str, int]]:
    """Return each word that stands next to a numeral from 1 to 39, as in "Elizabeth I", with it."""
    # Folded, the capital I of a name is a pronoun or "and".
    firsts = {(fold(word), 1) for pair in _FIRST.findall(raw) for word in pair if word}
    pairs = zip(text.words, text.gaps[1:], text.words[1:], strict=False)
    near = [pair for one, gap, other in pairs if not gap.strip(" .") for pair in
            ((one, other), (other, one))]  # fmt: skip
    others = (
        (w, int(digits)) for w, digits in near if digits.isdecimal() > w.isdecimal()
    )
    return frozenset(firsts.union(pair for pair in others if pair[1] in _NUMERALS))


def _only_quantity(
    raw: str, text: Text, known: Tables, spare: frozenset[str]
) -> Quantity | None:
    """Return the quantity of a text that is little else, or nothing but a range: "60-100"."""
    figures = numbers.find_quantities(text, known)
    years = [
        bool(YEAR.fullmatch(text.words[one.start])) and not one.unit for one in figures
    ]
    after = text.words[figures[1].end :] if len(figures) == 2 else ()
    if len(figures) == 2 and not figures[0].start and len(after) <= _HEAVY:
        low, high = (one.values[0] for one in figures)
        gap = text.gaps[figures[1].start]
        dashed = figures[0].end == figures[1].start and not DASHES.isdisjoint(gap)
        if low <= high and (".." in gap or (dashed and not after and not all(years))):
            return figures[1]._replace(limits=(low, high))
    if len(figures) != 1 or years[0]:
        return None
    figure = figures[0]
    heavy = {*text.words[: figure.start], *text.words[figure.end :]} - spare
    capitals = read(" ".join(word for word in raw.split() if word[:1].isupper())).words
    part = (
        figure.start and text.gaps[figure.start] in DASHES
    )  # of a name such as iron-56
    telling = any(word.isdecimal() or word in capitals for word in heavy)
    return None if part or telling or len(heavy) > _HEAVY else figure


class Answer:
    """One answer, with its question and the gold's forms."""

    def __init__(self, case: Case, answer: str) -> None:
        beginning, self.tables = within_limit(answer), (known := tables(case.language))
        self.question = in_figures(read(within_limit(case.question)), known)
        self.question_words = frozenset(self.question.words)
        self.forms = tuple(
            form for gold in case.golds for form in forms(within_limit(gold), known)
        )
        """The accepted forms of all golds."""
        pairs = combinations([{*form.content} for form in self.forms], 2)
        self.is_open = not all(a <= b or b <= a for a, b in pairs)
        """Whether two forms name different things: neither has all words of the other."""
        self.gold_words = frozenset(
            word for form in self.forms for word in form.text.words
        )
        """The words of all forms."""
        raw = read(beginning)
        text = _last_word(in_figures(raw, known), known)
        self.spelt = len(raw.words) != len(text.words) or not {*text.words} <= {
            *raw.words
        }
        """Whether the answer has number words, or takes something back."""
        self.text = without(text, known.words["articles"] - self.gold_words)
        """What the answer says in the end: number words in figures, no articles."""
        self.numerals = numerals(beginning, self.text)
        """Its words that stand next to a numeral, with its value."""
        self.truncated = beginning != answer
        """Whether the answer went on beyond the limit."""
        capitals = (word for word in _SAID.findall(beginning) if word[:1].isupper())
        self.capitals = frozenset(read(" ".join(capitals)).words)
        """Words that begin with a capital, the first words of later sentences left out."""
        self.dates = numbers.find_dates(self.text, known)
        self.quantities = numbers.find_quantities(self.text, known)
        self.refusals = [*_refusals(self.text, known)]
        """Where the answer declines: set phrases, requests, denied knowledge or ability."""
        self.refused = {place for span in self.refusals for place in range(*span)}
        """The places of the words of refusals."""
        hedges = known.phrases["hedges"].spans(self.text.words)
        dated = {
            place for one in self.dates for place in range(one.start, one.end)
        }  # „май“: May
        self.hedges = {place for span in hedges for place in range(*span)} - dated
        """The places of the words that only say how sure the answer is."""
        idle, words = (
            known.words["idle"] | self.question_words,
            enumerate(self.text.words),
        )
        own = [
            (i, word) for i, word in words if word not in idle and i not in self.hedges
        ]
        self.own_words = [word for _, word in own]
        """The words that neither repeat the question nor hold the answer together."""
        self.told = [word for i, word in own if i and i not in self.refused]
        """Of these, all but the answer's first word and those of refusals."""

    def asks(self, key: str) -> bool:
        """Return whether the question holds a word of this list."""
        return self.tables.any_of(key, self.question_words)


def _last_word(text: Text, known: Tables) -> Text:
    """Return the text after its last change of mind, where something follows."""
    words, gaps, contrasts = text.words, text.gaps, known.words["contrasts"]
    ends = [
        end for start, end in known.phrases["reversals"].spans(words)
        if start > 0 and end < len(words)
        and (BREAK.search(gaps[start]) or words[start - 1] in contrasts)
        and (end - start > 1 or BREAK.search(gaps[end]))
    ]  # fmt: skip
    last = ends[-1] if ends else 0
    return Text(words[last:], gaps[last:])


def _refusals(text: Text, known: Tables) -> Iterator[tuple[int, int]]:
    words, gaps, knowing = text.words, text.gaps, known.words["knowing"]
    yield from known.phrases["refusals"].spans(words)
    yield from known.phrases["clarifications"].spans(words)
    for place in (i for i, word in enumerate(words) if word in known.words["denying"]):
        before = words[max(0, place - _BACK) : place]
        if words[place] in known.words["impersonal"] and not known.any_of(
            "speakers", before
        ):
            continue
        for end in range(place + 1, min(len(words), place + 1 + _REACH)):
            if words[end] in knowing and not BREAK.search(
                "".join(gaps[place + 1 : end + 1])
            ):
                yield place, end + 1
                break
