"""What tells a run from every other.

It stands apart from the ledger, which keeps it: tests in xdist's workers read it with each
engine's status, and load no ledger.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class RunIdentity:
    """What tells a run from every other."""

    id: str
    """Unlike that of any other run; empty for a command that is none."""
    started: float
    """When its first process began, in seconds since 1970."""


NO_RUN = RunIdentity(id="", started=0.0)
"""Of commands whose replies any run may use."""
