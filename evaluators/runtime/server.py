"""What the calls of a run learn about one server: its pauses, its pace, and whether it is up."""

from collections.abc import Callable, Mapping

from evaluators.core import CallError, FatalError, TransientError
from evaluators.runtime.pace import Pace

LONGEST_WAIT_S = 120.0  # a server that asks for a longer pause is not waited for
PAUSE_SPREAD = 0.2  # a pause is lengthened by up to this share: other clients heard it too
FAILURES_TO_OPEN = 5  # failures in a row that open the circuit
CALLS_TO_OPEN = 3  # different calls that must have failed, so that one bad request opens nothing
FIRST_PROBE_S = 1.0  # before the first probe; later ones wait PROBE_S and a share of the outage
PROBE_S = 1.25
PROBE_SHARE = 0.25
LONGEST_PROBE_S = 9.5
NEVER_REACHED_S = 10.0  # after which a server that no call ever reached is given up
NEVER_ANSWERED_S = 90.0  # the same for a server that was reached but never answered
ANNOUNCED_REFUSALS = 2  # refusals in a row after which an announced pause proved too short
OVERLOAD_CUT = 0.5  # of the window is left after an overload
RATE_CUT = 0.7  # and after a refusal, which says little about calls at the same time
SMALLEST_START = 8  # calls in flight at the start, or START_SHARE of the maximum if that is more
START_SHARE = 0.25

RATE_LIMIT = "rate_limit"
OVERLOADED = "overloaded"
UNREACHABLE = "unreachable"
BUSY = frozenset({OVERLOADED, RATE_LIMIT})
"""Kinds by which a server says that it will answer later."""
OUTAGES = frozenset({OVERLOADED, UNREACHABLE, "server", "connection"})
"""Kinds that mean an outage when all calls end with them."""
WITHOUT_REPLY = frozenset({"timeout", "connection"})
FAILURE_WORDS: Mapping[str, str] = {
    OVERLOADED: "overloaded",
    UNREACHABLE: "unreachable",
    "server": "failing (HTTP 5xx)",
    "connection": "dropping connections",
    "timeout": "silent",
    RATE_LIMIT: "refusing calls (HTTP 429)",
}
"""What users read about a server whose calls all end with one of these kinds."""


class CongestionWindow:
    """How many calls may be in flight to one server, at most ``maximum``.

    It works like TCP (RFC 5681): it doubles each round trip until the first congestion and grows
    by a step each round trip after that. One congestion cuts it once, however many calls report it.
    """

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.in_flight = 0
        self._size = float(min(maximum, max(SMALLEST_START, int(maximum * START_SHARE))))
        self._step = max(1.0, maximum / 16)
        self._is_doubling = True
        self._cut_at = float("-inf")

    @property
    def size(self) -> int:
        """How many calls may be in flight now."""
        return int(self._size)

    @property
    def is_full(self) -> bool:
        """Whether another call has to wait until one ends."""
        return self.in_flight >= int(self._size)

    def widen(self) -> None:
        """Count a success; call this while the successful call is still in flight."""
        # Only a window that was used up can have been too small.
        if self._size < self.maximum and self.in_flight >= int(self._size) - 1:
            step = 1.0 if self._is_doubling else self._step / self._size
            self._size = min(float(self.maximum), self._size + step)

    def reopen(self) -> None:
        """Grow by doubling again: the server is back from an outage."""
        self._is_doubling = True

    def cut(self, factor: float, started: float, now: float) -> None:
        """Shrink after a refusal, unless the refused call started before the last cut."""
        if started > self._cut_at:
            self._size = max(1.0, self._size * factor)
            self._is_doubling = False
            self._cut_at = now


