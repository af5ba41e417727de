"""The line that says how far a run is: plain text, so that it reads the same in a CI log."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from evaluators.core import Outcome

EVERY_SECONDS = 10.0


@dataclass(slots=True, kw_only=True)
class Progress:
    """Counts finished items and says so from time to time. ``started`` is a monotonic time."""

    planned: int
    started: float
    done: int = 0
    errors: int = 0
    spent: float = 0.0
    graded: dict[str, list[int]] = field(default_factory=dict)
    _last: float = field(default=0.0)

    def add(self, slice_name: str, outcome: Outcome | None) -> None:
        """Count one finished item."""
        self.done += 1
        if outcome is None or outcome.state in ("error", "missing"):
            self.errors += 1
            return
        self.spent += outcome.usage.spent
        passed_and_all = self.graded.setdefault(slice_name, [0, 0])
        passed_and_all[0] += outcome.state == "passed"
        passed_and_all[1] += 1

    def due(self, now: float) -> bool:
        """Say whether it is time for a line, and if so take note of it."""
        if now - max(self._last, self.started) < EVERY_SECONDS:
            return False
        self._last = now
        return True

    def line(self, now: float) -> str:
        """Return done, rate, time left, money spent, errors and the share passed by slice."""
        rate = self.done / max(now - self.started, 1e-9)
        left = (self.planned - self.done) / rate if rate else 0.0
        parts = [
            f"qa {self.done}/{self.planned} ({self.done / max(self.planned, 1):.0%})",
            f"{rate:.1f}/s",
            f"{left:.0f} s left",
            f"${self.spent:.2f}",
            f"{self.errors} ungraded",
            *_shares(self.graded),
        ]
        return " | ".join(parts)


def _shares(graded: Mapping[str, list[int]]) -> list[str]:
    shares = [f"{name} {passed / total:.2f}" for name, (passed, total) in sorted(graded.items())]
    return [", ".join(shares)] if shares else []
