"""A ledger in a PostgreSQL database, for any number of machines at the same time.

Claims are leases: a run's row in ``holders`` says until when it counts as alive, by the server's
clock. The run renews it every few seconds. Whoever finds an expired one deletes it and its claims.
Nothing is prepared or set for a session, so that a pooler may give each transaction another one.
"""

import ipaddress
import os
import re
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from queue import Empty, SimpleQueue
from typing import TypeVar
from uuid import uuid4

import psycopg
from psycopg.errors import DiskFull, ForeignKeyViolation, InsufficientPrivilege

from qagate.evaluators.core import UsageError
from qagate.evaluators.ledger.place import PostgresUrl
from qagate.evaluators.ledger.rows import VARIABLE, Row, Statements, StoreError

T = TypeVar("T")

Connection = psycopg.Connection[Row]

FORMAT = 2
TABLES = f"""
CREATE TABLE calls (
    key TEXT COLLATE "C", run TEXT COLLATE "C", schema INTEGER NOT NULL,
    at DOUBLE PRECISION NOT NULL, spec TEXT NOT NULL, reply TEXT NOT NULL, checksum TEXT NOT NULL,
    PRIMARY KEY (key, run)
);
CREATE TABLE damaged (
    key TEXT NOT NULL, at DOUBLE PRECISION NOT NULL, reply TEXT NOT NULL, checksum TEXT NOT NULL
);
CREATE TABLE imported (
    key TEXT COLLATE "C", run TEXT COLLATE "C", PRIMARY KEY (key, run)
);
CREATE TABLE documents (
    kind TEXT COLLATE "C", key TEXT COLLATE "C", text TEXT NOT NULL, PRIMARY KEY (kind, key)
);
-- Unlogged: no claim waits for a disk, and a crash of the server ends all claims.
CREATE UNLOGGED TABLE holders (id UUID PRIMARY KEY, expires TIMESTAMPTZ NOT NULL);
CREATE UNLOGGED TABLE claims (
    key TEXT COLLATE "C" PRIMARY KEY, holder UUID NOT NULL REFERENCES holders ON DELETE CASCADE
);
CREATE INDEX claims_of_holder ON claims (holder);
CREATE TABLE qa_ledger (format INTEGER NOT NULL);
INSERT INTO qa_ledger VALUES ({FORMAT});
"""
PATIENCE_S = 60.0  # without a server that takes changes, until no more calls start
LEASE_S = 15.0
RENEW_S = 3.0
RELEASE_WAIT_S = 0.05  # how long an ended claim may wait for others
CONNECT_TIMEOUT_S = 10
RECONNECT_PAUSE_S = 0.5
FETCHED_ROWS = 2000  # of a long query at a time
_MARK = "qa_ledger"
_CHANGES = {
    "calls": "SELECT INSERT DELETE",
    "damaged": "INSERT",
    "imported": "SELECT INSERT DELETE",
    "documents": "SELECT INSERT UPDATE DELETE",
    "holders": "SELECT INSERT UPDATE DELETE",
    "claims": "SELECT INSERT DELETE",
    _MARK: "SELECT",
}
"""The rights that a run needs, by table."""
_READS = dict.fromkeys(("calls", "imported", "documents", _MARK), "SELECT")
# Asked of the catalogue itself: to_regclass may answer from what a session has in its cache.
_NAMES = (
    "SELECT tablename FROM pg_tables WHERE schemaname = ANY(current_schemas(false))"
)
_ONE_AT_A_TIME = (
    "SELECT pg_advisory_xact_lock(7112016)"  # two that make tables at once collide
)
_LACKING = """
SELECT DISTINCT name FROM unnest(%s::text[], %s::text[]) AS needed (name, priv)
WHERE NOT has_table_privilege(name, priv) ORDER BY name
"""
_OPEN_TO_ALL = """
SELECT name FROM unnest(%s::text[]) AS one (name)
WHERE has_any_column_privilege('public', name, 'INSERT, UPDATE')
    OR has_table_privilege('public', name, 'DELETE, TRUNCATE, TRIGGER') ORDER BY name
"""
# For one transaction; the server promises durable commits by default, and stricter settings stay.
_SETTINGS = f"""
SELECT set_config('statement_timeout', '{PATIENCE_S:.0f}s', true),
    set_config('lock_timeout', '0', true),
    set_config('synchronous_commit', CASE found WHEN 'off' THEN 'on' ELSE found END, true)
FROM current_setting('synchronous_commit') AS found
"""
_COLLISION = (
    "40"  # SQLSTATE's class for transactions that the server rolled back: try again
)
_READ_ONLY_SERVER = "25006"  # a standby, or a server that is about to become one
_MAY_PASS = (
    *(
        "08",
        _COLLISION,
        _READ_ONLY_SERVER,
        "53300",
    ),  # connection lost, too many connections
    *(
        "55P03",
        "57014",
        "57P01",
        "57P02",
        "57P03",
    ),  # waited too long, server stops or starts
)
_RENEW = """
INSERT INTO holders VALUES (%s, now() + make_interval(secs => %s))
ON CONFLICT (id) DO UPDATE SET expires = excluded.expires
"""
_TAKE = """
INSERT INTO claims SELECT unnest(%s::text[]), %s ON CONFLICT DO NOTHING RETURNING key
"""
_SIZE = """
SELECT sum(pg_total_relation_size(one::regclass))::bigint
FROM unnest(ARRAY['calls', 'damaged', 'imported', 'documents']) AS one
"""


