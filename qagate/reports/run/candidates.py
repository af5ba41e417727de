"""Several models beside one baseline at once, of which the best is to ship.

The best of many passes by chance more often than one does. So each PASS is held to Holm's level
over the candidates, and each FAIL to that over all their gates: Holm (1979), Scand. J. Stat. 6:65.
A candidate has to pass all its gates, which is stricter already, so for a PASS only candidates
count, not gates: Berger (1982), Technometrics 24:295.
"""

from dataclasses import dataclass
from typing import Annotated

import msgspec

AtLeastOne = Annotated[int, msgspec.Meta(ge=1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidates:
    """How many are decided together; the numbers are the same for each of them."""

    number: AtLeastOne = 1
    """Of candidates."""
    open: AtLeastOne = 1
    """Those that have not passed, at least one: a PASS is held to 2.5 % / open."""
    gates: AtLeastOne = 1
    """Their gates that have not failed, at least one: a FAIL is held to 5 % / gates."""

    @property
    def are_several(self) -> bool:
        """Whether there is more than one."""
        return self.number > 1

    def adjusted(self, p_value: float) -> float:
        """Return the p-value of a FAIL, adjusted for the number of gates of all candidates."""
        return min(1.0, p_value * self.gates)


ONE_CANDIDATE = Candidates()
