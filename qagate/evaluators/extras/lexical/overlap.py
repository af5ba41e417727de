"""The judge ``lexical`` for rated data: how many words and numbers an answer shares."""

from qagate.evaluators import core
from qagate.evaluators.languages.word_lists import (
    Tables,
    read,
    tables,
    within_limit,
)

STEM_LENGTH = 6
"""Two forms of one word are taken for the same by this many letters."""

ECHO_WEIGHT = 0.75
"""What a word counts that the question contains too."""


class OverlapRater:
    """Rates 1 to 10 by shared words and numbers; never asks a model."""

    spec = "lexical"

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        """Return the answer's rating. Raises JudgeError for an item without an expert answer."""
        if not case.expected.strip():
            message = (
                "no expert answer to compare with; only a model can rate this item"
            )
            raise core.JudgeError(message, kind="no_expert_answer")
        return rate(case, answer)


def rate(case: core.Case, answer: str) -> core.Verdict:
    """Return a rating of 1 (nothing shared) to 10 (the same words and numbers).

    It is the harmonic mean of precision and recall over content words and numbers, and measures
    similar wording, not truth.
    """
    language = tables(case.language)
    asked = _stems(case.question, language)
    expected = _stems(case.expected, language)
    answered = _stems(answer, language)
    total = _weight(expected, asked) + _weight(answered, asked)
    score = 0.0
    if total:
        score = 2 * _weight(expected & answered, asked) / total
    reason = f"shared words and numbers {score:.2f} (placeholder judge)"
    return core.Verdict(rating=1 + round(9 * score), reason=reason)


def _stems(text: str, language: Tables) -> set[str]:
    """Return the beginnings of a text's content words, and its numbers whole."""
    light_words = language.words["function"] | language.words["articles"]
    stems = set()
    for word in read(within_limit(text)).words:
        if word in light_words:
            continue
        stems.add(word if word.isdecimal() else word[:STEM_LENGTH])
    return stems


def _weight(stems: set[str], asked: set[str]) -> float:
    return len(stems - asked) + ECHO_WEIGHT * len(stems & asked)
