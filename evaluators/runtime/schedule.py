"""Which item is next: first what a test is waiting for, then the rest in order, not too far ahead.

The engine pulls from one side; the thread that runs pytest tells the other side which tests have
started and ended. The window bounds what is spent on items whose tests may never run.
"""

import asyncio
import threading
from collections import deque
from collections.abc import Sequence


class Schedule:
    """The queue between pytest's thread and the engine's loop.

    Items ``beside`` belong to no test, so that none of them ever counts as being ahead. Where
    ``first`` is given no more items than that are handed out until one is ``done``: the first one
    shows whether every model can be asked, the judge included. Where ``lead`` is given, which items
    have a test is not known yet: so many are handed out until ``select`` names them.
    """

    def __init__(
        self,
        keys: Sequence[str],
        window: int,
        beside: frozenset[str] = frozenset(),
        first: int | None = None,
        *,
        lead: int | None = None,
    ) -> None:
        self._lock = threading.Lock()
        self._ahead = deque(keys)
        self._wanted: deque[str] = deque()
        self._untaken = set(keys)
        self._window = window
        self._first = first
        self._lead = lead
        self._beside = beside
        self._taken = 0
        self._ended = 0
        self._closed = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._waking = False

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self._lock = threading.Lock()  # each process has one of its own

    def lead(self, count: int) -> None:
        """Let so many items be handed out before it is known which of them have a test."""
        with self._lock:
            self._lead = None if self._lead is None else count
        self._wake()

    def select(self, keys: Sequence[str]) -> None:
        """Say which items are to be worked on, in their order; the others are forgotten."""
        with self._lock:
            self._lead = None
            self._ahead = deque(keys)
            self._untaken.intersection_update(keys)
        self._wake()

    def want(self, key: str) -> None:
        """Say that a test is waiting for this item."""
        with self._lock:
            if key in self._untaken:
                self._wanted.append(key)
        self._wake()

    def ended(self, count: int = 1) -> None:
        """Say that so many more tests are over."""
        with self._lock:
            self._ended += count
        self._wake()

    def done(self) -> None:
        """Say that an item that was handed out has an outcome."""
        if self._first is not None:
            with self._lock:
                self._first = None
            self._wake()

    def close(self) -> None:
        """Hand out nothing more."""
        with self._lock:
            self._closed = True
        self._wake()

    async def take(self) -> str | None:
        """Return the next item's key as soon as one may be started; None when there is none left.

        To be called from one event loop only.
        """
        self._loop = loop = asyncio.get_running_loop()
        while True:
            with self._lock:
                key = self._pick()
                over = self._closed or not self._untaken
                if key is None and not over:
                    turn = loop.create_future()
                    self._waiting.append(turn)
            if over:
                loop.call_soon(self._let_in)
            if key is not None or over:
                return key
            await turn

    def _pick(self) -> str | None:
        if self._closed or self._first == 0 or self._lead == 0:
            return None
        key = self._next_untaken(self._wanted)
        if key is None and self._taken - self._ended < self._window:
            key = self._next_untaken(self._ahead)
        if key is not None:
            self._untaken.discard(key)
            self._first = None if self._first is None else self._first - 1
            self._lead = None if self._lead is None else self._lead - 1
            self._taken += key not in self._beside
        return key

    def _next_untaken(self, queue: deque[str]) -> str | None:
        while queue:
            key = queue.popleft()
            if key in self._untaken:
                return key
        return None

    def _wake(self) -> None:
        # Waking a loop is a system call: not one for every test.
        with self._lock:
            if self._loop is None or self._waking or not self._waiting:
                return
            self._waking = True
        try:
            self._loop.call_soon_threadsafe(self._let_in)
        except RuntimeError:
            # The loop is closed: nobody is left to be woken.
            return

    def _let_in(self) -> None:
        """Wake as many as there are items for, not all of them for one item."""
        with self._lock:
            self._waking = False
            # What tests wanted may lie beyond the window: that takes no room from what they want.
            room = len(self._wanted) + max(0, self._window - (self._taken - self._ended))
            over = self._closed or not self._untaken
        count = len(self._waiting) if over else min(room, len(self._waiting))
        for _ in range(count):
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
