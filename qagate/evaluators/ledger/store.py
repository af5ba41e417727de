"""What a ledger asks of its database, whichever it is."""

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from qagate.evaluators.ledger.rows import Row, Statements


class Store(Protocol):
    """An open ledger: any thread may call its methods, and they raise StoreError if it fails."""

    times_mended: int
    """How often it proved to be damaged since it was opened; some of what it held was lost then."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What the report says about it: damage, and who could change it."""

    @property
    def near(self) -> bool:
        """Whether a look-up takes microseconds, so that it may run on the event loop."""

    @property
    def size(self) -> int:
        """The bytes that it takes."""

    def read(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """Return the rows of a query."""

    def stream(self, sql: str, values: Sequence[object] = ()) -> Iterator[Row]:
        """Yield the rows of a query."""

    def change(self, statements: Statements) -> None:
        """Return once all changes are on the disk."""

    def mend(self, why: str) -> None:
        """Replace what is damaged as far as it can be read, where that is not the server's work."""

    def begin_search(self) -> None:
        """Look for damage from now on while other work goes on, if the database does not."""

    def take(self, keys: Collection[str]) -> set[str]:
        """Claim calls; return the keys of those that no other run is making."""

    def give_back(self, key: str) -> None:
        """End a claim."""

    def alone(self) -> bool:
        """Return whether no other run has the ledger open."""

    def shrink(self) -> None:
        """Return the space of removed rows to the system, where it does not go by itself."""

    def close(self) -> None:
        """Close the ledger, and end its claims."""
