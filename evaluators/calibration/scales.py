"""What a label says: a grade, or a number on the scale that the file uses."""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from evaluators.calibration.rows import shown
from evaluators.core import CORRECT, GRADES, INCORRECT, NOT_ATTEMPTED, UsageError

NOT_CORRECT = "NOT_CORRECT"
"""What a label says that only tells right from not right; also what a grade then counts as."""

WORDS: Mapping[str, str] = {
    **{grade: grade for grade in GRADES},
    **dict.fromkeys(("A", "RIGHT"), CORRECT),
    **dict.fromkeys(("B", "WRONG"), INCORRECT),
    **dict.fromkeys(("C", "ABSTAIN", "ABSTAINED"), NOT_ATTEMPTED),
    **dict.fromkeys(("YES", "TRUE", "1", "1.0"), CORRECT),
    **dict.fromkeys(("NO", "FALSE", "0", "0.0", NOT_CORRECT, "NOTCORRECT", "OTHER"), NOT_CORRECT),
}
_NUMBER = re.compile(r"[+-]?\d{1,9}(?:\.\d{1,9})?", re.ASCII)
_SCALE = re.compile(rf"({_NUMBER.pattern}):({_NUMBER.pattern})", re.ASCII)


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
            msg = f"{number:g} is outside the scale {self.worst:g}:{self.best:g}; give --scale"
            raise ValueError(msg)
        return 1 + 9 * share


def parse_scale(text: str) -> Scale:
    """Return the scale of ``WORST:BEST``, for instance ``0:5``. Raises UsageError."""
    match = _SCALE.fullmatch(text)
    if match is None or float(match[1]) == float(match[2]):
        msg = f"--scale {shown(text)}: want WORST:BEST, two different numbers such as 0:5"
        raise UsageError(msg)
    return Scale(float(match[1]), float(match[2]))


def read_grade(text: str) -> str:
    """Return a grade or NOT_CORRECT from its word, letter, or yes/no. Raises ValueError."""
    word = "_".join(re.split(r"[\s_-]+", text.strip().upper()))
    if word not in WORDS:
        names = ", ".join((*GRADES, "A, B, C", "yes or no"))
        msg = f"want {names}; got {shown(text)}"
        raise ValueError(msg)
    return WORDS[word]


def read_number(text: str, scale: Scale) -> float:
    """Return a number of the file's scale on the judge's, 1 to 10. Raises ValueError."""
    if not is_number(text):
        msg = f"want a plain number, got {shown(text)}"
        raise ValueError(msg)
    return scale.placed(float(text))


def is_number(text: str) -> bool:
    """Return whether a label is a plain number."""
    return _NUMBER.fullmatch(text.strip()) is not None


def rounded(value: float) -> int:
    """Return the nearest whole rating, halves upwards."""
    return math.floor(value + 0.5)
