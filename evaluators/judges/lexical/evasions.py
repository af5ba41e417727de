"""Where an answer declines in words of its own: clause by clause, in whatever order of words.

Set phrases and denied verbs of knowing are refusals by themselves. What is found here counts only
where nothing in the answer could be one: "I would have to look it up", "the name is not known to
me", "I know the bridge, but not the year".
"""

import re
from collections.abc import Iterator
from itertools import groupby, pairwise

from evaluators.judges.lexical.answer_analysis import AnswerAnalysis
from evaluators.judges.lexical.language_tables import Tables
from evaluators.judges.lexical.word_matching import Span

_STOP = re.compile(r"[.;:!?\n…()—–]")
_COMMA = re.compile("[,;]")
_LONG = 16  # words of a clause above which it says more than that
_STEM = 5  # letters that words of one stem share: libretto, librettist


def evasive_places(analysis: AnswerAnalysis) -> frozenset[int]:
    """Return the places of all words in clauses that decline to answer."""
    spans = [*_declining(analysis), *_half_known(analysis)]
    return frozenset(place for span in spans for place in range(*span))


def _declining(analysis: AnswerAnalysis) -> Iterator[Span]:
    """Yield the clauses with a word of each group of a row.

    Where a figure or a name is asked for, so that an offer is plain to see, so do clauses in which
    the speaker denies anything of himself.
    """
    known = analysis.tables
    plain = all(form.named or form.quantity or form.date for form in analysis.forms)
    for start, end in _clauses(analysis):
        words = analysis.answer.words[start:end]
        if len(words) > _LONG or known.has_phrase("assuring", words):
            continue
        said = {*words}
        listed = any(not any(map(said.isdisjoint, row)) for row in known.evasions)
        if listed or (plain and _denies_of_itself(words, known)):
            yield start, end


def _denies_of_itself(words: tuple[str, ...], known: Tables) -> bool:
    """Say whether a clause has a denial, and the first person beside it or in the next verb."""
    denial = known.words("denying") | known.words("negations")
    if denial.isdisjoint(words):
        return False
    verbs = (verb for word, verb in pairwise(words) if word in denial)
    spoken = not known.first_person.isdisjoint(words)
    return spoken or any(verb.endswith(known.first_person_endings) for verb in verbs)


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

    The first comma of a sentence may stand for a "but", and a denial at its end for "not that".
    """
    known, words, gaps = analysis.tables, analysis.answer.words, analysis.answer.gaps
    contrasts = known.words("contrasts")
    for _, sentence in groupby(range(len(words)), key=analysis.sentences.__getitem__):
        places = [*sentence]
        first, end = places[0], places[-1] + 1
        comma = next((place for place in places[1:] if _COMMA.search(gaps[place])), first)
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
    denial = known.words("denying") | known.words("negations")
    if not denial.isdisjoint(words[-1:]):
        return True
    if denial.isdisjoint(words) and not known.has_phrase("premise_denials", words):
        return False
    asked = {word[:_STEM] for word in analysis.question_words - analysis.idle_words}
    named = any(known.any_of(key, words) for key in ("interrogatives", "particulars"))
    return named or any(word[:_STEM] in asked for word in words)
