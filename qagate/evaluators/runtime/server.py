"""How fast one server may be asked, and when to leave it alone.

All calls of a run to one host share a ServerState. It learns from how calls end: a refusal
(HTTP 429) lowers the rate, failures in a row open the circuit, a success closes it.
Nothing here sleeps or sends. Admission asks how long a call must wait and reports how it
ended, so tests run on a virtual clock. Begin with ``ServerState.hold_back`` and
``ServerState.note_end``. All times are seconds of the event loop's clock.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from qagate.evaluators.core import CallError, FatalError, TransientError

NEVER = float("inf")

# How fast: the rate of requests, see Pace.

BURST_SECONDS = 0.05
"""So many seconds' worth of a limit in requests may go at once."""

FIRST_RATE = 2.0
"""Requests a second after the first refusal, at least."""

FASTEST_RATE = 1000.0
"""Requests a second; a higher rate limits nothing and is dropped."""

SEARCH_GROWTH = 1.0
"""By this share the rate grows in a second, between the first refusal and the second. Nothing
is known of the server yet, so the rate doubles until it is refused."""

RECOVERY_GROWTH = 0.05
"""The same after the second refusal, up to NEAR_REFUSED."""

OUTAGE_GROWTH = 0.25
"""The same where the server had granted nothing: the rate was not to blame for that."""

PROBING_GROWTH = 0.005
"""The same from NEAR_REFUSED on, where the next refusal is to be expected."""

NEAR_REFUSED = 0.85
"""From this share of the rate last refused on, the rate grows by PROBING_GROWTH."""

SLOW_RATE = 5.0
"""Requests a second. Below it growth slows down in proportion: a second holds so few
requests that each of them must count, not each second."""

CALM_SECONDS = 30.0
"""Without a refusal for so long, growth has doubled. It goes on rising with the square of
the time: the limit may have been raised."""

DECREASE_FACTOR = 0.8
"""At most this share of a refused rate is tried next."""

WINDOW_BURST = 3
"""Requests that may go at once after a pause where no pause has helped so far: the server
may count by windows of its own, and a new one begins then."""

SINGLE_GRANTS = 5
"""A refusal after so many grants in a row may be a single one, see Pace."""

SINGLE_SHARE = 0.22
"""Up to this share of the latest calls refused, refusals are single ones."""

ANNOUNCED_SHARE = 0.05
"""The same while there is no rate and the refusals announce a pause."""

SHARE_AT_FIRST = 0.1
"""What the share of refused calls is taken to be before the first call."""

LATEST_CALLS = 32
"""The share is taken of about so many calls, or of as many as are in flight."""

EASINGS = 4
"""After so many single refusals, each at a lower rate, the rate is not to blame."""

EASED_LOWER = 0.93
"""A refusal at up to this share of the rate last refused counts as one at a lower rate."""

# When to leave it alone: pauses, the circuit, the window, see ServerState.

LONGEST_WAIT_SECONDS = 120.0
"""A server that asks for a longer pause is not waited for."""

PAUSE_SPREAD = 0.2
"""A pause is lengthened by up to this share: other clients heard the same number."""

FAILURES_TO_OPEN = 5
"""So many failures in a row open the circuit."""

CALLS_TO_OPEN = 3
"""So many different calls must have failed: one bad request opens nothing."""

FIRST_PROBE_SECONDS = 1.0
"""Before the first probe. Later ones also wait for PROBE_SHARE of the outage so far."""

PROBE_SHARE = 0.25

LONGEST_PROBE_SECONDS = 7.9
"""No probe waits longer, so that a server that is back is soon noticed."""

NEVER_REACHED_SECONDS = 10.0
"""After so long a server that no call ever reached is given up."""

NEVER_ANSWERED_SECONDS = 90.0
"""The same for a server that was reached and never answered."""

OVERLOAD_CUT = 0.5
"""This share of the window is left after an overload."""

RATE_CUT = 0.7
"""The same after a refusal, which says little about how many calls go at the same time."""

SMALLEST_START = 8
"""So many calls may be in flight at first, or START_SHARE of the maximum if that is more."""

START_SHARE = 0.25

WINDOW_STEPS = 16
"""In so many round trips without a congestion, the window grows by the maximum."""

SLICES_OF_SILENCE = 2
"""Calls of so many slices must have timed out, without an answer in between, before a server
counts as silent. A model may talk without end in one language and answer the next at once."""

# The kinds of failures, as ``TransientError.kind`` names them.

