"""A connection to PostgreSQL that is opened again when it was lost."""

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import psycopg
from psycopg.errors import DiskFull

from evaluators.ledger.database import StoreError
from evaluators.ledger_place import PostgresUrl

T = TypeVar("T")

Connection = psycopg.Connection[tuple[Any, ...]]

CONNECT_SECONDS = 10
PAUSE_SECONDS = 0.5  # between two attempts to reach a server that was lost
_READ_ONLY = "SET default_transaction_read_only = on"
# What a server promises by default; stricter settings stay.
_DURABLE = (
    "SELECT set_config('synchronous_commit', 'on', false) "
    "WHERE current_setting('synchronous_commit') = 'off'"
)
_COLLISION = "40"  # SQLSTATE's class for transactions that the server gave up, to be done again
# A server that has vanished is given up after some 20 seconds, not after the system's hours.
_ALIVE: Mapping[str, Any] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 2,
}


def connect(url: PostgresUrl, *, read_only: bool = False) -> Connection:
    """Return a new connection, whose statements commit one by one. Raises psycopg.Error.

    Password, TLS and what else the address leaves open is for libpq's environment (PGPASSWORD,
    PGSSLMODE) and its service file. What is set holds for the session, so a pooler between must
    keep sessions apart.
    """
    connection = psycopg.connect(
        url.url,
        autocommit=True,
        connect_timeout=CONNECT_SECONDS,
        client_encoding="utf8",
        fallback_application_name="qagate",
        **_ALIVE,
    )
    connection.execute(_READ_ONLY if read_only else _DURABLE)
    return connection


class PostgresLink:
    """A connection for several threads, one at a time; opened by the process that first uses it."""

    def __init__(self, url: PostgresUrl, *, read_only: bool = False) -> None:
        self._url = url
        self._read_only = read_only
        self._lock = threading.Lock()
        self._connection: Connection | None = None

    def run(self, work: Callable[[Connection], T], patience: float) -> T:
        """Return what ``work`` returns; its statements commit one by one unless it says otherwise.

        Where the connection is lost it is done again on a new one, for ``patience`` seconds: doing
        it twice must be like doing it once. Raises StoreError.
        """
        end = time.monotonic() + patience
        with self._lock:
            while True:
                was_open = self._connection is not None
                try:
                    self._connection = self._connection or self._connect()
                    return work(self._connection)
                except psycopg.Error as error:
                    if not self._may_pass(error) or time.monotonic() >= end:
                        raise store_error(error) from None
                if not was_open:
                    time.sleep(PAUSE_SECONDS)

    def _connect(self) -> Connection:
        return connect(self._url, read_only=self._read_only)

    def _may_pass(self, error: psycopg.Error) -> bool:
        """Return whether another attempt may succeed; forget a connection that was lost."""
        if self._connection is not None and self._connection.closed:
            self._connection = None
        lost = self._connection is None and isinstance(error, psycopg.OperationalError)
        return lost or (error.sqlstate or "").startswith(_COLLISION)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


def store_error(error: psycopg.Error) -> StoreError:
    """Return an error of the driver as one of ours, in one line."""
    return StoreError(" ".join(str(error).split()), is_full=isinstance(error, DiskFull))
