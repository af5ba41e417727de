"""A ledger in PostgreSQL: how it is opened, what it refuses, and what a lost server costs."""

import asyncio
import signal
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock, patch
from urllib.parse import urlsplit

import pytest

from qagate.command import main
from qagate.evaluators.core import Reply, UsageError
from qagate.evaluators.extras.postgres import postgres
from qagate.evaluators.ledger import Ledger, LedgerError, upkeep
from qagate.evaluators.ledger.place import PostgresUrl
from qagate.evaluators.ledger.rows import VARIABLE, StoreError
from tests.support.fixtures import Captured, Patch
from tests.support.places import ask, change, text_of
from tests.support.postgres import Cluster
from tests.support.recorded import (
    SPEC,
    fill,
    is_imported,
    key_of,
    put,
    reply_in,
    reply_of,
    row_of,
)
from tests.support.tables import kept, tabled

SECRET = "canary-9f3d"


def command(*words: object) -> int:
    return main(["ledger", *map(str, words)])


@pytest.fixture
def place(server: PostgresUrl) -> PostgresUrl:
    return server


@pytest.fixture
def impatient(monkeypatch: Patch) -> None:
    monkeypatch.setattr(postgres, "PATIENCE_S", 0.0)


def test_who_cannot_get_in_is_told_in_one_line(
    place: PostgresUrl, capsys: Captured
) -> None:
    """A wrong host, user, database, service or option is exit 4 and named."""
    parts = urlsplit(place.url)
    wrong = {
        f"postgresql://qa@127.0.0.1:1{parts.path}": "Connection refused",
        f"postgresql://{SECRET}@127.0.0.1:{parts.port}{parts.path}": "does not exist",
        f"postgresql://qa@127.0.0.1:{parts.port}/nowhere": "; make it: createdb --enc",
        "postgresql://?service=absent": "absent",
        "postgresql://qa@127.0.0.1:1/x?colour=red": "colour",
    }
    for text, why in wrong.items():
        for words in (["stats"], ["import", "file"]):
            assert command(*words, "--ledger", text) == 4
            said = capsys.readouterr().err
            assert said.count("\n") == 1
            assert why in said


def test_passwords_in_variables(
    cluster: Cluster, place: PostgresUrl, monkeypatch: Patch
) -> None:
    """PGPASSWORD opens what a wrong one does not; neither is shcluster."""
    hba = cluster.data / "pg_hba.conf"
    former = hba.read_text("utf-8")
    change(place, f"CREATE ROLE keeper LOGIN SUPERUSER PASSWORD '{SECRET}'")
    hba.write_text(f"host all keeper 127.0.0.1/32 scram-sha-256\n{former}", "utf-8")
    change(place, "SELECT pg_reload_conf()")
    url = PostgresUrl(place.url.replace("qa@", "keeper@"))
    try:
        monkeypatch.setenv("PGPASSWORD", "wrong")
        _until(url, opens=False)
        monkeypatch.setenv("PGPASSWORD", SECRET)
        with Ledger(url) as ledger:
            put(ledger, [row_of(1)])
    finally:
        hba.write_text(former, "utf-8")
        change(place, "SELECT pg_reload_conf()")


def _until(url: PostgresUrl, *, opens: bool) -> None:
    for _ in range(100):
        try:
            Ledger(url).close()
        except UsageError as error:
            if not opens:
                assert "password authentication failed" in str(error)
                assert str(error).count("password") == 1
                return
        else:
            if opens:
                return
        time.sleep(0.05)
    pytest.fail("the server did not read its settings")


def test_a_service_file_names_it(
    place: PostgresUrl, tmp_path: Path, monkeypatch: Patch
) -> None:
    """postgresql://?service=qa is the whole address; messages show it as that."""
    parts = urlsplit(place.url)
    lines = [
        "[qa]",
        "host=127.0.0.1",
        f"port={parts.port}",
        "user=qa",
        f"dbname={parts.path[1:]}",
    ]
    (tmp_path / "services").write_text("\n".join(lines) + "\n", "utf-8")
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    fill(place, 2)
    with Ledger(PostgresUrl("postgresql://?service=qa")) as ledger:
        assert ledger.get(key_of(1)) == reply_of(1)


