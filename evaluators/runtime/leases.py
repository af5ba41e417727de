"""What a run has leased of a shared limit: slots of a rate, and room for calls in flight."""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from evaluators.runtime.quota_messages import Need, Slots

NEVER = float("inf")
LATELY = 2.0  # seconds
GROWTH = 1.25  # of what was used lately is asked for, so that a run can become faster


@dataclass(slots=True)
class Room:
    """How many calls may be in flight now. It changes only where it is shared."""

    size: int


class BookedBucket:
    """A bucket, as TokenBucket, that gains at times which were booked for it.

    What may go at once is this run's part of ``seconds`` worth. Before anything is booked, and
    once a lease has ended, nothing may be taken.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._used = 0.0
        self._pace = 0.0
        self._is_free = False
        self._level = 0.0
        self._burst = 1.0
        self._amount = 1.0
        self._times: deque[float] = deque()
        self._at = float("-inf")

    def book(self, now: float, slots: Slots | None, ahead: float, runs: int) -> None:
        """Gain at these times and no others; None is a rate that nobody limits.

        The loop's time is the database's and ``ahead``; ``runs`` share the rate.
        """
        self._fill(now)
        self.expire()
        self._is_free = slots is None
        if slots is not None:
            # Slots of more than one call must not lose the part that is over.
            least = slots.amount + (slots.amount > 1)
            self._burst = max(1.0, least, slots.rate * self._seconds / runs)
            self._amount = slots.amount
            self._times.extend(at for one in slots.times if (at := one + ahead) > self._at)

    def expire(self) -> None:
        """Gain nothing more."""
        self._is_free = False
        self._times.clear()

    def want(self, waiting: float, seconds: float) -> float:
        """Return what is wanted a second: for what waits, and as much again as was used lately.

        ``seconds`` are those since it was asked last.
        """
        if seconds:
            latest = min(1.0, seconds / LATELY)
            self._pace += latest * (self._used / seconds - self._pace)
            self._used = 0.0
        lacking = max(0.0, waiting - self._level) if waiting else 0.0
        return lacking + GROWTH * self._pace

    def wait(self, now: float, amount: float = 1.0) -> float:
        """Return the seconds until this amount may be taken; infinite while it is not booked.

        What is more than the bucket can hold may be taken when it is full.
        """
        self._fill(now)
        lacking = min(amount, self._burst) - self._level
        if self._is_free or lacking <= 1e-6:
            return 0.0
        count = ceil(lacking / self._amount - 1e-6)
        return self._times[count - 1] - now if count <= len(self._times) else NEVER

    def take(self, now: float, amount: float = 1.0) -> None:
        """Take an amount, whether it is there or not."""
        self._fill(now)
        self._used += amount
        if not self._is_free:
            self._level -= amount

    def give_back(self, amount: float) -> None:
        """Correct what was taken: too much, or (negative) too little."""
        if not self._is_free:
            self._level = min(self._burst, self._level + amount)

    def _fill(self, now: float) -> None:
        # A timer may end a float's last bit early: no further one could ever end that wait.
        while self._times and self._times[0] <= now + 1e-6:
            self._times.popleft()
            self._level = min(self._burst, self._level + self._amount)
        self._at = max(self._at, now)


@dataclass(slots=True, kw_only=True)
class SharedRate:
    """A rate: ``waiting`` returns how much the calls that wait will take of it."""

    most: float | None
    bucket: BookedBucket
    waiting: Callable[[], float]

    def need(self, seconds: float) -> Need:
        """Return what is wanted, after so many seconds since the last time."""
        return Need(most=self.most, wanted=self.bucket.want(self.waiting(), seconds))


@dataclass(slots=True, kw_only=True)
class SharedRoom:
    """Calls in flight: ``load`` returns how many there are, and how many wait to be.

    ``own`` is how many this run may have at most, whatever is granted.
    """

    most: int | None
    own: int
    room: Room
    load: Callable[[], tuple[int, int]]
    share: int = 0

    def need(self) -> Need:
        """Return what is wanted; what is not kept may not be used from now on."""
        in_flight, waiting = self.load()
        wanted = min(ceil(GROWTH * (in_flight + waiting)), self.own)
        self.room.size = min(self.room.size, wanted, self.share)
        return Need(most=self.most, wanted=wanted, kept=max(in_flight, self.room.size))

    def lease(self, granted: tuple[int, int] | None) -> None:
        """Use what was granted; None is a room that nobody limits."""
        size, self.share = granted or (self.own, self.own)
        self.room.size = min(self.own, size, self.share)
