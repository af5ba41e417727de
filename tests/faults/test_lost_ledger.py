"""A ledger that breaks while a run is under way: what was received before it stays."""

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

import pytest

from tests.conftest import Project
from tests.support.loopback import Answer, Seen, loopback, plausible

ITEMS = 40
SERVED = 30  # requests before the table is gone


def drop_tables(path: Path) -> None:
    """Do what a careless person does with another program."""
    with closing(sqlite3.connect(path, timeout=30, isolation_level=None)) as connection:
        found = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
        for (name,) in found.fetchall():
            if not name.startswith("sqlite_"):
                connection.execute(f"DROP TABLE {name}")


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_a_table_that_is_dropped_ends_the_run(project: Project, workers: int) -> None:
    """Outcomes received before stay, nothing more is asked, and the report says why (R4)."""
    project.asked(ITEMS, "correct: {min: 1.0}")
    ledger = project.path / "ledger.sqlite3"
    seen: list[Seen] = []

    def handler(one: Seen) -> Answer:
        seen.append(one)
        if len(seen) == SERVED:
            drop_tables(ledger)
        return plausible(lambda asked, name, schema: "Varna")(one)

    with loopback(handler=handler) as server:
        options = ("--model", f"openai:m@{server.url}/v1", "--ledger", str(ledger))
        result = project.run_with(workers, *options, "--concurrency", "2", "qa")
    states = Counter(str(record["outcome"]) for record in project.records())
    assert len(seen) <= SERVED + 4
    assert states["failed"] >= SERVED - 10
    assert states["failed"] + states["missing"] == ITEMS
    assert result.ret == 1
    assert project.report()["complete"] is False
    assert "no such table" in result.stdout.str()
