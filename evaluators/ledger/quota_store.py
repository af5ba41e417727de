"""The state of a quota: one row of a ledger in PostgreSQL, which one run at a time may change."""

import json
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from evaluators.ledger.postgres_link import Connection, PostgresLink
from evaluators.ledger_place import PostgresUrl

T = TypeVar("T")

PATIENCE = 10.0  # seconds without a server until the run makes no more calls
_NEW = "INSERT INTO quotas VALUES (%s, '{}') ON CONFLICT DO NOTHING"
_READ = (
    "SELECT state, extract(epoch FROM clock_timestamp())::float8 FROM quotas "
    "WHERE name = %s FOR UPDATE"
)
_WRITE = "UPDATE quotas SET state = %s WHERE name = %s"


class QuotaStore:
    """The row with this name, on a connection of its own that is made when it is first used."""

    def __init__(self, url: PostgresUrl, name: str) -> None:
        self._link = PostgresLink(url)
        self._name = name

    def change(
        self, work: Callable[[Mapping[str, Any], float], tuple[Mapping[str, Any], T]], *, last: bool
    ) -> T:
        """Put in place of the state what ``work`` makes of it, and return what else it returns.

        ``work`` gets the state and the database's time in seconds. Nobody else changes the state
        meanwhile. Only the ``last`` change waits for the disk: runs say all of it again and again.
        Raises StoreError where the database is lost for too long; a ``last`` change is tried once.
        """

        def run(connection: Connection) -> T:
            with connection.transaction():
                if not last:
                    connection.execute("SET LOCAL synchronous_commit = off")
                rows = connection.execute(_READ, (self._name,)).fetchall()
                if not rows:
                    connection.execute(_NEW, (self._name,))
                    rows = connection.execute(_READ, (self._name,)).fetchall()
                ((kept, now),) = rows
                state, result = work(json.loads(kept), now)
                connection.execute(_WRITE, (json.dumps(state), self._name))
            return result

        return self._link.run(run, 0.0 if last else PATIENCE)

    def close(self) -> None:
        """Close the connection."""
        self._link.close()
