"""When a judge that cannot be read is asked no more.

A judge without function calls, or with too little room for its reply, fails at every item
alike, and each failure is paid for. After IN_A_ROW unreadable verdicts of a slice, one after
the other, the slice is stopped; what is kept of its other items still counts. A second slice
that goes the same way shows that the slice is not to blame, and ends the run's calls.
"""

from collections import Counter

from qagate.evaluators import core

UNREADABLE = "judge_unreadable"
"""The kind of an outcome whose judge's replies could not be read."""

IN_A_ROW = 10
"""Unreadable verdicts of one slice, without a readable one in between, that stop it."""

SLICES_TO_STOP = 2
"""So many slices that were stopped end the run's calls."""


class UnreadableJudges:
    """Counts the verdicts of a run that could not be read.

    Attributes::

    :stopped: Why no further item of a slice is asked, by dataset and language.

    :_in_a_row: The latest unreadable verdicts of each slice, without a readable one after
       them.
    """

    def __init__(self) -> None:
        self.stopped: dict[tuple[str, str], str] = {}
        self._in_a_row: Counter[tuple[str, str]] = Counter()

    def reason_to_stop(self, case: core.Case) -> str:
        """Return why the item should not be asked; empty if it should."""
        return self.stopped.get((case.dataset, case.language), "")

    def ends_run(self) -> bool:
        """Return whether so many slices are stopped that nothing more should be asked."""
        return len(self.stopped) >= SLICES_TO_STOP

    def note(self, case: core.Case, outcome: core.Outcome) -> bool:
        """Count how an item ended, and return whether that stops its slice.

        An item whose judge was not asked tells nothing about the judge.
        """
        slice_ = case.dataset, case.language
        if outcome.graded.at is None or slice_ in self.stopped:
            return False
        if outcome.kind != UNREADABLE:
            self._in_a_row[slice_] = 0
            return False
        self._in_a_row[slice_] += 1
        if self._in_a_row[slice_] < IN_A_ROW:
            return False
        self.stopped[slice_] = (
            f"{case.dataset}:{case.language}: {IN_A_ROW} verdicts in a row could not be "
            f"read, so the judge was asked no more; {outcome.message}"
        )
        return True


def unasked_outcome(key: str, reason: str) -> core.Outcome:
    """Return the outcome of an item of a stopped slice. It counts as ungraded."""
    return core.Outcome(key=key, state="missing", kind=UNREADABLE, message=reason)
