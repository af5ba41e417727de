"""What is known about one server: pauses that it announced, the pace and width that it bears."""

from collections.abc import Callable

from evaluators.core import CallError, FatalError, TransientError
from evaluators.runtime.circuit import Circuit
from evaluators.runtime.pace import RateEstimator
from evaluators.runtime.window import OVERLOAD_CUT, RATE_CUT, Window

LONGEST_WAIT = 120.0  # seconds; a server that asks for more is not waited for
SPREAD = 0.2  # a pause is lengthened by up to this share: other clients were told the same moment
FIRST_PAUSE = 0.5  # after a refusal that announces nothing; doubled while nothing succeeds
LONGEST_PAUSE = 20.0
BELIEVED = 2  # refusals in a row after which an announced pause is taken as too short
NEVER_ANSWERED = 10.0  # seconds after which a host that no call ever reached is given up

RATE_LIMIT = "rate_limit"
UNREACHABLE = "unreachable"
OVERLOADS = frozenset({"overloaded", UNREACHABLE})
NO_WORD = frozenset({"timeout", "connection"})
TROUBLES = OVERLOADS | NO_WORD | {RATE_LIMIT}


class ServerState:
    """One server as all calls of the run see it. ``random`` gives numbers from 0 to 1.

    ``patience`` is how many seconds it may go without a success before it is given up.
    """

    def __init__(
        self, name: str, maximum: int, random: Callable[[], float], patience: float
    ) -> None:
        self.name = name
        self.window = Window(maximum)
        self.given_up: FatalError | None = None
        self._random = random
        self._patience = patience
        self._pace = RateEstimator()
        self._circuit = Circuit()
        self._resume = float("-inf")
        self._announced = float("-inf")
        self._refusals = 0
        self._trouble: float | None = None  # since when nothing has succeeded
        self._answered = False
        self._answered_last = float("-inf")  # when the latest call began that it dealt with

    @property
    def is_overloaded(self) -> bool:
        """Whether the circuit is open: its failures say nothing about single requests."""
        return self._circuit.is_open

    def answered_since(self, failed_at: float | None) -> bool:
        """Say whether it dealt with a call that began after this failure of another one."""
        return failed_at is not None and self._answered_last > failed_at

    def wait(self, now: float) -> float:
        """Return the seconds until a call may go; infinite while one call tries the ground."""
        if now < self._resume:
            return self._resume - now
        return max(self._circuit.wait(now), self._pace.wait(now))

    def too_long(self, now: float) -> str:
        """Return the reason not to wait for this host at all, empty where there is none."""
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

        ``own``: if it has failed, then for a reason of its own, as the host goes on with others.
        """
        if own and isinstance(error, TransientError) and error.kind in OVERLOADS:
            self._circuit.abandon(started, now)
        elif isinstance(error, TransientError):
            self._fail(error, started, now)
        elif error is None or isinstance(error, CallError):
            self._live(started)
        else:
            self._circuit.abandon(started, now)
        self.window.in_flight -= 1

    def describe(self, now: float) -> str:
        """Return in a few words why calls to this host wait; empty where they do not."""
        left = self._resume - now
        if self._circuit.is_open:
            since = now - (self._trouble if self._trouble is not None else now)
            return f"{self.name} overloaded for {since:.0f} s, probing"
        if left > 0:
            return f"{self.name} paused {left:.0f} s"
        rate = self._pace.rate
        return "" if rate is None else f"{self.name} at {rate:.1f} calls/s"

    def _live(self, started: float) -> None:
        self._answered = True
        self._answered_last = max(self._answered_last, started)
        self._trouble = None
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
        self._pause(self._rest(error), now)
        if error.kind == RATE_LIMIT and self._pace.refuse(started, now, self._resume):
            self._refusals += 1
        self._count(error, now)

    def _rest(self, error: TransientError) -> float:
        """Return how long to leave the host alone: as it says, unless that has not helped."""
        said = error.retry_after or 0.0
        if error.kind != RATE_LIMIT or (said and self._refusals < BELIEVED):
            return said
        return max(said, min(LONGEST_PAUSE, FIRST_PAUSE * 2.0**self._refusals))

    def _pause(self, seconds: float, now: float) -> None:
        if now + seconds > max(now, self._announced):
            self._announced = now + seconds
            self._resume = max(self._resume, now + seconds * (1 + SPREAD * self._random()))

    def _count(self, error: TransientError, now: float) -> None:
        """Give the host up when nothing has succeeded for too long."""
        if error.kind not in TROUBLES:
            return
        self._trouble = now if self._trouble is None else self._trouble
        unknown = error.kind == UNREACHABLE and not self._answered
        silent = now - self._trouble
        if silent >= (min(self._patience, NEVER_ANSWERED) if unknown else self._patience):
            what = "could not be reached" if unknown else "has given no reply"
            why = f"{self.name} {what} for {silent:.0f} s; no more calls are made to it: {error}"
            self.given_up = FatalError(error.kind, why)