@tabled("before", "said")
def test_a_ledger_of_no_use_is_refused(
    place: PostgresUrl, before: str, said: str
) -> None:
    """Each reason has its line, with what to do, before any call."""
    fill(place, 1)
    runner = as_runner(place)
    change(place, before)
    for read_only in (False, True):
        with pytest.raises(UsageError, match=said):
            Ledger(runner, read_only=read_only)


def as_runner(place: PostgresUrl) -> PostgresUrl:
    """Return the address for a role that has all rights on the tables there, and no others."""
    change(
        place,
        "DO $$ BEGIN CREATE ROLE runner LOGIN; EXCEPTION WHEN duplicate_object THEN END $$; "
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO runner",
    )
    return PostgresUrl(place.url.replace("qa@", "runner@"))


def test_who_may_not_make_tables_is_told(place: PostgresUrl) -> None:
    """PostgreSQL 15 gives that right to the database's owner alone."""
    runner = as_runner(place)
    with pytest.raises(
        UsageError, match='GRANT USAGE, CREATE ON SCHEMA public TO "runner"'
    ):
        Ledger(runner)
    change(place, "GRANT USAGE, CREATE ON SCHEMA public TO runner")
    fill(runner, 1)


def test_a_database_that_cannot_hold_every_text_is_refused(cluster: Cluster) -> None:
    """It must be UTF-8, or the first reply in Bulgarian would be lost."""
    cluster.start()
    latin = cluster.new_database("ENCODING LATIN1 TEMPLATE template0")
    with pytest.raises(
        UsageError, match=r"encoding is LATIN1, .* createdb --encoding=UTF8"
    ):
        Ledger(PostgresUrl(latin))


def test_another_programs_tables_are_left_alone(place: PostgresUrl) -> None:
    """A database that has a table of one of our names is none of ours."""
    change(place, "CREATE TABLE calls (caller TEXT)")
    with pytest.raises(UsageError, match="holds tables of something else"):
        Ledger(place)
    with pytest.raises(UsageError, match="no ledger to replay from"):
        Ledger(place, read_only=True)
    assert ask(place, "SELECT to_regclass('documents') IS NULL") is True


@tabled("grant")
def test_open_tables_are_refused(
    place: PostgresUrl, monkeypatch: Patch, grant: str
) -> None:
    """Grants are to a database what owner and mode are to a file; signed rows are used."""
    fill(place, 1)
    change(place, f"GRANT {grant} TO PUBLIC")
    table = grant.rpartition(" ")[2]
    with pytest.raises(
        UsageError, match=rf"every user of the database \({table}\).*{VARIABLE}"
    ):
        Ledger(place)
    monkeypatch.setenv(VARIABLE, "s" * 32)
    with Ledger(place) as ledger:
        assert "REVOKE" in ledger.notes[0]


def test_a_readable_connection(
    cluster: Cluster, place: PostgresUrl, monkeypatch: Patch
) -> None:
    """To another machine; on this one, or a socket, no TLS is needed."""
    assert [postgres.is_local(one) for one in ("", "::1", "10.0.0.7")] == [1, 1, 0]
    monkeypatch.setattr(postgres, "is_local", lambda address: False)
    fill(place, 1)
    monkeypatch.setenv("PGSSLROOTCERT", str(cluster.encrypt()))
    advice = "set PGSSLMODE=verify-full"
    said = {
        "disable": f"the connection to {place} is not encrypted; {advice}",
        "require": f"the connection to {place} uses TLS, not verified; {advice}",
    }
    monkeypatch.setenv("PGSSLMODE", "verify-ca")
    _until(place, opens=True)
    for mode in ("disable", "prefer", "require", "verify-ca", "verify-full"):
        monkeypatch.setenv("PGSSLMODE", mode)
        with Ledger(place, read_only=True) as ledger:
            assert ledger.notes == (
                (said.get(mode, said["require"]),) if mode < "v" else ()
            )


