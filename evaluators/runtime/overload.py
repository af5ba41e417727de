"""What keeps calls from an overloaded server: a congestion window, and a circuit breaker."""

SPREAD = 0.2  # a pause is lengthened by up to this share: other clients were told the same moment

OPENS_AT = 5  # failures in a row that open the circuit
OTHER_CALLS = 3  # so many calls at least must have failed where one alone may be to blame
FIRST_PROBE = 1.0  # seconds before the first probe; doubled at first, then these and a share
PROBE_SECONDS = 1.25
PROBE_SHARE = 0.25  # of the outage so far
LONGEST_PROBE = 9.5

SMALLEST_START = 8  # calls in flight at the start, or this share of the most allowed
START_SHARE = 4


class CongestionWindow:
    """The calls in flight to one server, and how many there may be: never above ``maximum``.

    As TCP does it (RFC 5681): doubled each round trip until the first congestion, then a step a
    round trip; cut once for each congestion, however many calls report it.
    """

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.in_flight = 0
        self._size = float(min(maximum, max(SMALLEST_START, maximum // START_SHARE)))
        self._step = max(1.0, maximum / 16)
        self._is_doubling = True
        self._cut_at = float("-inf")

    @property
    def size(self) -> int:
        """How many calls may be in flight now."""
        return int(self._size)

    @property
    def is_full(self) -> bool:
        """Whether a further call has to wait for one to end."""
        return self.in_flight >= int(self._size)

    def widen(self) -> None:
        """Count a success; call while the successful call is still in flight."""
        # A window that is not used up has not been shown to be too small.
        if self._size < self.maximum and self.in_flight >= int(self._size) - 1:
            step = 1.0 if self._is_doubling else self._step / self._size
            self._size = min(float(self.maximum), self._size + step)

    def reopen(self) -> None:
        """Widen fast again: the server is back from an outage, and bore more before it."""
        self._is_doubling = True

    def cut(self, factor: float, started: float, now: float) -> None:
        """Make room after a refusal, unless the refused call started before the last cut."""
        if started > self._cut_at:
            self._size = max(1.0, self._size * factor)
            self._is_doubling = False
            self._cut_at = now


class CircuitBreaker:
    """Closed while a server works; open from its fifth failure in a row until a probe succeeds.

    While it is open one call at a time goes, as the probe. ``fewest`` calls must have failed where
    a failure may be a single call's own.
    """

    def __init__(self, fewest: int = OTHER_CALLS) -> None:
        self._fewest = fewest
        self._failures = 0
        self._calls = 0
        self._opened_at: float | None = None
        self._next = 0.0
        self._probe: float | None = None  # when the probe under way started
        self._probe_failed = False

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

    def succeed(self, started: float) -> bool:
        """Count a sign of life; return whether it ends an outage in which probes failed.

        The answer to a call from before the outage does not. Where the first probe succeeds the
        calls themselves may have been too many.
        """
        if self._opened_at is not None and started < self._opened_at:
            return False
        had_failed, self._probe_failed = self._probe_failed, False
        self._failures = self._calls = 0
        self._opened_at = self._probe = None
        return had_failed

    def fail(
        self,
        started: float,
        now: float,
        spread: float,
        *,
        again: bool = False,
        at_once: bool = False,
    ) -> None:
        """Count a failure; ``spread`` (0 to 1) lengthens the pause before the next probe.

        ``again``: of a call that has failed before. ``at_once`` opens on the first one.
        """
        if self._opened_at is None:
            self._failures += 1
            self._calls += not again
            if not at_once and (self._failures < OPENS_AT or self._calls < self._fewest):
                return
            self._opened_at = now
        elif started != self._probe:
            return
        else:
            self._probe_failed = True
        self._pause(now, spread)

    def abandon(self, started: float, now: float) -> None:
        """Let another call be the probe: this one ended without any word of the server."""
        if started == self._probe:
            self._pause(now, 0.0)

    def _pause(self, now: float, spread: float) -> None:
        since = now if self._opened_at is None else self._opened_at
        self._probe = None
        self._next = now + probe_pause(FIRST_PROBE, now - since, spread)


def probe_pause(first: float, seconds: float, spread: float) -> float:
    """Return the pause before the next probe of a server that has been down for these seconds.

    The outage is noticed to be over within a quarter of its length and a few seconds.
    """
    pause = max(first, min(seconds, PROBE_SECONDS + PROBE_SHARE * seconds))
    return min(LONGEST_PROBE, pause * (1 + SPREAD * spread))
