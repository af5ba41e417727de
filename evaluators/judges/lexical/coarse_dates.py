"""Dates right as far as they go, and less precise than the gold: a year, a decade, a bound."""

from collections.abc import Iterator
from dataclasses import dataclass

from evaluators.judges.lexical.answer_analysis import AnswerAnalysis
from evaluators.judges.lexical.dates import is_year

_YEAR = "yyyy"  # what stands for a figure in the phrases around it
_NEAR = 2  # words on either side of a figure that may make it a bound or a decade
_DECADE = 10
_CENTURY = 100
_ALL = 10_000  # more than any year


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """The years from ``low`` up to ``high``, not included, of every ``cycle`` years.

    ``start`` is the place of its word in the answer.
    """

    low: int
    high: int
    cycle: int = _ALL
    start: int

    def holds(self, year: int) -> bool:
        """Say whether the year is in the period."""
        return self.low <= year % self.cycle < self.high


def is_coarse(analysis: AnswerAnalysis) -> bool:
    """Say whether the answer's dates and periods all leave room for a gold, and none is as fine."""
    golds = [form.date for form in analysis.forms if form.date]
    years = [gold.year for gold in golds if gold.year]
    words, asked = analysis.answer.words, analysis.question_words
    periods = [one for one in find_periods(analysis) if words[one.start] not in asked]
    taken = {period.start for period in periods}
    dates = [
        date for date in analysis.dates
        if not asked.issuperset(words[date.start : date.end]) and date.start not in taken
    ]  # fmt: skip
    if any(all(map(date.contradicts, golds)) for date in dates):
        return False
    if not all(any(map(period.holds, years)) for period in periods):
        return False
    coarser = any(date.agrees(gold) and not date.covers(gold) for date in dates for gold in golds)
    return coarser or bool(periods)


def find_periods(analysis: AnswerAnalysis) -> Iterator[Period]:
    """Yield the decades of the answer, and what "after" or "before" a year leaves open."""
    words, gaps, known = analysis.answer.words, analysis.answer.gaps, analysis.tables
    names = known.decade_names
    for place, word in enumerate(words):
        if word in names:
            low = int(names[word])
            yield Period(low=low, high=low + _DECADE, cycle=_CENTURY, start=place)
        if not (is_year(word) or (word.isdecimal() and len(word) == 2)):
            continue
        before = (*words[max(0, place - _NEAR) : place], _YEAR)
        after = words[place + 1 : place + 1 + _NEAR]
        grown = after if not gaps[place + 1].isspace() else ()  # "1990s", not "1990 s cílem"
        value = int(word)
        if value % _DECADE == 0 and known.has_phrase("decades", before + grown):
            cycle = _ALL if is_year(word) else _CENTURY
            yield Period(low=value, high=value + _DECADE, cycle=cycle, start=place)
        elif is_year(word) and known.has_phrase("later", before + after):
            yield Period(low=value, high=_ALL, start=place)
        elif is_year(word) and known.has_phrase("earlier", before + after):
            yield Period(low=0, high=value + 1, start=place)
