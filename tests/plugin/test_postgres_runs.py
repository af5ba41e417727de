"""Whole runs on a ledger in PostgreSQL: resumed, replayed, cut off from it, and at once."""

import random
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from evaluators.core import PostgresUrl
from evaluators.ledger import postgres
from tests.conftest import Project
from tests.support.killing import chain
from tests.support.loopback import Answer, Loopback, Seen, loopback, plausible
from tests.support.places import ask, text_of
from tests.support.postgres import Cluster

ITEMS = 12
good = plausible(lambda asked, name, schema: "so")


@pytest.fixture
def capital(project: Project) -> Project:
    return project.asked(ITEMS)


def options(server: Loopback, place: PostgresUrl) -> tuple[str, ...]:
    return "--model", f"openai:m@{server.url}/v1", "--ledger", text_of(place), "qa"


@pytest.mark.parametrize("way", ["database", "pooled"])
def test_a_run_goes_on(capital: Project, request: pytest.FixtureRequest, way: str) -> None:
    """Nothing is asked twice, a dry run knows what is kept, no file names the user; also pooled."""
    server = PostgresUrl(request.getfixturevalue(way))
    with loopback(handler=good) as model:
        first = capital.run_in_process(*options(model, server))
        for more in ((), ("--replay",)):
            again = capital.run_in_process(*options(model, server), *more)
            assert again.ret == first.ret
        dry = capital.run_in_process(*options(model, server), "--dry-run")
        assert model.count == ITEMS
    dry.stdout.fnmatch_lines([f"*{ITEMS} of them recorded (free)*"])
    assert ask(server, "SELECT count(*) FROM calls") == ITEMS
    assert ask(server, "SELECT count(*) FROM holders") == 0
    user = urlsplit(server.url).netloc
    for file in capital.out.rglob("*"):
        assert not file.is_file() or user.encode() not in file.read_bytes()


def test_an_absent_database_ends_the_run_with_4(capital: Project, server: PostgresUrl) -> None:
    """One line, before a call is made."""
    with loopback(handler=good) as model:
        wrong = PostgresUrl(f"{server.url}_absent")
        assert "cannot be opened as a ledger" in capital.refused(*options(model, wrong))
        assert model.count == 0


def test_a_lost_server(capital: Project, cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is unasked is MISSING, nothing that was kept is lost, and the same command goes on."""
    seconds = {"PATIENCE_S": 0, "LEASE_S": 1, "RENEW_S": 0.2}
    for name, value in seconds.items():
        monkeypatch.setattr(postgres, name, value)
    cluster.start()
    place = PostgresUrl(cluster.new_database())
    seen: list[Seen] = []

    def handler(one: Seen) -> Answer:
        seen.append(one)
        if len(seen) == 6:
            cluster.stop()
        return good(one)

    with loopback(handler=handler) as model:
        words = (*options(model, place), "--concurrency", "2")
        cut = capital.run_in_process(*words)
        asked = len(seen)
        states = capital.outcomes()
        cluster.start()
        resumed = capital.run_in_process(*words)
    assert asked < ITEMS
    assert states["missing"] >= ITEMS - asked
    assert capital.report()["complete"] is True
    assert cut.ret != 0
    assert "the ledger cannot be used" in cut.stdout.str()
    assert resumed.ret in (0, 1)
    assert "replies that the ledger did not take are in .qa/unkept-" in cut.outlines[-1]
    assert len(seen) == ITEMS


@pytest.mark.slow
def test_machines_at_once_pay_once(server: PostgresUrl, tmp_path: Path) -> None:
    """Three runs go on where one was killed; only its four items under way are asked again."""
    with chain(tmp_path / "one", ITEMS, 0.1, "--concurrency", "2") as one:
        one.ledger = text_of(server)
        one.run_killed("group", 0.3, random.Random(1))
        assert 0 < one.kept[0] < 2 * ITEMS
        own, processes = one.options, []
        for number, words in enumerate(((), ("-n", "2"), ())):
            one.options = (*own, *words, "--report-dir", str(tmp_path / str(number)))
            processes.append(one.start())
        codes = [process.wait(120) for process in processes]
        assert one.count() == 2 * ITEMS
    assert codes == [0, 0, 0]
    assert one.trace.repeats <= 4
    records = [(tmp_path / str(number) / "records.jsonl").read_bytes() for number in range(3)]
    assert records[0].count(b'"passed"') >= ITEMS - 2
    assert records[0] == records[1] == records[2]
