"""What the calls of a run learn about one server: its pauses, its pace, and whether it is up."""

from collections.abc import Callable, Mapping

from qagate.evaluators.core import CallError, FatalError, TransientError

NEVER = float("inf")
BURST_S = 0.05  # of a requests limit; so many seconds' worth may go at once
FIRST_RATE = 2.0  # requests a second, at least, after the first refusal
SEARCH_GROWTH = 1.0  # of the rate a second, between the first refusal and the second
RECOVERY_GROWTH = 0.05  # after that, back to just below the rate last refused
OUTAGE_GROWTH = 0.25  # the same after an outage, for which the rate was not to blame
PROBING_GROWTH = 0.005  # from just below the refused rate on
NEAR_REFUSED = 0.85  # of the refused rate, where probing begins
SLOW_RATE = 5.0  # requests a second below which growth slows down in proportion
CALM_S = 30.0  # without a refusal, after which growth has doubled; it goes on rising
WINDOW_BURST = 3  # requests at once after a pause that used up a server's own window
DECREASE_FACTOR = 0.8  # of a refused rate is tried again, at most
EASINGS = 4  # single refusals at ever lower rates, after which the rate is not to blame
EASED_LOWER = 0.93  # of the rate last refused; a refusal below it was at a lower rate
SINGLE_GRANTS = 5  # grants between two refusals from which on these are single ones
SINGLE_SHARE = 0.22  # of the latest calls refused, up to which refusals are single ones
ANNOUNCED_SHARE = 0.05  # the same while there is no rate and refusals announce a pause
SHARE_AT_FIRST = 0.1  # what this share is taken to be before the first call
LATEST_CALLS = 32  # of which the share is taken, or as many as are in flight
FASTEST_RATE = 1000.0  # a higher rate limits nothing

LONGEST_WAIT_S = 120.0  # a server that asks for a longer pause is not waited for
PAUSE_SPREAD = (
    0.2  # a pause is lengthened by up to this share: other clients heard it too
)
FAILURES_TO_OPEN = 5  # failures in a row that open the circuit
CALLS_TO_OPEN = (
    3  # different calls that must have failed, so that one bad request opens nothing
)
FIRST_PROBE_S = (
    1.0  # before the first probe; later ones also wait a share of the outage
)
PROBE_SHARE = 0.25
LONGEST_PROBE_S = 7.9
NEVER_REACHED_S = 10.0  # after which a server that no call ever reached is given up
NEVER_ANSWERED_S = 90.0  # the same for a server that was reached but never answered
OVERLOAD_CUT = 0.5  # of the window is left after an overload
RATE_CUT = 0.7  # and after a refusal, which says little about calls at the same time
SMALLEST_START = (
    8  # calls in flight at the start, or START_SHARE of the maximum if that is more
)
START_SHARE = 0.25

RATE_LIMIT = "rate_limit"
OVERLOADED = "overloaded"
UNREACHABLE = "unreachable"
OUTAGES = frozenset(
    {OVERLOADED, UNREACHABLE, "server", "connection"}
)  # if all calls end so
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


class TokenBucket:
    """Gains ``rate`` a second, at most ``seconds`` worth; unlike aiolimiter's it may owe."""

    def __init__(self, rate: float, seconds: float, least: float = 1.0) -> None:
        self.rate = rate
        self._burst = max(least, rate * seconds)
        self.empty_at = -NEVER  # had it only gained since; later than now if it owes

    def wait(self, now: float, amount: float = 1.0) -> float:
        """Return the seconds until this amount, at most a full bucket, may be taken."""
        level = min(self._burst, (now - self.empty_at) * self.rate)
        lacking = min(amount, self._burst) - level
        # A full bucket may lack the last bit of a float: no timer could ever end that wait.
        return lacking / self.rate if lacking > 1e-6 else 0.0

    def take(self, now: float, amount: float = 1.0) -> None:
        """Take an amount, even if it is not there."""
        full_since = now - self._burst / self.rate
        self.empty_at = max(self.empty_at, full_since) + amount / self.rate


