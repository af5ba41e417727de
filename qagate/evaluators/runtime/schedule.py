"""Which item is next: first those that a test waits for, then the rest in order."""

import asyncio
from collections import deque
from collections.abc import Collection, Sequence

UNLIMITED = float("inf")
SCOUTS = (
    8  # items refused one after the other, after which the others follow in any case
)
GOLDEN_SHARE = (
    0.618  # multiples of it, without their whole parts, lie far from one another
)


class Schedule:
    """The queue of an engine, in its loop alone.

    Items are handed out in the order of ``keys``, up to these limits:

    ``window``: how far ahead of the tests that have ended. A run that ends early, as with ``-x``,
    must not have paid for all items. Items that have no test do not count.
    ``first``: so many until one is ``done``. That shows whether every model can be asked, the judge
    included: a wrong key must not cost more. While items are refused, single ones from all over the
    plan follow: the refusals may be due to the first items.
    ``lead``: so many until ``select`` names the items that have a test. Calls may begin while tests
    are still being collected.
    """

    def __init__(
        self,
        keys: Sequence[str],
        window: int,
        *,
        first: float = UNLIMITED,
        lead: float = UNLIMITED,
    ) -> None:
        self._ahead = deque(keys)
        self._wanted: deque[str] = deque()
        self._untaken = set(keys)
        self._window, self._untested = window, 0
        self._first, self._lead = first, lead
        self._refused = self._taken = self._ended = 0
        self._closed = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    def lead(self, count: int) -> None:
        """Hand out up to ``count`` items before it is known which items have a test."""
        if self._lead != UNLIMITED:
            self._lead = count
        self._wake()

    def select(self, keys: Sequence[str], untested: int = 0) -> None:
        """Hand out only these items, in this order; the first ``untested`` have no test."""
        self._lead = UNLIMITED
        self._untested = untested
        self._ahead = deque(keys)
        self._untaken.intersection_update(keys)
        self._wake()

    def discard(self, keys: Collection[str]) -> list[str]:
        """Hand these items out no more; return those that were not handed out yet."""
        left = [key for key in keys if key in self._untaken]
        self._untaken.difference_update(left)
        self._wake()
        return left

    def want(self, key: str) -> None:
        """Put an item first, also beyond the window: a test is waiting for it."""
        if key in self._untaken:
            self._wanted.append(key)
        self._wake()

    def ended(self, count: int = 1) -> None:
        """Count ``count`` more tests as over."""
        self._ended += count
        self._wake()

    def done(self, *, refused: bool = False) -> None:
        """Note that an item has an outcome; ``refused``: its model took none of its requests."""
        if self._first != UNLIMITED:
            self._refused += 1
            more = refused and self._refused < SCOUTS
            self._first = max(self._first, self._taken) + 1 if more else UNLIMITED
            self._wake()

    def close(self) -> None:
        """Hand out nothing more."""
        self._closed = True
        self._wake()

    async def take(self) -> str | None:
        """Return the next item's key as soon as it may start; None when no item is left."""
        while (key := self._pick()) is None and self._untaken and not self._closed:
            turn = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        if self._closed or not self._untaken:
            self._wake()
        return key

    def _room(self) -> int:
        return max(0, self._window + self._untested - (self._taken - self._ended))

    def _pick(self) -> str | None:
        if self._closed or self._taken >= min(self._first, self._lead):
            return None
        queues = (self._wanted, self._ahead) if self._room() else (self._wanted,)
        if self._refused and self._first != UNLIMITED and self._lead == UNLIMITED:
            # An item that is far from those before it.
            left = [key for key in self._ahead if key in self._untaken]
            start = int(len(left) * (self._taken * GOLDEN_SHARE % 1))
            queues = (deque(left[start : start + 1]),)
        for queue in queues:
            while queue:
                key = queue.popleft()
                if key in self._untaken:
                    self._untaken.discard(key)
                    self._taken += 1
                    return key
        return None

    def _wake(self) -> None:
        """Wake as many takers as there are items, not all of them for one item."""
        over = self._closed or not self._untaken
        # Items that tests want may lie beyond the window.
        count = len(self._waiting) if over else len(self._wanted) + self._room()
        for _ in range(min(count, len(self._waiting))):
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
