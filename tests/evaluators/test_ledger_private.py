"""Who else could read or change a ledger is kept out, or said."""

import os
import stat
from pathlib import Path

import pytest

from evaluators.core import UsageError
from evaluators.ledger import Ledger, sqlite
from evaluators.ledger.rows import VARIABLE
from tests.support.recorded import fill, key_of, put, reply_of, row_of
from tests.support.tables import tabled


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_every_file_of_a_ledger_is_private(tmp_path: Path) -> None:
    """Folder 0700; the file, its log and its locks 0600, whatever the umask."""
    path = tmp_path / "private" / "l"
    former = os.umask(0o000)
    try:
        with Ledger(path) as ledger:
            put(ledger, [row_of(1)])
            modes = {file.name: mode_of(file) for file in path.parent.iterdir()}
    finally:
        os.umask(former)
    assert modes == dict.fromkeys(["l", "l-wal", "l-shm", "l-claims"], 0o600)
    assert mode_of(path.parent) == 0o700


@pytest.mark.parametrize("read_only", [False, True])
@tabled("shared", "who")
def test_a_folder_that_others_can_change_is_said(
    tmp_path: Path, read_only: bool, shared: tuple[int, int, int], who: str
) -> None:
    """They could put another file in the ledger's place."""
    folder = tmp_path / "shared"
    fill(folder / "l", 1)
    mode, owner, group = shared
    if {owner, group} != {-1} and os.geteuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(folder, owner, group)
    folder.chmod(mode)
    with Ledger(folder / "l", read_only=read_only) as ledger:
        note = f"{folder} can be changed by {who}; keep the ledger in one of your own"
        assert ledger.notes == ((note,) if who else ())


@pytest.mark.parametrize("ending", ["", "-wal", "-shm", "-claims"])
@pytest.mark.parametrize(("mode", "who"), [(0o666, "every user"), (0o660, "its group")])
def test_a_file_that_others_can_change_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ending: str, mode: int, who: str
) -> None:
    """They could change the replies, in its log too; signed rows are used, and it is said (F25)."""
    fill(tmp_path / "l", 1)
    path = tmp_path / f"l{ending}"
    path.touch()
    path.chmod(mode)
    note = f"{path} can be changed by {who}; chmod 600 makes it private"
    for read_only in (False, True):
        with pytest.raises(UsageError, match=f"own, or sign its rows with {VARIABLE}") as raised:
            Ledger(tmp_path / "l", read_only=read_only)
        assert str(raised.value).startswith(note)
    monkeypatch.setenv(VARIABLE, "s" * 32)
    with Ledger(tmp_path / "l") as ledger:
        assert ledger.notes == (note,)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_ledger_of_another_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, read_only: bool
) -> None:
    """It is refused, also by a link, but where its rows are signed it is used, and said."""
    monkeypatch.setenv(VARIABLE, "s" * 32)
    fill(tmp_path / "l", 1)
    (tmp_path / "link").symlink_to(tmp_path / "l")
    with Ledger(tmp_path / "link", read_only=read_only) as ledger:
        assert ledger.get(key_of(0)) == reply_of(0)
        assert ledger.notes == ()
    monkeypatch.setattr(sqlite, "is_foreign", lambda file: True)
    with Ledger(tmp_path / "l", read_only=read_only) as ledger:
        assert ledger.get(key_of(0)) == reply_of(0)
        assert "belongs to another user" in ledger.notes[0]
    monkeypatch.delenv(VARIABLE)
    for name in ("l", "link"):
        with pytest.raises(UsageError, match="belongs to another user"):
            Ledger(tmp_path / name, read_only=read_only)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="users are POSIX here")
def test_whose_a_file_is_is_asked_of_the_system(tmp_path: Path) -> None:
    """A file that we made is ours; one of another owner is not."""
    (tmp_path / "l").touch()
    assert not sqlite.is_foreign((tmp_path / "l").stat())
    if os.geteuid() == 0:
        os.chown(tmp_path / "l", 12345, 12345)
        assert sqlite.is_foreign((tmp_path / "l").stat())
