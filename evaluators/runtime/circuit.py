"""A circuit breaker: a host that is overloaded is left alone but for one probe at a time."""

OPENS_AT = 5  # failures in a row
FIRST_PAUSE = 1.0
LONGEST_PAUSE = 20.0


class Circuit:
    """Closed while a host works; open from its fifth overload in a row until a probe succeeds."""

    def __init__(self) -> None:
        self._failures = 0
        self._pause = FIRST_PAUSE
        self._opened_at: float | None = None
        self._next = 0.0
        self._probe: float | None = None  # when the probe under way started

    @property
    def is_open(self) -> bool:
        """Whether calls have to wait for a probe to succeed."""
        return self._opened_at is not None

    def wait(self, now: float) -> float:
        """Return the seconds until a call may go: infinite while a probe is under way."""
        if self._opened_at is None:
            return 0.0
        return float("inf") if self._probe is not None else max(0.0, self._next - now)

    def start(self, now: float) -> None:
        """Count a call that goes now: while the circuit is open it is the probe."""
        if self._opened_at is not None:
            self._probe = now

    def succeed(self, started: float) -> None:
        """Close on a sign of life, unless it answers a call from before the overload."""
        if self._opened_at is None or started >= self._opened_at:
            self._failures = 0
            self._opened_at = self._probe = None
            self._pause = FIRST_PAUSE

    def fail(self, started: float, now: float, *, spread: float, at_once: bool = False) -> None:
        """Count an overload; ``spread`` (0 to 1) lengthens the pause before the next probe.

        ``at_once`` opens on the first one.
        """
        if self._opened_at is None:
            self._failures += 1
            if self._failures < OPENS_AT and not at_once:
                return
            self._opened_at = now
        elif started == self._probe:
            self._pause = min(LONGEST_PAUSE, self._pause * 2)
        else:
            return
        self._probe = None
        self._next = now + self._pause * (1 + 0.2 * spread)

    def abandon(self, started: float, now: float) -> None:
        """Let another call be the probe: this one ended without any word of the host."""
        if started == self._probe:
            self._probe = None
            self._next = now + self._pause