TIMEOUT = "timeout"
RATE_LIMIT = "rate_limit"
OVERLOADED = "overloaded"
UNREACHABLE = "unreachable"
OWN_LACK = "own_lack"  # of sockets or memory, on this machine

OUTAGES = frozenset({OVERLOADED, UNREACHABLE, "server", "connection"})
"""If all calls end so, the server is down."""

WITHOUT_REPLY = frozenset({TIMEOUT, "connection", OWN_LACK})
"""Calls that end so do not show that the server was reached."""

FAILURE_WORDS: Mapping[str, str] = {
    OVERLOADED: "overloaded",
    UNREACHABLE: "unreachable",
    "server": "failing (HTTP 5xx)",
    "connection": "dropping connections",
    TIMEOUT: "silent",
    RATE_LIMIT: "refusing calls (HTTP 429)",
}
"""What users read about a server whose calls all end with one of these kinds."""


class TokenBucket:
    """A limit on a rate: it gains ``rate`` a second, up to ``seconds`` worth of it.

    It holds at least ``least``. Unlike aiolimiter's it may owe: ``take`` always takes.

    Attributes::

    :rate: What it gains in a second; it may be changed at any time.

    :empty_at: When it was last empty, if it had only gained since. Later than now if it owes.
    """

    def __init__(self, rate: float, seconds: float, least: float = 1.0) -> None:
        self.rate = rate
        self.empty_at = -NEVER
        self._capacity = max(least, rate * seconds)

    def wait(self, now: float, amount: float = 1.0) -> float:
        """Return the seconds until this amount, at most a full bucket, may be taken."""
        level = min(self._capacity, (now - self.empty_at) * self.rate)
        lacking = min(amount, self._capacity) - level
        # A full bucket may lack the last bit of a float: no timer could ever end that wait.
        if lacking <= 1e-6:
            return 0.0
        return lacking / self.rate

    def take(self, now: float, amount: float = 1.0) -> None:
        """Take an amount, even if it is not there."""
        full_since = now - self._capacity / self.rate
        self.empty_at = max(self.empty_at, full_since) + amount / self.rate


@dataclass(slots=True)
class _Stretch:
    """The time between two refusals that set a rate."""

    granted: int
    """Calls that were answered."""
    since: float
    """When it began."""