def test_a_reply_waits_for_the_disk_where_nothing_else_does(place: PostgresUrl) -> None:
    """A database whose commits are not durable by default is made to wait for ours."""
    name = urlsplit(place.url).path[1:]
    note = "INSERT INTO imported SELECT current_setting('synchronous_commit'), ''"
    for given, used in (("off", "on"), ("remote_apply", "remote_apply")):
        change(place, f"ALTER DATABASE {name} SET synchronous_commit = {given}")
        with Ledger(place) as ledger:
            ledger.store.change([("DELETE FROM imported", [()]), (note, [()])])
        assert ask(place, "SELECT key FROM imported") == used


def test_a_replay_writes_nothing(place: PostgresUrl) -> None:
    """A role that may only read is enough, and the server itself would refuse a change."""
    fill(place, 2)
    change(place, "CREATE ROLE reader LOGIN")
    change(place, "GRANT SELECT ON calls, imported, documents, qa_ledger TO reader")
    with Ledger(
        PostgresUrl(place.url.replace("qa@", "reader@")), read_only=True
    ) as ledger:
        assert ledger.get(key_of(1)) == reply_of(1)
        assert ledger.notes == ()
    with Ledger(place, read_only=True) as ledger:
        with pytest.raises(LedgerError, match="read-only transaction"):
            put(ledger, [row_of(3)])
        assert ask(place, "SELECT count(*) FROM holders") == 0


def test_without_the_driver_one_line_says_what_to_install(monkeypatch: Patch) -> None:
    """psycopg is optional."""
    monkeypatch.delitem(sys.modules, "qagate.evaluators.extras.postgres.postgres")
    monkeypatch.delattr("qagate.evaluators.extras.postgres.postgres")
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(UsageError, match=r"pip install 'psycopg\[binary\]>=3\.3'"):
        Ledger(PostgresUrl("postgresql://127.0.0.1:1/x"))


def cut(place: PostgresUrl) -> None:
    change(
        place,
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
        "WHERE datname = current_database() AND pid <> pg_backend_pid()",
    )


def test_connections_that_are_cut_are_opened_again(place: PostgresUrl) -> None:
    """A look-up, a claim and a reply that meet a dead connection go through on a new one."""

    async def scenario(ledger: Ledger) -> None:
        await ledger.put(row_of(1))
        cut(place)
        assert reply_in(await ledger.find(key_of(1))) == reply_of(1)
        async with ledger.claim(key_of(2)) as kept:
            assert kept is None
            cut(place)
            await ledger.put(row_of(2))
        cut(place)
        async with ledger.claim(key_of(2)) as kept:
            assert reply_in(kept) == reply_of(2)

    with Ledger(place) as ledger:
        asyncio.run(scenario(ledger))


@pytest.mark.parametrize(
    "kind", ["OperationalError", "ProgrammingError", "InternalError", "InterfaceError"]
)
def test_an_error_without_a_state_is_a_lost_connection(
    place: PostgresUrl, kind: str
) -> None:
    """The driver's own: behind a pooler it gets another session's answers, on an open line."""
    import psycopg  # noqa: PLC0415

    link = postgres.PostgresLink(place)
    errors = [getattr(psycopg, kind)("received 2 results from command 'BEGIN'")]
    connections: list[object] = []

    def work(connection: "psycopg.Connection[tuple[object, ...]]") -> object:
        connections.append(connection)
        if errors:
            raise errors.pop()
        return connection.execute("SELECT 1").fetchall()

    try:
        assert link.run(work, 10.0) == [(1,)]
        first, second = connections
        assert first is not second
    finally:
        link.close()


def test_a_value_that_no_text_can_hold_is_no_lost_connection(
    place: PostgresUrl,
) -> None:
    """Nothing would change with another attempt."""
    with Ledger(place) as ledger, pytest.raises(StoreError, match="NUL"):
        ledger.store.read("SELECT ?::text", ("a\0b",))


@pytest.mark.untraced
def test_what_waits_for_a_server_is_kept_in_the_end(
    cluster: Cluster, place: PostgresUrl
) -> None:
    """A reply that came while the server was down is on its disk when put returns."""

    async def scenario(ledger: Ledger) -> None:
        cluster.stop()
        waiting = asyncio.create_task(ledger.put(row_of(1)))
        await asyncio.sleep(0.3)
        assert not waiting.done()
        await asyncio.to_thread(cluster.start)
        await waiting

    with Ledger(place) as ledger:
        asyncio.run(scenario(ledger))
    assert ask(place, "SELECT count(*) FROM calls") == 1


