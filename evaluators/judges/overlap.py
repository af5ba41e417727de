"""An offline stand-in for the rater: how much of the expert's answer the answer shares."""

from evaluators.core import Ask, Case, Verdict
from evaluators.judges.lexical.answer_analysis import LIMIT
from evaluators.judges.lexical.folding import read
from evaluators.judges.lexical.language_tables import Tables, tables

_STEM = 6  # letters by which two forms of one word are taken for the same
_ECHO = 0.75  # weight of a word that the question has given away


class OverlapRater:
    """Rates 1 to 10 by shared words and numbers; never asks a model."""

    spec = "lexical"

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return the rating of an answer against the expert's; never raises and never asks."""
        return rate(case, answer)


def rate(case: Case, answer: str) -> Verdict:
    """Return a rating of 1 (nothing shared) to 10 (the same words and numbers).

    It is the harmonic mean of precision and recall of content words and numbers, in which a word
    of the question counts three quarters. It measures likeness of wording, not truth, and its
    reason says that it stands in.
    """
    known = tables(case.language)
    asked, expected, said = (_stems(text, known) for text in (case.question, case.expected, answer))
    shared = _weight(expected & said, asked)
    total = _weight(expected, asked) + _weight(said, asked)
    score = 2 * shared / total if total else 0.0
    reason = f"shared words and numbers {score:.2f} (offline stand-in)"
    return Verdict(rating=1 + round(9 * score), reason=reason)


def _stems(text: str, known: Tables) -> frozenset[str]:
    """Return the stems of a text's content words, and its numbers as they stand."""
    light = known.words("function") | known.words("articles")
    words = (word for word in read(text[:LIMIT]).words if word not in light)
    return frozenset(word if word.isdecimal() else word[:_STEM] for word in words)


def _weight(stems: frozenset[str], asked: frozenset[str]) -> float:
    return len(stems - asked) + _ECHO * len(stems & asked)
