"""Where an answer declines in words of its own: clause by clause, in whatever order of words.

Set phrases and denied verbs of knowing are refusals by themselves. What is found here counts only
where nothing in the answer could be one: "I would have to look it up", "the name is not known to
me", "I know the bridge, but not the year".
"""

import re
from collections.abc import Iterator
from itertools import groupby

from evaluators.judges.lexical.answer_analysis import AnswerAnalysis
from evaluators.judges.lexical.word_matching import Span

_STOP = re.compile(r"[.;:!?\n…()—–]")
_LONG = 16  # words of a clause above which it says more than that
_STEM = 5  # letters that words of one stem share: libretto, librettist


def evasive_places(analysis: AnswerAnalysis) -> frozenset[int]:
    """Return the places of all words in clauses that decline to answer."""
    spans = [*_declining(analysis), *_half_known(analysis)]
    return frozenset(place for span in spans for place in range(*span))


def _declining(analysis: AnswerAnalysis) -> Iterator[Span]:
    """Yield the clauses with a word of each group of a row."""
    known = analysis.tables
    for start, end in _clauses(analysis):
        words = analysis.answer.words[start:end]
        if len(words) > _LONG or known.has_phrase("assuring", words):
            continue
        said = {*words}
        if any(not any(map(said.isdisjoint, row)) for row in known.evasions):
            yield start, end


def _clauses(analysis: AnswerAnalysis) -> Iterator[Span]:
    """Yield the clauses; one that a question word or "that" opens belongs to the one before."""
    words, gaps = analysis.answer.words, analysis.answer.gaps
    contrasts, *keys = map(
        analysis.tables.words, ("contrasts", "interrogatives", "subordinators", "relatives")
    )
    opening, start = frozenset[str]().union(*keys), 0
    for place in range(1, len(words)):
        split = "," in gaps[place] and opening.isdisjoint(words[place : place + 2])
        if split or words[place] in contrasts or _STOP.search(gaps[place]):
            yield start, place
            start = place
    yield start, len(words)


def _half_known(analysis: AnswerAnalysis) -> Iterator[Span]:
    """Yield what follows "I know X, but" where it denies what the question asks for.

    The first comma of a sentence may stand for a "but".
    """
    known, words, gaps = analysis.tables, analysis.answer.words, analysis.answer.gaps
    contrasts = known.words("contrasts")
    for _, sentence in groupby(range(len(words)), key=analysis.sentences.__getitem__):
        places = [*sentence]
        first, end = places[0], places[-1] + 1
        comma = next((place for place in places[1:] if "," in gaps[place]), first)
        turn = next((place for place in places[1:] if words[place] in contrasts), first)
        for place in {comma, turn}:
            before, after = words[first:place], words[place:end]
            affirmed = known.any_of("recalled", before) and not known.any_of("denying", before)
            if affirmed and len(after) <= _LONG and _denies_the_asked(after, analysis):
                yield first, first + 1  # whose capital says nothing
                yield place, end


def _denies_the_asked(words: tuple[str, ...], analysis: AnswerAnalysis) -> bool:
    """Say whether a denial is beside a question word, or a thing that is or may be asked for."""
    known = analysis.tables
    denied = any(known.any_of(key, words) for key in ("denying", "negations"))
    if not denied and not known.has_phrase("premise_denials", words):
        return False
    asked = {word[:_STEM] for word in analysis.question_words - analysis.idle_words}
    named = any(known.any_of(key, words) for key in ("interrogatives", "particulars"))
    return named or any(word[:_STEM] in asked for word in words)
