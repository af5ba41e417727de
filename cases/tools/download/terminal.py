"""What a person sees while a file comes: a bar on a terminal, a few plain lines elsewhere."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TextIO

from evaluators.output import say

Watch = Callable[[int, int | None], None]
"""Told after each chunk how many bytes there are now and how many there will be, if known."""

MEGABYTE = 1_000_000
STEP = 10 * MEGABYTE  # bytes between two lines where the size is not known


def watching(name: str, stream: TextIO) -> AbstractContextManager[Watch]:
    """Return a context whose value is told of the progress, and shows it."""
    return _bar(name, stream) if stream.isatty() else _lines(name, stream)


@contextmanager
def _bar(name: str, stream: TextIO) -> Iterator[Watch]:
    from rich.console import Console  # noqa: PLC0415  # only a terminal needs it
    from rich.progress import (  # noqa: PLC0415
        BarColumn,
        DownloadColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    columns = (TextColumn(name, markup=False), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(file=stream), transient=True) as progress:
        task = progress.add_task(name, total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total)


@contextmanager
def _lines(name: str, stream: TextIO) -> Iterator[Watch]:
    due = 0

    def watch(done: int, total: int | None) -> None:
        nonlocal due
        if done >= due or done == total:
            of = f" of {total / MEGABYTE:.1f}" if total else ""
            say(stream, f"{name}: {done / MEGABYTE:.1f}{of} MB")
            due = done + (max(1, total // 10) if total else STEP)

    yield watch
