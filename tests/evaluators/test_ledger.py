"""The ledger keeps every reply that was paid for; runs at the same time make a call once."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.command import main
from qagate.evaluators.core import Reply, ToolCall, UsageError
from qagate.evaluators.extras.postgres import postgres
from qagate.evaluators.ledger import (
    KeptReply,
    Ledger,
    LedgerError,
    PaidReply,
    reply_store,
    sqlite,
)
from qagate.evaluators.ledger.place import LedgerPlace
from qagate.evaluators.ledger.rows import VARIABLE
from tests.support.fixtures import Captured, Patch
from tests.support.places import ask, change, text_of
from tests.support.recorded import fill, key_of, put, reply_of, row_of
from tests.support.tables import kept, tabled

REPLY = Reply(text="София", finish="stop", model="m-1", input_tokens=3, output_tokens=2)


def row(key: str = "k", reply: Reply = REPLY) -> PaidReply:
    return PaidReply(key=key, spec="openai:m", reply=reply)


def count_calls(place: LedgerPlace) -> object:
    return ask(place, "SELECT count(*) FROM calls")


def test_the_first_reply_stands(place: LedgerPlace) -> None:
    """A new process reads what put kept; a second reply does not replace the first (F28)."""
    with Ledger(place) as ledger:
        put(
            ledger,
            [row(), row("other", Reply(calls=(ToolCall(name="g", arguments="{}"),)))],
        )
        put(ledger, [row(reply=Reply(text="another"))])
    with Ledger(place) as ledger:
        assert ledger.get("k") == REPLY
        assert ledger.get("other") == Reply(calls=(ToolCall(name="g", arguments="{}"),))
        assert ledger.get("unknown") is None
    assert count_calls(place) == 2


@tabled("damage")
def test_a_damaged_row_is_set_aside_and_asked_again(
    place: LedgerPlace, damage: str
) -> None:
    """A wrong checksum or schema is never used, counted, kept aside; a replay changes nothing."""
    with Ledger(place) as ledger:
        put(ledger, [row()])
    change(place, damage)
    with Ledger(place, read_only=True) as ledger:
        assert ledger.get("k") is None
        assert "1 damaged row of" in str(ledger.notes)
    assert count_calls(place) == 1
    with Ledger(place) as ledger:
        for _ in range(2):
            assert ledger.get("k") is None
            assert ledger.notes == (
                "1 damaged row of the ledger set aside and asked again",
            )
        put(ledger, [row(reply=Reply(text="asked again"))])
        assert ledger.get("k") == Reply(text="asked again")
    assert ask(place, "SELECT count(*) FROM damaged") == 1


def test_a_row_of_another_secret_is_set_aside(
    place: LedgerPlace, monkeypatch: Patch
) -> None:
    """With QA_LEDGER_KEY only replies that were written with it are used, in either kind."""
    with Ledger(place) as ledger:
        put(ledger, [row("unsigned")])
    for secret in ("a" * 32, "b" * 32):
        monkeypatch.setenv(VARIABLE, secret)
        with Ledger(place) as ledger:
            assert ledger.get("unsigned") is None
            assert ledger.get("signed") is None
            put(ledger, [row("signed")])
            assert ledger.get("signed") == REPLY
    assert ask(place, "SELECT count(*) FROM damaged") == 2


def test_setting_aside_while_committing_loses_nothing(place: LedgerPlace) -> None:
    """Damaged rows found in the middle of commits cost neither an acknowledged row nor the run."""
    with Ledger(place) as ledger:
        put(ledger, [row(f"bad{number}") for number in range(60)])
    change(place, "UPDATE calls SET checksum = 'x'")
    large = Reply(text="x" * 20_000)

    async def both(ledger: Ledger) -> None:
        async def one(number: int) -> None:
            assert ledger.get(f"bad{number}") is None
            await ledger.put(row(f"bad{number}", large))

        await asyncio.gather(*(one(number) for number in range(60)))

    with Ledger(place) as ledger:
        asyncio.run(both(ledger))
        assert all(ledger.get(f"bad{number}") == large for number in range(60))
        assert "60 damaged rows of" in str(ledger.notes)


def test_flushing_waits_for_the_group(place: LedgerPlace) -> None:
    """What was given to put is on the disk after flush, even where nobody awaits the put."""

    async def scenario(ledger: Ledger) -> None:
        await ledger.flush()
        pending = asyncio.ensure_future(ledger.put(row()))
        await asyncio.sleep(0)
        await ledger.flush()
        assert ledger.get("k") == REPLY
        await pending

    with Ledger(place) as ledger:
        asyncio.run(scenario(ledger))


def test_a_ledger_that_may_not_be_written_can_be_replayed(tmp_path: Path) -> None:
    """A read-only copy, as CI carries it, serves --replay and is not touched."""
    folder = tmp_path / "artefact"
    with Ledger(folder / "l") as ledger:
        put(ledger, [row()])
    before = sorted(folder.iterdir())
    (folder / "l").chmod(0o400)
    folder.chmod(0o500)
    try:
        with Ledger(folder / "l", read_only=True) as ledger:
            assert ledger.get("k") == REPLY
        assert sorted(folder.iterdir()) == before
    finally:
        folder.chmod(0o700)


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_no_ledger_is_refused(tmp_path: Path, read_only: bool) -> None:
    """A file of another kind is named and not overwritten; nor can a ledger be made under it."""
    path = tmp_path / "notes.txt"
    path.write_text("these are my notes, not a database " * 50, encoding="utf-8")
    with pytest.raises(UsageError, match=r"notes\.txt: cannot be opened as a ledger"):
        Ledger(path, read_only=read_only)
    assert path.read_text(encoding="utf-8").startswith("these are my notes")
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(
        UsageError, match=r"no ledger to replay from|give another --ledger path"
    ):
        Ledger(path / "absent", read_only=read_only)


def test_a_reply_that_cannot_be_kept_is_an_error_for_every_waiting_call(
    place: LedgerPlace,
) -> None:
    """When the disk refuses, each call in the group hears it; none believes its reply is kept."""

    async def both(ledger: Ledger) -> list[object]:
        results = await asyncio.gather(
            ledger.put(row("a")), ledger.put(row("b")), return_exceptions=True
        )
        return list(results)

    with Ledger(place) as ledger:
        change(place, "DROP TABLE calls")
        errors = asyncio.run(both(ledger))
        with pytest.raises(LedgerError):
            ledger.get("a")
    assert [type(error) for error in errors] == [LedgerError, LedgerError]
    assert str(place) in str(errors[0])


def test_any_text_comes_back_exactly(place: LedgerPlace) -> None:
    """Lone surrogates, NUL and every other character survive the store."""
    numbers = count()

    @settings(max_examples=30, deadline=None)
    @given(
        text=st.text(st.characters(codec=None), max_size=50),
        arguments=st.text(max_size=20),
    )
    def comes_back(text: str, arguments: str) -> None:
        reply = Reply(text=text, calls=(ToolCall(name="rate", arguments=arguments),))
        key = str(next(numbers))
        put(ledger, [row(key, reply)])
        assert ledger.get(key) == reply

    with Ledger(place) as ledger:
        comes_back()


def keep(ledger: Ledger, kind: str, **texts: str) -> None:
    async def all_at_once() -> None:
        await asyncio.gather(
            *(ledger.keep(kind, key, text) for key, text in texts.items())
        )

    asyncio.run(all_at_once())


def test_a_document_is_found_by_the_next_run_and_replaced(place: LedgerPlace) -> None:
    """The last text of a kind and key is kept; kinds do not mix."""
    with Ledger(place) as ledger:
        keep(ledger, "batch", b="waiting", a="x")
        keep(ledger, "batch", b="done")
        keep(ledger, "note", b="another kind")
    with Ledger(place) as ledger:
        assert list(ledger.documents("batch").items()) == [("a", "x"), ("b", "done")]
        assert ledger.documents("note", ["b"]).get("b") == "another kind"
        assert ledger.documents("note", ["unknown"]).get("unknown") is None


@tabled("damage")
def test_a_document_that_was_changed_is_not_believed(
    place: LedgerPlace, damage: str
) -> None:
    """The seal binds the text to its kind and key."""
    with Ledger(place) as ledger:
        keep(ledger, "batch", k="waiting")
    change(place, damage)
    with Ledger(place) as ledger:
        for kind in ("batch", "other"):
            assert ledger.documents(kind) == {}


def test_a_document_needs_the_ledgers_signature(
    place: LedgerPlace, monkeypatch: Patch
) -> None:
    """With QA_LEDGER_KEY one that was written without it, or with another, does not count."""
    with Ledger(place) as ledger:
        keep(ledger, "batch", unsigned="x")
    for secret, found in (("a" * 32, {"signed": "y"}), ("b" * 32, {})):
        monkeypatch.setenv(VARIABLE, secret)
        with Ledger(place) as ledger:
            if found:
                keep(ledger, "batch", **found)
            assert ledger.documents("batch") == found


def test_documents_are_carried_with_all_rows(tmp_path: Path, capsys: Captured) -> None:
    """A whole export takes them along, a narrowed one does not; the first document stands."""
    one, two, file = tmp_path / "one", tmp_path / "two", tmp_path / "out.jsonl"
    fill(one, 2)
    with Ledger(one) as ledger:
        keep(ledger, "batch", k="first", other="o\ud800")
    assert (
        main(
            [
                "ledger",
                "export",
                str(file),
                "--ledger",
                str(one),
                "--since",
                "2020-01-01",
            ]
        )
        == 0
    )
    assert file.read_text("utf-8").count("\n") == 2
    assert main(["ledger", "export", str(file), "--ledger", str(one)]) == 0
    with Ledger(two) as ledger:
        keep(ledger, "batch", k="own")
    assert main(["ledger", "import", str(file), "--ledger", str(two)]) == 0
    assert "2 new, 0 known, 0 refused" in capsys.readouterr().out
    with Ledger(two) as ledger:
        assert ledger.documents("batch") == {"k": "own", "other": "o\ud800"}
        assert ledger.get(key_of(1)) == reply_of(1)
    assert main(["ledger", "stats", "--ledger", str(two)]) == 0
    assert "2 documents with them" in capsys.readouterr().out


def test_a_document_that_was_changed_is_not_imported(
    tmp_path: Path, capsys: Captured
) -> None:
    """Its line is named; the reply next to it comes in."""
    file = tmp_path / "out.jsonl"
    fill(tmp_path / "one", 1)
    with Ledger(tmp_path / "one") as ledger:
        keep(ledger, "batch", k="first")
    assert main(["ledger", "export", str(file), "--ledger", str(tmp_path / "one")]) == 0
    file.write_text(file.read_text("utf-8").replace("first", "forged"), "utf-8")
    assert main(["ledger", "import", str(file), "--ledger", str(tmp_path / "two")]) == 4
    assert "out.jsonl:2: a document that is damaged" in capsys.readouterr().err
    with Ledger(tmp_path / "two") as ledger:
        assert ledger.get(key_of(0)) == reply_of(0)
        assert ledger.documents("batch") == {}


ROOT = Path(__file__).parents[2]
SHORT_LEASE: str = kept(__file__, "short_lease")
HOLDER = kept(__file__, "holder")
RUN = kept(__file__, "run")


def start(code: str, *words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", code, *words],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


@pytest.mark.slow
def test_processes_at_once_make_each_call_once(place: LedgerPlace) -> None:
    """Three runs over the same 400 calls: 400 requests, every row there, none waits (row F17)."""
    runs = [start(RUN, text_of(place), order) for order in "010"]
    outputs = [run.communicate(timeout=60)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], outputs
    assert sum(json.loads(output) for output in outputs) == count_calls(place) == 400


def test_a_killed_run_holds_nothing_up(place: LedgerPlace, monkeypatch: Patch) -> None:
    """The claim of a run that was killed is free: at once in a file, with its lease in a database.
    So that the next run repeats only what the dead one had in flight (R3). The lease is short
    here."""
    key = key_of(1)
    holder = start(f"{SHORT_LEASE}{HOLDER}", text_of(place), key)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"

    async def wait(ledger: Ledger) -> KeptReply | None:
        asyncio.get_running_loop().call_later(0.2, holder.send_signal, signal.SIGKILL)
        async with ledger.claim(key) as kept:
            assert holder.wait(10) == -signal.SIGKILL
            return kept

    monkeypatch.setattr(postgres, "RENEW_S", 0.1)
    with Ledger(place) as ledger:
        assert asyncio.run(asyncio.wait_for(wait(ledger), 20)) is None
    holder.stdout.close()


def test_a_frozen_run_is_not_waited_for_forever(
    place: LedgerPlace, monkeypatch: Patch
) -> None:
    """Nor is a failed call: a claim counts while its run keeps replies, or an item may last."""
    monkeypatch.setattr(reply_store, "CLAIM_TIMEOUT_SECONDS", 0.2)

    async def wait(other: Ledger) -> KeptReply | None:
        async with other.claim(key_of(1), seconds=1.0) as kept:
            return kept

    async def both(one: Ledger, other: Ledger) -> bool:
        async with one.claim(key_of(1)):
            waiting = asyncio.create_task(wait(other))
            await asyncio.sleep(0.3)
            heard = asyncio.get_running_loop().time()
            await one.put(row_of(2))
            async with other.claim(key_of(2)) as kept:
                assert kept
            with pytest.raises(RuntimeError):
                async with one.claim(key_of(3)):
                    raise RuntimeError
            async with other.claim(key_of(3), seconds=60.0) as kept:
                assert kept is None
            assert await waiting is None
            assert asyncio.get_running_loop().time() > heard + 1.0
            # Giving up the wait gives back nothing that is the other's.
            assert third.store.take([key_of(1)]) == set()
            return True

    with Ledger(place) as one, Ledger(place) as other, Ledger(place) as third:
        assert asyncio.run(both(one, other))


def test_nothing_is_claimed_after_a_reply_was_lost(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    """A ledger that failed once lets no further call start; the next one takes the reply in."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "l"

    async def scenario(ledger: Ledger) -> None:
        assert isinstance(ledger.store, sqlite.SqliteStore)
        ledger.store._writer.execute("PRAGMA max_page_count = 1")
        with pytest.raises(
            LedgerError, match=r"l: the disk is full, [\d,]+ bytes and more are ne"
        ):
            await ledger.put(row_of(1, 5000))
        with pytest.raises(LedgerError, match="disk is full"):
            async with ledger.claim(key_of(2)):
                pytest.fail("a call would have been made")

    with Ledger(path) as ledger:
        asyncio.run(scenario(ledger))
    with Ledger(path) as ledger:
        (note,) = ledger.notes
        assert note.startswith("1 row taken in from .qa/unkept-")
        put(ledger, [row_of(1)])