class PostgresLedgers:
    """Opens the ledgers in PostgreSQL databases."""

    @staticmethod
    def open(url: PostgresUrl, *, read_only: bool) -> "PostgresStore":
        """Return the ledger in a database, with new tables if it is to be written and has none.

        Raises UsageError if it cannot be reached or used, or every user may change it unnoticed.
        """
        with _as_usage_error(url):
            with closing(_connect(url)) as connection:
                names = _names(connection)
                if _MARK not in names and read_only:
                    missing = "no ledger to replay from; run once without --replay"
                    raise UsageError(f"{url}: {missing}, or give another --ledger")
                encoding = connection.info.parameter_status("server_encoding")
                if not read_only and encoding != "UTF8":
                    raise UsageError(
                        f"{url}: the database's encoding is {encoding}, and replies need UTF-8; "
                        "make another one: createdb --encoding=UTF8 --template=template0 "
                        f"{connection.info.dbname}_utf8"
                    )
                if _MARK not in names:
                    names = _make_tables(url, connection)
                _check_tables(url, connection, names, _READS if read_only else _CHANGES)
                notes = list(
                    _notes_on_others(url, connection, sorted(names & _CHANGES.keys()))
                )
            return PostgresStore(url, notes, read_only=read_only)

    @staticmethod
    def exists(url: PostgresUrl) -> bool:
        """Return whether the database holds a ledger. Raises UsageError if it does not answer."""
        with _as_usage_error(url), closing(_connect(url)) as connection:
            return _MARK in _names(connection)


def _check_tables(
    url: PostgresUrl,
    connection: Connection,
    names: Collection[str],
    needed: Mapping[str, str],
) -> None:
    """Raise UsageError if a table, a right or this version's format is missing."""
    if lost := sorted(needed.keys() - names):
        raise UsageError(
            f"{url}: the ledger lacks the table {', '.join(lost)}; restore it, or give another "
            "--ledger"
        )
    pairs = [(name, priv) for name, privs in needed.items() for priv in privs.split()]
    columns = [*map(list, zip(*pairs, strict=True))]
    if lacking := [name for (name,) in connection.execute(_LACKING, columns)]:
        rights = ", ".join(
            {priv: "" for name in lacking for priv in needed[name].split()}
        )
        raise UsageError(
            f"{url}: the user lacks rights; the owner of the tables gives them: GRANT {rights} ON "
            f'{", ".join(lacking)} TO "{connection.info.user}"'
        )
    ((found,),) = connection.execute("SELECT max(format) FROM qa_ledger").fetchall()
    if found != FORMAT:
        which = (
            "newer version" if (found or 0) > FORMAT else "older version that wrote it"
        )
        raise UsageError(
            f"{url}: a ledger of format {found}, this version reads format {FORMAT}; "
            f"use the {which}, or give another --ledger"
        )


@contextmanager
def _as_usage_error(url: PostgresUrl) -> Iterator[None]:
    try:
        yield
    except (psycopg.Error, StoreError) as error:
        why = str(_store_error(error) if isinstance(error, psycopg.Error) else error)
        advice = "check address, user and PGPASSWORD"
        if missing := re.search(r'database "([^"]+)" does not exist', why):
            advice = f"make it: createdb --encoding=UTF8 {missing[1]}"
        raise UsageError(
            f"{url}: cannot be opened as a ledger ({why}); {advice}"
        ) from None


def _connect(url: PostgresUrl) -> Connection:
    """Return a new connection, whose statements commit one by one. Raises psycopg.Error.

    libpq reads password, TLS and everything else that the address leaves open from its environment
    (PGPASSWORD, PGSSLMODE) and its service file.
    """
    return psycopg.connect(
        url.url,
        autocommit=True,
        prepare_threshold=None,  # a pooler's next session would not know what was prepared
        connect_timeout=CONNECT_TIMEOUT_S,
        client_encoding="utf8",
        fallback_application_name="qagate",
        # A server that has vanished is noticed after some 20 seconds, not after hours.
        keepalives_idle=10,
        keepalives_interval=5,
        keepalives_count=2,
    )


