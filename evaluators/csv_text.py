"""What the csv module leaves to its caller: where lines end, and how long a cell may be."""

import csv
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def long_cells(size: int) -> Iterator[None]:
    """Let a cell be as long as the file: the module's limit is process-wide, so it is put back."""
    before = csv.field_size_limit(max(size + 1, csv.field_size_limit()))
    try:
        yield
    finally:
        csv.field_size_limit(before)


def lines(text: str) -> Iterator[str]:
    """Split at LF (at CR in files without LF) and nowhere else, and keep the line ends."""
    end = "\n" if "\n" in text else "\r"
    start = 0
    while start < len(text):
        stop = text.find(end, start) + 1 or len(text)
        yield text[start:stop]
        start = stop
