"""One server as calls see it: its pauses, a circuit breaker, a rate limit, a congestion window."""

from collections.abc import Callable

from evaluators.core import CallError, FatalError, TransientError
from evaluators.runtime.rate_limits import RateEstimator

LONGEST_WAIT = 120.0  # seconds; a server that asks for more is not waited for
SPREAD = 0.2  # a pause is lengthened by up to this share: other clients were told the same moment
FIRST_PAUSE = 0.5  # after a refusal that announces nothing; doubled while nothing succeeds
LONGEST_PAUSE = 20.0
BELIEVED = 2  # refusals in a row after which an announced pause is taken as too short
NEVER_ANSWERED = 10.0  # seconds after which a server that no call ever reached is given up

OPENS_AT = 5  # overloads in a row that open the circuit
FIRST_PROBE = 1.0  # seconds before the first probe; doubled by each one that fails
LONGEST_PROBE = 20.0

SMALLEST_START = 8  # calls in flight at the start, or this share of the most allowed
START_SHARE = 4
OVERLOAD_CUT = 0.5
RATE_CUT = 0.7  # CUBIC's (RFC 9438): a refused rate says little about calls at the same time

RATE_LIMIT = "rate_limit"
UNREACHABLE = "unreachable"
OVERLOADS = frozenset({"overloaded", UNREACHABLE})
NO_WORD = frozenset({"timeout", "connection"})
TROUBLES = OVERLOADS | NO_WORD | {RATE_LIMIT}


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

    def cut(self, factor: float, started: float, now: float) -> None:
        """Make room after a refusal, unless the refused call started before the last cut."""
        if started > self._cut_at:
            self._size = max(1.0, self._size * factor)
            self._is_doubling = False
            self._cut_at = now


class CircuitBreaker:
    """Closed while a server works; open from its fifth overload in a row until a probe succeeds.

    While it is open one call at a time goes, as the probe.
    """

    def __init__(self) -> None:
        self._failures = 0
        self._pause = FIRST_PROBE
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
            self._pause = FIRST_PROBE

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
            self._pause = min(LONGEST_PROBE, self._pause * 2)
        else:
            return
        self._probe = None
        self._next = now + self._pause * (1 + SPREAD * spread)

    def abandon(self, started: float, now: float) -> None:
        """Let another call be the probe: this one ended without any word of the server."""
        if started == self._probe:
            self._probe = None
            self._next = now + self._pause


class ServerState:
    """One server as all calls of the run see it. ``random`` gives numbers from 0 to 1.

    It is given up after ``give_up_after`` seconds without a success.
    """

    def __init__(
        self, name: str, maximum: int, random: Callable[[], float], give_up_after: float
    ) -> None:
        self.name = name
        self.window = CongestionWindow(maximum)
        self.given_up: FatalError | None = None
        self._random = random
        self._give_up_after = give_up_after
        self._pace = RateEstimator()
        self._circuit = CircuitBreaker()
        self._resume = float("-inf")
        self._announced = float("-inf")
        self._refusals = 0
        self._failing_since: float | None = None
        self._answered = False
        self._answered_last = float("-inf")  # when the latest call that it answered began

    @property
    def is_overloaded(self) -> bool:
        """Whether the circuit is open: its failures say nothing about single requests."""
        return self._circuit.is_open

    def answered_since(self, failed_at: float | None) -> bool:
        """Whether it answered a call that began after this failure of another one."""
        return failed_at is not None and self._answered_last > failed_at

    def wait(self, now: float) -> float:
        """Return the seconds until a call may go; infinite while a probe is under way."""
        if now < self._resume:
            return self._resume - now
        return max(self._circuit.wait(now), self._pace.wait(now))

    def too_long(self, now: float) -> str:
        """Return the reason not to wait for this server at all, or nothing."""
        left = self._announced - now
        if left <= LONGEST_WAIT:
            return ""
        return (
            f"{self.name} asks to be left alone for {left:,.0f} s, longer than the "
            f"{LONGEST_WAIT:g} s that a run waits; run again later, what is done is kept"
        )

    def start(self, now: float) -> None:
        """Count a call that goes now."""
        self.window.in_flight += 1
        self._pace.take(now)
        self._circuit.start(now)

    def end(
        self, error: BaseException | None, started: float, now: float, *, own: bool = False
    ) -> None:
        """Learn from a call that has ended: ``error`` None is a success.

        ``own``: a failure is the call's own, as the server goes on answering others.
        """
        if own and isinstance(error, TransientError) and error.kind in OVERLOADS:
            self._circuit.abandon(started, now)
        elif isinstance(error, TransientError):
            self._fail(error, started, now)
        elif error is None or isinstance(error, CallError):
            self._succeed(started)
        else:
            self._circuit.abandon(started, now)
        self.window.in_flight -= 1

    def describe(self, now: float) -> str:
        """Return in a few words why calls to this server wait; empty if they do not."""
        left = self._resume - now
        if self._circuit.is_open:
            since = now - (self._failing_since if self._failing_since is not None else now)
            return f"{self.name} overloaded for {since:.0f} s, probing"
        if left > 0:
            return f"{self.name} paused {left:.0f} s"
        rate = self._pace.rate
        return "" if rate is None else f"{self.name} at {rate:.1f} calls/s"

    def _succeed(self, started: float) -> None:
        self._answered = True
        self._answered_last = max(self._answered_last, started)
        self._failing_since = None
        self._refusals = 0
        self._pace.grant(started)
        self.window.widen()
        self._circuit.succeed(started)

    def _fail(self, error: TransientError, started: float, now: float) -> None:
        reached = self._answered or error.kind not in (UNREACHABLE, *NO_WORD)
        if error.kind in OVERLOADS:
            self.window.cut(OVERLOAD_CUT, started, now)
            self._circuit.fail(started, now, spread=self._random(), at_once=not reached)
        elif error.kind in NO_WORD:
            self._circuit.abandon(started, now)
        else:
            self._circuit.succeed(started)
        self._answered = reached
        if error.kind == RATE_LIMIT:
            self.window.cut(RATE_CUT, started, now)
        self._pause(self._pause_after(error), now)
        if error.kind == RATE_LIMIT and self._pace.refuse(started, now, self._resume):
            self._refusals += 1
        self._give_up_if_silent(error, now)

    def _pause_after(self, error: TransientError) -> float:
        """Return the seconds to pause: as the server says, unless that has not helped."""
        announced = error.retry_after or 0.0
        if error.kind != RATE_LIMIT or (announced and self._refusals < BELIEVED):
            return announced
        return max(announced, min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**self._refusals))

    def _pause(self, seconds: float, now: float) -> None:
        if now + seconds > max(now, self._announced):
            self._announced = now + seconds
            self._resume = max(self._resume, now + seconds * (1 + SPREAD * self._random()))

    def _give_up_if_silent(self, error: TransientError, now: float) -> None:
        """Give the server up when nothing has succeeded for too long."""
        if error.kind not in TROUBLES:
            return
        self._failing_since = now if self._failing_since is None else self._failing_since
        unknown = error.kind == UNREACHABLE and not self._answered
        silent = now - self._failing_since
        if silent >= (min(self._give_up_after, NEVER_ANSWERED) if unknown else self._give_up_after):
            what = "could not be reached" if unknown else "has given no reply"
            why = f"{self.name} {what} for {silent:.0f} s; no more calls are made to it: {error}"
            self.given_up = FatalError(error.kind, why)
