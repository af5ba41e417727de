"""A ledger in a PostgreSQL database, for any number of machines at the same time.

Claims are leases: a run's row in ``holders`` says until when it counts as alive, by the server's
clock. It is put forward every few seconds, and whoever finds one that is over deletes it with all
its claims.
"""

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any, TypeVar
from uuid import uuid4

import psycopg
from psycopg.errors import ForeignKeyViolation

from evaluators.ledger.database import StoreError, Transaction
from evaluators.ledger.postgres_link import Connection, PostgresLink, connect, store_error
from evaluators.ledger_place import PostgresUrl

T = TypeVar("T")

LOOK_PATIENCE = 10.0  # seconds without a server until no more calls are started
KEEP_PATIENCE = 60.0  # until replies that came meanwhile are given up
LEASE_SECONDS = 15.0
RENEW_SECONDS = 3.0
RELEASE_SECONDS = 0.05  # how long claims that are given back may wait for others
ROWS = 2000  # of a long query, fetched at a time
_RENEW = """
INSERT INTO holders VALUES (%s, now() + make_interval(secs => %s))
ON CONFLICT (id) DO UPDATE SET expires = excluded.expires
"""
_BURY = "DELETE FROM holders WHERE expires < now()"
_LEAVE = "DELETE FROM holders WHERE id = %s"
_OTHERS = "SELECT count(*) FROM holders WHERE id <> %s AND expires > now()"
_TAKE = """
INSERT INTO claims SELECT unnest(%s::text[]), %s ON CONFLICT DO NOTHING RETURNING key
"""
_GIVE_BACK = "DELETE FROM claims WHERE holder = %s AND key = ANY(%s)"
_SIZE = """
SELECT sum(pg_total_relation_size(one::regclass))::bigint
FROM unnest(ARRAY['calls', 'damaged', 'imported', 'documents']) AS one
"""


class PostgresStore:
    """The ledger in one database whose tables are there."""

    near = False

    def __init__(self, url: PostgresUrl, notes: Sequence[str], *, read_only: bool) -> None:
        self.notes = tuple(notes)
        self._url = url
        self._read_only = read_only
        # Look-ups and claims never wait for a commit to reach the server's disk.
        self._quick = PostgresLink(url, read_only=read_only)
        self._durable = PostgresLink(url, read_only=read_only)
        self._holder = uuid4()
        self._given_back: SimpleQueue[str] = SimpleQueue()
        self._is_over = False
        self._keeper = threading.Thread(target=self._keep_alive, name="qa-lease", daemon=True)
        if not read_only:
            self._quick.run(self._renew, 0.0)
            self._keeper.start()

    @property
    def size(self) -> int:
        """How many bytes the tables and their indexes take."""
        return int(self.read(_SIZE)[0][0])

    def connect(self) -> Connection:
        """Return a further connection to the same database. Raises psycopg.Error."""
        return connect(self._url)

    def read(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        """Return the rows of a query."""
        return self._quick.run(lambda one: _Statements(one).read(sql, values), LOOK_PATIENCE)

    def stream(self, sql: str, values: Sequence[object] = ()) -> Iterator[tuple[Any, ...]]:
        """Yield the rows of a query, of which only some are in memory at a time."""
        try:
            with (
                connect(self._url, read_only=True) as connection,
                connection.transaction(),
                connection.cursor(name="qa") as cursor,
            ):
                cursor.itersize = ROWS
                yield from cursor.execute(_native(sql), values)
        except psycopg.Error as error:
            raise store_error(error) from None

    def change(self, work: Callable[[Transaction], T]) -> T:
        """Return what ``work`` returns once what it did is durable.

        Where the server is lost it is done again once there is one, for up to a minute.
        """

        def whole(connection: Connection) -> T:
            with connection.transaction():
                return work(_Statements(connection))

        return self._durable.run(whole, KEEP_PATIENCE)

    def take(self, keys: Collection[str]) -> set[str]:
        """Claim calls; return the keys of those that no other live run is making."""
        values = (sorted(keys), self._holder)  # in one order: no two runs wait for each other

        def work(connection: Connection) -> set[str]:
            try:
                return {key for (key,) in connection.execute(_TAKE, values)}
            except ForeignKeyViolation:  # this run was taken for dead, or the server crashed
                self._renew(connection)
                return {key for (key,) in connection.execute(_TAKE, values)}

        return set(keys) if self._read_only else self._quick.run(work, LOOK_PATIENCE)

    def give_back(self, key: str) -> None:
        """Let others make the call, in a moment."""
        self._given_back.put(key)

    def alone(self) -> bool:
        """Return whether no other run has the ledger open."""
        others = self._quick.run(
            lambda one: one.execute(_OTHERS, (self._holder,)).fetchall(), LOOK_PATIENCE
        )
        return others == [(0,)]

    def shrink(self) -> None:
        """Do nothing: the server gives space back by itself (autovacuum)."""

    def close(self) -> None:
        """End the lease with all its claims, and close the connections."""
        self._is_over = True
        if self._keeper.is_alive():
            self.give_back("")  # wakes it
            self._keeper.join(LOOK_PATIENCE)
            with suppress(StoreError):  # where the server is gone the lease ends by itself
                self._quick.run(lambda one: one.execute(_LEAVE, (self._holder,)), 0.0)
        self._quick.close()
        self._durable.close()

    def _keep_alive(self) -> None:
        keys: list[str] = []
        while not self._is_over:
            with suppress(Empty):
                keys.append(self._given_back.get(timeout=RENEW_SECONDS))
                time.sleep(RELEASE_SECONDS)
                while True:
                    keys.append(self._given_back.get_nowait())
            with suppress(StoreError):  # whoever needs the server next will say so
                self._quick.run(lambda one: self._renew(one, tuple(keys)), 0.0)
                keys.clear()

    def _renew(self, connection: Connection, given_back: Sequence[str] = ()) -> None:
        """Put the lease forward, give claims back, and end what dead runs held."""
        connection.execute(_RENEW, (self._holder, LEASE_SECONDS))
        connection.execute(_GIVE_BACK, (self._holder, list(given_back)))
        connection.execute(_BURY)


class _Statements:
    """Statements as SQLite has them, with question marks for values."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def read(self, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        return self._connection.execute(_native(sql), values).fetchall()

    def run(self, sql: str, rows: Iterable[Sequence[object]] = ((),)) -> None:
        # In one order: no two runs that write the same keys wait for each other.
        ordered = sorted(rows, key=_first_columns)
        with self._connection.cursor() as cursor:
            cursor.executemany(_native(sql), ordered)


def _native(sql: str) -> bytes:
    return sql.replace("%", "%%").replace("?", "%s").encode()


def _first_columns(row: Sequence[object]) -> str:
    """Return what rows of one key have in common: later texts must not change their order."""
    return str((*row[:2],))
