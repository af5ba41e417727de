"""Which item is next: first those that a test waits for, then the others in order.

The engine's workers take items from a Schedule. It never hands out more than it may, so
that a run that ends early, or cannot be made at all, has not paid for all of its items.
"""

import asyncio
from collections import deque
from collections.abc import Collection, Iterable, Sequence

UNLIMITED = float("inf")

MAX_TRIAL_REFUSALS = 8
"""After so many items refused one after the other, the others follow in any case."""

GOLDEN_RATIO = 0.618
"""The fractional parts of its multiples lie far from one another: each falls into one of
the widest gaps between those before it (Knuth, The Art of Computer Programming 3, 6.4)."""


class Schedule:
    """The queue of an engine, in its loop alone.

    Items are handed out in the order of ``keys``; one that a test waits for goes first. Three
    limits say how many:

    The *window* is how far the items may be ahead of the tests that have ended. A run that
    ends early, as with ``-x``, must not have paid for all items. A test that waits gets its
    item also beyond the window. Items that have no test do not count.

    The *trial* is how many items are handed out until one of them is done. That shows
    whether every model can be asked, the judge included: a wrong key must not cost more. If
    an item is refused, one more follows, then another, each from far away in the plan: the
    refusals may be due to the first items alone. The trial ends with the first item that is
    not refused, or after MAX_TRIAL_REFUSALS.

    The *head start* is how many items are handed out until ``select`` names those that have
    a test. Calls may begin while tests are still being collected.

    Attributes::

    :_ahead: Keys in the order of the plan. It may hold keys that were taken or discarded.

    :_wanted: Keys that a test waits for, likewise.

    :_deferred: Keys that go after all others, unless a test waits for them.

    :_untaken: The keys that may still be handed out.

    :_taken: How many were handed out.

    :_ended: How many tests have ended.

    :_takers: One future for each worker that waits in ``take``.

    :_selected: The keys that may be handed out at all.

    :_awaiters: One future for each caller that waits in ``selected``.
    """

    def __init__(
        self,
        keys: Sequence[str],
        window: int,
        *,
        trial: float = UNLIMITED,
        head_start: float = UNLIMITED,
    ) -> None:
        self._ahead = deque(keys)
        self._wanted: deque[str] = deque()
        self._deferred: set[str] = set()
        self._untaken = set(keys)
        self._taken = 0
        self._ended = 0
        self._untested = 0
        self._window = window
        self._trial_limit = trial
        self._trial_refusals = 0
        self._head_start = head_start
        self._closed = False
        self._takers: deque[asyncio.Future[None]] = deque()
        self._selected = tuple(keys)
        self._awaiters: list[asyncio.Future[None]] = []

    def allow_head_start(self, count: int) -> None:
        """Hand out up to ``count`` items before it is known which items have a test."""
        if self._head_start != UNLIMITED:
            self._head_start = count
        self._wake_takers()

    def select(self, keys: Sequence[str], untested: int = 0) -> None:
        """Hand out only these items, in this order; the first ``untested`` have no test."""
        self._head_start = UNLIMITED
        self._selected = tuple(keys)
        self._untested = untested
        self._ahead = deque(self._in_turn(keys))
        self._untaken.intersection_update(keys)
        self._wake_takers()

    def discard(self, keys: Collection[str]) -> list[str]:
        """Hand these items out no more; return those that were not handed out yet."""
        discarded = [key for key in keys if key in self._untaken]
        self._untaken.difference_update(discarded)
        self._wake_takers()
        return discarded

    def defer(self, keys: Collection[str]) -> None:
        """Hand these items out after all others, and one more item in place of one of them.

        The one under way may take its time, so it must not be all that the trial waits for.
        """
        self._deferred.update(keys)
        self._ahead = deque(self._in_turn(self._ahead))
        if self._trial_limit != UNLIMITED:
            self._trial_limit += 1
        self._wake_takers()

    def _in_turn(self, keys: Iterable[str]) -> list[str]:
        """Return the keys in their order, the deferred ones behind."""
        return sorted(keys, key=self._deferred.__contains__)

    def move_to_front(self, key: str) -> None:
        """Hand an item out first, also beyond the window: a test is waiting for it."""
        if key in self._untaken:
            self._wanted.append(key)
        self._wake_takers()

    def count_ended_tests(self, count: int = 1) -> None:
        """Count ``count`` more tests as ended."""
        self._ended += count
        self._wake_takers()

    def note_done(self, *, was_refused: bool = False) -> None:
        """Note that an item has an outcome, and end the trial or let one more item follow.

        ``was_refused`` says that a model refused the item's requests.
        """
        if self._trial_limit == UNLIMITED:
            return
        if was_refused:
            self._trial_refusals += 1
        # Refusals alone do not keep a run from its other items, so many of them end the trial too.
        is_trial_over = not was_refused or self._trial_refusals >= MAX_TRIAL_REFUSALS
        if is_trial_over:
            self._trial_limit = UNLIMITED
        else:
            self._trial_limit += 1
        self._wake_takers()

    def close(self) -> None:
        """Hand out nothing more."""
        self._closed = True
        self._wake_takers()

    async def selected(self) -> tuple[str, ...]:
        """Return the keys of this run as soon as it is known which ones have a test.

        None where the schedule is closed before.
        """
        while self._head_start != UNLIMITED and not self._closed:
            known = asyncio.get_running_loop().create_future()
            self._awaiters.append(known)
            await known
        return () if self._closed else self._selected

    async def take(self) -> str | None:
        """Return the next item's key as soon as it may start; None when no item is left."""
        key = self._take_now()
        while key is None and self._untaken and not self._closed:
            turn = asyncio.get_running_loop().create_future()
            self._takers.append(turn)
            await turn
            key = self._take_now()
        if self._closed or not self._untaken:
            self._wake_takers()
        return key

    def _take_now(self) -> str | None:
        """Hand out the next item and return its key; None if no item may start now."""
        if self._closed or self._taken >= min(self._trial_limit, self._head_start):
            return None
        if self._is_trial_refused and self._head_start == UNLIMITED:
            key = self._far_item()
        else:
            key = self._pop_untaken(self._wanted)
            if key is None and self._room() > 0:
                key = self._pop_untaken(self._ahead)
        if key is not None:
            self._untaken.discard(key)
            self._taken += 1
        return key

    @property
    def _is_trial_refused(self) -> bool:
        """Whether the trial goes on, and all of its items so far were refused."""
        return self._trial_limit != UNLIMITED and self._trial_refusals > 0

    def _far_item(self) -> str | None:
        """Return an item of the plan that is far from those tried before it; None if none is left.

        With each item taken, the place moves on by the golden ratio of what is left.
        """
        untaken = [key for key in self._ahead if key in self._untaken]
        if not untaken:
            return None
        place = self._taken * GOLDEN_RATIO % 1
        return untaken[int(len(untaken) * place)]

    def _pop_untaken(self, queue: deque[str]) -> str | None:
        """Remove the first item of a queue that may still be handed out, and return it."""
        while queue:
            key = queue.popleft()
            if key in self._untaken:
                return key
        return None

    def _room(self) -> int:
        """Return how many items the window still allows."""
        ahead_of_tests = self._taken - self._ended
        return max(0, self._window + self._untested - ahead_of_tests)

    def _wake_takers(self) -> None:
        """Wake as many takers as there are items for them, or all if nothing more will come."""
        for known in self._awaiters:
            if not known.done():
                known.set_result(None)
        self._awaiters.clear()
        if self._closed or not self._untaken:
            count = len(self._takers)
        else:
            # Items that tests wait for may lie beyond the window.
            count = min(len(self._takers), len(self._wanted) + self._room())
        for _ in range(count):
            turn = self._takers.popleft()
            if not turn.done():
                turn.set_result(None)