def _names(connection: Connection) -> set[str]:
    return {name for (name,) in connection.execute(_NAMES)}


def _make_tables(url: PostgresUrl, connection: Connection) -> set[str]:
    """Return the names of all tables once those of a ledger are made."""
    try:
        with connection.transaction():
            connection.execute(_ONE_AT_A_TIME)
            names = _names(connection)
            if _MARK in names:
                return names
            if names & _CHANGES.keys():
                raise UsageError(
                    f"{url}: holds tables of something else; give the ledger a database of its own"
                )
            connection.execute(TABLES.encode())
            return _names(connection)
    except InsufficientPrivilege:
        raise UsageError(
            f"{url}: the user may not make tables; the owner of the database allows it: "
            f'GRANT USAGE, CREATE ON SCHEMA public TO "{connection.info.user}"'
        ) from None


def _notes_on_others(
    url: PostgresUrl, connection: Connection, tables: Sequence[str]
) -> Iterator[str]:
    """Yield how others could change or read it. Raises UsageError if they could do so unnoticed."""
    if shared := [name for (name,) in connection.execute(_OPEN_TO_ALL, [list(tables)])]:
        what = f"every user of the database ({', '.join(shared)})"
        note = f"{url} can be changed by {what}; REVOKE that from PUBLIC"
        if VARIABLE not in os.environ:
            raise UsageError(f"{note}, or sign the rows with {VARIABLE}")
        yield note
    if is_local(connection.info.hostaddr):
        return
    how = {one.keyword: one.val for one in connection.pgconn.info}.get(b"sslmode")
    if not connection.pgconn.ssl_in_use:
        yield f"the connection to {url} is not encrypted; set PGSSLMODE=verify-full"
    elif how not in (b"verify-ca", b"verify-full"):
        yield f"the connection to {url} uses TLS, not verified; set PGSSLMODE=verify-full"


def is_local(address: str) -> bool:
    """Return whether an address is this machine's; a socket has none."""
    return not address or ipaddress.ip_address(address).is_loopback


