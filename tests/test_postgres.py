"""The PostgreSQL server that tests use."""

import signal
from typing import LiteralString

import psycopg
import pytest

from tests.support.postgres import Cluster, running


def value(url: str, query: LiteralString) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        row = connection.execute(query).fetchone()
        return row and row[0]


def test_each_test_has_a_database_of_its_own(cluster: Cluster, database: str) -> None:
    """What one test writes no other one sees."""
    with psycopg.connect(database) as connection:
        connection.execute("CREATE TABLE mine (n int)")
    assert value(database, "SELECT count(*) FROM mine") == 0
    assert value(cluster.new_database(), "SELECT to_regclass('mine')") is None


def test_a_server_that_crashed_has_what_it_promised(cluster: Cluster, database: str) -> None:
    """A test may stop the server, as if it had died, and start it again."""
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("CREATE TABLE kept AS SELECT 7 AS n")
        cluster.stop(signal.SIGQUIT)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(database)
    cluster.start()
    assert value(database, "SELECT n FROM kept") == 7


def test_where_there_is_no_server_tests_skip(monkeypatch: pytest.MonkeyPatch) -> None:
    """One line says what to install."""
    monkeypatch.setattr("tests.support.postgres.binaries", lambda: None)
    with pytest.raises(pytest.skip.Exception, match="apt-get install postgresql"), running():
        pass