class Pace:
    """Spreads the requests to one server evenly, at a rate that each refusal (HTTP 429) corrects.

    There is no rate until more than a few calls are refused. Then the rate is what was granted
    since the refusal before, with the announced pause: the refill rate of a token bucket, or the
    average of a fixed window. Where nothing was granted in between, the pause was too short and
    counts as part of the stretch before.

    Single refusals among many grants cause no pause. Each lowers the rate a little, to find out
    whether the rate is to blame. If ever lower rates are refused as well, it is not, and a higher
    rate is tried.
    """

    def __init__(self) -> None:
        self.bucket: TokenBucket | None = None
        self._refusals = 0
        self._share = SHARE_AT_FIRST  # of the latest calls, how many were refused
        self._weight = 0.0  # of one call in it
        self._alone = 0  # calls granted since the last refusal of any kind
        self._easings = 0
        self._eased_at = -NEVER
        self._eased_from = 0.0  # the rate before the first of the easings
        self._granted = 0
        self._since = NEVER
        self._before = (0, 0.0)  # calls granted, and since when, at the last refusal
        self._refused_at = -NEVER
        self._refused_rate = NEVER  # none is known
        self._grown_at = 0.0
        self._held_back = False
        self._was_down = False

    def wait(self, now: float) -> float:
        """Return the seconds until the next request may go."""
        delay = 0.0 if self.bucket is None else self.bucket.wait(now)
        self._held_back = self._held_back or delay > 0
        return delay

    def take(self, now: float, in_flight: int) -> None:
        """Count a request that goes now, as one of ``in_flight``."""
        self._weight = 1 / max(LATEST_CALLS, in_flight)
        self._share *= 1 - self._weight
        self._since = min(self._since, now)
        if self.bucket is None:
            return
        rate, growth = self.bucket.rate, SEARCH_GROWTH
        # A rate that holds nobody back was not tried: it does not grow.
        if self._held_back:
            if self._refusals > 1:
                is_near = rate >= NEAR_REFUSED * self._refused_rate
                back = OUTAGE_GROWTH if self._was_down else RECOVERY_GROWTH
                calm = 1 + ((now - max(self._since, self._eased_at)) / CALM_S) ** 2
                # At a low rate a second holds few requests: each of them counts, not each second.
                share = min(1.0, rate / SLOW_RATE)
                growth = min(
                    growth, (PROBING_GROWTH if is_near else back) * share * calm
                )
            self.bucket.rate *= 1 + growth * min(1.0, now - self._grown_at)
        self._held_back = False
        self._grown_at = now
        self.bucket.take(now)
        if self.bucket.rate > FASTEST_RATE:
            self.bucket, self._share = None, 0.0

    def grant(self, started: float) -> None:
        """Count a request that was answered."""
        if started <= self._refused_at:
            self._before = self._before[0] + 1, self._before[1]
        else:
            self._granted += 1
            self._alone += 1

    def is_single(self, started: float, now: float, *, announced: bool) -> bool:
        """Count a refusal; return whether it is a single one, which calls for no pause of ours.

        Such a one lowers the rate a little, or raises it where that has not helped several times.
        """
        if started <= self._refused_at:
            return False
        self._share += self._weight
        alone, self._alone = self._alone, 0
        if (bucket := self.bucket) is None:
            return self._share <= (ANNOUNCED_SHARE if announced else SINGLE_SHARE)
        if started <= self._eased_at:
            return True
        if alone < SINGLE_GRANTS or self._share > SINGLE_SHARE:
            if self._eased_at > self._refused_at and self._refused_rate < NEVER:
                bucket.rate = max(
                    bucket.rate, self._refused_rate
                )  # it was no single one
            return False
        if not (self._easings and bucket.rate <= EASED_LOWER * self._refused_rate):
            self._easings, self._eased_from = 0, bucket.rate
        if self._easings < EASINGS:
            self._easings, self._eased_at = self._easings + 1, now
            self._refused_rate = bucket.rate
            bucket.rate *= DECREASE_FACTOR
        else:
            self._easings, self._refused_rate = 0, NEVER
            bucket.rate = 2 * self._eased_from
        return True

    def refuse(self, started: float, now: float, resume: float) -> bool:
        """Slow down after a refusal, until ``resume``; False if it started before the last one."""
        if started <= self._refused_at:
            return False
        untried = self.bucket is not None and not self._granted
        granted, since = self._before if untried else (self._granted, self._since)
        average = granted / max(resume - since, 1.0)
        if self.bucket is None:
            rate = max(average, FIRST_RATE)
        elif untried:
            # A server that has granted nothing at all is down: it has not shown any rate.
            rate = min(self.bucket.rate, average) if granted else self.bucket.rate
        else:
            self._refused_rate = rate = self.bucket.rate
            rate = min(DECREASE_FACTOR * rate, max(average, rate / 2))
        # Where no pause has helped, the server may count by windows: a new one begins with these.
        at_once = min(WINDOW_BURST, granted) if untried and rate < 1 else 1
        self.bucket = TokenBucket(rate, BURST_S, max(1, at_once))
        if not untried:
            self._refusals += 1
        self._was_down = untried
        self._share = SHARE_AT_FIRST
        self._before = granted, since
        self._granted = 0
        self._since = self._grown_at = resume
        self._refused_at = now
        return True


