"""How a run reads the answers of an earlier one: by its own judge, golds and words.

Two runs are compared by their answers. What the earlier run said of its answers is no part of
the comparison: this run's judge reads both sides. Where golds, words or checks differ between
the runs, the answers of both sides are read once more as the earlier run would have read them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from qagate.reports.run.record import Record


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The records of an earlier run's answers, as this run's judge reads them."""

    old: tuple[Record, ...] = ()
    """The earlier answers to items that both runs have, by today's golds, words and checks.

    An item whose question or context was edited is read by the earlier run's own question.
    """
    old_then: tuple[Record, ...] = ()
    """The same by the golds, words and checks of then; only items where these differ."""
    new_then: tuple[Record, ...] = ()
    """This run's own answers by the golds, words and checks of then; the same items."""
    lacking: Mapping[str, str] = field(default_factory=dict)
    """Why grades of a slice are lacking that may not be asked, by the name of the slice."""
