"""Whether a ledger can be written is found out before anything is paid for."""

import asyncio
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from qagate.evaluators.core import UsageError
from qagate.evaluators.ledger import Ledger, LedgerError
from qagate.evaluators.ledger.place import LedgerPlace
from qagate.evaluators.ledger.rows import Signer, StoreError, seal
from qagate.evaluators.ledger.sqlite import SqliteStore, open_store
from qagate.evaluators.ledger.upkeep import (
    UNKEPT_FOLDER,
    save_unkept,
    take_unkept,
)
from qagate.evaluators.output import UnwrittenError
from tests.support.fixtures import Patch
from tests.support.places import ask
from tests.support.recorded import fill, key_of, put, reply_of, row_of

ROOM = 100_000


def full(store: SqliteStore, *_: object) -> None:
    raise StoreError("database or disk is full", is_full=True)


def read_only(store: SqliteStore, *_: object) -> None:
    raise StoreError("attempt to write a readonly database")


def test_a_trial_leaves_nothing_behind(place: LedgerPlace) -> None:
    with Ledger(place) as ledger:
        ledger.try_writing(ROOM)
    assert ask(place, "SELECT count(*) FROM documents") == 0


def test_a_file_that_may_only_be_read_is_found_by_a_trial(plain_user: Path) -> None:
    """SQLite opens it to read, without a word."""
    path = plain_user / "l"
    fill(path, 1)
    path.chmod(0o400)
    with (
        Ledger(path) as ledger,
        pytest.raises(UsageError, match=r"cannot be written .*; nothing was asked"),
    ):
        ledger.try_writing(ROOM)


def test_a_disk_without_room_for_a_group_is_found_by_a_trial(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l") as ledger:
        assert isinstance(ledger.store, SqliteStore)
        ledger.store._writer.execute("PRAGMA max_page_count = 20")
        put(ledger, [row_of(1)])
        with pytest.raises(UnwrittenError, match=f"needs {ROOM:,} bytes and more"):
            ledger.try_writing(ROOM)


@pytest.mark.parametrize(
    ("change", "error"), [(full, UnwrittenError), (read_only, UsageError)]
)
def test_no_run_begins_beside_replies_that_cannot_be_taken_in(
    tmp_path: Path, monkeypatch: Patch, change: Callable[..., None], error: type
) -> None:
    """It would pay for them once more."""
    monkeypatch.chdir(tmp_path)
    home = save_unkept(Path("l"), [Signer().signed(seal(row_of(1), 1.0))])
    with monkeypatch.context() as patch:
        patch.setattr(SqliteStore, "change", change)
        with pytest.raises(
            error, match=f"{home}: replies that an earlier run paid for"
        ):
            Ledger(Path("l"))
    with Ledger(Path("l")) as ledger:
        assert ledger.get(key_of(1)) == reply_of(1)


def test_a_file_of_replies_that_another_run_took_in_meanwhile_is_passed_over(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    monkeypatch.chdir(tmp_path)
    for number in (1, 2):
        save_unkept(Path("l"), [Signer().signed(seal(row_of(number), 1.0))])
    with closing(open_store(Path("l"))) as store:
        notes = take_unkept(store, Path("l"))
        assert next(notes).startswith("1 row taken in from ")
        (other,) = UNKEPT_FOLDER.glob("unkept-*")
        other.unlink()
        assert list(notes) == []


def test_no_run_begins_beside_replies_that_it_may_not_read(plain_user: Path) -> None:
    home = save_unkept(Path("l"), [Signer().signed(seal(row_of(1), 1.0))])
    home.chmod(0o000)
    with pytest.raises(UsageError, match="paid for cannot be taken into the ledger"):
        Ledger(Path("l"))


def test_replies_that_can_be_kept_nowhere_are_counted(
    plain_user: Path, monkeypatch: Patch
) -> None:
    """Neither the ledger nor the working folder takes them."""
    with Ledger(plain_user / "l") as ledger:
        plain_user.chmod(0o500)
        monkeypatch.setattr(SqliteStore, "change", read_only)

        async def pay(*numbers: int) -> list[object]:
            puts = [ledger.put(row_of(number)) for number in numbers]
            return list(await asyncio.gather(*puts, return_exceptions=True))

        results = asyncio.run(pay(1, 2))
        assert all(isinstance(result, LedgerError) for result in results)
        assert "2 paid replies are lost" in ledger.unkept
        assert "(.qa: Permission denied)" in ledger.unkept
        asyncio.run(pay(3))
        assert "3 paid replies are lost" in ledger.unkept
