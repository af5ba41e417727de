"""A rating in parts: the scores that a judge gives, and the one rating that they make together.

A rubric's table has, for each part, the highest rating that each of its scores leaves, from score 0
up. The top score leaves 10.
"""

import re
from collections.abc import Mapping

from evaluators.settings import Settings

Caps = Mapping[str, tuple[int, ...]]
"""The parts in their order: for each score from 0 up, the highest rating that it leaves."""

BEST = 10
_NAME = re.compile(r"(?!(?:reason|rating)\Z)[a-z][a-z_]{1,39}")
_CAP = re.compile(r"[1-9]|10")


def combined(caps: Caps, scores: Mapping[str, int]) -> int:
    """Return the rating, 1 to 10, of these scores, of which every part has one.

    It is the lowest cap, less one for each other part that is below its top score too: faults add
    up, and none makes good for another.
    """
    left = [levels[scores[name]] for name, levels in caps.items()]
    faults = sum(cap < BEST for cap in left)
    return max(1, min(left) - max(0, faults - 1))


def read_caps(settings: Settings) -> dict[str, tuple[int, ...]]:
    """Return the table under ``parts``, nothing where the key is absent. Raises UsageError."""
    parts = settings.part("parts")
    return {name: _levels(parts, name) for name in parts.values}


def _levels(parts: Settings, name: str) -> tuple[int, ...]:
    if not _NAME.fullmatch(name):
        what = "want a name of small letters and _, neither 'reason' nor 'rating'"
        raise parts.problem(name, what)
    words = parts.words(name)
    caps = tuple(int(word) for word in words if _CAP.fullmatch(word))
    if len(caps) < max(2, len(words)) or list(caps) != sorted(caps) or caps[-1] != BEST:
        what = "want a rating for each score from 0 up, none below the one before, the last 10"
        raise parts.problem(name, f"{what}; got {', '.join(words)!r:.60}")
    return caps
