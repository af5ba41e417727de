"""The text of ``--ledger`` names a file or a database, and never holds a password."""

from pathlib import Path

import pytest

from qagate.command import main
from qagate.evaluators.core import UsageError
from qagate.evaluators.ledger.place import PostgresUrl, read_place
from tests.support.fixtures import Captured

SECRET = "canary-9f3d"


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://qa:{SECRET}@db.example/qa",
        f"postgres://qa:{SECRET}@/qa?host=/run/postgresql",
        f"postgresql://db.example/qa?user=qa&password={SECRET}",
        f"POSTGRESQL://db.example/qa?sslpassword={SECRET}",
    ],
)
def test_a_password_in_the_address_is_refused(address: str, capsys: Captured) -> None:
    """One line says where it belongs, and does not show it (exit 4)."""
    assert main(["ledger", "stats", "--ledger", address]) == 4
    message = capsys.readouterr().err
    assert message.count("\n") == 1
    assert "PGPASSWORD" in message
    assert SECRET not in message


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (
            "postgresql://anna@db.example:5433/qa?sslmode=require",
            "postgresql://db.example:5433/qa",
        ),
        ("postgresql://?service=qa", "postgresql://?service=qa"),
        ("postgresql:///qa?host=/run/postgresql", "postgresql:///qa"),
        ("postgresql://one,two:1/qa", "postgresql://one,two:1/qa"),
    ],
)
def test_an_address_is_shown_as_host_and_database(address: str, shown: str) -> None:
    """Users and options are nobody's business."""
    assert read_place(address) == PostgresUrl(address)
    assert str(read_place(address)) == shown


def test_what_does_not_begin_as_an_address_is_a_path() -> None:
    assert read_place("postgresql/l", Path("here")) == Path("here/postgresql/l")


def test_a_password_with_a_slash_is_refused_unseen() -> None:
    """A reader of URLs takes what stands behind the slash for a path."""
    address = "postgres://anna:first/second@db.example/qa"
    with pytest.raises(UsageError, match="others can see a password") as caught:
        read_place(address)
    assert "second" not in str(caught.value)
