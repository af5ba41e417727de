"""The command of a run as the user typed it."""

import shlex
from collections.abc import Sequence

from qagate.evaluators.text import mask

LAST_BROUGHT = "ignore::pytest.PytestAssertRewriteWarning"
"""The last word that ``qagate run`` puts before the user's own; see commands/run.py."""


def typed_command(words: Sequence[object]) -> str:
    """Return what the user typed, without keys: ``qagate run`` brings options of its own."""
    typed = [str(word) for word in words]
    command = ["pytest", *typed]
    if typed[:1] == ["-p"] and LAST_BROUGHT in typed:
        command = ["qagate", "run", *typed[typed.index(LAST_BROUGHT) + 1 :]]
    return mask(shlex.join(command))
