"""When a slice is asked no more, because each of its items fails in the same way and costs.

Two failures come at every item alike. A judge without function calls, or with too little
room for its reply, gives no verdict that can be read. A model that talks without end in one
language has no reply in time. After IN_A_ROW such failures of a slice, one after the other,
the slice is stopped; what is kept of its other items still counts.

Unreadable verdicts in a second slice show that the slice is not to blame, and end the run's
calls. Time-outs do not: whether the server is silent, the runtime sees by itself.
"""

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

from qagate.evaluators import core
from qagate.evaluators.runtime.server import TIMEOUT

UNREADABLE = "judge_unreadable"
"""The kind of an outcome whose judge's replies could not be read."""

SLICE_STOPPED = "slice_stopped"
"""The kind under which an engine says why it asked slices no more."""

IN_A_ROW = 10
"""Failures of one kind and slice, without a success in between, that stop the slice."""

SLICES_TO_END = 2
"""So many slices that were stopped by unreadable verdicts end the run's calls."""

_WHAT_FAILED: Mapping[str, str] = {
    UNREADABLE: "verdicts in a row could not be read, so its judge was asked no more",
    TIMEOUT: "items in a row had no reply in time, so no more were asked",
}


def slice_name_of(case: core.Case) -> str:
    """Return the name of the slice that a case is of."""
    return f"{case.dataset}:{case.language}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceStop:
    """Why a slice is asked no more."""

    kind: str
    """UNREADABLE or TIMEOUT."""
    reason: str
    """In one line, with the latest failure."""


class SliceStops:
    """Counts the failures of a run that stop slices.

    Attributes::

    :stopped: Why no further item of a slice is asked, by the slice's name.

    :_in_a_row: The latest failures of each slice by kind, without a success after them.

    :_unreadable: How many slices were stopped by unreadable verdicts.
    """

    def __init__(self) -> None:
        self.stopped: dict[str, SliceStop] = {}
        self._in_a_row: defaultdict[str, Counter[str]] = defaultdict(Counter)
        self._unreadable = 0

    @property
    def ends_run(self) -> bool:
        """Whether no judge can be read, so that nothing more should be asked."""
        return self._unreadable >= SLICES_TO_END

    def note(self, case: core.Case, outcome: core.Outcome) -> bool:
        """Count how an item ended, and return whether that stops its slice.

        An item of which a judge read nothing tells nothing about the judge, and one for which
        nothing was sent nothing about time.
        """
        slice_name = slice_name_of(case)
        in_a_row = self._in_a_row[slice_name]
        was_judged = outcome.graded.at is not None
        if was_judged and outcome.kind != UNREADABLE:
            in_a_row[UNREADABLE] = 0
        if outcome.usage.requests and outcome.kind != TIMEOUT:
            in_a_row[TIMEOUT] = 0
        is_failure = outcome.kind == TIMEOUT or (
            outcome.kind == UNREADABLE and was_judged
        )
        if slice_name in self.stopped or not is_failure:
            return False
        in_a_row[outcome.kind] += 1
        if in_a_row[outcome.kind] < IN_A_ROW:
            return False
        if outcome.kind == UNREADABLE:
            self._unreadable += 1
        what_failed = _WHAT_FAILED[outcome.kind]
        self.stopped[slice_name] = SliceStop(
            kind=outcome.kind,
            reason=f"{slice_name}: {IN_A_ROW} {what_failed}; {outcome.message}",
        )
        return True


def unasked_outcome(key: str, stop: SliceStop) -> core.Outcome:
    """Return the outcome of an item of a stopped slice. It counts as ungraded."""
    return core.Outcome(key=key, state="missing", kind=stop.kind, message=stop.reason)
