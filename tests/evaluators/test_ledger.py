"""The ledger keeps every reply that was paid for, exactly, and never hands out a damaged one."""

import asyncio
import json
from itertools import count
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluators.core import Place, Reply, ToolCall, UsageError
from evaluators.ledger import Ledger, LedgerError, PaidReply
from evaluators.ledger.rows import VARIABLE, checksum, seal
from evaluators.text import canonical
from tests.support.places import ask, change
from tests.support.recorded import put
from tests.support.tables import tabled

REPLY = Reply(text="София", finish="stop", model="m-1", input_tokens=3, output_tokens=2)


def row(key: str = "k", reply: Reply = REPLY) -> PaidReply:
    return PaidReply(key=key, spec="openai:m", reply=reply)


def count_calls(place: Place) -> object:
    return ask(place, "SELECT count(*) FROM calls")


def test_what_was_put_is_found_by_the_next_run(place: Place) -> None:
    """A reply is on the disk when put returns: a new process reads the same value."""
    with Ledger(place) as ledger:
        put(ledger, [row(), row("other", Reply(calls=(ToolCall(name="g", arguments="{}"),)))])
    with Ledger(place) as ledger:
        assert ledger.get("k") == REPLY
        assert ledger.get("other") == Reply(calls=(ToolCall(name="g", arguments="{}"),))
        assert ledger.get("unknown") is None
    assert count_calls(place) == 2


def test_a_row_from_before_cached_tokens_were_counted_still_answers() -> None:
    """A ledger that an earlier version filled is not asked anew: what it did not note is 0."""
    sealed = seal(row(), 1.0)
    older = {k: v for k, v in json.loads(sealed.reply).items() if not k.startswith("cache_")}
    text = canonical(older)
    assert sealed._replace(reply=text, checksum=checksum("k", text)).opened() == REPLY


def test_the_first_reply_stands(place: Place) -> None:
    """A second reply to the same request does not replace the first (F28)."""
    with Ledger(place) as ledger:
        put(ledger, [row()])
        put(ledger, [row(reply=Reply(text="another"))])
        assert ledger.get("k") == REPLY


@tabled("damage")
def test_a_damaged_row_is_set_aside_and_asked_again(place: Place, damage: str) -> None:
    """A row whose checksum or schema is wrong is never used, is counted, and is kept aside."""
    with Ledger(place) as ledger:
        put(ledger, [row()])
    change(place, damage)
    with Ledger(place) as ledger:
        for _ in range(2):
            assert ledger.get("k") is None
            assert ledger.notes == ("1 damaged row of the ledger set aside and asked again",)
        put(ledger, [row(reply=Reply(text="asked again"))])
        assert ledger.get("k") == Reply(text="asked again")
    assert ask(place, "SELECT count(*) FROM damaged") == 1


def test_a_row_of_another_secret_is_set_aside(
    place: Place, monkeypatch: pytest.MonkeyPatch
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


def test_a_damaged_row_is_left_alone_when_the_ledger_is_only_read(place: Place) -> None:
    """A replay changes nothing in the file, not even a damaged row."""
    with Ledger(place) as ledger:
        put(ledger, [row()])
    change(place, "UPDATE calls SET checksum = 'x'")
    with Ledger(place, read_only=True) as ledger:
        assert ledger.get("k") is None
        assert "1 damaged row of" in str(ledger.notes)
    assert count_calls(place) == 1


def test_setting_aside_while_committing_loses_nothing(place: Place) -> None:
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


def test_flushing_waits_for_the_group(place: Place) -> None:
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
    with pytest.raises(UsageError, match=r"no ledger to replay from|give another --ledger path"):
        Ledger(path / "absent", read_only=read_only)


def test_a_reply_that_cannot_be_kept_is_an_error_for_every_waiting_call(place: Place) -> None:
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


def test_any_text_comes_back_exactly(place: Place) -> None:
    """Lone surrogates, NUL and every other character survive the store."""
    numbers = count()

    @settings(max_examples=30, deadline=None)
    @given(text=st.text(st.characters(codec=None), max_size=50), arguments=st.text(max_size=20))
    def comes_back(text: str, arguments: str) -> None:
        reply = Reply(text=text, calls=(ToolCall(name="rate", arguments=arguments),))
        key = str(next(numbers))
        put(ledger, [row(key, reply)])
        assert ledger.get(key) == reply

    with Ledger(place) as ledger:
        comes_back()
