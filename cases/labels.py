"""What the gold says the verdict must be: yes or no, a grade, or a rating."""

import re
from collections.abc import Mapping

from cases.problems import shown
from evaluators.core import CORRECT, GRADES, INCORRECT, NO, NOT_ATTEMPTED, YES

YES_WORDS = frozenset({"yes", "true", "так", "да", "tak", "igen"})
NO_WORDS = frozenset({"no", "false", "не", "nie", "nem"})
LETTERS: Mapping[str, str] = {"A": CORRECT, "B": INCORRECT, "C": NOT_ATTEMPTED}
RATING = re.compile(r"[1-9]|10", re.ASCII)


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
    msg = f"want {own}, got {shown(text)}"
    raise ValueError(msg)


def grade_or_rating(text: str) -> str:
    """Return a grade (from its word or letter) or a rating of 1 to 10 in digits.

    Raises ValueError for anything else.
    """
    word = "_".join(re.split(r"[\s_-]+", text.strip().upper()))
    grade = LETTERS.get(word, word)
    if grade in GRADES or RATING.fullmatch(grade):
        return grade
    msg = f"want {', '.join(GRADES)}, a letter A, B, C, or a rating 1 to 10; got {shown(text)}"
    raise ValueError(msg)