@pytest.mark.usefixtures("impatient")
def test_without_a_server_nothing_more_is_asked(
    cluster: Cluster, place: PostgresUrl, tmp_path: Path, monkeypatch: Patch
) -> None:
    """Look-up, claim and reply say so; the next run has all that was kept before. Replies that came
    too late for the server are in private files, which the next run takes in."""
    monkeypatch.chdir(tmp_path)

    found: set[Path] = set()

    async def scenario(ledger: Ledger) -> None:
        await ledger.put(row_of(1))
        cluster.stop(signal.SIGQUIT)
        for _ in range(2):
            with pytest.raises(LedgerError, match="no more calls made"):
                async with ledger.claim(key_of(2)):
                    pytest.fail("a call would have been made")
        for number in (2, 3):
            with pytest.raises(LedgerError):
                await ledger.put(row_of(number))
            (unkept,) = set(tmp_path.glob(".qa/*")) - found
            found.add(unkept)
            assert unkept.stat().st_mode & 0o777 == 0o600
            assert "did not take are in .qa/unkept-" in ledger.unkept
        with pytest.raises(LedgerError):
            await ledger.find(key_of(1))

    try:
        with Ledger(place) as ledger:
            asyncio.run(scenario(ledger))
    finally:
        cluster.start()
    with Ledger(place, read_only=True) as ledger:
        assert ledger.get(key_of(1)) == reply_of(1)
        assert ledger.get(key_of(2)) is None
    with Ledger(place) as ledger:
        assert (
            sum("1 row taken in from .qa/unkept-" in note for note in ledger.notes) == 2
        )
        assert [*tmp_path.glob(".qa/*")] == []
        assert [ledger.get(key_of(number)) for number in (2, 3)] == [
            reply_of(2),
            reply_of(3),
        ]


def test_one_wait_for_a_server(
    cluster: Cluster, place: PostgresUrl, monkeypatch: Patch
) -> None:
    """Replies that come after the minute do not begin another one; once it is back, all is well."""
    monkeypatch.setattr(postgres, "PATIENCE_S", 0.5)
    monkeypatch.setattr(postgres, "RECONNECT_PAUSE_S", 0.1)
    monkeypatch.setattr(postgres, "RENEW_S", 99.0)
    connect = Mock(side_effect=postgres._connect)
    monkeypatch.setattr(postgres, "_connect", connect)
    with Ledger(place) as ledger:
        cluster.stop()
        counts = []
        for _ in range(2):
            connect.reset_mock()
            with pytest.raises(StoreError):
                ledger.store.change([])
            counts.append(connect.call_count)
        cluster.start()
        ledger.store.change([])
    assert counts[0] > counts[1] == 1


TROUBLE = kept(__file__, "trouble")


@pytest.mark.slow
@pytest.mark.parametrize("trouble", TROUBLE)
def test_what_passes_within_a_minute_is_waited_for(
    place: PostgresUrl, trouble: str
) -> None:
    """Look-up, claim and reply meet a server that takes nothing for a second, and go through."""
    import psycopg  # noqa: PLC0415

    fill(place, 1)
    runner, (setting, cuts) = as_runner(place), TROUBLE[trouble]

    async def scenario(ledger: Ledger) -> None:
        waiting = [asyncio.create_task(ledger.put(row_of(number))) for number in (2, 3)]
        async with ledger.claim(key_of(4)) as kept:
            assert kept is None
            await ledger.put(row_of(4))
        assert reply_in(await ledger.find(key_of(0))) == reply_of(0)
        await asyncio.gather(*waiting)

    def ends(connection: "psycopg.Connection[tuple[object, ...]]") -> None:
        time.sleep(1.5)
        change(
            place, "ALTER ROLE runner RESET ALL; ALTER ROLE runner CONNECTION LIMIT -1"
        )
        connection.rollback()

    with Ledger(runner) as ledger, psycopg.connect(place.url) as connection:
        change(place, f"ALTER ROLE runner {setting}")
        try:
            if cuts:
                cut(place)
            else:
                ledger.store.close()
                ledger.store = postgres.PostgresLedgers.open(runner, read_only=False)
                connection.execute("LOCK TABLE calls, claims IN ACCESS EXCLUSIVE MODE")
        finally:
            end = threading.Thread(target=ends, args=(connection,))
            end.start()
        asyncio.run(scenario(ledger))
        end.join()
    assert ask(place, "SELECT count(*) FROM calls") == 4


