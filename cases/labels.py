"""What a label says: yes or no, a grade, a rating, or a number on a file's own scale."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from evaluators.core import CORRECT, GRADES, INCORRECT, NO, NOT_ATTEMPTED, YES, UsageError
from evaluators.text import shown

Label = str | float

YES_WORDS = frozenset({"yes", "true", "так", "да", "tak", "igen"})
NO_WORDS = frozenset({"no", "false", "не", "nie", "nem"})
LETTERS: Mapping[str, str] = {"A": CORRECT, "B": INCORRECT, "C": NOT_ATTEMPTED}
RATING = re.compile(r"[1-9]|10", re.ASCII)
_NUMBER = re.compile(r"[+-]?\d{1,9}(?:\.\d{1,9})?", re.ASCII)
_SCALE = re.compile(rf"({_NUMBER.pattern}):({_NUMBER.pattern})", re.ASCII)

NOT_CORRECT = "NOT_CORRECT"
"""What a label says that only tells right from not right; also what a grade then counts as."""

CONSTRUCTED = "constructed"
"""What ``label_source`` says of answers that were written to be hard for judges."""

WORDS: Mapping[str, str] = {
    **{grade: grade for grade in GRADES},
    **dict.fromkeys(("A", "RIGHT"), CORRECT),
    **dict.fromkeys(("B", "WRONG"), INCORRECT),
    **dict.fromkeys(("C", "ABSTAIN", "ABSTAINED"), NOT_ATTEMPTED),
    **dict.fromkeys(("YES", "TRUE", "1", "1.0"), CORRECT),
    **dict.fromkeys(("NO", "FALSE", "0", "0.0", NOT_CORRECT, "NOTCORRECT", "OTHER"), NOT_CORRECT),
}


@dataclass(frozen=True, slots=True)
class Scale:
    """The ends of a file's own rating scale, worst first."""

    worst: float = 1.0
    best: float = 10.0

    def placed(self, number: float) -> float:
        """Return a number of this scale on the judge's, 1 to 10, by a straight line.

        Raises ValueError for one outside the scale.
        """
        share = (number - self.worst) / (self.best - self.worst)
        if not 0 <= share <= 1:
            raise ValueError(
                f"{number:g} is outside the scale {self.worst:g}:{self.best:g}; give --scale"
            )
        return 1 + 9 * share


def yes_or_no(text: str, yes: str = "", no: str = "") -> str:
    """Return YES or NO for one label word; ``yes`` and ``no`` are the slice's own words.

    Raises ValueError for anything else, several words included.
    """
    word = text.strip().casefold()
    if word in YES_WORDS | {yes.strip().casefold()} and word:
        return YES
    if word in NO_WORDS | {no.strip().casefold()} and word:
        return NO
    own = f"{yes!r} or {no!r}" if yes and no else "one word such as 'Yes' or 'No'"
    raise ValueError(f"want {own}, got {shown(text)}")


def grade_or_rating(text: str, labels: Sequence[str] = GRADES) -> str:
    """Return a grade (from its word or letter) or a rating of 1 to 10 in digits.

    ``labels`` are the grades of the slice's rubric. Raises ValueError for anything else.
    """
    if tuple(labels) != GRADES:
        named = {label.casefold(): label for label in labels}
        if text.strip().casefold() in named:
            return named[text.strip().casefold()]
        raise ValueError(f"want {', '.join(labels)}; got {shown(text)}")
    word = _word(text)
    grade = LETTERS.get(word, word)
    if grade in GRADES or RATING.fullmatch(grade):
        return grade
    raise ValueError(
        f"want {', '.join(GRADES)}, a letter A, B, C, or a rating 1 to 10; got {shown(text)}"
    )


def parse_scale(text: str) -> Scale:
    """Return the scale of ``WORST:BEST``, for instance ``0:5``. Raises UsageError."""
    match = _SCALE.fullmatch(text)
    if match is None or float(match[1]) == float(match[2]):
        raise UsageError(
            f"--scale {shown(text)}: want WORST:BEST, two different numbers such as 0:5"
        )
    return Scale(float(match[1]), float(match[2]))


def rounded(value: float) -> int:
    """Return the nearest whole rating, halves upwards."""
    return math.floor(value + 0.5)


def read_grade(text: str) -> str:
    """Return a grade or NOT_CORRECT from its word, letter, or yes/no. Raises ValueError."""
    word = _word(text)
    if word not in WORDS:
        names = ", ".join((*GRADES, "A, B, C", "yes or no"))
        raise ValueError(f"want {names}; got {shown(text)}")
    return WORDS[word]


def read_number(text: str, scale: Scale) -> float:
    """Return a number of the file's scale on the judge's, 1 to 10. Raises ValueError."""
    if not is_number(text):
        raise ValueError(f"want a plain number, got {shown(text)}")
    return scale.placed(float(text))


def is_number(text: str) -> bool:
    """Return whether a label is a plain number."""
    return _NUMBER.fullmatch(text) is not None


def _word(text: str) -> str:
    return "_".join(re.split(r"[\s_-]+", text.strip().upper()))
