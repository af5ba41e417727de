"""Where a text declines to answer, and whether it does nothing else.

The words are those of a language (``languages/*.yaml``): set phrases, requests for details, and a
denying word with a word of knowing soon after it.
"""

import re
from collections.abc import Iterable, Iterator

from qagate.evaluators.languages.word_lists import Tables, Text, read, tables

BREAK = re.compile(r"[.,:;!?\n…()—–]")
"""What ends a clause."""

LONGEST_REFUSAL = 300
"""Characters. A longer text says more than that it declines."""
MAX_OTHER_WORDS = 3
"""Words of a bare refusal beside its phrases, the question's words and light ones."""
_KNOWING_AFTER_DENYING = 4
"""Words after a denying word within which a word of knowing makes a refusal."""
_SPEAKER_BEFORE_DENYING = 4
"""Words before it within which English names the speaker."""


def refusals(text: Text, language: Tables) -> Iterator[tuple[int, int]]:
    """Yield set phrases, requests for details, and "not" with "know" soon after it.

    Each is the place of its first word, and the place after its last.
    """
    words, gaps = text.words, text.gaps
    yield from language.phrases["refusals"].spans(words)
    yield from language.phrases["clarifications"].spans(words)
    for place, word in enumerate(words):
        if word not in language.words["denying"]:
            continue
        before = words[max(0, place - _SPEAKER_BEFORE_DENYING) : place]
        needs_speaker = word in language.words["impersonal"]
        if needs_speaker and not language.any_of("speakers", before):
            continue
        last = min(len(words), place + 1 + _KNOWING_AFTER_DENYING)
        for other in range(place + 1, last):
            if BREAK.search(gaps[other]):
                break
            if words[other] in language.words["knowing"]:
                yield place, other + 1
                break


def is_bare_refusal(
    text: str, *, language: str, question: str = "", golds: Iterable[str] = ()
) -> bool:
    """Return whether a text declines and does nothing else.

    It names nothing, counts nothing, guesses nothing, and has no word of a gold that the
    question lacks.
    """
    if len(text) > LONGEST_REFUSAL:
        return False
    known = tables(language)
    answer = read(text)
    declining: set[int] = set()
    for start, end in refusals(answer, known):
        declining.update(range(start, end))
    if not declining or any(known.phrases["hedges"].spans(answer.words)):
        return False
    asked = read(question).words
    light = known.words["idle"] | known.words["articles"]
    offers_options = known.any_of("alternatives", asked) or ":" in question
    if not offers_options:
        light = light | set(asked)
    other_places = [
        place
        for place, word in enumerate(answer.words)
        if place not in declining and word not in light
    ]
    others = [answer.words[place] for place in other_places]
    if len(others) > MAX_OTHER_WORDS or any(word.isdecimal() for word in others):
        return False
    if others and _parts_something(answer, known, min(other_places), declining):
        return False
    if not _names(text).isdisjoint(others):
        return False
    if offers_options and not set(asked).isdisjoint(others):
        return False
    return _gold_words(golds).isdisjoint(set(answer.words) - set(asked) - light)


def _parts_something(
    answer: Text, known: Tables, first_other: int, declining: set[int]
) -> bool:
    """Return whether a "but" or an "or" stands between a refusal and something else.

    "I am sorry, but I cannot help with that" only goes on to decline.
    """
    parting = known.words["contrasts"] | known.words["alternatives"]
    places = [place for place, word in enumerate(answer.words) if word in parting]
    if not places:
        return False
    goes_on_to_decline = max(declining) > max(places)
    return not goes_on_to_decline or first_other < min(declining)


_NAME = re.compile(r"(?<=[^\s.!?…:])\s+[\"'(\[“„«*]*([^\W\d_]\w*)")


def _names(text: str) -> set[str]:
    """Return the words with a capital that do not open a sentence, as they are compared."""
    names: set[str] = set()
    for word in _NAME.findall(text):
        if word[0].isupper():
            names.update(read(word).words)
    return names


def _gold_words(golds: Iterable[str]) -> set[str]:
    words: set[str] = set()
    for gold in golds:
        words.update(read(gold[:LONGEST_REFUSAL]).words)
    return words