class Pace:
    """Spreads the requests to one server evenly, at a rate that each refusal (HTTP 429) corrects.

    There is no rate until more than a few calls are refused. Then the rate is what was
    granted in the stretch since the refusal before, with the announced pause: the refill
    rate of a token bucket, or the average of a fixed window. Where nothing was granted in
    between, the pause was too short and counts as part of the stretch before.

    While a rate holds calls back it grows: fast until the second refusal, then slowly back
    to just below the rate that was refused, and very slowly beyond. The longer no refusal
    comes, the faster.

    Single refusals among many grants cause no pause. Each lowers the rate a little (an
    *easing*), to find out whether the rate is to blame. If ever lower rates are refused as
    well, it is not, and a higher rate is tried.

    A call that started before the latest refusal says nothing about what was changed by it,
    so its own refusal is ignored.

    Attributes::

    :bucket: The rate; None while there is no limit.

    :_refused_share: The share of the latest calls that were refused, as a moving average in
       which one call has ``_call_weight``.

    :_grants_in_a_row: Calls answered since the last refusal of any kind.

    :_stretch: Since the last refusal that set a rate; ``_last_stretch`` is the one before it.

    :_refused_at: When that refusal came.

    :_refused_rate: The rate that was refused last; NEVER if none is known.

    :_rate_refusals: How many refusals have shown a rate.

    :_held_back: Whether the rate has kept a call waiting since the last request.

    :_was_down: Whether nothing was granted in the stretch before the last refusal.

    :_easings: Single refusals so far, each at a lower rate than the one before it.

    :_eased_from: The rate before the first of these.

    :_eased_at: When the latest of these came.
    """

    def __init__(self) -> None:
        self.bucket: TokenBucket | None = None
        self._refused_share = SHARE_AT_FIRST
        self._call_weight = 0.0
        self._grants_in_a_row = 0
        self._stretch = _Stretch(granted=0, since=NEVER)
        self._last_stretch = _Stretch(granted=0, since=0.0)
        self._refused_at = -NEVER
        self._refused_rate = NEVER
        self._rate_refusals = 0
        self._grown_at = 0.0
        self._held_back = False
        self._was_down = False
        self._easings = 0
        self._eased_from = 0.0
        self._eased_at = -NEVER

    def hold_back(self, now: float) -> float:
        """Return the seconds until the next request may go, and note whether it has to wait."""
        if self.bucket is None:
            return 0.0
        delay = self.bucket.wait(now)
        if delay > 0:
            self._held_back = True
        return delay

    def take(self, now: float, in_flight: int) -> None:
        """Count a request that goes now, as one of ``in_flight``; let the rate grow."""
        self._call_weight = 1 / max(LATEST_CALLS, in_flight)
        self._refused_share *= 1 - self._call_weight
        self._stretch.since = min(self._stretch.since, now)
        if self.bucket is None:
            return
        # A rate that holds nobody back was not tried: it does not grow.
        if self._held_back:
            seconds = min(1.0, now - self._grown_at)
            self.bucket.rate *= 1 + self._growth(self.bucket.rate, now) * seconds
        self._held_back = False
        self._grown_at = now
        self.bucket.take(now)
        if self.bucket.rate > FASTEST_RATE:
            self.bucket = None
            self._refused_share = 0.0

    def _growth(self, rate: float, now: float) -> float:
        """Return by which share the rate grows in a second."""
        if self._rate_refusals <= 1:
            return SEARCH_GROWTH
        if rate >= NEAR_REFUSED * self._refused_rate:
            growth = PROBING_GROWTH
        elif self._was_down:
            growth = OUTAGE_GROWTH
        else:
            growth = RECOVERY_GROWTH
        slowness = min(1.0, rate / SLOW_RATE)
        seconds_calm = now - max(self._stretch.since, self._eased_at)
        calmness = 1 + (seconds_calm / CALM_SECONDS) ** 2
        return min(SEARCH_GROWTH, growth * slowness * calmness)

    def note_grant(self, started: float) -> None:
        """Count a request that was answered."""
        if started <= self._refused_at:
            self._last_stretch.granted += 1
        else:
            self._stretch.granted += 1
            self._grants_in_a_row += 1

    def note_refusal(self, started: float, now: float, *, announced: bool) -> bool:
        """Count a refusal, and ease the rate if it is a single one; return whether it is.

        A single one calls for no pause of ours. For any other call ``slow_down``.
        ``announced`` says that the server asked for a pause.
        """
        if started <= self._refused_at:
            return False
        self._refused_share += self._call_weight
        grants_in_a_row = self._grants_in_a_row
        self._grants_in_a_row = 0
        if self.bucket is None:
            limit = ANNOUNCED_SHARE if announced else SINGLE_SHARE
            return self._refused_share <= limit
        if started <= self._eased_at:
            return True
        if grants_in_a_row < SINGLE_GRANTS or self._refused_share > SINGLE_SHARE:
            self._undo_easing(self.bucket)
            return False
        self._ease(self.bucket, now)
        return True

    def _ease(self, bucket: TokenBucket, now: float) -> None:
        """Lower the rate after a single refusal, or double it if that has not helped."""
        is_lower = bucket.rate <= EASED_LOWER * self._refused_rate
        if not (self._easings and is_lower):
            self._easings = 0
            self._eased_from = bucket.rate
        if self._easings < EASINGS:
            self._easings += 1
            self._eased_at = now
            self._refused_rate = bucket.rate
            bucket.rate *= DECREASE_FACTOR
        else:
            self._easings = 0
            self._refused_rate = NEVER
            bucket.rate = 2 * self._eased_from

    def _undo_easing(self, bucket: TokenBucket) -> None:
        """Return to the rate before the last easing: its refusal was no single one."""
        if self._eased_at > self._refused_at and self._refused_rate < NEVER:
            bucket.rate = max(bucket.rate, self._refused_rate)

    def slow_down(self, started: float, now: float, resume: float) -> bool:
        """Set the rate after a refusal, from ``resume`` on.

        Return False, and change nothing, if the call started before the last refusal.
        """
        if started <= self._refused_at:
            return False
        bucket = self.bucket
        is_untried = bucket is not None and self._stretch.granted == 0
        stretch = self._last_stretch if is_untried else self._stretch
        average = stretch.granted / max(resume - stretch.since, 1.0)
        least = 1
        if bucket is None:
            rate = max(average, FIRST_RATE)
        elif is_untried:
            rate = bucket.rate
            # A server that has granted nothing at all is down: it has not shown any rate.
            if stretch.granted:
                rate = min(rate, average)
            if rate < 1:
                least = max(1, min(WINDOW_BURST, stretch.granted))
        else:
            self._refused_rate = bucket.rate
            halved = bucket.rate / 2
            rate = min(DECREASE_FACTOR * bucket.rate, max(average, halved))
        self.bucket = TokenBucket(rate, BURST_SECONDS, least)
        if not is_untried:
            self._rate_refusals += 1
        self._was_down = is_untried
        self._refused_share = SHARE_AT_FIRST
        self._last_stretch = stretch
        self._stretch = _Stretch(granted=0, since=resume)
        self._grown_at = resume
        self._refused_at = now
        return True