def test_behind_a_pooler_nothing_is_left_in_a_session(
    pooled: str, place: PostgresUrl
) -> None:
    """Three runs share three sessions; a replay among them leaves none that only reads."""
    pool = PostgresUrl(pooled)
    fill(pool, 1)

    async def item(ledger: Ledger, number: int) -> None:
        assert await ledger.find(key_of(number)) is None
        async with ledger.claim(key_of(number)):
            await ledger.put(row_of(number))

    async def scenario(ledgers: Sequence[Ledger]) -> None:
        for start in range(1, 61, 6):
            await asyncio.gather(
                *(item(ledgers[one % 3], one) for one in range(start, start + 6))
            )

    with Ledger(pool, read_only=True) as replay, Ledger(pool) as a, Ledger(pool) as b:
        with Ledger(pool) as c:
            asyncio.run(scenario((a, b, c)))
            assert len([*upkeep.read_rows(replay.store)]) == 61
            with pytest.raises(LedgerError, match="read-only transaction"):
                put(replay, [row_of(99)])
        assert a.store.take([key_of(1)]) == {key_of(1)}
        assert b.store.take([key_of(1)]) == set()
        put(b, [row_of(99)])
    assert ask(pool, "SELECT count(*) FROM calls") == 62
    assert ask(pool, "SELECT count(*) FROM holders") == 0
    assert command("export", "--ledger", pooled) == 0


def test_no_reply_is_lost_where_a_pooler_loses_its_server(
    pooled: str, place: PostgresUrl
) -> None:
    """All sessions behind it die, again and again; runs on either side of it go on."""
    pool = PostgresUrl(pooled)
    is_over = threading.Event()

    def kill() -> None:
        while not is_over.wait(0.2):
            cut(place)

    async def scenario(ledgers: Sequence[Ledger]) -> None:
        for start in range(0, 240, 24):
            puts = []
            for number in range(start, start + 24):
                puts.append(ledgers[number % 2].put(row_of(number)))
            await asyncio.gather(*puts)
            await asyncio.sleep(0.1)

    killer = threading.Thread(target=kill)
    with Ledger(pool) as first, Ledger(pool) as second:
        killer.start()
        try:
            asyncio.run(scenario((first, second)))
        finally:
            is_over.set()
            killer.join()
    assert ask(place, "SELECT count(*) FROM calls") == 240


def test_a_lease_that_was_lost_is_taken_anew(
    cluster: Cluster, place: PostgresUrl
) -> None:
    """After a crash of the server there are no claims, and a live run goes on with its cluster."""
    with Ledger(place) as ledger:
        assert ledger.store.take([key_of(1)]) == {key_of(1)}
        cluster.stop(signal.SIGQUIT)
        cluster.start()
        assert ledger.store.take([key_of(1), key_of(2)]) == {key_of(1), key_of(2)}
        with Ledger(place) as other:
            assert other.store.take([key_of(1)]) == set()


def test_a_lease_is_put_forward_while_the_run_lives(
    place: PostgresUrl, monkeypatch: Patch
) -> None:
    """A claim outlasts its first lease by far; a closed ledger gives all back at once."""
    monkeypatch.setattr(postgres, "LEASE_S", 0.5)
    monkeypatch.setattr(postgres, "RENEW_S", 0.1)
    with Ledger(place) as other:
        with Ledger(place) as ledger:
            assert ledger.store.take([key_of(1)]) == {key_of(1)}
            first = ask(place, "SELECT min(expires) FROM holders")
            while ask(place, "SELECT min(expires) FROM holders") == first:
                time.sleep(0.05)
            assert other.store.take([key_of(1)]) == set()
        assert other.store.take([key_of(1)]) == {key_of(1)}


