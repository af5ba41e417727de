"""What several votes come to: one label, or nothing. Pure."""

from collections import Counter
from collections.abc import Sequence
from statistics import median_high, median_low

LOWEST, HIGHEST = 1, 10
"""The ends of the scale: among these a missing rating may be anything."""


def majority(grades: Sequence[str], missing: int = 0) -> str | None:
    """Return the grade with more votes than any other; None for a tie.

    With votes ``missing``, the one that none of them could overturn or bring to a tie.
    """
    counts = Counter(grades).most_common(2)
    first = counts[0] if counts else ("", 0)
    second = counts[1][1] if len(counts) > 1 else 0
    return first[0] if first[1] > second + missing else None


def middle(ratings: Sequence[int], missing: int = 0, *, alone: bool = False) -> int | None:
    """Return the median rating, of an even number the lower of the two in the middle.

    With votes ``missing``, the median that they could not move. ``alone`` asks that no other
    rating share the middle. None where there is none such.
    """
    if not ratings:
        return None
    every = [[*ratings, *[end] * missing] for end in (LOWEST, HIGHEST)]
    found = {median_low(some) for some in every}
    if alone:
        found |= {median_high(some) for some in every}
    return found.pop() if len(found) == 1 else None
