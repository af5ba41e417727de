"""Which items need no longer be asked: what an engine asks whoever decides on the answers.

The engine knows nothing of gates. It asks in a fixed order, says how each item ended, and hears
which of the others are of no use any more.
"""

from collections.abc import Collection
from typing import Protocol

from evaluators.core import Outcome

DECIDED = "decided"
"""The kind of an outcome ``stopped``."""


class Stopping(Protocol):
    """Says when enough was asked. All its methods return at once and have no other effect."""

    def select(self, keys: Collection[str]) -> None:
        """Note which of the planned items are asked at all."""

    def is_due(self, key: str) -> bool:
        """Return whether an item may be asked now, rather than wait for those before it.

        Without waiting a slow call would let the others run ahead of what is to be decided.
        """

    def note(self, outcome: Outcome) -> Collection[str]:
        """Take in how an item ended; return the keys of those that need no longer be asked."""


def stopped(key: str) -> Outcome:
    """Return the outcome of an item that is not asked."""
    message = "not asked: the gates of its slice were settled without it"
    return Outcome(key=key, state="stopped", kind=DECIDED, message=message)
