"""How large a data file may be: what one machine reads in seconds, or more where that is said."""

from collections.abc import Iterable
from dataclasses import dataclass

MEGABYTE = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The most that is read of one data file: bytes, characters of a cell, rows.

    ``more`` is what a message says of reading more.
    """

    file: int = 64 * MEGABYTE
    yaml: int = 4 * MEGABYTE
    cell: int = MEGABYTE
    rows: int = 200_000
    more: str = "; --large reads more"

    def row_problem(self, row: int, values: Iterable[object]) -> str:
        """Return what is wrong with the size of a row, counted from 1; nothing where it is fine."""
        if row > self.rows:
            return f"more than {self.rows:,} rows{self.more}"
        longest = max(map(_length, values), default=0)
        return f"{longest:,} characters; {self.cell_problem}" if longest > self.cell else ""

    @property
    def cell_problem(self) -> str:
        """What is said of a cell that is too long."""
        return f"a cell may have {self.cell:,}{self.more}"


def _length(value: object) -> int:
    if isinstance(value, list):
        return sum(map(_length, value))
    return len(value) if isinstance(value, str) else 0


LARGE = Bounds(
    file=512 * MEGABYTE, yaml=64 * MEGABYTE, cell=512 * MEGABYTE, rows=50_000_000, more=""
)
"""What ``--large`` reads, at the price of memory and time."""
