"""Machines that share a ledger: process groups against one server, some of them killed."""

import random
from dataclasses import replace

import pytest

from tests.support.machines import Fleet, Work, count, serving
from tests.support.postgres import Cluster

pytestmark = pytest.mark.slow

RPM = 3000
DELAY = 0.2


def test_machines_ask_nothing_twice(cluster: Cluster) -> None:
    """Three machines with the same 150 items: 300 calls, each sent once."""
    place = cluster.new_database()
    with serving(DELAY) as (server, traffic):
        work = Work(ledger=place, url=server.url, items=150, rpm=RPM)
        done = Fleet([replace(work, name=name) for name in range(3)]).results()
    assert [one.wrong for one in done] == [0, 0, 0]
    assert traffic.repeats == 0
    assert len(traffic.times) == sum(one.requests for one in done) == count(place) == 300


def test_killed_machines_lose_nothing_and_pay_nothing_twice(cluster: Cluster) -> None:
    """After three kills all is there; what came again was in flight at the kill of its machine."""
    place = cluster.new_database()
    with serving(DELAY, settled=1.0) as (server, traffic):
        work = Work(ledger=place, url=server.url, items=150, rpm=RPM, lease=5)
        fleet = Fleet([replace(work, name=name) for name in range(3)])
        chance = random.Random(1)
        while len(traffic.kills) < 3 and fleet.kill(traffic, chance):
            pass
        done = fleet.results()
    assert [one.wrong for one in done] == [0, 0, 0]
    assert traffic.kills
    assert traffic.paid_twice == 0
    assert count(place) == 300
