"""Which kept replies may stand in for a call."""

import math
from dataclasses import dataclass

NEVER = math.inf
"""As ``Kept.since``: no reply of another run counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """The kept replies that count: those of one run, and of others those that are young enough."""

    run: str = ""
    """The id of the run whose own replies count, however old; empty for none."""
    since: float = 0.0
    """Seconds since 1970: replies of other runs count from then on. ``NEVER`` for none."""
    without: str = ""
    """The id of a run whose replies do not count; empty for none."""

    def counts(self, run: str, at: float) -> bool:
        """Return whether a reply that ``run`` asked for at this time may be used."""
        if self.without and run == self.without:
            return False
        if self.run and run == self.run:
            return True
        return at >= self.since


def only_of(run: str) -> Kept:
    """Return what lets the replies of one run count alone."""
    return Kept(run=run, since=NEVER)


ANY = Kept()
"""Every kept reply counts."""
