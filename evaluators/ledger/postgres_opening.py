"""Opening a ledger in PostgreSQL: its tables are made once; what is newer or not ours is refused.

What a file's owner and mode say, the database's grants do: whoever may write in the tables can
change replies.
"""

import ipaddress
import os
from collections.abc import Iterator
from contextlib import closing, contextmanager

import psycopg

from evaluators.core import UsageError
from evaluators.ledger.database import StoreError
from evaluators.ledger.postgres_link import Connection, connect, store_error
from evaluators.ledger.postgres_store import PostgresStore
from evaluators.ledger.signing import VARIABLE
from evaluators.ledger_place import PostgresUrl

FORMAT = 1
TABLES = f"""
CREATE TABLE calls (
    key TEXT COLLATE "C" PRIMARY KEY,
    schema INTEGER NOT NULL,
    at DOUBLE PRECISION NOT NULL,
    spec TEXT NOT NULL,
    reply TEXT NOT NULL,
    checksum TEXT NOT NULL
);
CREATE TABLE damaged (
    key TEXT NOT NULL, at DOUBLE PRECISION NOT NULL, reply TEXT NOT NULL, checksum TEXT NOT NULL
);
CREATE TABLE imported (key TEXT COLLATE "C" PRIMARY KEY);
CREATE TABLE documents (
    kind TEXT COLLATE "C", key TEXT COLLATE "C", text TEXT NOT NULL, PRIMARY KEY (kind, key)
);
-- Unlogged: no claim waits for a disk, and after a crash of the server there is none.
CREATE UNLOGGED TABLE holders (id UUID PRIMARY KEY, expires TIMESTAMPTZ NOT NULL);
CREATE UNLOGGED TABLE claims (
    key TEXT COLLATE "C" PRIMARY KEY,
    holder UUID NOT NULL REFERENCES holders ON DELETE CASCADE
);
CREATE INDEX claims_of_holder ON claims (holder);
CREATE TABLE qa_ledger (format INTEGER NOT NULL);
INSERT INTO qa_ledger VALUES ({FORMAT});
"""
# Asked of the catalogue itself: to_regclass may answer from what a session has in its cache.
_NAMES = "SELECT tablename FROM pg_tables WHERE schemaname = ANY(current_schemas(false))"
_OURS = frozenset({"calls", "damaged", "imported", "documents", "holders", "claims"})
_MARK = "qa_ledger"
_ONE_AT_A_TIME = "SELECT pg_advisory_xact_lock(7112016)"  # two that make tables at once collide
_OPEN_TO_ALL = "SELECT has_table_privilege('public', 'calls', 'INSERT, UPDATE, DELETE')"


def open_postgres(url: PostgresUrl, *, read_only: bool) -> PostgresStore:
    """Return the ledger in a database, made if it is to be written and there is none.

    Raises UsageError where the database cannot be reached, holds no ledger or a newer one, or lets
    every user change it unnoticed.
    """
    with _refusing(url):
        with closing(connect(url)) as connection:
            if _MARK not in _names(connection):
                if read_only:
                    missing = "no ledger to replay from; run once without --replay"
                    raise UsageError(f"{url}: {missing}, or give another --ledger")
                _make(url, connection)
            _check_format(url, connection)
            notes = list(_notes(url, connection))
        return PostgresStore(url, notes, read_only=read_only)


def has_ledger(url: PostgresUrl) -> bool:
    """Return whether the database holds a ledger. Raises UsageError if it does not answer."""
    with _refusing(url), closing(connect(url, read_only=True)) as connection:
        return _MARK in _names(connection)


@contextmanager
def _refusing(url: PostgresUrl) -> Iterator[None]:
    """Turn what the database says into a UsageError that names it."""
    try:
        yield
    except (psycopg.Error, StoreError) as error:
        why = store_error(error) if isinstance(error, psycopg.Error) else error
        raise UsageError(
            f"{url}: cannot be opened as a ledger ({why}); check address, user and PGPASSWORD"
        ) from None


def _names(connection: Connection) -> set[str]:
    return {name for (name,) in connection.execute(_NAMES)}


def _make(url: PostgresUrl, connection: Connection) -> None:
    with connection.transaction():
        connection.execute(_ONE_AT_A_TIME)
        names = _names(connection)
        if _MARK in names:
            return
        if names & _OURS:
            raise UsageError(
                f"{url}: holds tables of something else; give the ledger a database of its own"
            )
        connection.execute(TABLES.encode())


def _check_format(url: PostgresUrl, connection: Connection) -> None:
    ((found,),) = connection.execute("SELECT max(format) FROM qa_ledger").fetchall()
    if found != FORMAT:
        raise UsageError(
            f"{url}: a ledger of format {found}, this version reads format {FORMAT}; "
            "use the newer version, or give another --ledger"
        )


def _notes(url: PostgresUrl, connection: Connection) -> Iterator[str]:
    """Yield what others could do to the ledger.

    Raises UsageError where they could change it unnoticed: without QA_LEDGER_KEY rows are unsigned.
    """
    if connection.execute(_OPEN_TO_ALL).fetchall() == [(True,)]:
        note = f"{url} can be changed by every user of the database; REVOKE that from PUBLIC"
        if VARIABLE not in os.environ:
            raise UsageError(f"{note}, or sign the rows with {VARIABLE}")
        yield note
    if not (connection.pgconn.ssl_in_use or _is_local(connection.info.hostaddr)):
        yield f"the connection to {url} is not encrypted; set PGSSLMODE=verify-full"


def _is_local(address: str) -> bool:
    """Return whether an address is this machine's; a socket has none."""
    return not address or ipaddress.ip_address(address).is_loopback
