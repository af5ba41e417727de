"""Runs at the same time on one ledger: an identical call is made once, and no run waits in vain."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from evaluators.core import Place, Reply, Request, UsageError
from evaluators.ledger import Ledger, LedgerError, postgres, reply_store, sqlite
from evaluators.runtime.caller import Meter
from tests.support.places import ask, text_of
from tests.support.recorded import caller, key_of, put, reply_of, row_of
from tests.support.scripted import Scripted, ask_for
from tests.support.tables import kept

ROOT = Path(__file__).parents[2]
SHORT_LEASE = """
from evaluators.ledger import postgres
postgres.LEASE_S, postgres.RENEW_S = 1.0, 0.1
"""
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


def free(spec: str, reply: Reply) -> float | None:
    return 0.0


def test_processes_at_once_make_each_call_once(place: Place) -> None:
    """Three runs over the same 400 calls: 400 requests in all, every row there, none waits.

    Row F17 of the fault matrix.
    """
    runs = [start(RUN, text_of(place), order) for order in "010"]
    outputs = [run.communicate(timeout=60)[0] for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0], outputs
    assert sum(json.loads(output) for output in outputs) == 400
    assert ask(place, "SELECT count(*) FROM calls") == 400


def test_the_second_run_uses_the_first_runs_reply(place: Place) -> None:
    """While another run makes a call its reply is waited for; it costs nothing here."""
    model = Scripted(lambda request: Reply(text="first come"))
    started = asyncio.Event()

    class Slow(Scripted):
        async def complete(self, request: Request) -> Reply:
            started.set()
            await asyncio.sleep(0.2)
            return Reply(text="first come")

    async def both(one: Ledger, other: Ledger) -> list[Reply]:
        ask = caller(one).metered(Meter(price=free))
        slow = asyncio.ensure_future(ask(Slow(model.handler), ask_for("q")))
        await started.wait()
        meter = Meter(price=free)
        reply = await caller(other).metered(meter)(model, ask_for("q"))
        assert meter.usage.requests == 0
        return [await slow, reply]

    with Ledger(place) as one, Ledger(place) as other:
        replies = asyncio.run(both(one, other))
    assert [reply.text for reply in replies] == ["first come"] * 2
    assert model.requests == []


def test_a_failed_call_is_free_for_the_other_run(place: Place) -> None:
    """Where the first run's call brought nothing, the second makes its own."""

    async def both(one: Ledger, other: Ledger) -> Reply | None:
        with pytest.raises(RuntimeError):
            async with one.claim(key_of(1)):
                raise RuntimeError
        async with other.claim(key_of(1)) as kept:
            return kept

    with Ledger(place) as one, Ledger(place) as other:
        assert asyncio.run(both(one, other)) is None


def test_a_killed_run_holds_nothing_up(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The claim of a run that was killed is free: at once in a file, with its lease in a database.

    So that the next run repeats only what the dead one had in flight (R3). The lease is short here.
    """
    key = key_of(1)
    holder = start(f"{SHORT_LEASE}{HOLDER}", text_of(place), key)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"

    async def wait(ledger: Ledger) -> Reply | None:
        asyncio.get_running_loop().call_later(0.2, holder.send_signal, signal.SIGKILL)
        async with ledger.claim(key) as kept:
            assert holder.wait(10) == -signal.SIGKILL
            return kept

    monkeypatch.setattr(postgres, "RENEW_S", 0.1)
    with Ledger(place) as ledger:
        assert asyncio.run(asyncio.wait_for(wait(ledger), 20)) is None
    holder.stdout.close()


def test_a_frozen_run_is_not_waited_for_forever(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim that outlasts every call's deadline no longer counts."""
    monkeypatch.setattr(reply_store, "CLAIM_TIMEOUT_S", 0.2)

    async def both(one: Ledger, other: Ledger) -> bool:
        async with one.claim(key_of(1)):
            async with other.claim(key_of(1)) as kept:
                assert kept is None
            # Giving up the wait gives back nothing that is the other's.
            assert third.store.take([key_of(1)]) == set()
            return True

    with Ledger(place) as one, Ledger(place) as other, Ledger(place) as third:
        assert asyncio.run(both(one, other))


def test_nothing_is_claimed_after_a_reply_could_not_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger that failed once lets no further call start; the next one takes the reply in."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "l"

    async def scenario(ledger: Ledger) -> None:
        assert isinstance(ledger.store, sqlite.SqliteStore)
        ledger.store._writer.execute("PRAGMA max_page_count = 1")
        with pytest.raises(LedgerError, match=r"l: the disk is full, [\d,]+ bytes and more are ne"):
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
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening waits for whoever must be alone with the file, but not without end."""
    monkeypatch.setattr(sqlite, "OPEN_TIMEOUT_S", 0.1)
    Ledger(tmp_path / "l").close()
    locks = sqlite.open_locks(tmp_path / "l")
    assert sqlite.lock(locks, sqlite.IN_USE, "F_WRLCK")
    with pytest.raises(UsageError, match="keeps this ledger to itself"):
        Ledger(tmp_path / "l")
    os.close(locks)
    Ledger(tmp_path / "l").close()


@pytest.mark.parametrize("missing", ["fcntl", "F_OFD_SETLK", "locks"])
def test_a_system_without_such_locks_still_works(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
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
