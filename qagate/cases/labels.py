"""What a given label says: yes or no, a grade, a rating, or only whether an answer is right."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from qagate.evaluators.core import CORRECT, GRADES, INCORRECT, NO, NOT_ATTEMPTED, YES
from qagate.evaluators.kinds import NOT_CORRECT
from qagate.evaluators.text import shown

YES_WORDS = frozenset({"yes", "true", "так", "да", "tak", "igen"})
NO_WORDS = frozenset({"no", "false", "не", "nie", "nem"})
RATING = re.compile(r"[1-9]|10", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d{1,9}(?:\.\d{1,9})?", re.ASCII)
_SCALE = re.compile(rf"({_NUMBER.pattern}):({_NUMBER.pattern})", re.ASCII)

OWN_RATER = re.compile(r"label_\d+")
"""A column, or a field of an item, with one rater's labels."""

TIED = "TIED"
"""What stands for the label of an answer on which as many raters say one thing as another."""

CONSTRUCTED = "constructed"
"""What ``label_source`` says of answers that were written to be hard for judges."""

DRAWN_GRADE = "drawn_grade"
"""The field of an answer that was drawn by what a judge said of it: the grade, or the band of
ratings, such as ``7-9``. ``qagate label`` draws the rare ones more often."""

DRAWN_SHARE = "drawn_share"
"""The field with the share, 0 to 1, that this grade or band had of all answers drawn from. By it
figures can be weighted back."""

DRAWN_FROM = "drawn_from"
"""The field with the ids of the runs that gave such an answer, with a space between them."""

WORDS: Mapping[str, str] = {
    CORRECT: CORRECT,
    "A": CORRECT,
    "RIGHT": CORRECT,
    "YES": CORRECT,
    "TRUE": CORRECT,
    INCORRECT: INCORRECT,
    "B": INCORRECT,
    "WRONG": INCORRECT,
    NOT_ATTEMPTED: NOT_ATTEMPTED,
    "C": NOT_ATTEMPTED,
    "ABSTAIN": NOT_ATTEMPTED,
    "ABSTAINED": NOT_ATTEMPTED,
    NOT_CORRECT: NOT_CORRECT,
    "NOTCORRECT": NOT_CORRECT,
    "NO": NOT_CORRECT,
    "FALSE": NOT_CORRECT,
    "OTHER": NOT_CORRECT,
}
"""The grade, or NOT_CORRECT, that a word means, written as ``_canonical`` returns it."""

GRADE_OF_LETTER: Mapping[str, str] = {
    "A": CORRECT,
    "B": INCORRECT,
    "C": NOT_ATTEMPTED,
}
BITS: Mapping[str, str] = {
    "1": CORRECT,
    "1.0": CORRECT,
    "0": NOT_CORRECT,
    "0.0": NOT_CORRECT,
}
"""Words for right and not right that could be ratings too."""


@dataclass(frozen=True, slots=True)
class Scale:
    """The ends of a file's own rating scale."""

    worst: float = 1.0
    best: float = 10.0

    @classmethod
    def parse(cls, text: str) -> "Scale":
        """Return the scale of ``WORST:BEST``, for instance ``0:5``. Raises ValueError."""
        message = f"want WORST:BEST, two different numbers such as 0:5; got {text!r}"
        match = _SCALE.fullmatch(text)
        if match is None:
            raise ValueError(message)
        worst = float(match[1])
        best = float(match[2])
        if worst == best:
            raise ValueError(message)
        return cls(worst=worst, best=best)

    def to_judges_scale(self, text: str) -> float:
        """Return what a number of this scale is on the judge's, where 1 is worst and 10 best.

        Raises ValueError for a text that is no number of this scale.
        """
        if not is_number(text):
            raise ValueError(f"want a plain number, got {shown(text)}")
        share = (float(text) - self.worst) / (self.best - self.worst)
        if not 0 <= share <= 1:
            raise ValueError(
                f"{text} is outside the scale {self.worst:g}:{self.best:g}"
            )
        return 1 + 9 * share


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelReading:
    """``labels:`` of a judged data set: how its files say what the label of an answer is."""

    column: str = ""
    """The column with the label; empty for the usual names, or for what the raters agree on."""
    raters: tuple[str, ...] = ()
    """The columns with one person's labels each; empty for the usual names."""
    scale: Scale | None = None
    """The scale of the ratings; None where they are whole numbers from 1 to 10."""
    two_way: bool = False
    """Whether labels count only as right or not right."""
    language: str = ""
    """The language of rows that name none; empty for the slice's."""


def yes_or_no(text: str, yes: str = "", no: str = "") -> str:
    """Return YES or NO for a label; ``yes`` and ``no`` are the slice's words. Raises ValueError."""
    word = text.strip().casefold()
    if word and (word in YES_WORDS or word == yes.strip().casefold()):
        return YES
    if word and (word in NO_WORDS or word == no.strip().casefold()):
        return NO
    wanted = "one word such as 'Yes' or 'No'"
    if yes and no:
        wanted = f"{yes!r} or {no!r}"
    raise ValueError(f"want {wanted}, got {shown(text)}")


def grade_or_rating(text: str, labels: Sequence[str] = GRADES) -> str:
    """Return a grade, of ``labels``, or a rating of 1 to 10 in digits. Raises ValueError.

    There are ratings only beside the usual grades.
    """
    if tuple(labels) != GRADES:
        return _one_of(labels, text)
    word = _canonical(text)
    if word in GRADE_OF_LETTER:
        return GRADE_OF_LETTER[word]
    if word in GRADES or RATING.fullmatch(word):
        return word
    raise ValueError(
        f"want {', '.join(GRADES)}, a letter A, B, C, or a rating 1 to 10; "
        f"got {shown(text)}"
    )


def _one_of(labels: Sequence[str], text: str) -> str:
    """Return the label that a text names, in any case. Raises ValueError."""
    label_of_word = {label.casefold(): label for label in labels}
    word = text.strip().casefold()
    if word not in label_of_word:
        raise ValueError(f"want {', '.join(labels)}; got {shown(text)}")
    return label_of_word[word]


def given_label(text: str, labels: Sequence[str] = GRADES) -> str:
    """Return ``grade_or_rating``, or CORRECT or NOT_CORRECT of a word such as yes or no."""
    if tuple(labels) != GRADES:
        return grade_or_rating(text, labels)
    word = _canonical(text)
    if word in WORDS:
        return WORDS[word]
    return grade_or_rating(text, labels)


def read_grade(text: str, labels: Sequence[str] = GRADES) -> str:
    """Return a grade of ``labels``, or NOT_CORRECT, for word, letter or 1/0. Raises ValueError."""
    if tuple(labels) != GRADES:
        return grade_or_rating(text, labels)
    word = _canonical(text)
    if word in WORDS:
        return WORDS[word]
    if word in BITS:
        return BITS[word]
    raise ValueError(f"want {', '.join(GRADES)}, A, B, C, yes or no; got {shown(text)}")


def is_number(text: str) -> bool:
    """Return whether a label is a plain number."""
    return _NUMBER.fullmatch(text) is not None


def _canonical(text: str) -> str:
    """Return a label as WORDS spells it: ``not attempted`` and ``Not-Attempted`` are one word."""
    parts = re.split(r"[\s_-]+", text.strip().upper())
    return "_".join(parts)
