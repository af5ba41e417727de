"""How far a run is, in a few short texts: counts, rates, cost, and what holds it up.

Nothing here writes: ``progress_display.py`` shows these texts. Rates are those of the last
30 seconds. At its start a run takes what the ledger holds within moments, which says nothing
of how fast the models answer.
"""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field

from qagate.evaluators.core import Outcome
from qagate.evaluators.number_text import money, part_of_cost
from qagate.evaluators.runtime.outcomes import Status

RECENT_SECONDS = 30.0
"""The time of which rates are shown."""
SECONDS_PER_MARK = 1.0
"""Marks stand at least so far apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """Where a run stood at a moment."""

    time: float
    """Monotonic, in seconds."""
    done: int = 0
    """Finished items."""
    requests: int = 0
    """Requests sent."""
    spent: float = 0.0
    """USD."""


@dataclass(slots=True)
class EndedItems:
    """Items whose tests have ended, until their outcomes are here.

    A worker may hear of an outcome before this process does: it reads a file, and this one a
    pipe. Such an item has a grade, and must not count as one without.
    """

    _keys: list[str] = field(default_factory=list)

    def add(self, key: str) -> None:
        """Note that an item's test has ended."""
        self._keys.append(key)

    def take(
        self, outcomes: Mapping[str, Outcome], *, all_left: bool = False
    ) -> list[tuple[str, Outcome | None]]:
        """Return the items whose outcomes are here, each once; with ``all_left`` all others too."""
        taken: list[tuple[str, Outcome | None]] = []
        waiting: list[str] = []
        for key in self._keys:
            outcome = outcomes.get(key)
            if outcome is None and not all_left:
                waiting.append(key)
            else:
                taken.append((key, outcome))
        self._keys = waiting
        return taken


@dataclass(slots=True, kw_only=True)
class Progress:
    """Counts finished items."""

    planned: int
    started: float
    """A monotonic time, in seconds."""
    priced: bool = True
    """Whether all costs are known."""
    done: int = 0
    spent: float = 0.0
    """USD."""
    ungraded: Counter[str] = field(default_factory=Counter)
    """Items by kind of ERROR or MISSING."""
    graded: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Passed items and all graded ones, by slice."""
    _marks: deque[Mark] = field(default_factory=deque)
    """Of the last half minute; the first one is where rates are measured from."""

    def __post_init__(self) -> None:
        self._marks.append(Mark(time=self.started))

    def add(self, slice_name: str, outcome: Outcome | None) -> None:
        """Count one finished item."""
        self.done += 1
        if outcome is None:
            self.ungraded["no outcome"] += 1
            return
        self.spent += outcome.usage.spent
        if outcome.state in ("error", "missing"):
            self.ungraded[outcome.kind] += 1
        if outcome.state in ("passed", "failed"):
            passed, graded = self.graded.get(slice_name, (0, 0))
            if outcome.state == "passed":
                passed += 1
            self.graded[slice_name] = (passed, graded + 1)

    def mark(self, now: float, status: Status) -> None:
        """Note where the run stands, before its texts are asked for; forget what is too old."""
        if now - self._marks[-1].time >= SECONDS_PER_MARK:
            mark = Mark(
                time=now, done=self.done, requests=status.requests, spent=self.spent
            )
            self._marks.append(mark)
        while len(self._marks) > 1 and now - self._marks[1].time > RECENT_SECONDS:
            self._marks.popleft()

    def line(self, now: float, status: Status) -> str:
        """Return everything in one line."""
        return "qa " + " | ".join(self.block(now, status))

    def block(self, now: float, status: Status) -> list[str]:
        """Return the same in parts: how far; the slices; what went wrong or is waited for."""
        block = [self._pace(now, status)]
        shares = []
        for name, (passed, graded) in sorted(self.graded.items()):
            shares.append(f"{name} {passed / graded:.2f}")
        if shares:
            block.append(f"passed: {', '.join(shares)}")
        troubles = self._troubles(status)
        if troubles:
            block.append("; ".join(troubles))
        return block

    def _troubles(self, status: Status) -> list[str]:
        """Return what went wrong or holds calls back, a text each; empty if all is well.

        These are the items without a grade and the calls tried again, both counted by kind, and
        the reason why calls wait.
        """
        troubles = []
        if self.ungraded:
            troubles.append(f"ungraded: {_counts_text(self.ungraded)}")
        if status.retried:
            troubles.append(f"retried: {_counts_text(status.retried)}")
        if status.held_back_by:
            troubles.append(f"waiting: {status.held_back_by}")
        return troubles

    def _pace(self, now: float, status: Status) -> str:
        """Return how many items are done, how fast, and at what cost."""
        # Where the run stood half a minute ago, or at its start.
        earlier = self._marks[0]
        seconds = max(now - earlier.time, 1e-9)
        items_per_second = (self.done - earlier.done) / seconds
        items_left = self.planned - self.done
        share = self.done / max(self.planned, 1)
        parts = [f"{self.done:,}/{self.planned:,} ({share:.0%})"]
        if items_left and items_per_second:
            parts.append(f"{_duration(items_left / items_per_second)} left")
        parts.append(f"{items_per_second:.1f} items/s")
        if status.requests:
            calls_per_second = (status.requests - earlier.requests) / seconds
            parts.append(f"{calls_per_second:.1f} calls/s")
            parts.append(f"{status.in_flight} of {status.limit} in flight")
            parts.append(self._cost(earlier))
        return ", ".join(parts)

    def _cost(self, earlier: Mark) -> str:
        """Return what was spent and what all will cost, by the price of items since ``earlier``."""
        if not self.priced:
            return f"cost {part_of_cost(self.spent)}"
        recent_items = max(self.done - earlier.done, 1)
        price_per_item = (self.spent - earlier.spent) / recent_items
        total = self.spent + (self.planned - self.done) * price_per_item
        return f"{money(self.spent)} of about {money(total)}"


def _counts_text(counts: Mapping[str, int]) -> str:
    """Return counts in words, such as ``rate_limit 1,200, timeout 3``."""
    return ", ".join(f"{kind} {count:,}" for kind, count in sorted(counts.items()))


def _duration(seconds: float) -> str:
    """Return a duration in the unit that a person would use."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    if seconds < 100 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
