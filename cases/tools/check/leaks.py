"""Questions that give their answer away."""

from collections.abc import Iterator

from cases.tools.check.findings import Note, Subject, warning
from evaluators.core import Case
from evaluators.judges.lexical.folding import read, without
from evaluators.judges.lexical.language_tables import Tables, tables
from evaluators.text import shown

FEWEST_LETTERS = 4


def leaked_golds(subject: Subject) -> Iterator[Note]:
    """Yield the items whose question holds a gold form of four letters or more as whole words.

    A question that offers a choice ("X or Y") names its answer rightly, and yes and no are told
    by no question.
    """
    if subject.slice_.kind.words:
        return
    own = tables(subject.slice_.language)
    for case in subject.cases:
        gold = _leaked(case, own)
        if gold:
            message = (
                f"gold {shown(gold)} stands in the question {shown(case.question)}; "
                "reword the question or drop this form"
            )
            yield warning(case.row, message)


def _leaked(case: Case, own: Tables) -> str:
    words = read(case.question).words
    if own.words("alternatives") & set(words[1:]):  # as a first word it may only ask
        return ""
    question = f" {' '.join(words)} "
    return next((gold for gold in case.golds if _core(gold, own) in question), "")


def _core(gold: str, own: Tables) -> str:
    """Return a gold's folded words between spaces; where they are too short, what no text holds."""
    words = without(read(gold), own.words("articles")).words
    letters = sum(len(word) for word in words if word.isalpha())
    return f" {' '.join(words)} " if letters >= FEWEST_LETTERS else "\n"
