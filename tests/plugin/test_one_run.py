"""What one run is to a ledger: its shards and attempts, and what it takes from a baseline."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from qagate.evaluators.ledger import Ledger
from tests.support.fixtures import Patch
from tests.support.loopback import Loopback, loopback, plausible
from tests.support.places import ask
from tests.support.projects import Project, specs

ITEMS = 6


@pytest.fixture
def server() -> Iterator[Loopback]:
    handler = plausible(
        lambda asked, name, schema: "CORRECT" if name == "grade" else "so"
    )
    with loopback(handler=handler) as running:
        yield running


@pytest.fixture
def capital(project: Project, monkeypatch: Patch) -> Project:
    for variable in ("QA_RUN", "GITHUB_RUN_ID", "CI_PIPELINE_ID"):
        monkeypatch.delenv(variable, raising=False)
    return project.asked(ITEMS)


def runs_in(project: Project) -> set[str]:
    """Return the runs that asked for the answers of the last report."""
    return {record["asked_by"] for record in project.records()}


LEDGER = Path(".qa", "ledger.sqlite3")


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_all_replies_of_a_run_say_its_id(
    capital: Project, server: Loopback, workers: int
) -> None:
    capital.run_with(workers, *specs(server.url), "qa")
    (run,) = runs_in(capital)
    ledger = capital.path / LEDGER
    assert ask(ledger, "SELECT count(*) FROM calls") == 2 * ITEMS
    assert ask(ledger, f"SELECT count(*) FROM calls WHERE run = '{run}'") == 2 * ITEMS


def test_shards_of_one_ledger_are_one_run(capital: Project, server: Loopback) -> None:
    """Whatever else differs between their commands."""
    runs = set()
    for shard in ("1/2", "2/2"):
        capital.run_in_process(
            *specs(server.url), f"--shard={shard}", "--concurrency=4", "qa"
        )
        runs |= runs_in(capital)
    assert len(runs) == 1


def test_a_run_that_did_not_decide_goes_on(capital: Project, server: Loopback) -> None:
    """Its command may say other limits: what was left is asked under the same id."""
    words = (*specs(server.url), "qa")
    assert capital.run_in_process("--deadline=0.001", *words).ret == 6
    with Ledger(capital.path / LEDGER, read_only=True) as ledger:
        (text,) = ledger.documents("run").values()
    assert capital.run_in_process("--deadline=100", "-q", *words).ret == 0
    assert runs_in(capital) == {json.loads(text)["id"]}


def test_a_run_that_decided_is_over(capital: Project, server: Loopback) -> None:
    """The same command asks what is new under another id."""
    assert capital.run_in_process(*specs(server.url), "qa").ret == 0
    before = runs_in(capital)
    capital.asked(ITEMS + 2)
    capital.run_in_process(*specs(server.url), "qa")
    assert len(runs_in(capital) - before) == 1


MANY_ITEMS = 40
CANARIES = 30
"""Of grades that pass so many are asked anew, whatever is kept."""


def test_grades_of_the_baseline_are_paid_once_in_any_ledger(
    capital: Project, server: Loopback
) -> None:
    """A new model that says the same is asked itself, and its judge the canaries alone."""
    capital.asked(MANY_ITEMS)
    capital.run_in_process(*specs(server.url), "--report-dir=v1", "qa")
    before = server.count
    words = (*specs(server.url, "m2"), "--ledger=other", "--baseline=v1", "qa")
    capital.run_in_process(*words)
    assert server.count == before + MANY_ITEMS + CANARIES
    rows = ask(capital.path / "other", "SELECT count(*) FROM calls")
    assert rows == MANY_ITEMS + CANARIES