def test_looking_many_up_takes_few_statements(place: PostgresUrl) -> None:
    """Two hundred items that look, claim and keep at once cost a dozen statements, not 800."""
    with Ledger(place) as ledger:

        async def item(number: int) -> None:
            assert await ledger.find(key_of(number)) is None
            async with ledger.claim(key_of(number)) as kept:
                assert kept is None
                await ledger.put(row_of(number))

        async def scenario() -> None:
            await asyncio.gather(*(item(number) for number in range(200)))

        run = postgres.PostgresLink.run
        with patch.object(
            postgres.PostgresLink, "run", autospec=True, side_effect=run
        ) as counted:
            asyncio.run(scenario())
    assert counted.call_count < 40
    assert ask(place, "SELECT count(*) FROM calls") == 200


def test_a_cancelled_wait_leaves_no_claim(place: PostgresUrl) -> None:
    """A claim that is granted to an item whose time is up is given back."""

    async def scenario(one: Ledger, other: Ledger) -> None:
        claiming = asyncio.create_task(one.claim(key_of(1)).__aenter__())
        await asyncio.sleep(0)
        claiming.cancel()
        with suppress(asyncio.CancelledError):
            await claiming
        async with other.claim(key_of(1)) as kept:
            assert kept is None

    with Ledger(place) as one, Ledger(place) as other:
        asyncio.run(asyncio.wait_for(scenario(one, other), 30))


def test_the_tables_are_made_once(place: PostgresUrl) -> None:
    """Six that open a new ledger at once all find it."""

    def opens(number: int) -> None:
        with Ledger(place) as ledger:
            put(ledger, [row_of(number)])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(opens, range(6)))
    assert ask(place, "SELECT count(*) FROM calls") == 6


def test_rows_and_documents_are_carried_both_ways(
    place: PostgresUrl, tmp_path: Path, monkeypatch: Patch, capsys: Captured
) -> None:
    """From a file into a database and back: the same lines, to the byte."""
    monkeypatch.setattr(
        upkeep, "GROUP", 100
    )  # so that the document is a group of its own
    file, back = tmp_path / "file", tmp_path / "back"
    fill(file, 700, size=3)
    odd = replace(
        row_of(700), reply=Reply(text="\ud800\x00\u2028\x85😀", seconds=0.1 + 0.2)
    )
    with Ledger(file) as ledger:
        put(ledger, [odd])
        asyncio.run(ledger.keep("batch", "k", "София\x00\ud800"))
    names = [tmp_path / "one.jsonl", tmp_path / "two.jsonl"]
    assert command("export", names[0], "--ledger", file) == 0
    assert command("import", names[0], "--ledger", text_of(place)) == 0
    assert command("export", names[1], "--ledger", text_of(place)) == 0
    assert command("import", names[1], "--ledger", back) == 0
    assert command("import", names[0], "--ledger", text_of(place)) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "0 new, 701 known, 0 refused"
    assert names[0].read_bytes() == names[1].read_bytes()
    with Ledger(back) as ledger:
        assert ledger.get(key_of(699)) == reply_of(699, 3)
        assert ledger.get(odd.key) == odd.reply
        assert is_imported(ledger, 699)
        assert ledger.documents("batch", ["k"]).get("k") == "София\x00\ud800"


def test_stats_and_prune(place: PostgresUrl, capsys: Captured) -> None:
    """Counted by model; rows are taken out once no run uses the ledger."""
    assert command("stats", "--ledger", text_of(place)) == 4
    assert "no ledger there" in capsys.readouterr().err
    fill(place, 3)
    fill(place, 5, spec="openai:other")
    assert command("stats", "--ledger", text_of(place)) == 0
    said = capsys.readouterr().out
    assert said.startswith(f"{place}: 5 replies, ")
    assert "openai:other" in said
    words = ("prune", "--model", SPEC, "--yes", "--ledger", text_of(place))
    with Ledger(place):
        assert command(*words) == 4
        assert "a run is using this ledger" in capsys.readouterr().err
    assert command(*words) == 0
    assert "3 rows with" in capsys.readouterr().out
    assert ask(place, "SELECT count(*) FROM calls") == 2
