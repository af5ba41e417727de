"""How far a run is, in words: one plain line for a log, a few short ones for a terminal."""

from collections import Counter, deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from evaluators.core import Outcome
from evaluators.runtime.budget import money

RECENT_SECONDS = 30.0  # rates are those of so long; what the ledger gave at once says little


@dataclass(frozen=True, slots=True, kw_only=True)
class Activity:
    """What the engine is at. ``retried`` counts by kind the calls that failed and were put again.

    ``waiting`` says what calls are held back by, empty where nothing does; ``limit`` is how many
    may be in flight now.
    """

    requests: int = 0
    in_flight: int = 0
    limit: int = 0
    retried: Mapping[str, int] = field(default_factory=dict)
    waiting: str = ""


@dataclass(slots=True, kw_only=True)
class Progress:
    """Counts finished items. ``started`` is a monotonic time; ``priced`` that all costs are known.

    ``ungraded`` counts items by kind of ERROR or MISSING, ``graded`` passed and all by slice.
    """

    planned: int
    started: float
    priced: bool = True
    done: int = 0
    spent: float = 0.0
    ungraded: Counter[str] = field(default_factory=Counter)
    graded: dict[str, tuple[int, int]] = field(default_factory=dict)
    _marks: deque[tuple[float, int, int, float]] = field(default_factory=deque)

    def add(self, slice_name: str, outcome: Outcome | None) -> None:
        """Count one finished item."""
        self.done += 1
        if outcome is None:
            self.ungraded["no outcome"] += 1
            return
        self.spent += outcome.usage.spent
        if outcome.state in ("error", "missing"):
            self.ungraded[outcome.kind] += 1
            return
        passed, every = self.graded.get(slice_name, (0, 0))
        self.graded[slice_name] = (passed + (outcome.state == "passed"), every + 1)

    def line(self, now: float, activity: Activity) -> str:
        """Return all there is to say, in one line."""
        return "qa " + " | ".join(self.block(now, activity))

    def block(self, now: float, activity: Activity) -> list[str]:
        """Return the same in parts: how far; the slices; what went wrong or is waited for."""
        return [self.head(now, activity), *self._rest(activity)]

    def head(self, now: float, activity: Activity) -> str:
        """Return how much is done, how fast, at what cost, and what is left."""
        items, calls, price = self._rates(now, activity.requests)
        left = self.planned - self.done
        parts = [f"{self.done:,}/{self.planned:,} ({self.done / max(self.planned, 1):.0%})"]
        if left and items:
            parts.append(f"{_duration(left / items)} left")
        parts.append(f"{items:.1f} items/s")
        if activity.requests:
            parts.append(f"{calls:.1f} calls/s")
            parts.append(f"{activity.in_flight} of {activity.limit} in flight")
            parts.append(self._money(left * price))
        return ", ".join(parts)

    def _money(self, more: float) -> str:
        if not self.priced:
            return "cost unknown"
        return f"{money(self.spent)} of about {money(self.spent + more)}"

    def _rest(self, activity: Activity) -> list[str]:
        shares = [
            f"{name} {passed / every:.2f}" for name, (passed, every) in sorted(self.graded.items())
        ]
        troubles = [
            *_counts("ungraded", self.ungraded),
            *_counts("retried", activity.retried),
            *([f"waiting: {activity.waiting}"] if activity.waiting else []),
        ]
        passed = f"passed: {', '.join(shares)}" if shares else ""
        return [text for text in (passed, "; ".join(troubles)) if text]

    def _rates(self, now: float, requests: int) -> tuple[float, float, float]:
        """Return items and calls a second and USD an item, all of late."""
        marks = self._marks or deque([(self.started, 0, 0, 0.0)])
        self._marks = marks
        while len(marks) > 1 and now - marks[1][0] > RECENT_SECONDS:
            marks.popleft()
        then, done, calls, spent = marks[0]
        if now - marks[-1][0] >= 1:
            marks.append((now, self.done, requests, self.spent))
        seconds, items = max(now - then, 1e-9), self.done - done
        return items / seconds, (requests - calls) / seconds, (self.spent - spent) / max(items, 1)


def _counts(what: str, counts: Mapping[str, int]) -> Sequence[str]:
    if not counts:
        return ()
    listed = ", ".join(f"{kind} {count:,}" for kind, count in sorted(counts.items()))
    return (f"{what}: {listed}",)


def _duration(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