class ServerState:
    """One server as all calls of a run see it: a window, a pace, pauses and a circuit breaker.

    The window, at most ``maximum`` calls in flight, works like TCP's (RFC 5681): it doubles each
    round trip until the first congestion and grows by a step each round trip after that. One
    congestion cuts it once, however many calls report it.

    The circuit opens at the fifth failure in a row. While it is open, or while every call is
    refused, one call at a time goes as a probe, until one succeeds. The server is given up once it
    has failed for ``give_up_after`` seconds. ``random`` draws numbers from 0 to 1.
    """

    def __init__(
        self, name: str, maximum: int, random: Callable[[], float], give_up_after: float
    ) -> None:
        self.name = name
        self.in_flight = 0
        self._given_up: FatalError | None = None
        self._random, self._give_up_after, self._maximum = (
            random,
            give_up_after,
            maximum,
        )
        self.window = float(
            min(maximum, max(SMALLEST_START, int(maximum * START_SHARE)))
        )
        """How many calls may be in flight now."""
        self._is_doubling = True
        self._cut_at = -NEVER
        self._pace = Pace()
        self._resume = -NEVER  # no call goes before this
        self._announced = -NEVER  # until when the server asked to be left alone
        self._probe: float | None = None  # when the probe in flight started
        self._probe_failed = False
        self._refusals = 0  # 429s in a row, without a success in between
        self._failures = 0  # other failures in a row
        self._failed_calls = 0  # that these were of
        self._opened_at: float | None = None  # when the circuit opened
        self._failure = ""  # the latest kind of FAILURE_WORDS
        self._failing_since: float | None = None
        self._was_reached = False
        self._answered_last = -NEVER  # when the latest call that it answered started

    def wait(self, now: float) -> float:
        """Return the seconds until a call may go; infinite until another one has ended."""
        if self.in_flight >= int(self.window):
            return NEVER
        if now < self._resume:
            return self._resume - now
        return NEVER if self._probe is not None else self._pace.wait(now)

    def barred(self, spec: str, now: float) -> FatalError | None:
        """Return the reason not to wait for this server at all; None if there is none."""
        left = self._announced - now
        if self._given_up is not None or left <= LONGEST_WAIT_S:
            return self._given_up
        said = (
            f"{spec}: {self.name} asks to be left alone for {left:,.0f} s, longer than the "
            f"{LONGEST_WAIT_S:g} s that a run waits; run again later, what is done is kept"
        )
        return FatalError(RATE_LIMIT, said)

    def start(self, now: float) -> None:
        """Count a call that goes now."""
        self.in_flight += 1
        if self._opened_at is not None or self._refusals > 1:
            self._probe = now
        self._pace.take(now, self.in_flight)

    def end(
        self,
        error: BaseException | None,
        started: float,
        now: float,
        failed_at: float | None,
    ) -> bool:
        """Learn from a call that ended; return whether the server is to blame, not the call.

        ``error`` None is a success. ``failed_at`` is when the call failed for the first time, None
        if it had not. A call that fails while the server answers later ones is itself to blame.
        """
        was_probe, was_open = started == self._probe, self._opened_at is not None
        if was_probe:
            self._probe = None
        kind = getattr(error, "kind", "")
        is_own = failed_at is not None and self._answered_last > failed_at
        if isinstance(error, TransientError):
            if not (is_own and kind in OUTAGES):
                self._fail(error, started, now, again=failed_at is not None)
        elif error is None or isinstance(error, CallError):
            self._succeed(started)
        if self._opened_at is not None and (was_probe or not was_open):
            self._probe_failed = was_open
            self._pause(0.0, now, now - self._opened_at)
        self.in_flight -= 1
        is_down = kind in OUTAGES and self._opened_at is not None
        return not is_own if kind == RATE_LIMIT else is_down

    def describe(self, now: float) -> str:
        """Return in a few words why calls to this server wait; empty if they do not."""
        since, bucket = self._failing_since, self._pace.bucket
        if since is not None and (self._opened_at is not None or self._refusals > 1):
            return f"{self.name} {FAILURE_WORDS[self._failure]} for {now - since:.0f} s, probing"
        if self._resume > now:
            return f"{self.name} paused {self._resume - now:.0f} s"
        return "" if bucket is None else f"{self.name} at {bucket.rate:.1f} calls/s"

    def _succeed(self, started: float) -> None:
        self._was_reached = True
        self._answered_last = max(self._answered_last, started)
        self._failing_since = None
        was_down, self._refusals = self._refusals > 1, 0
        self._pace.grant(started)
        # Only a window that was used up can have been too small.
        if self.window < self._maximum and self.in_flight >= int(self.window) - 1:
            step = (
                1.0 if self._is_doubling else max(1.0, self._maximum / 16) / self.window
            )
            self.window = min(float(self._maximum), self.window + step)
        if self._close(started) or was_down:
            self._is_doubling = True  # it is back from an outage

    def _close(self, started: float) -> bool:
        """Close the circuit; return whether that ends an outage in which a probe failed."""
        if self._opened_at is not None and started < self._opened_at:
            return False  # the call is from before the outage
        had_failed, self._probe_failed = self._probe_failed, False
        self._failures = self._failed_calls = 0
        self._opened_at = self._probe = None
        return had_failed

    def _fail(
        self, error: TransientError, started: float, now: float, *, again: bool
    ) -> None:
        kind, seconds = error.kind, error.retry_after or 0.0
        self._was_reached = self._was_reached or kind not in (
            UNREACHABLE,
            *WITHOUT_REPLY,
        )
        since = now if self._failing_since is None else self._failing_since
        if kind in FAILURE_WORDS:
            self._failure, self._failing_since = kind, since
        if kind in OUTAGES:
            if kind == OVERLOADED and self._opened_at is None:
                self._cut(OVERLOAD_CUT, started, now)
            self._failures += 1
            if kind in (OVERLOADED, UNREACHABLE) or not again:
                self._failed_calls += 1
            # With one call in flight only one more can fail.
            calls = min(CALLS_TO_OPEN, self._maximum + 1)
            many = self._failures >= FAILURES_TO_OPEN and self._failed_calls >= calls
            unknown = (
                kind == UNREACHABLE and not self._was_reached
            )  # one failure is enough
            if self._opened_at is None and (many or unknown):
                self._opened_at = now
        elif kind not in WITHOUT_REPLY:
            self._close(started)
        if kind != RATE_LIMIT or self._pace.is_single(
            started, now, announced=seconds > 0
        ):
            self._pause(seconds, now)
        else:
            if not self._refusals:
                self._cut(RATE_CUT, started, now)
            self._pause(seconds, now, now - since)
            if self._pace.refuse(started, now, self._resume):
                self._refusals += 1
        self._give_up_if_silent(error, now - since)

    def _cut(self, factor: float, started: float, now: float) -> None:
        """Shrink the window, unless the failed call started before the last cut."""
        if started > self._cut_at:
            self.window = max(1.0, self.window * factor)
            self._is_doubling = False
            self._cut_at = now

    def _pause(self, seconds: float, now: float, down: float | None = None) -> None:
        """Pause as announced; before a probe of a server ``down`` for these seconds, longer."""
        if down is not None:
            seconds = max(
                seconds, min(LONGEST_PROBE_S, FIRST_PROBE_S + PROBE_SHARE * down)
            )
        if now + seconds > max(now, self._announced):
            self._announced = now + seconds
            pause = seconds * (1 + PAUSE_SPREAD * self._random())
            self._resume = max(self._resume, now + pause)

    def _give_up_if_silent(self, error: TransientError, silent: float) -> None:
        patience, reached = (
            self._give_up_after,
            self._was_reached or error.kind != UNREACHABLE,
        )
        if not reached:
            patience = min(patience, NEVER_REACHED_S)
        elif self._answered_last == -NEVER and error.kind not in (
            OVERLOADED,
            RATE_LIMIT,
        ):
            patience = min(patience, NEVER_ANSWERED_S)
        if error.kind in FAILURE_WORDS and silent >= patience:
            what = "has given no reply" if reached else "could not be reached"
            why = f"{self.name} {what} for {silent:.0f} s; no more calls are made to it: {error}"
            self._given_up = FatalError(error.kind, why)
