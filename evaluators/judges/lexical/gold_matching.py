"""Every way in which a gold form may be in an answer, from the strictest to the loosest."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise, takewhile

from evaluators.judges.lexical.answer_analysis import AnswerAnalysis
from evaluators.judges.lexical.dates import Date
from evaluators.judges.lexical.gold_forms import DASHES, Form
from evaluators.judges.lexical.numbers import Quantity
from evaluators.judges.lexical.word_matching import PersonName, Span, Tolerance, find_run

TOGETHER = "every word of the gold stands in the answer"
FULL_NAME = "given and family name are the gold's"
_NAMES = 6  # words that a person's name may have
_VERSION = 2  # figures from which a row of them must be the same: 1.4.4 is not 1.4.1
_MANY = 3  # plain words of a gold of which one may be missing
_SHORT = 8  # own words of an answer in which that is enough
_PARTS = 2  # words of a gold that an answer in fewer words must have
_LISTED = 40  # own words of an answer that is nothing but a list
_ROOM = 4  # words that may be between the words of one name


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A place of an answer that may be a gold: word positions, end excluded.

    ``rule`` says in plain words why it is taken for the gold; ``exact`` that nothing differs.
    """

    form: Form
    analysis: AnswerAnalysis
    start: int
    end: int
    rule: str
    exact: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the match."""
        return self.analysis.answer.words[self.start : self.end]

    def before(self, count: int) -> tuple[str, ...]:
        """Return up to so many words before the match."""
        return self.analysis.answer.words[max(0, self.start - count) : self.start]

    def after(self, count: int) -> tuple[str, ...]:
        """Return up to so many words after the match."""
        return self.analysis.answer.words[self.end : self.end + count]


def find_matches(form: Form, analysis: AnswerAnalysis) -> Iterator[Match]:
    """Yield the places where the form is in the answer."""
    return _Search(form=form, analysis=analysis).matches()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Search:
    """The search for one form in one answer."""

    form: Form
    analysis: AnswerAnalysis

    def matches(self) -> Iterator[Match]:
        form, answer = self.form, self.analysis.answer
        if form.place and not self.analysis.asks_one_place:
            return
        if form.light and not self._is_set_off():
            return
        if form.date:
            yield from self._dates(form.date)
        elif form.quantity:
            yield from self._quantities(form.quantity)
        else:
            sign = form.text.gaps[-1][:1] if form.signed else ""  # A+ is not A-
            for span in find_run(form.text.words, answer):
                if answer.gaps[span[1]].startswith(sign):
                    yield self._match(span, "the gold stands in the answer", exact=True)
            if not form.signed:
                yield from self._loose()

    def _is_set_off(self) -> bool:
        """Say whether a gold of small words ("The Who") is written as a name within the answer."""
        capitals, words = self.analysis.capitals, self.analysis.answer.words
        return any(word in words[1:] for word in self.form.text.words if word in capitals)

    def _match(self, span: Span, rule: str, *, exact: bool = False) -> Match:
        start, end = span
        return Match(
            form=self.form, analysis=self.analysis, start=start, end=end, rule=rule, exact=exact
        )

    def _dates(self, gold: Date) -> Iterator[Match]:
        """Yield dates that have all of the gold's parts and do not contradict a finer gold form."""
        only_year = gold.year and self.analysis.asks_only_year
        wanted = replace(gold, month=None, day=None) if only_year else gold
        others = (form.date for form in self.analysis.forms if form.date)
        finer = [other for other in others if other.covers(gold) and not gold.covers(other)]
        for date in self.analysis.dates:
            if date.covers(wanted) and (not finer or any(date.agrees(fine) for fine in finer)):
                yield self._match((date.start, date.end), "the date is the gold's", exact=True)

    def _quantities(self, gold: Quantity) -> Iterator[Match]:
        """Yield figures that agree with the gold's, and do not only repeat the question.

        A figure repeats the question where it is in it too, beside the same word.
        """
        rule = "the number agrees to the gold's last significant figure"
        asked = set(pairwise(self.analysis.question.words))
        for place, found in enumerate(self.analysis.quantities):
            near = self.analysis.answer.words[max(0, found.start - 1) : found.start + 2]
            ends = self._ends(place) if self.form.limits else [found]
            if all(self._fits(end, gold) for end in ends) and asked.isdisjoint(pairwise(near)):
                yield self._match((found.start, found.end), rule, exact=self._is_exact(found, gold))

    def _is_exact(self, found: Quantity, gold: Quantity) -> bool:
        return found.values == gold.values or (
            self.form.limits is not None and found.shares_unit(gold)
        )

    def _ends(self, place: int) -> list[Quantity]:
        """Return a figure with those beside it that a dash makes one range with it."""
        figures = self.analysis.quantities[max(0, place - 1) : place + 2]
        found, gaps = self.analysis.quantities[place], self.analysis.answer.gaps
        joined = (
            pair for pair in pairwise(figures)
            if pair[0].end == pair[1].start and gaps[pair[0].end].strip() in DASHES
        )  # fmt: skip
        return [found, *(end for pair in joined for end in pair)]

    def _fits(self, found: Quantity, gold: Quantity) -> bool:
        limits = self.form.limits
        if not gold.digits and found.unit != gold.unit:
            return False  # "a week" needs the word
        values: Sequence[float] = found.values
        if not found.shares_unit(gold):
            if not limits:
                return found.converts_to(gold, self.analysis.tables)
            values, _ = found.in_unit(gold.unit, self.analysis.tables)
        if limits:
            return any(limits[0] <= value <= limits[1] for value in values)
        measured = found.measures(gold, self.analysis.tables)
        return measured or found.rounds_to(gold) or found.shortens(gold)

    def _loose(self) -> Iterator[Match]:
        form, analysis, answer = self.form, self.analysis, self.analysis.answer
        crossed = (form.text.cyrillic and answer.latin) or (form.text.latin and answer.cyrillic)
        tolerance = Tolerance(tables=analysis.tables, names=form.named, scripts=crossed)
        if not analysis.asks("persons"):
            yield from self._inside()
        yield from self._every_item(tolerance)
        known = analysis.question_words
        if not form.common.issuperset(form.content):  # beside a name, "state" only says its sort
            known = known | analysis.tables.words("generic")
        implied = analysis.question_head | (form.common & known)
        if analysis.asks("kin"):  # the children of Obama are called Obama
            implied |= analysis.question_words
        needed = [word for word in form.content if form.lettered or word not in implied]
        version = len(needed) > _VERSION and all(word.isdecimal() for word in needed)
        if needed and not version and not analysis.question_words.issuperset(needed):
            yield from self._together(needed, tolerance, TOGETHER)
            yield from self._nearly(needed, tolerance)
        if form.named and len(form.content) <= _NAMES:
            yield from self._person(tolerance)

    def _person(self, tolerance: Tolerance) -> Iterator[Match]:
        """Yield where a person is named; "school" and the "and" of a list are in no such name."""
        analysis, answer = self.analysis, self.analysis.answer
        if any(analysis.tables.any_of(key, self.form.text.words) for key in ("generic", "joiners")):
            return
        if self._is_list():
            return
        own_words = analysis.own_words if analysis.asks("persons") else ()
        kin = analysis.asks("kin")
        own_words = analysis.own_words if kin else own_words
        name = PersonName(
            words=self.form.content, own_words=own_words, tolerance=tolerance, kin=kin
        )
        alone = "the answer is the family name alone"
        for rule, spans in ((FULL_NAME, name.full(answer)), (alone, name.alone(answer))):
            for start, end in spans:
                if not analysis.question_words.issuperset(answer.words[start:end]):
                    yield self._match((start, end), rule)

    def _inside(self) -> Iterator[Match]:
        """Yield the whole answer where it is a gold without some words that only describe it.

        What is left must hold the gold's last word ("1824 election" of "the disputed 1824
        election") or be its head before a small word ("RAF Coningsby" of "RAF Coningsby in
        Lincolnshire").
        """
        form, analysis, content = self.form, self.analysis, self.form.content
        figures = all(word.isdecimal() for word in content)
        if self._is_list() or not analysis.own_words or len(content) < _PARTS or figures:
            return
        alike = Tolerance(tables=analysis.tables, names=form.named).alike
        if not all(any(alike(word, own) for word in content) for own in analysis.own_words):
            return
        words = analysis.answer.words
        met = [any(alike(word, said) for said in words) for word in content]
        ended = met[-1] and not form.named  # York University is not New York University
        head = len([*takewhile(content.__contains__, form.text.words)])
        if sum(met) >= _PARTS and (ended or all(met[:head])):
            yield self._match((0, len(words)), "the answer is the gold in fewer words")

    def _every_item(self, tolerance: Tolerance) -> Iterator[Match]:
        """Yield an answer that has a word of every item of a list, and nothing else of its own."""
        items, own = self.form.items, self.analysis.own_words
        if len(items) < _PARTS or not 0 < len(own) <= _LISTED:
            return
        if any(len(item) < _PARTS for item in items) and not self.analysis.asks("kin"):
            return  # Ireland is not Northern Ireland
        met = [any(tolerance.alike(word, said) for word in item for said in own) for item in items]
        words = [word for item in items for word in item]
        if all(met) and all(any(tolerance.alike(word, said) for word in words) for said in own):
            yield self._match(
                (0, len(self.analysis.answer.words)), "every item of the gold is named"
            )

    def _is_list(self) -> bool:
        words, known = self.form.text.words, self.analysis.tables
        joined = known.any_of("joiners", words) or known.any_of("alternatives", words)
        return joined or any("," in gap for gap in self.form.text.gaps)

    def _nearly(self, needed: list[str], tolerance: Tolerance) -> Iterator[Match]:
        """Yield a short answer that has all but one of three or more plain words of the gold."""
        form, analysis = self.form, self.analysis
        long = len(analysis.own_words) > _SHORT
        if form.named or len(needed) < _MANY or long or self._is_list():
            return
        missed = [word for word in needed if not tolerance.places_of(word, analysis.answer)]
        strict = analysis.tables.words("negations") | analysis.tables.numbers.keys()
        rest = [word for word in needed if word not in missed]
        worded = sum(not word.isdecimal() for word in rest) >= _PARTS
        if len(missed) == 1 and worded and form.common - strict >= {*missed}:
            rule = "all but one word of the gold stand in the answer"
            yield from self._together(rest, tolerance, rule)

    def _together(self, needed: list[str], tolerance: Tolerance, rule: str) -> Iterator[Match]:
        """Yield the narrowest stretch that holds all the words, if it is narrow enough."""
        groups = []
        for word in needed:
            groups.append(tolerance.places_of(word, self.analysis.answer))
            if not groups[-1]:
                return
        start, end = _narrowest(groups)
        room = 0 if self.form.lettered else len(groups) * 2 + _ROOM
        if end - start <= len(groups) + room:
            yield self._match((start, end), rule)


def _narrowest(groups: list[list[int]]) -> Span:
    """Return the shortest stretch of positions with one of every group; linear in positions."""
    merged = sorted((place, kind) for kind, places in enumerate(groups) for place in places)
    last: dict[int, int] = {}
    best = (0, 1 << 60)
    for place, kind in merged:
        last[kind] = place
        if len(last) == len(groups):
            start = min(last.values())
            if place + 1 - start < best[1] - best[0]:
                best = (start, place + 1)
    return best
