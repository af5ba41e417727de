"""A damaged ledger is used as far as it is sound; who else could change one is kept out."""

import asyncio
import os
import random
import sqlite3
import stat
import threading
from contextlib import closing
from pathlib import Path

import pytest

from qagate.evaluators.core import UsageError
from qagate.evaluators.kept_requests import Document
from qagate.evaluators.ledger import Ledger, LedgerError, damage, sqlite, sqlite_file
from qagate.evaluators.ledger import rows as ledger_rows
from qagate.evaluators.ledger.rows import (
    VARIABLE,
    Signer,
    StoredDocument,
    StoredRow,
    seal,
    seal_document,
)
from qagate.evaluators.ledger.sqlite_file import connect
from qagate.evaluators.ledger.upkeep import save_unkept
from tests.support.fixtures import Patch
from tests.support.places import PAGE, ask, change, wait_for_note, zero_page
from tests.support.recorded import (
    fill,
    is_imported,
    key_of,
    put,
    reply_of,
    row_of,
)
from tests.support.tables import tabled

ROWS = 60


def flip(content: bytearray, chance: random.Random) -> None:
    for _ in range(chance.randint(1, 20)):
        content[chance.randrange(len(content))] ^= 1 << chance.randrange(8)


def zero(content: bytearray, chance: random.Random) -> None:
    for _ in range(chance.randint(1, 3)):
        start = chance.randrange(len(content) // 4096) * 4096
        content[start : start + 4096] = bytes(4096)


def cut(content: bytearray, chance: random.Random) -> None:
    del content[chance.randrange(len(content)) :]


def scramble(content: bytearray, chance: random.Random) -> None:
    start = chance.randrange(len(content))
    noise = chance.randbytes(chance.randint(1, 9000))
    content[start : start + len(noise)] = noise


@pytest.mark.parametrize("spoil", [flip, zero, cut, scramble])
def test_a_hundred_damaged_files_give_no_wrong_reply(
    memory: Path, spoil: object
) -> None:
    """For any damage to the bytes: the right reply or none, the file is kept (row F16)."""
    assert callable(spoil)
    fill(memory / "sound", ROWS)
    sound = (memory / "sound").read_bytes()
    for seed in range(25):
        folder = memory / str(seed)
        folder.mkdir()
        content = bytearray(sound)
        spoil(content, random.Random(seed))
        (folder / "l").write_bytes(content)
        check_replay(folder / "l")
        assert (folder / "l").read_bytes() == content, "a replay changes nothing"
        check_run(folder / "l", bytes(content))


def check_replay(path: Path) -> None:
    try:
        with Ledger(path, read_only=True) as ledger:
            for number in range(ROWS):
                assert ledger.get(key_of(number)) in (None, reply_of(number))
    except UsageError as problem:
        assert str(path) in str(problem)


def check_run(path: Path, content: bytes) -> None:
    try:
        ledger = Ledger(path)
    except UsageError as problem:
        assert str(path) in str(problem)
        assert path.read_bytes() == content, "what is refused is not touched"
        return
    with ledger:
        found = {number: ledger.get(key_of(number)) for number in range(ROWS)}
        assert all(reply in (None, reply_of(number)) for number, reply in found.items())
        missing = [number for number, reply in found.items() if reply is None]
        put(ledger, [row_of(one) for one in missing])
        assert all(
            ledger.get(key_of(number)) == reply_of(number) for number in range(ROWS)
        )
        kept = list(path.parent.glob("l.damaged-*"))
        assert len(kept) == sum(
            "it is kept as l.damaged-" in note for note in ledger.notes
        )


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("large") / "l"
    fill(path, 2000, size=5)
    return path.read_bytes()


def test_a_lost_page_costs_its_own_rows_only(tmp_path: Path, large: bytes) -> None:
    """Rows that verify and documents go on in a new file; the note counts and names the old one."""
    path = tmp_path / "l"
    path.write_bytes(large)
    with Ledger(path) as ledger:
        asyncio.run(ledger.keep("batch", "k", "text"))
    damaged = zero_page(path)
    with Ledger(path) as ledger:
        assert ledger.documents("batch", ["k"]).get("k") == "text"
        found = sum(
            ledger.get(key_of(number)) == reply_of(number, 5) for number in range(2000)
        )
        (note,) = ledger.notes
    assert 1900 <= found < 2000
    assert f"{found:,} of its rows verify and are used" in note
    (kept,) = tmp_path.glob("l.damaged-*")
    assert kept.name in note
    assert kept.read_bytes() == damaged
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def filled(path: Path, statement: str) -> None:
    """Make a ledger, and run a statement for each of 2,000 keys in the order of their numbers."""
    fill(path, 1)
    with closing(sqlite3.connect(path)) as connection, connection:
        keys = [(key_of(number),) for number in range(2000)]
        connection.executemany(statement, keys)


def zero_page_with(path: Path, content: str) -> None:
    """Damage the page on which a text stands first in the file."""
    zero_page(path, path.read_bytes().index(content.encode()) // PAGE)


class KilledError(Exception):
    """In place of SIGKILL: nothing of a replacement is tidied up behind it."""


@pytest.mark.parametrize("renamed", [0, 1, 2])
def test_a_replacement_that_was_killed_is_finished_by_the_next_opening(
    tmp_path: Path, large: bytes, renamed: int, monkeypatch: Patch
) -> None:
    """However many of the files had their new names."""
    path = tmp_path / "l"
    path.write_bytes(large)
    damaged = zero_page(path)
    Path(f"{path}-wal").write_bytes(b"")
    names_left = [f"{path}-wal", f"{path}", f"{path}{damage.READY}"]
    rename = Path.rename

    def rename_or_die(file: Path, target: object) -> Path:
        if str(file) == names_left[renamed]:
            raise KilledError
        return rename(file, str(target))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", rename_or_die)
        with pytest.raises(KilledError):
            damage.set_aside(path, "a lost page")
    with Ledger(path) as ledger:
        assert 1900 <= read_all(ledger) < 2000
        (note,) = ledger.notes
    (kept,) = tmp_path.glob("l.damaged-*Z")
    assert kept.name in note
    assert kept.read_bytes() == damaged
    assert Path(f"{kept}-wal").exists()


def test_a_new_file_that_somebody_prepared_is_not_used(
    tmp_path: Path, large: bytes
) -> None:
    path = tmp_path / "l"
    path.write_bytes(large)
    prepared = Path(f"{path}-new")
    fill(prepared, 2)
    prepared.chmod(0o666)
    damage.set_aside(path, "a lost page")
    assert ask(path, "SELECT count(*) FROM calls") == 2000
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_ready_file_that_is_none_of_this_user_is_refused(
    tmp_path: Path, large: bytes
) -> None:
    path = tmp_path / "l"
    path.write_bytes(large)
    fill(tmp_path / "other", 2)
    Path(f"{path}{damage.READY}").symlink_to(tmp_path / "other")
    with pytest.raises(UsageError, match="l-ready is not a file of this user"):
        Ledger(path)
    assert path.read_bytes() == large


def test_a_search_that_is_over_opens_no_file(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    search = damage.DamageSearch(tmp_path / "l", print)
    monkeypatch.delattr(damage, "connect")
    search.interrupt()
    search._search()


MARK = "INSERT INTO imported VALUES (?, 'run')"
DOCUMENT = "INSERT INTO documents VALUES ('batch', ?1, 'text of ' || ?1 || printf('%.200c', '-'))"


def test_a_lost_page_of_documents_costs_none_behind_it(tmp_path: Path) -> None:
    """Of a batch that is forgotten all calls would be paid for again."""
    path = tmp_path / "l"
    filled(path, DOCUMENT)
    zero_page_with(path, f"text of {key_of(50)}")
    note = damage.set_aside(path, "a lost page")
    kept = ask(path, "SELECT count(*) FROM documents WHERE kind = 'batch'")
    assert isinstance(kept, int)
    assert 1980 <= kept < 2000
    assert f", with {kept:,} documents; the others are asked again" in note


def test_documents_between_two_lost_pages_are_found_by_their_keys(
    tmp_path: Path,
) -> None:
    path = tmp_path / "l"
    filled(path, DOCUMENT)
    for number in (50, 1950):
        zero_page_with(path, f"text of {key_of(number)}")
    damage.set_aside(path, "two lost pages")
    kept = ask(path, "SELECT count(*) FROM documents WHERE kind = 'batch'")
    assert isinstance(kept, int)
    assert 1600 <= kept < 2000


def test_a_lost_page_of_the_index_costs_no_document(tmp_path: Path) -> None:
    path = tmp_path / "l"
    filled(path, DOCUMENT)
    with closing(connect(path)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE tbl_name = 'documents' AND type = 'index'"
        (root_page,) = connection.execute(query).fetchone()
    zero_page(path, root_page - 1)
    damage.set_aside(path, "a lost page")
    assert ask(path, "SELECT count(*) FROM documents") == 2000


def test_a_lost_page_of_import_marks_costs_none_behind_it(tmp_path: Path) -> None:
    path = tmp_path / "l"
    filled(path, MARK)
    zero_page_with(path, sorted(key_of(number) for number in range(2000))[50])
    damage.set_aside(path, "a lost page")
    kept = ask(path, "SELECT count(*) FROM imported")
    assert isinstance(kept, int)
    assert 1900 <= kept < 2000


@pytest.mark.parametrize(
    "damage",
    [
        "ALTER TABLE imported RENAME COLUMN key TO kez",
        "ALTER TABLE damaged RENAME TO demaged",
    ],
)
def test_a_table_that_lost_its_shape_costs_no_reply(
    tmp_path: Path, damage: str
) -> None:
    """Replayed without it, and set aside by the next run with all replies carried over."""
    path = tmp_path / "l"
    fill(path, 3)
    change(path, damage)
    for read_only in (True, False):
        with Ledger(path, read_only=read_only) as ledger:
            assert [ledger.get(key_of(number)) for number in range(3)] == [
                *map(reply_of, range(3))
            ]
            assert "damaged" in ledger.notes[0]


def test_a_ledger_of_nothing_but_zeros_is_set_aside(tmp_path: Path) -> None:
    """What a crashed disk leaves is kept and replaced; it takes no other damaged file's place."""
    path = tmp_path / "l"
    fill(path, 1)
    for kept in (1, 2):
        path.write_bytes(bytes(20_000))
        with Ledger(path) as ledger:
            assert "0 of its rows verify" in ledger.notes[0]
        assert [one.read_bytes() for one in tmp_path.glob("l.damaged-*")] == [
            bytes(20_000)
        ] * kept


def read_all(ledger: Ledger) -> int:
    """Return how many of the replies of ``large`` are found; none may be wrong."""
    found = 0
    for number in range(2000):
        reply = ledger.get(key_of(number))
        assert reply in (None, reply_of(number, 5))
        found += reply is not None
    return found


def test_a_damaged_ledger_in_use_is_left_alone(tmp_path: Path, large: bytes) -> None:
    """Nobody renames a file under a live run; the second run ends with one line."""
    path = tmp_path / "l"
    path.write_bytes(large)
    with Ledger(path), Ledger(path) as second:
        zero_page(path)
        with pytest.raises(LedgerError, match="another run uses it; run again once"):
            read_all(second)
    assert list(tmp_path.glob("l.damaged-*")) == []


def test_a_file_that_sqlite_cannot_read_is_left_alone_while_it_is_in_use(
    tmp_path: Path, large: bytes
) -> None:
    path = tmp_path / "l"
    path.write_bytes(large)
    with Ledger(path):
        zero_page(path, 0)
        with pytest.raises(UsageError, match="another run uses it; run again once"):
            Ledger(path)
    assert list(tmp_path.glob("l.damaged-*")) == []


def test_damage_met_in_the_middle_of_a_run_is_mended(
    tmp_path: Path, large: bytes
) -> None:
    """A page that goes bad under a run costs its own rows, and the run goes on."""
    path = tmp_path / "l"
    path.write_bytes(large)
    with Ledger(path) as ledger:
        zero_page(path)
        assert 1900 <= read_all(ledger) < 2000
        (note,) = ledger.notes
        assert "was damaged" in note
        put(ledger, [row_of(2000)])
    with Ledger(path) as ledger:
        assert ledger.get(key_of(2000)) == reply_of(2000)


def test_damage_met_by_a_commit_is_mended(tmp_path: Path, large: bytes) -> None:
    path = tmp_path / "l"
    path.write_bytes(large)
    with Ledger(path) as ledger:
        content = path.read_bytes()
        path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
        put(ledger, [row_of(2000)])
        assert ledger.get(key_of(2000)) == reply_of(2000)
        assert "was damaged" in ledger.notes[0]


@pytest.mark.parametrize("table", ["calls", "imported", "documents", "damaged"])
def test_a_search_finds_damage_that_nothing_else_meets(
    tmp_path: Path, large: bytes, table: str, monkeypatch: Patch
) -> None:
    """The file is mended before a reply needs the page."""
    monkeypatch.setattr(damage, "PAUSE_SECONDS", 0.0)
    path = tmp_path / "l"
    path.write_bytes(large)
    with Ledger(path) as ledger:
        asyncio.run(ledger.keep("batch", "0123", "text"))
    with closing(connect(path)) as connection:
        query = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        (root_page,) = connection.execute(query, (table,)).fetchone()
    zero_page(path, None if table == "calls" else root_page - 1)
    with Ledger(path) as ledger:
        assert ledger.notes == ()
        ledger.begin_search()
        assert "was damaged" in wait_for_note(ledger)
        assert read_all(ledger) >= 1900


def test_a_search_of_a_sound_ledger_finds_nothing(tmp_path: Path, large: bytes) -> None:
    path = tmp_path / "l"
    path.write_bytes(large)
    with Ledger(path) as ledger:
        asyncio.run(ledger.keep("batch", "0123", "text"))
        with closing(connect(path)) as connection:
            stretches = damage.stretches_of(connection)
            assert len(stretches) == 1 + 3 * damage.STRETCHES
            for part in stretches:
                damage.check_stretch(connection, part)
        assert damage.problems_of(path) == []


def test_a_row_that_stands_in_the_wrong_place_is_damage(tmp_path: Path) -> None:
    """Nobody would find it: SQLite looks for it elsewhere."""
    path = tmp_path / "l"
    fill(path, ROWS)
    keys = sorted(key_of(number) for number in range(ROWS))
    content = path.read_bytes()
    low, high = keys[10].encode(), keys[11].encode()
    prefix = low[:4]
    swapped = content.replace(low, prefix + b"f" * 60, 1)
    assert swapped != content
    path.write_bytes(swapped.replace(high, prefix + b"0" * 60, 1))
    with closing(connect(path)) as connection:
        stretches = damage.stretches_of(connection)
        with pytest.raises(sqlite3.DatabaseError, match="contradict each other"):
            for part in stretches:
                damage.check_stretch(connection, part)


def test_a_search_ends_with_its_ledger(tmp_path: Path, large: bytes) -> None:
    path = tmp_path / "l"
    path.write_bytes(large)
    with Ledger(path) as ledger:
        ledger.begin_search()
    names = [thread.name for thread in threading.enumerate()]
    assert "qa-ledger-check" not in names


def test_what_a_search_finds_in_a_ledger_in_use_is_said(
    tmp_path: Path, large: bytes, monkeypatch: Patch
) -> None:
    monkeypatch.setattr(damage, "PAUSE_SECONDS", 0.0)
    path = tmp_path / "l"
    path.write_bytes(large)
    with Ledger(path), Ledger(path) as ledger:
        zero_page(path)
        ledger.begin_search()
        assert "another run uses it" in wait_for_note(ledger)


def test_a_replay_of_a_damaged_file_says_so(tmp_path: Path, large: bytes) -> None:
    """What can be read is used; the rest counts as damaged and is in the notes."""
    path = tmp_path / "l"
    path.write_bytes(large)
    zero_page(path)
    with Ledger(path, read_only=True) as ledger:
        found = sum(ledger.get(key_of(number)) is not None for number in range(2000))
        assert found < 2000
        assert ledger.notes == (
            f"{path} is damaged: replayed as far as it can be read",
            f"{2000 - found} damaged rows of the ledger not used",
        )


@pytest.mark.parametrize("signs", [True, False])
def test_replies_not_taken_come_home(
    tmp_path: Path, monkeypatch: Patch, signs: bool
) -> None:
    """The next run of the folder takes in what verifies, says so and marks it as imported."""
    monkeypatch.chdir(tmp_path)
    if signs:
        monkeypatch.setenv(VARIABLE, "s" * 32)
    seals = (Signer().signed(seal(row_of(number), 1.0)) for number in range(3))
    rows: list[StoredRow | StoredDocument] = [
        *seals,
        seal_document(Document("note", "k", "text"), Signer()),
    ]
    home = save_unkept(Path("l"), rows[:2])
    odd = save_unkept(tmp_path / "l", rows[2:])
    odd.write_text(odd.read_text("utf-8").replace("2 2 2", "2 2 3"), "utf-8")
    other = save_unkept(tmp_path / "other", rows)
    with Ledger(tmp_path / "l") as ledger:
        assert [ledger.get(key_of(number)) for number in range(2)] == [
            reply_of(0),
            reply_of(1),
        ]
        assert is_imported(ledger, 0)
        assert ledger.documents("note", ["k"]).get("k") == "text"
        assert ledger.get(key_of(2)) is None
        said = "\n".join(ledger.notes)
    assert f"2 rows taken in from {home}" in said
    assert f"0 rows taken in from {odd}; 1 refused: {odd}:2: the row is not" in said
    assert [path.exists() for path in (home, odd, other)] == [False, True, True]
    shared = save_unkept(tmp_path / "l", rows)
    shared.chmod(0o666)
    with Ledger(tmp_path / "l") as ledger:
        assert (
            f"{shared} is not taken in: other users" in "\n".join(ledger.notes)
        ) != signs
        assert (ledger.get(key_of(2)) is None) != signs


def test_what_this_version_cannot_read_is_refused(tmp_path: Path) -> None:
    """A newer format is named and left as it is; so are a folder and a pipe."""
    path = tmp_path / "l"
    fill(path, 3)
    change(path, "PRAGMA user_version = 9")
    for read_only in (False, True):
        with pytest.raises(
            UsageError, match="a ledger of format 9, this version reads format 2"
        ):
            Ledger(path, read_only=read_only)
    assert ask(path, "PRAGMA user_version") == 9
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "pipe"):
        with pytest.raises(UsageError, match="not a regular file"):
            Ledger(path)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_ledger_of_an_older_format_is_refused(
    tmp_path: Path, read_only: bool
) -> None:
    """It is named as what it is, and not taken for a damaged one."""
    path = tmp_path / "l"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE calls (key TEXT, reply TEXT)")
        connection.execute("PRAGMA user_version = 1")
    with pytest.raises(
        UsageError, match=r"format 1, .* format 2; use the older version"
    ):
        Ledger(path, read_only=read_only)


@tabled("made")
@pytest.mark.parametrize("read_only", [False, True])
def test_a_database_of_others_is_refused(
    tmp_path: Path, made: str, read_only: bool
) -> None:
    """Another program's tables, and any view or trigger, are neither changed nor run."""
    path = tmp_path / "other"
    with closing(sqlite3.connect(path)) as connection, connection:
        if "TRIGGER" in made:
            connection.execute("CREATE TABLE damaged (key, at, reply, checksum)")
        connection.execute(made)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="a database of something else"):
        Ledger(path, read_only=read_only)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path], "no file of ours is next to it"


def test_a_run_that_begins_tears_no_reading(tmp_path: Path, large: bytes) -> None:
    """A replay sees what others add meanwhile; an export, which cannot begin again, is refused."""
    path = tmp_path / "l"
    path.write_bytes(large)
    with Ledger(path, read_only=True) as replay:
        exported = replay.store.stream("SELECT key FROM calls")
        next(exported)
        fill(path, 2001, size=5)
        with pytest.raises(ledger_rows.StoreError, match="run this command again"):
            list(exported)
        assert replay.get(key_of(2000)) == reply_of(2000, 5)


def test_a_full_disk_leaves_the_file(
    tmp_path: Path, large: bytes, monkeypatch: Patch
) -> None:
    """Nothing is renamed before the new file is complete, and no half of one stays."""
    path = tmp_path / "l"
    path.write_bytes(large)
    damaged = zero_page(path)

    def full(*_: object) -> None:
        raise sqlite3.OperationalError("database or disk is full")

    monkeypatch.setattr(damage, "_rows", full)
    with Ledger(path) as ledger, pytest.raises(LedgerError, match="disk is full"):
        read_all(ledger)
    assert path.read_bytes() == damaged
    assert sorted(one.name for one in tmp_path.iterdir()) == ["l", "l-claims"]


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_every_file_of_a_ledger_is_private(tmp_path: Path) -> None:
    """Folder 0700; the file, its log and its locks 0600, with any umask."""
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
    tmp_path: Path, monkeypatch: Patch, ending: str, mode: int, who: str
) -> None:
    """They could change the replies, in its log too; signed rows are used, and it is said (F25)."""
    fill(tmp_path / "l", 1)
    path = tmp_path / f"l{ending}"
    path.touch()
    path.chmod(mode)
    note = f"{path} can be changed by {who}; chmod 600 makes it private"
    for read_only in (False, True):
        with pytest.raises(
            UsageError, match=f"own, or sign its rows with {VARIABLE}"
        ) as raised:
            Ledger(tmp_path / "l", read_only=read_only)
        assert str(raised.value).startswith(note)
    monkeypatch.setenv(VARIABLE, "s" * 32)
    with Ledger(tmp_path / "l") as ledger:
        assert ledger.notes == (note,)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_ledger_of_another_user(
    tmp_path: Path, monkeypatch: Patch, read_only: bool
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
    assert not sqlite_file.is_foreign((tmp_path / "l").stat())
    if os.geteuid() == 0:
        os.chown(tmp_path / "l", 12345, 12345)
        assert sqlite_file.is_foreign((tmp_path / "l").stat())
