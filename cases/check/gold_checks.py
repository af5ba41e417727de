"""Checks of golds that let wrong answers pass: words of the language, and what is too coarse."""

import re
from collections.abc import Iterator

from cases.check.alphabets import language_of
from cases.check.findings import Note, Subject, warning
from evaluators.core import Case
from evaluators.judges.lexical.folding import fold, read, without
from evaluators.judges.lexical.gold_forms import forms
from evaluators.judges.lexical.language_tables import tables
from evaluators.text import shown

_TAIL = re.compile(r"^[^,(]+, ([^,\d]+)$")


def function_words(subject: Subject) -> Iterator[Note]:
    """Yield the golds that are a function word of the language: nearly every answer holds it.

    Letters of another script count as the judges read them. A single letter, such as a blood
    group, is left alone.
    """
    if subject.slice_.kind.words:
        return
    own = tables(subject.slice_.language)
    light = set(fold(str(own.data[0].get("function", ""))).split()) - own.months.keys()
    for case in subject.cases:
        for gold in case.golds:
            words = without(read(gold), own.words("articles")).words
            if len(words) == 1 and len(words[0]) > 1 and words[0] in light:
                message = (
                    f"gold {shown(gold)} is a word that stands in most sentences of "
                    f"{subject.slice_.language!r}; drop this form or write more of it"
                )
                yield warning(case.row, message)


def coarse_golds(subject: Subject) -> Iterator[Note]:
    """Yield the golds that are true and say less than the question asks for.

    They are a month or a year where it asks for a day, and, where it asks for a town, what stands
    after the comma of another gold of the slice ("Toruń, Poland").
    """
    language = language_of(subject.slice_.language)
    if language is None or not subject.slice_.kind.by_rubric or subject.slice_.kind.rated:
        return
    tails = (_TAIL.match(gold) for case in subject.cases for gold in case.golds)
    lands = {tail[1].casefold() for tail in tails if tail}
    for case in subject.cases:
        day = language.day and language.day.search(case.question)
        town = language.town and language.town.search(case.question)
        for gold in case.golds:
            if day and _lacks_day(gold, case):
                message = f"gold {shown(gold)} has no day, which {shown(case.question)} asks for"
                yield warning(case.row, f"{message}; drop it or write the whole date")
            elif town and gold.strip().casefold() in lands:
                message = f"gold {shown(gold)} is wider than the town that the question asks for"
                yield warning(case.row, f"{message}: {shown(case.question)}; drop it")


def _lacks_day(gold: str, case: Case) -> bool:
    """Return whether a gold is nothing but a date without its day."""
    date = next((form.date for form in forms(gold, case.language)), None)
    return date is not None and date.year is not None and date.day is None