class ServerState:
    """One server as all calls of a run see it: a window, a pace, pauses and a circuit breaker.

    The circuit opens at the fifth failure in a row. While it is open, or while every call is
    refused, one call at a time goes as a probe, until one succeeds. The server is given up once it
    has failed for ``give_up_after`` seconds. ``random`` draws numbers from 0 to 1.
    """

    def __init__(
        self, name: str, maximum: int, random: Callable[[], float], give_up_after: float
    ) -> None:
        self.name = name
        self.window = CongestionWindow(maximum)
        self.given_up: FatalError | None = None
        self._random = random
        self._give_up_after = give_up_after
        self._pace = Pace()
        self._resume = float("-inf")  # no call goes before this
        self._announced = float("-inf")  # until when the server asked to be left alone
        self._probe: float | None = None  # when the probe in flight started
        self._probe_failed = False
        self._refusals = 0  # 429s in a row, without a success in between
        self._failures = 0  # other failures in a row
        self._failed_calls = 0  # that these were of
        # With one call in flight only one more can fail.
        self._calls_to_open = min(CALLS_TO_OPEN, maximum + 1)
        self._opened_at: float | None = None  # when the circuit opened
        self._failure = ""  # the latest kind of FAILURE_WORDS
        self._failing_since: float | None = None
        self._was_reached = False
        self._answered_last = float("-inf")  # when the latest call that it answered started

    @property
    def is_probing(self) -> bool:
        """Whether one call at a time finds out if the server works again."""
        return self._opened_at is not None or self._refusals > 1

    def wait(self, now: float) -> float:
        """Return the seconds until a call may go; infinite while a probe is in flight."""
        if now < self._resume:
            return self._resume - now
        return float("inf") if self._probe is not None else self._pace.wait(now)

    def too_long(self, now: float) -> str:
        """Return the reason not to wait for this server at all; empty if there is none."""
        left = self._announced - now
        if left <= LONGEST_WAIT_S:
            return ""
        return (
            f"{self.name} asks to be left alone for {left:,.0f} s, longer than the "
            f"{LONGEST_WAIT_S:g} s that a run waits; run again later, what is done is kept"
        )

    def start(self, now: float) -> None:
        """Count a call that goes now."""
        self.window.in_flight += 1
        if self.is_probing:
            self._probe = now
        self._pace.take(now, self.window.in_flight)

    def end(
        self, error: BaseException | None, started: float, now: float, failed_at: float | None
    ) -> bool:
        """Learn from a call that ended; return whether the server is to blame, not the call.

        ``error`` None is a success. ``failed_at`` is when the call failed for the first time, None
        if it had not. A call that fails while the server answers later ones is itself to blame.
        """
        was_probe = started == self._probe
        self._probe = None if was_probe else self._probe
        is_own = failed_at is not None and self._answered_last > failed_at
        is_transient = isinstance(error, TransientError)
        if isinstance(error, TransientError) and not (is_own and error.kind in OUTAGES):
            self._fail(error, started, now, is_probe=was_probe, again=failed_at is not None)
        elif error is None or (isinstance(error, CallError) and not is_transient):
            self._succeed(started)
        elif was_probe and self._opened_at is not None:  # it ended without a word of the server
            self._resume = max(self._resume, now + probe_pause(now - self._opened_at))
        self.window.in_flight -= 1
        kind = getattr(error, "kind", "")
        return not is_own if kind == RATE_LIMIT else (
            kind in OUTAGES and self._opened_at is not None
        )  # fmt: skip

    def describe(self, now: float) -> str:
        """Return in a few words why calls to this server wait; empty if they do not."""
        since = self._failing_since
        if since is not None and self.is_probing:
            return f"{self.name} {FAILURE_WORDS[self._failure]} for {now - since:.0f} s, probing"
        if self._resume > now:
            return f"{self.name} paused {self._resume - now:.0f} s"
        rate = self._pace.rate
        return "" if rate is None else f"{self.name} at {rate:.1f} calls/s"

    def _succeed(self, started: float) -> None:
        self._was_reached = True
        self._answered_last = max(self._answered_last, started)
        self._failing_since = None
        was_down = self._refusals > 1
        self._refusals = 0
        self._pace.grant(started)
        self.window.widen()
        if self._close(started) or was_down:
            self.window.reopen()

    def _close(self, started: float) -> bool:
        """Close the circuit; return whether that ends an outage in which a probe failed.

        A reply to a call from before the outage closes nothing. If the first probe succeeds, the
        outage may have been nothing but too many calls at once.
        """
        if self._opened_at is not None and started < self._opened_at:
            return False
        had_failed, self._probe_failed = self._probe_failed, False
        self._failures = self._failed_calls = 0
        self._opened_at = self._probe = None
        return had_failed

    def _fail(
        self, error: TransientError, started: float, now: float, *, is_probe: bool, again: bool
    ) -> None:
        kind, seconds = error.kind, error.retry_after or 0.0
        reached = self._was_reached or kind not in (UNREACHABLE, *WITHOUT_REPLY)
        if kind in FAILURE_WORDS:
            self._failure = kind
            self._failing_since = now if self._failing_since is None else self._failing_since
        if kind == OVERLOADED and self._opened_at is None:
            self.window.cut(OVERLOAD_CUT, started, now)
        if kind in OUTAGES:
            self._failures += 1
            self._failed_calls += kind in (OVERLOADED, UNREACHABLE) or not again
            many = self._failures >= FAILURES_TO_OPEN and self._failed_calls >= self._calls_to_open
            unknown = kind == UNREACHABLE and not reached  # one failure is enough
            self._open(now, is_down=many or unknown, is_probe=is_probe)
        elif kind not in WITHOUT_REPLY:
            self._close(started)
        elif is_probe and self._opened_at is not None:
            self._resume = max(self._resume, now + probe_pause(now - self._opened_at))
        self._was_reached = reached
        if kind == RATE_LIMIT and not self._pace.is_single(started, now, announced=seconds > 0):
            self._refuse(seconds, started, now)
        else:
            self._pause(seconds, seconds, now)
        self._give_up_if_silent(error, now)

    def _open(self, now: float, *, is_down: bool, is_probe: bool) -> None:
        """Open the circuit if it is time, or pause again after a probe that failed."""
        if self._opened_at is None and is_down:
            self._opened_at = now
        elif self._opened_at is None or not is_probe:
            return
        else:
            self._probe_failed = True
        pause = probe_pause(now - self._opened_at) * (1 + PAUSE_SPREAD * self._random())
        self._resume = max(self._resume, now + pause)

    def _refuse(self, announced: float, started: float, now: float) -> None:
        """Slow down; pause longer than announced if that did not help, or nothing is announced."""
        seconds = announced
        if not announced or self._refusals >= ANNOUNCED_REFUSALS:
            since = now if self._failing_since is None else self._failing_since
            seconds = max(announced, probe_pause(now - since))
        if not self._refusals:
            self.window.cut(RATE_CUT, started, now)
        self._pause(seconds, announced, now)
        self._refusals += self._pace.refuse(started, now, self._resume)

    def _pause(self, seconds: float, announced: float, now: float) -> None:
        """Let no call go for these seconds and a random share of them."""
        if now + seconds > max(now, self._announced):
            self._announced = now + seconds
            longest = max(LONGEST_PROBE_S, announced * (1 + PAUSE_SPREAD))
            pause = min(longest, seconds * (1 + PAUSE_SPREAD * self._random()))
            self._resume = max(self._resume, now + pause)

    def _give_up_if_silent(self, error: TransientError, now: float) -> None:
        """Give the server up when nothing has succeeded for too long."""
        if error.kind not in FAILURE_WORDS or self._failing_since is None:
            return
        patience = self._give_up_after
        if error.kind == UNREACHABLE and not self._was_reached:
            patience = NEVER_REACHED_S
        elif self._answered_last == float("-inf") and error.kind not in BUSY:
            patience = NEVER_ANSWERED_S
        silent = now - self._failing_since
        if silent >= min(self._give_up_after, patience):
            reached = self._was_reached or error.kind != UNREACHABLE
            what = "has given no reply" if reached else "could not be reached"
            why = f"{self.name} {what} for {silent:.0f} s; no more calls are made to it: {error}"
            self.given_up = FatalError(error.kind, why)


def probe_pause(seconds: float) -> float:
    """Return the pause before the next probe of a server that has been down for these seconds."""
    pause = max(FIRST_PROBE_S, min(seconds, PROBE_S + PROBE_SHARE * seconds))
    return min(LONGEST_PROBE_S / (1 + PAUSE_SPREAD), pause)