class ServerState:
    """One server as all calls of a run see it: a window, a pace, pauses and a circuit breaker.

    The window, at most ``maximum`` calls in flight, works like TCP's (RFC 5681): it doubles
    each round trip until the first congestion and grows by a step each round trip after
    that. One congestion cuts it once, however many calls report it.

    The pace is a rate that refusals correct, see Pace.

    A pause holds all calls back. The server may announce one; every failure before a probe
    brings one of ours, which grows with the outage.

    The circuit opens at the fifth failure in a row. While it is open, or while every call is
    refused, one call at a time goes as a probe, until one succeeds. The server is given up
    once it has failed for ``give_up_after`` seconds. ``random`` draws numbers from 0 to 1
    that spread pauses.

    A time-out belongs to its item, whose reply may have no end, until a call of another slice
    times out as well. A short call to the model counts as a slice; whoever gets the time-out
    makes it if ``begin_check`` says so.

    Attributes::

    :in_flight: Calls that have started and not ended.

    :window: How many calls may be in flight now. It is a float, as it grows by fractions.

    :_cut_at: When the window was last cut.

    :_resume: No call goes before this.

    :_announced: Until when the server asked to be left alone.

    :_opened_at: When the circuit opened; None if it is closed.

    :_probe: When the probe in flight started; None if there is none.

    :_refusals: HTTP 429s in a row, without a success in between.

    :_failures: Other failures in a row, and how many calls they were of (``_failed_calls``).

    :_failing_since: When the first failure after the latest success came, and the latest kind
       (``_failing_kind``), one of FAILURE_WORDS.

    :_answered_last: When the latest call that was answered started, and when the latest
       answer came (``_answered_at``).

    :_silent_slices: The slices with calls that timed out since then.

    :_is_checked: Whether a short call was made since then.

    :_was_reached: Whether any call ever reached the server.

    :_given_up: Why no further call is made to it.
    """

    def __init__(
        self, name: str, maximum: int, random: Callable[[], float], give_up_after: float
    ) -> None:
        self.name = name
        self.in_flight = 0
        start = max(SMALLEST_START, int(maximum * START_SHARE))
        self.window = float(min(maximum, start))
        self._maximum = maximum
        self._random = random
        self._give_up_after = give_up_after
        self._is_doubling = True
        self._cut_at = -NEVER
        self._pace = Pace()
        self._resume = -NEVER
        self._announced = -NEVER
        self._opened_at: float | None = None
        self._probe: float | None = None
        self._probe_failed = False
        self._refusals = 0
        self._failures = 0
        self._failed_calls = 0
        self._failing_since: float | None = None
        self._failing_kind = ""
        self._answered_last = -NEVER
        self._answered_at = -NEVER
        self._silent_slices: set[str] = set()
        self._is_checked = False
        self._was_reached = False
        self._given_up: FatalError | None = None

    def hold_back(self, now: float) -> float:
        """Return the seconds until a call may go, and note whether the pace makes it wait.

        Infinite: only after another call has ended.
        """
        if self.in_flight >= int(self.window):
            return NEVER
        if now < self._resume:
            return self._resume - now
        if self._probe is not None:
            return NEVER
        return self._pace.hold_back(now)

    def reason_not_to_wait(self, spec: str, now: float) -> FatalError | None:
        """Return why no call should wait for this server at all; None if there is no reason.

        It has been given up, or it announced a pause that lasts too long. ``spec`` is the model's,
        for the message.
        """
        if self._given_up is not None:
            return self._given_up
        seconds_left = self._announced - now
        if seconds_left <= LONGEST_WAIT_SECONDS:
            return None
        message = (
            f"{spec}: {self.name} asks to be left alone for {seconds_left:,.0f} s, longer than the "
            f"{LONGEST_WAIT_SECONDS:g} s that a run waits; run again later, what is done is kept"
        )
        return FatalError(RATE_LIMIT, message)

    def note_start(self, now: float) -> None:
        """Count a call that goes now; it is a probe if the server was down or refused all."""
        self.in_flight += 1
        if self._opened_at is not None or self._refusals > 1:
            self._probe = now
        self._pace.take(now, self.in_flight)

    @property
    def is_silent(self) -> bool:
        """Whether time-outs are the server's fault, and not those of single items.

        A call without a slice, as commands make them, is enough to show that.
        """
        slices = self._silent_slices
        return "" in slices or len(slices) >= SLICES_OF_SILENCE

    def begin_check(self, started: float) -> bool:
        """Return whether a short call is due after a time-out, and count it as made.

        It is not where the server has answered anything since the call that timed out
        ``started``.
        """
        if self._is_checked or self._answered_at >= started:
            return False
        self._is_checked = True
        return True

    def note_end(
        self,
        error: BaseException | None,
        started: float,
        now: float,
        failed_at: float | None,
        slice_name: str = "",
    ) -> bool:
        """Learn from a call that ended; return whether the server is to blame, not the call.

        ``error`` None is a success. ``failed_at`` is when the call failed for the first time,
        None if it had not. A call that fails while the server answers later ones is itself to
        blame. ``slice_name`` is empty for a call that is of none.
        """
        kind = error.kind if isinstance(error, CallError) else ""
        is_call_to_blame = failed_at is not None and self._answered_last > failed_at
        was_open = self._opened_at is not None
        was_probe = started == self._probe
        if was_probe:
            self._probe = None
        if kind == TIMEOUT and not is_call_to_blame:
            self._silent_slices.add(slice_name)
        if isinstance(error, TransientError):
            if not (is_call_to_blame and (kind in OUTAGES or kind == TIMEOUT)):
                self._note_failure(error, started, now, again=failed_at is not None)
        elif error is None or isinstance(error, CallError):
            self._note_answer(started, now)
        if self._opened_at is not None and (was_probe or not was_open):
            self._probe_failed = was_open
            self._pause_before_probe(0.0, now, now - self._opened_at)
        self.in_flight -= 1
        if kind == RATE_LIMIT:
            return not is_call_to_blame
        if kind == TIMEOUT:
            is_shown = len(self._silent_slices) >= SLICES_OF_SILENCE
            return is_shown and not is_call_to_blame
        return kind in OUTAGES and self._opened_at is not None

    def describe(self, now: float) -> str:
        """Return in a few words why calls to this server wait; empty if they do not."""
        is_probing = self._opened_at is not None or self._refusals > 1
        if is_probing and self._failing_since is not None:
            seconds = now - self._failing_since
            failure = FAILURE_WORDS[self._failing_kind]
            return f"{self.name} {failure} for {seconds:.0f} s, probing"
        if self._resume > now:
            return f"{self.name} paused {self._resume - now:.0f} s"
        if self._pace.bucket is not None:
            return f"{self.name} at {self._pace.bucket.rate:.1f} calls/s"
        return ""

    def _note_answer(self, started: float, now: float) -> None:
        """Learn from a call that was answered, by a reply or by an error that is the call's own."""
        self._was_reached = True
        self._answered_at = now
        self._silent_slices.clear()
        self._is_checked = False
        self._answered_last = max(self._answered_last, started)
        self._failing_since = None
        was_refusing = self._refusals > 1
        self._refusals = 0
        self._pace.note_grant(started)
        self._widen_window()
        ended_outage = self._close_circuit(started)
        if ended_outage or was_refusing:
            # How many calls at a time such a server takes must be found out anew.
            self._is_doubling = True

    def _widen_window(self) -> None:
        """Let more calls be in flight, if the window was used up: it may have been too small.

        ``in_flight`` still counts the call that ended; one place beside it may be free.
        """
        free_places = int(self.window) - self.in_flight
        if self.window >= self._maximum or free_places > 1:
            return
        if self._is_doubling:
            step = 1.0  # for each call in flight, so the window doubles in a round trip
        else:
            step_of_round_trip = max(1.0, self._maximum / WINDOW_STEPS)
            step = step_of_round_trip / self.window
        self.window = min(float(self._maximum), self.window + step)

    def _close_circuit(self, started: float) -> bool:
        """Close the circuit; return whether that ends an outage in which a probe failed.

        A call from before the outage changes nothing.
        """
        if self._opened_at is not None and started < self._opened_at:
            return False
        probe_had_failed = self._probe_failed
        self._probe_failed = False
        self._failures = 0
        self._failed_calls = 0
        self._opened_at = None
        self._probe = None
        return probe_had_failed

    def _note_failure(
        self, error: TransientError, started: float, now: float, *, again: bool
    ) -> None:
        """Learn from a call that may succeed later; ``again``: it had failed before."""
        kind = error.kind
        announced_seconds = error.retry_after or 0.0
        if kind != UNREACHABLE and kind not in WITHOUT_REPLY:
            self._was_reached = True
        failing_since = now if self._failing_since is None else self._failing_since
        seconds_failing = now - failing_since
        if kind in FAILURE_WORDS:
            self._failing_kind = kind
            self._failing_since = failing_since
        if kind in OUTAGES:
            self._note_outage(kind, started, now, again=again)
        elif kind not in WITHOUT_REPLY:
            self._close_circuit(started)
        if kind == RATE_LIMIT:
            self._note_refusal(announced_seconds, started, now, seconds_failing)
        else:
            self._pause(announced_seconds, now)
        self._give_up_if_silent(error, seconds_failing)

    def _note_outage(
        self, kind: str, started: float, now: float, *, again: bool
    ) -> None:
        """Count a failure as one of an outage, and open the circuit if there were enough."""
        if kind == OVERLOADED and self._opened_at is None:
            self._cut_window(OVERLOAD_CUT, started, now)
        self._failures += 1
        # An overload and a closed port are no fault of the call, however often it fails.
        if kind in (OVERLOADED, UNREACHABLE) or not again:
            self._failed_calls += 1
        if self._opened_at is not None:
            return
        # With one call in flight only one more can fail.
        calls_to_open = min(CALLS_TO_OPEN, self._maximum + 1)
        has_failed_often = (
            self._failures >= FAILURES_TO_OPEN and self._failed_calls >= calls_to_open
        )
        was_never_reached = kind == UNREACHABLE and not self._was_reached
        if has_failed_often or was_never_reached:
            self._opened_at = now

    def _note_refusal(
        self,
        announced_seconds: float,
        started: float,
        now: float,
        seconds_failing: float,
    ) -> None:
        """Slow down after an HTTP 429, unless it is a single one."""
        announced = announced_seconds > 0
        is_single = self._pace.note_refusal(started, now, announced=announced)
        if is_single:
            self._pause(announced_seconds, now)
            return
        if self._refusals == 0:
            self._cut_window(RATE_CUT, started, now)
        self._pause_before_probe(announced_seconds, now, seconds_failing)
        if self._pace.slow_down(started, now, self._resume):
            self._refusals += 1

    def _cut_window(self, factor: float, started: float, now: float) -> None:
        """Shrink the window, unless the failed call started before the last cut."""
        if started > self._cut_at:
            self.window = max(1.0, self.window * factor)
            self._is_doubling = False
            self._cut_at = now

    def _pause(self, seconds: float, now: float) -> None:
        """Let no call go for so long, and a little longer, if that is later than announced."""
        if now + seconds > max(now, self._announced):
            self._announced = now + seconds
            pause = seconds * (1 + PAUSE_SPREAD * self._random())
            self._resume = max(self._resume, now + pause)

    def _pause_before_probe(
        self, announced_seconds: float, now: float, seconds_down: float
    ) -> None:
        """Pause as announced, or longer if the server has been down for some time."""
        backoff = FIRST_PROBE_SECONDS + PROBE_SHARE * seconds_down
        backoff = min(LONGEST_PROBE_SECONDS, backoff)
        self._pause(max(announced_seconds, backoff), now)

    def _give_up_if_silent(self, error: TransientError, seconds_failing: float) -> None:
        """Give the server up if it has failed for longer than we are patient.

        One that was never reached, or never answered, has less time: its address may be wrong.
        """
        if error.kind not in FAILURE_WORDS:
            return
        if error.kind == TIMEOUT and not self.is_silent:
            return
        patience = self._give_up_after
        was_reached = self._was_reached or error.kind != UNREACHABLE
        never_answered = self._answered_last == -NEVER
        if not was_reached:
            patience = min(patience, NEVER_REACHED_SECONDS)
        elif never_answered and error.kind not in (OVERLOADED, RATE_LIMIT):
            patience = min(patience, NEVER_ANSWERED_SECONDS)
        if seconds_failing < patience:
            return
        fault = "has given no reply" if was_reached else "could not be reached"
        message = (
            f"{self.name} {fault} for {seconds_failing:.0f} s; "
            f"no more calls are made to it: {error}"
        )
        self._given_up = FatalError(error.kind, message)