class PostgresStore:
    """An open ledger in a database that has its tables."""

    near = False

    def __init__(
        self, url: PostgresUrl, notes: Sequence[str], *, read_only: bool
    ) -> None:
        self.notes = tuple(notes)
        self.times_mended = 0
        self._url = url
        self._read_only = read_only
        # Look-ups and claims never wait for a commit to reach the server's disk.
        self._quick, self._durable = PostgresLink(url), PostgresLink(url)
        self._holder = uuid4()
        self._given_back: SimpleQueue[str] = SimpleQueue()
        self._is_over = False
        self._keeper = threading.Thread(
            target=self._keep_alive, name="qa-lease", daemon=True
        )
        if not read_only:
            self._quick.run(self._renew, 0.0)
            self._keeper.start()

    @property
    def size(self) -> int:
        """The bytes of the tables and their indexes."""
        return int(self.read(_SIZE)[0][0])

    def read(self, sql: str, values: Sequence[object] = ()) -> list[Row]:
        """Return the rows of a query."""
        return self._quick.run(
            lambda one: one.execute(_native(sql), values).fetchall(), PATIENCE_S
        )

    def stream(self, sql: str, values: Sequence[object] = ()) -> Iterator[Row]:
        """Yield the rows of a query, with only some of them in memory."""
        try:
            with (
                _connect(self._url) as connection,
                connection.transaction(),
                connection.cursor(name="qa") as cursor,
            ):
                connection.execute(_SETTINGS.encode())
                cursor.itersize = FETCHED_ROWS
                yield from cursor.execute(_native(sql), values)
        except psycopg.Error as error:
            raise _store_error(error) from None

    def change(self, statements: Statements) -> None:
        """Return once all changes are durable; a lost server is waited for, a minute at most."""

        def whole(connection: Connection) -> None:
            with connection.transaction(), connection.cursor() as cursor:
                cursor.execute(
                    b"SET TRANSACTION READ ONLY"
                    if self._read_only
                    else _SETTINGS.encode()
                )
                for sql, rows in statements:
                    # In the order of their keys, so that no two runs that write them deadlock.
                    ordered = sorted(rows, key=lambda row: str((*row[:2],)))
                    cursor.executemany(_native(sql), ordered)

        self._durable.run(whole, 0.0 if self._read_only else PATIENCE_S)

    def mend(self, why: str) -> None:
        """Do nothing, as below."""

    def begin_search(self) -> None:
        """Do nothing: damage is the server's to find."""

    def take(self, keys: Collection[str]) -> set[str]:
        """Claim calls; return the keys of those that no other live run is making."""
        values = (sorted(keys), self._holder)  # in one order, as above

        def work(connection: Connection) -> set[str]:
            with suppress(
                ForeignKeyViolation
            ):  # the lease expired, or the server crashed
                return {key for (key,) in connection.execute(_TAKE, values)}
            self._renew(connection)
            return {key for (key,) in connection.execute(_TAKE, values)}

        return set(keys) if self._read_only else self._quick.run(work, PATIENCE_S)

    def give_back(self, key: str) -> None:
        """End a claim, within a moment."""
        self._given_back.put(key)

    def alone(self) -> bool:
        """Return whether no other run has the ledger open."""
        others = "SELECT count(*) FROM holders WHERE id <> ? AND expires > now()"
        return self.read(others, (self._holder,)) == [(0,)]

    def shrink(self) -> None:
        """Do nothing: the server reuses the space by itself (autovacuum)."""

    def close(self) -> None:
        """End the lease with all its claims, and close the connections."""
        self._is_over = True
        if self._keeper.is_alive():
            self.give_back("")  # wakes it
            self._keeper.join(CONNECT_TIMEOUT_S)
            with suppress(StoreError):  # without a server the lease expires by itself
                leave = b"DELETE FROM holders WHERE id = %s"
                self._quick.run(lambda one: one.execute(leave, (self._holder,)), 0.0)
        self._quick.close()
        self._durable.close()

    def _keep_alive(self) -> None:
        keys: list[str] = []
        while not self._is_over:
            with suppress(Empty):
                keys.append(self._given_back.get(timeout=RENEW_S))
                time.sleep(RELEASE_WAIT_S)
                while True:
                    keys.append(self._given_back.get_nowait())
            with suppress(StoreError):  # whoever needs the server next will say so
                self._quick.run(lambda one: self._renew(one, tuple(keys)), 0.0)
                keys.clear()

    def _renew(self, connection: Connection, given_back: Sequence[str] = ()) -> None:
        connection.execute(_RENEW, (self._holder, LEASE_S))
        ended = "DELETE FROM claims WHERE holder = %s AND key = ANY(%s)"
        connection.execute(ended, (self._holder, list(given_back)))
        connection.execute("DELETE FROM holders WHERE expires < now()")


class PostgresLink:
    """A connection that several threads share; the process that uses it first opens it."""

    def __init__(self, url: PostgresUrl) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._is_given_up = False

    def run(self, work: Callable[[Connection], T], timeout: float) -> T:
        """Return what ``work`` returns; if the connection is lost, run it again on a new one.

        Running ``work`` twice must be like running it once. Raises StoreError once ``timeout``
        seconds are over; then no call waits again before the server has answered.
        """
        end = time.monotonic() + timeout
        with self._lock:
            if self._is_given_up:
                end = 0.0
            while True:
                was_open = self._connection is not None
                try:
                    if self._connection is None:
                        self._connection = _connect(self._url)
                    found = work(self._connection)
                    self._is_given_up = False
                    return found
                except psycopg.Error as error:
                    if not self._may_pass(error) or time.monotonic() >= end:
                        if timeout > 0.0:
                            self._is_given_up = True
                        raise _store_error(error) from None
                    is_collision = (error.sqlstate or "").startswith(_COLLISION)
                if not (was_open and (is_collision or self._connection is None)):
                    time.sleep(RECONNECT_PAUSE_S)

    def _may_pass(self, error: psycopg.Error) -> bool:
        """Return whether another attempt may succeed; forget a connection that is of no use."""
        state = error.sqlstate or ""
        # The server names a state with every error of its own. An error without one is the
        # driver's: it lost the server, or a pooler gave it the answers of another session.
        is_lost = not state and not isinstance(error, psycopg.DataError)
        connection = self._connection
        if connection is not None and (
            is_lost or connection.closed or state == _READ_ONLY_SERVER
        ):
            connection.close()
            self._connection = None
        return self._connection is None or state.startswith(_MAY_PASS)

    def close(self) -> None:
        """Close the connection."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
                self._connection = None


def _store_error(error: psycopg.Error) -> StoreError:
    said = dict.fromkeys(
        line.rpartition("failed: ")[2] for line in str(error).splitlines()
    )
    return StoreError(
        " ".join(" ".join(said).split()), is_full=isinstance(error, DiskFull)
    )


def _native(sql: str) -> bytes:
    return sql.replace("%", "%%").replace("?", "%s").encode()
