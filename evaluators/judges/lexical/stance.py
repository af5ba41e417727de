"""Where an answer stands in the end: its last word, whether it declines, what it still offers."""

import re
from collections.abc import Iterator
from dataclasses import replace

from evaluators.judges.lexical.folding import Text
from evaluators.judges.lexical.language import Tables

_STOP = re.compile(r"[.;!?\n…]")
_BREAK = re.compile(r"[.,:;!?\n…()—–]")
_REACH = 4  # words after a denying word within which a word of knowing makes a refusal
_BACK = 4  # words before it among which its speaker stands, where the language names one

Span = tuple[int, int]


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
