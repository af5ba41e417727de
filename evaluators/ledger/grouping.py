"""Work that many wait for at once, done for all of them together in a thread."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

T = TypeVar("T")
R = TypeVar("R")


class Grouped(Generic[T, R]):
    """Hands ``work`` all that came since its last call, and each item its own result.

    One group is under way at a time. An item waits ``seconds`` for others to share its group.
    An error of ``work`` is raised for every item of the group. Used from one event loop.
    """

    def __init__(self, work: Callable[[Sequence[T]], Sequence[R]], seconds: float) -> None:
        self._work = work
        self._seconds = seconds
        self._waiting: list[tuple[T, asyncio.Future[R]]] = []
        self._task: asyncio.Task[None] | None = None

    async def __call__(self, item: T) -> R:
        """Return the item's result."""
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, future))
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run())
        return await future

    async def flush(self) -> None:
        """Return once everything given so far has its result."""
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _run(self) -> None:
        while self._waiting:
            await asyncio.sleep(self._seconds)
            group, self._waiting = self._waiting, []
            results: Sequence[R] = ()
            failure: Exception | None = None
            try:
                results = await asyncio.to_thread(self._work, [item for item, _ in group])
            except Exception as error:  # noqa: BLE001  # every item must learn of it
                failure = error
            for number, (_, future) in enumerate(group):
                if future.cancelled():
                    continue
                if failure is None:
                    future.set_result(results[number])
                else:
                    future.set_exception(failure)
