"""The quota's row in PostgreSQL: changed by one run at a time, and never without an answer."""

import asyncio
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from evaluators.core import Limits, UsageError
from evaluators.ledger import Ledger, quota_store
from evaluators.ledger.database import StoreError
from evaluators.ledger.quota_store import QuotaStore
from evaluators.ledger_place import PostgresUrl
from evaluators.runtime.quota import open_quota
from evaluators.runtime.sender import CallSettings
from tests.support.postgres import Cluster
from tests.support.quotas import most_within
from tests.support.simulated import Ended, Server, call_all


@pytest.fixture
def place(own: Cluster) -> PostgresUrl:
    """Return the address of a new ledger."""
    own.start()
    url = PostgresUrl(own.new_database())
    Ledger(url).close()
    return url


def more(state: Mapping[str, Any], now: float) -> tuple[Mapping[str, Any], float]:
    return {"count": state.get("count", 0) + 1}, now


def test_no_change_is_lost(place: PostgresUrl) -> None:
    """Eight runs change the state at the same moment, each on a connection of its own."""
    stores = [QuotaStore(place, "q") for _ in range(8)]
    with ThreadPoolExecutor(8) as threads:
        times = list(
            threads.map(lambda one: [one.change(more, last=False) for _ in range(25)], stores)
        )
    state = stores[0].change(lambda state, now: (state, state), last=True)
    other = QuotaStore(place, "other").change(lambda state, now: (state, state), last=True)
    for one in stores:
        one.close()
    assert state == {"count": 200}
    assert other == {}
    assert all(time.time() - 600 < at < time.time() + 600 for one in times for at in one)


def test_a_server_that_is_lost_is_an_error(
    own: Cluster, place: PostgresUrl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once it is back the state is as it was."""
    monkeypatch.setattr(quota_store, "PATIENCE", 0.0)
    store = QuotaStore(place, "q")
    store.change(more, last=True)
    own.stop()
    with pytest.raises(StoreError):
        store.change(more, last=False)
    own.start()
    assert store.change(lambda state, now: (state, state), last=False) == {"count": 1}
    store.close()


def test_a_ledger_in_a_file_holds_no_quota() -> None:
    """Machines do not share it."""
    with pytest.raises(UsageError, match=r"^--quota q: .* --ledger postgresql"):
        open_quota(Path("ledger.sqlite3"), "q", None)


def test_runs_share_a_rate_by_a_database(place: PostgresUrl) -> None:
    """Two runs, each with the database's clock alone in common, keep to 100 calls a second."""
    server = Server(latency=0.01, limits=Limits(host="host"))
    settings = CallSettings(concurrency=16, rpm=6000)

    async def scenario() -> list[Ended]:
        quotas = [open_quota(place, "q", None) for _ in range(2)]
        return await asyncio.gather(
            *(call_all(server, 60, settings, None, quota) for quota in quotas)
        )

    ended = asyncio.run(scenario())
    assert [one.replies for one in ended] == [60, 60]
    assert most_within(1.0, server.at) <= 105
    state = QuotaStore(place, "q").change(lambda state, now: (state, state), last=True)
    assert state["runs"] == {}
