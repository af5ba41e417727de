"""One server as all calls of a run see it: what its replies and failures mean for the next call."""

from collections.abc import Callable, Mapping

from evaluators.core import CallError, FatalError, TransientError
from evaluators.runtime.overload import (
    LONGEST_PROBE,
    OTHER_CALLS,
    SPREAD,
    CircuitBreaker,
    CongestionWindow,
    probe_pause,
)
from evaluators.runtime.rate_limits import RateEstimator

LONGEST_WAIT = 120.0  # seconds; a server that asks for more is not waited for
FIRST_PAUSE = 1.0  # after a refusal that announces nothing
BELIEVED = 2  # refusals in a row after which an announced pause is taken as too short
NEVER_REACHED = 10.0  # seconds after which a server that no call ever reached is given up
NEVER_ANSWERED = 90.0  # the same for one that was reached and has answered none
OVERLOAD_CUT = 0.5
RATE_CUT = 0.7  # CUBIC's (RFC 9438): a refused rate says little about calls at the same time

RATE_LIMIT = "rate_limit"
OVERLOADED = "overloaded"
UNREACHABLE = "unreachable"
OVERLOADS = frozenset({OVERLOADED, UNREACHABLE})
BUSY = frozenset({OVERLOADED, RATE_LIMIT})  # says that it will answer later
OUTAGES = OVERLOADS | {"server", "connection"}
"""What is an outage when all calls to a server end so."""
NO_WORD = frozenset({"timeout", "connection"})
TROUBLES: Mapping[str, str] = {
    OVERLOADED: "overloaded",
    UNREACHABLE: "unreachable",
    "server": "failing (HTTP 5xx)",
    "connection": "dropping connections",
    "timeout": "silent",
    RATE_LIMIT: "refusing calls (HTTP 429)",
}
"""What is said of a server whose calls all end so."""


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
        # One call at a time has one other beside it: no more can fail.
        self._circuit = CircuitBreaker(min(OTHER_CALLS, maximum + 1))
        self._resume = float("-inf")
        self._announced = float("-inf")
        self._refusals = 0
        self._probe: float | None = None  # when the probe of a server that refuses all began
        self._trouble = ""
        self._failing_since: float | None = None
        self._answered = False
        self._answered_last = float("-inf")  # when the latest call that it answered began

    def is_to_blame(self, kind: str, *, own: bool) -> bool:
        """Whether a failure of this kind is the server's, and says nothing of the call.

        ``own`` as in ``end``.
        """
        if kind == RATE_LIMIT:
            return not own
        return kind in OUTAGES and self._circuit.is_open

    def answered_since(self, failed_at: float | None) -> bool:
        """Whether it answered a call that began after this failure of another one."""
        return failed_at is not None and self._answered_last > failed_at

    def wait(self, now: float) -> float:
        """Return the seconds until a call may go; infinite while a probe is under way."""
        if now < self._resume:
            return self._resume - now
        if self._probe is not None:
            return float("inf")
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
        if self._refusals > 1:  # all calls are refused: one finds out when that is over
            self._probe = now
        self._pace.take(now, self.window.in_flight)
        self._circuit.start(now)

    def end(
        self,
        error: BaseException | None,
        started: float,
        now: float,
        *,
        own: bool = False,
        again: bool = False,
    ) -> None:
        """Learn from a call that has ended: ``error`` None is a success.

        ``own``: a failure is the call's own, as the server goes on answering others. ``again``:
        it is not the call's first one.
        """
        if started == self._probe:
            self._probe = None
        if own and isinstance(error, TransientError) and error.kind in OUTAGES:
            self._circuit.abandon(started, now)
        elif isinstance(error, TransientError):
            self._fail(error, started, now, again=again)
        elif error is None or isinstance(error, CallError):
            self._succeed(started)
        else:
            self._circuit.abandon(started, now)
        self.window.in_flight -= 1

    def describe(self, now: float) -> str:
        """Return in a few words why calls to this server wait; empty if they do not."""
        left = self._resume - now
        since = self._failing_since
        if since is not None and self._is_probing:
            return f"{self.name} {TROUBLES[self._trouble]} for {now - since:.0f} s, probing"
        if left > 0:
            return f"{self.name} paused {left:.0f} s"
        rate = self._pace.rate
        return "" if rate is None else f"{self.name} at {rate:.1f} calls/s"

    @property
    def _is_probing(self) -> bool:
        return self._circuit.is_open or self._refusals > 1

    def _succeed(self, started: float) -> None:
        self._answered = True
        self._answered_last = max(self._answered_last, started)
        self._failing_since = None
        was_down = self._refusals > 1
        self._refusals, self._probe = 0, None
        self._pace.grant(started)
        self.window.widen()
        if self._circuit.succeed(started) or was_down:
            self.window.reopen()

    def _fail(self, error: TransientError, started: float, now: float, *, again: bool) -> None:
        kind = error.kind
        reached = self._answered or kind not in (UNREACHABLE, *NO_WORD)
        if kind in TROUBLES:
            self._trouble = kind
            self._failing_since = now if self._failing_since is None else self._failing_since
        if kind == OVERLOADED and not self._circuit.is_open:
            self.window.cut(OVERLOAD_CUT, started, now)
        if kind in OUTAGES:
            unknown = kind == UNREACHABLE and not reached
            again = again and kind not in OVERLOADS
            self._circuit.fail(started, now, self._random(), again=again, at_once=unknown)
        elif kind in NO_WORD:
            self._circuit.abandon(started, now)
        else:
            self._circuit.succeed(started)
        self._answered = reached
        announced = bool(error.retry_after)
        if kind == RATE_LIMIT and not self._pace.is_stray(started, now, announced=announced):
            self._refuse(error, started, now)
        else:
            self._pause(error, now, error.retry_after or 0.0)
        self._give_up_if_silent(error, now)

    def _refuse(self, error: TransientError, started: float, now: float) -> None:
        """Slow down; pause longer than announced where that has not helped, or nothing is said."""
        seconds = error.retry_after or 0.0
        if not seconds or self._refusals >= BELIEVED:
            since = now if self._failing_since is None else self._failing_since
            seconds = max(seconds, probe_pause(FIRST_PAUSE, now - since, 0.0))
        if not self._refusals:
            self.window.cut(RATE_CUT, started, now)
        self._pause(error, now, seconds)
        if self._pace.refuse(started, now, self._resume):
            self._refusals += 1

    def _pause(self, error: TransientError, now: float, seconds: float) -> None:
        """Leave the server alone for these seconds and a share; no call goes before they end."""
        announced = error.retry_after or 0.0
        if now + seconds > max(now, self._announced):
            longest = max(LONGEST_PROBE, announced * (1 + SPREAD))
            self._announced = now + seconds
            resume = now + min(longest, seconds * (1 + SPREAD * self._random()))
            self._resume = max(self._resume, resume)

    def _give_up_if_silent(self, error: TransientError, now: float) -> None:
        """Give the server up when nothing has succeeded for too long."""
        if error.kind not in TROUBLES or self._failing_since is None:
            return
        silent = now - self._failing_since
        if silent >= min(self._give_up_after, self._patience(error.kind)):
            reached = self._answered or error.kind != UNREACHABLE
            what = "has given no reply" if reached else "could not be reached"
            why = f"{self.name} {what} for {silent:.0f} s; no more calls are made to it: {error}"
            self.given_up = FatalError(error.kind, why)

    def _patience(self, kind: str) -> float:
        """Return how many seconds of failures are borne: a server that has worked is waited for."""
        if kind == UNREACHABLE and not self._answered:
            return NEVER_REACHED
        has_worked = self._answered_last != float("-inf")
        return self._give_up_after if has_worked or kind in BUSY else NEVER_ANSWERED
