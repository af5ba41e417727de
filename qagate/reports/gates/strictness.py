"""How strict paired gates are: each further set of answers to the same items is held to more.

A model that is asked again and again passes in the end by chance. So the k-th set of answers of
one model beside one baseline is held to 2.5 % / k², which keeps the chance of a wrong PASS in
any number of tries below 4.2 % (the sum of 1 / k² is 1.64). Candidates that are decided together
divide that again (``run/candidates.py``).
"""

from dataclasses import dataclass
from statistics import NormalDist

from qagate.reports.run.candidates import ONE_CANDIDATE, Candidates

ONE_SIDED = 0.025
"""The chance of a wrong PASS that one set of answers may have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Strictness:
    """What the ends of intervals must hold in a paired gate."""

    tries: tuple[str, ...] = ()
    """How the earlier sets of answers ended, oldest first, such as ``FAIL``."""
    candidates: Candidates = ONE_CANDIDATE
    """The models that are decided together."""

    @property
    def number(self) -> int:
        """Which set of answers this is, from 1."""
        return len(self.tries) + 1

    @property
    def tail(self) -> float:
        """The error that each end of an interval may have."""
        return ONE_SIDED / self.number**2 / self.candidates.open

    @property
    def capital(self) -> float:
        """What a bet has to reach where a gate is decided one by one; 40 for the first set."""
        return 1 / self.tail

    @property
    def z(self) -> float:
        """The normal quantile of that end; 1.96 for the first set."""
        return NormalDist().inv_cdf(1 - self.tail)


FIRST_SET = Strictness()
"""Of a model whose answers to these items are read for the first time."""
