"""Which run a process belongs to.

One run is one command with its shards, batches, attempts and repeats. Its id stands beside
each reply that it asked for.
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
