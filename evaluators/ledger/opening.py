"""Opens a ledger in a file or a database; loads a database's driver only when it is needed."""

from types import ModuleType
from typing import TYPE_CHECKING, TypeAlias

from evaluators.core import UsageError
from evaluators.ledger import sqlite
from evaluators.ledger_place import Place, PostgresUrl

if TYPE_CHECKING:
    from evaluators.ledger.postgres import PostgresStore

Store: TypeAlias = "sqlite.SqliteStore | PostgresStore"
"""An open ledger: any thread may call its methods, and they raise StoreError if it fails."""


def open_store(place: Place, *, read_only: bool = False) -> Store:
    """Return the open ledger at a place. It is made if it is to be written and does not exist.

    Raises UsageError if it cannot be opened or others could have changed it unnoticed.
    """
    if isinstance(place, PostgresUrl):
        store: Store = _postgres().open_postgres(place, read_only=read_only)
        return store
    return sqlite.open_to_read(place) if read_only else sqlite.open_to_write(place)


def exists(place: Place) -> bool:
    """Return whether there is a ledger. Raises UsageError if a database does not answer."""
    if isinstance(place, PostgresUrl):
        return bool(_postgres().has_ledger(place))
    return place.exists()


def _postgres() -> ModuleType:
    try:
        from evaluators.ledger import postgres  # noqa: PLC0415  # psycopg is optional
    except ImportError as error:
        raise UsageError(
            f"--ledger postgresql://: {error}; pip install 'psycopg[binary]>=3.3'"
        ) from None
    return postgres
