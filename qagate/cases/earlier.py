"""What earlier runs answered to the items of this one, as pure data for its tasks.

Each planned item may have an answer of the baseline and one of the anchor. Today's judge reads
them by today's case. Of an item that was edited, the old answer belongs to the old question, and
is read by that. Where golds, words or checks were others then, the answers of both runs are read
by those of then as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from qagate.cases.dataset import Slice
from qagate.evaluators.core import Case

BASELINE = "baseline"
ANCHOR = "anchor"
"""What an earlier run is for."""

NOW = ""
"""After a role it names a reading: the earlier answer by today's golds, words and checks."""
THEN = ":then"
"""The earlier answer by those of then."""
NOW_THEN = ":now-then"
"""This run's answer by those of then."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierAnswer:
    """The answer of an earlier run to one item, and the cases by which answers are read."""

    reply: str | None
    """The reply as it came; None where that run had none."""
    case: Case
    """The case by which the old answer is read now: today's, or of an edited item that of then."""
    then: Case | None = None
    """The item with the golds of then; None where they are today's, or the item was edited."""
    finish: str = ""
    """How the reply ended; empty if nobody said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierAnswers:
    """The answers of one earlier run to the items of a plan."""

    role: str
    """BASELINE or ANCHOR."""
    model: str
    """The SPEC of the model that was asked, as ``asked_spec`` gives it."""
    by_key: Mapping[str, EarlierAnswer] = field(default_factory=dict)
    """By the key of the planned item."""
    slices_then: Mapping[str, Slice] = field(default_factory=dict)
    """The slices, by name, whose words or checks were others then, with those of then."""