def test_claims_are_private_and_no_link_is_followed(tmp_path: Path) -> None:
    """The file of the locks is made for its owner; a link in its place is refused."""
    Ledger(tmp_path / "l").close()
    assert (tmp_path / "l-claims").stat().st_mode & 0o777 == 0o600
    (tmp_path / "l-claims").unlink()
    (tmp_path / "l-claims").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="cannot be opened as a ledger"):
        Ledger(tmp_path / "l")
    assert not (tmp_path / "elsewhere").exists()


def test_a_ledger_that_is_being_mended_is_waited_for(
    tmp_path: Path, monkeypatch: Patch
) -> None:
    """Opening waits for whoever must be alone with the file, but not without end."""
    monkeypatch.setattr(sqlite, "OPEN_TIMEOUT_SECONDS", 0.1)
    Ledger(tmp_path / "l").close()
    locks = sqlite.open_locks(tmp_path / "l")
    assert sqlite.lock(locks, sqlite.IN_USE, "F_WRLCK")
    with pytest.raises(UsageError, match="keeps this ledger to itself"):
        Ledger(tmp_path / "l")
    os.close(locks)
    Ledger(tmp_path / "l").close()


@pytest.mark.parametrize("missing", ["fcntl", "F_OFD_SETLK", "locks"])
def test_a_system_without_locks_works(
    tmp_path: Path, monkeypatch: Patch, missing: str
) -> None:
    """Without locks of open files the process's own serve; without any, every claim is granted."""
    fcntl = pytest.importorskip("fcntl")
    if missing == "fcntl":
        monkeypatch.setitem(sys.modules, "fcntl", None)
    elif missing == "F_OFD_SETLK":
        monkeypatch.delattr(fcntl, "F_OFD_SETLK", raising=False)
    else:

        def unsupported(*_: object) -> None:
            raise OSError(95, "Operation not supported")

        monkeypatch.setattr(fcntl, "fcntl", unsupported)
        monkeypatch.setattr(fcntl, "lockf", unsupported)
    with Ledger(tmp_path / "l") as ledger:
        assert ledger.store.take([key_of(1)]) == {key_of(1)}
        ledger.store.give_back(key_of(1))
        put(ledger, [row_of(1)])
        assert ledger.get(key_of(1)) == reply_of(1)
