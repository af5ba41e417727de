"""Machines that share a ledger and a quota: process groups against one server, some of them killed.

``python -m tests.benchmarks.shared`` does the same at length, with figures.
"""

import random
from dataclasses import replace

import pytest

from tests.support.machines import Fleet, Work, count, serving
from tests.support.postgres import Cluster

pytestmark = pytest.mark.slow

RATE = 50
DELAY = 0.2


def test_machines_ask_nothing_twice_and_keep_to_one_limit(cluster: Cluster) -> None:
    """Three machines with the same 150 items: 300 calls, each once, none above 50 a second."""
    place = cluster.new_database()
    with serving(DELAY) as (server, traffic):
        work = Work(ledger=place, url=server.url, items=150, rpm=RATE * 60)
        done = Fleet([replace(work, name=name) for name in range(3)]).results()
    assert [one.wrong for one in done] == [0, 0, 0]
    assert traffic.repeats == 0
    assert len(traffic.times) == sum(one.requests for one in done) == count(place) == 300
    assert traffic.times[-1] - traffic.times[0] >= (300 - 5 - 0.05 * RATE) / RATE / 1.05


def test_killed_machines_lose_nothing_and_pay_nothing_twice(cluster: Cluster) -> None:
    """After three kills all is there; what came again was in flight at the kill of its machine."""
    place = cluster.new_database()
    with serving(DELAY, settled=1.0) as (server, traffic):
        work = Work(ledger=place, url=server.url, items=150, rpm=2 * RATE * 60, lease=5)
        fleet = Fleet([replace(work, name=name) for name in range(3)])
        chance = random.Random(1)
        while len(traffic.kills) < 3 and fleet.kill(traffic, chance):
            pass
        done = fleet.results()
    assert [one.wrong for one in done] == [0, 0, 0]
    assert traffic.kills
    assert traffic.paid_twice == 0
    assert count(place) == 300
