"""Where a text declines to answer, and whether it does nothing else.

The words are those of a language (``languages/*.yaml``). ``refusals`` finds whatever may decline,
for rules that read on. ``is_bare_refusal`` settles a grade without a judge, so it takes only
texts made of nothing but a refusal. What it misses costs one call of the judge.
"""

import re
from collections.abc import Iterable, Iterator

from qagate.evaluators.kinds import FALSE_PREMISE, UNANSWERABLE
from qagate.evaluators.languages.word_lists import Tables, Text, read, tables

BREAK = re.compile(r"[.,:;!?\n…()—–]")
"""What ends a clause."""

LONGEST_REFUSAL = 300
"""Characters. A longer text says more than that it declines."""
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

    All its words are those of ``declinations`` (what the speaker does not know or cannot help
    with) and the few that may stand beside them. Any other word may be an answer, and so may a
    text that shares a word with a gold, or a question that quotes a refusal.
    """
    if len(text) > LONGEST_REFUSAL:
        return False
    word_lists = tables(language)
    answer = read(text)
    declinations = word_lists.phrases["declinations"]
    declining: set[int] = set()
    for start, end in declinations.spans(answer.words):
        declining.update(range(start, end))
    if not declining or any(declinations.spans(read(question).words)):
        return False
    beside = word_lists.words["beside_declinations"]
    for place, word in enumerate(answer.words):
        if place not in declining and word not in beside:
            return False
    gold_words = _gold_words(golds) - word_lists.words["articles"]
    return gold_words.isdisjoint(answer.words)


def _gold_words(golds: Iterable[str]) -> set[str]:
    """Return the words of all golds but those that only describe an answer."""
    words: set[str] = set()
    for gold in golds:
        if not gold.strip().upper().startswith((UNANSWERABLE, FALSE_PREMISE)):
            words.update(read(gold[:LONGEST_REFUSAL]).words)
    return words
