"""An offline stand-in for the rater: how much of the expert's answer the answer shares."""

from collections.abc import Iterable

from evaluators.core import Ask, Case, Verdict
from evaluators.lexical.exam import LIMIT
from evaluators.lexical.folding import read
from evaluators.lexical.language import Tables, tables

_STEM = 6  # letters by which two forms of one word are taken for the same
_FIGURES = 0.25  # weight of agreeing numbers and article references, where the expert gives any


class OverlapRater:
    """Rates 1 to 10 by shared words and numbers; never asks a model."""

    spec = "lexical"

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return the rating of an answer against the expert's; never raises and never asks."""
        return rate(case, answer)


def rate(case: Case, answer: str) -> Verdict:
    """Return a rating of 1 (nothing shared) to 10 (the same words and numbers).

    It measures likeness of wording, not truth, and its reason says that it stands in.
    """
    known = tables(case.language)
    expected, said = _features(case.expected, known), _features(answer, known)
    words = _f1(expected[0], said[0])
    figures = _f1(expected[1], said[1]) if expected[1] else words
    score = (1 - _FIGURES) * words + _FIGURES * figures
    reason = f"shared words {words:.2f}, shared numbers {figures:.2f} (offline stand-in)"
    return Verdict(rating=1 + round(9 * score), reason=reason)


def _features(text: str, known: Tables) -> tuple[frozenset[str], frozenset[str]]:
    """Return the stems of a text's content words, and its numbers."""
    words = read(text[:LIMIT]).words
    light = known.words("function") | known.words("articles")
    return _stems(word for word in words if word not in light), frozenset(
        word for word in words if word.isdecimal()
    )


def _stems(words: Iterable[str]) -> frozenset[str]:
    return frozenset(word[:_STEM] for word in words if not word.isdecimal())


def _f1(expected: frozenset[str], said: frozenset[str]) -> float:
    """Return the harmonic mean of precision and recall of two sets; 0 where either is empty."""
    total = len(expected) + len(said)
    return 2 * len(expected & said) / total if expected and said else 0.0
