"""Parts of a run that go to several machines: a hash of the item says which part it is in."""

import hashlib
from dataclasses import dataclass

from evaluators.core import Case, UsageError
from evaluators.text import shown

MOST_SHARDS = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Shards:
    """Parts of a run: those ``held`` of the parts 1 to ``of``, alike in size.

    A hash of its data set, language and id says which part an item is in, whatever else is asked,
    with all its repeats. Raises ValueError for parts that cannot be.
    """

    of: int
    held: tuple[int, ...]

    def __post_init__(self) -> None:
        """Check the numbers: a report folder may say anything."""
        if not (1 <= self.of <= MOST_SHARDS and {*self.held} <= {*range(1, self.of + 1)}):
            raise ValueError(f"shards {self.held[:3]} of {self.of} cannot be")

    def holds(self, case: Case) -> bool:
        """Return whether an item is in one of these parts."""
        name = f"{case.dataset}:{case.language}:{case.id}".encode("utf-8", "surrogatepass")
        part = int.from_bytes(hashlib.sha256(name).digest()[:8]) % self.of + 1
        return part in self.held

    @property
    def missing(self) -> tuple[int, ...]:
        """The parts that are not held."""
        return tuple(sorted({*range(1, self.of + 1)}.difference(self.held)))


def parse_shard(text: str) -> Shards | None:
    """Return the part that ``--shard`` names, ``2/8`` say; None for all of a run.

    Raises UsageError.
    """
    number, _, of = text.partition("/")
    try:
        shards = Shards(of=int(of), held=(int(number),))
    except ValueError:
        raise UsageError(
            f"--shard: K/N is needed, part K of N (such as 2/8), got {shown(text)}"
        ) from None
    return shards if shards.missing else None
