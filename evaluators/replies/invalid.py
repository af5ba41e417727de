"""A reply without a single reading."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Invalid:
    """Says in a few words why a reply is no verdict."""

    reason: str
