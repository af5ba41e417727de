"""Opening a ledger where it is: what needs a database's driver asks for it only here."""

import time
from collections.abc import Callable
from types import ModuleType

from evaluators.core import UsageError
from evaluators.ledger.database import Store
from evaluators.ledger.opening import open_to_read, open_to_write
from evaluators.ledger_place import Place, PostgresUrl


def open_store(
    place: Place,
    *,
    read_only: bool = False,
    now: Callable[[], float] = time.time,
) -> Store:
    """Return the open ledger at a place. Raises UsageError where it may not or cannot be used.

    Only read, nothing is changed or made; else the ledger is made or mended where needed.
    """
    if isinstance(place, PostgresUrl):
        store: Store = _postgres().open_postgres(place, read_only=read_only)
        return store
    if read_only:
        return open_to_read(place)
    return open_to_write(place, now)


def exists(place: Place) -> bool:
    """Return whether there is a ledger. Raises UsageError for a database that does not answer."""
    if isinstance(place, PostgresUrl):
        return bool(_postgres().has_ledger(place))
    return place.exists()


def _postgres() -> ModuleType:
    try:
        from evaluators.ledger import postgres_opening  # noqa: PLC0415  # psycopg is optional
    except ImportError as error:
        raise UsageError(
            f"--ledger postgresql://: {error}; pip install 'qagate[postgres]'"
        ) from None
    return postgres_opening
