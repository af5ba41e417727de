"""A run's limits parted among shards: never more than the run has, and nothing kept back."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.tasks import traits_of
from reports.plugin.options import Options, read_options
from reports.plugin.shard_limits import Shares
from reports.plugin.shard_work import Part

TRAITS = traits_of([])


class Nothing:
    """A command line without options."""

    def getoption(self, name: str) -> object:
        return None


def options(**changes: object) -> Options:
    """Return the options of a run with these limits."""
    return replace(read_options(Nothing(), Path()), **changes)  # type: ignore[arg-type]


def parts(counts: list[int]) -> list[Part]:
    """Return shards of so many items."""
    return [Part(Path(f"{place}.items"), count) for place, count in enumerate(counts)]


@given(
    counts=st.lists(st.integers(1, 50), min_size=1, max_size=12),
    slots=st.integers(1, 4),
    used=st.lists(st.floats(0, 1), min_size=12, max_size=12),
)
def test_shards_never_get_more_money_than_there_is(
    counts: list[int], slots: int, used: list[float]
) -> None:
    """Granted and spent together keep within --max-cost; the last shard gets all that is left."""
    shares = Shares(options=options(max_cost=10.0), slots=slots, left=sum(counts))
    running: list[tuple[Part, float]] = []
    spent = 0.0
    for part, share in zip(parts(counts), used, strict=False):
        if len(running) == slots:
            ended, cost = running.pop(0)
            shares.settle(ended, cost)
            spent += cost
        money = shares.job(part, TRAITS, {}).max_cost
        assert money is not None
        running.append((part, money * share))
        assert spent + sum(shares.granted.values()) <= 10.0 + 1e-9
    assert spent + sum(shares.granted.values()) == pytest.approx(10.0) or len(counts) > slots


def test_calls_in_flight_and_requests_are_parted() -> None:
    """No shard has less than one; what is not limited stays so."""
    shares = Shares(options=options(concurrency=16, rpm=100), slots=3, left=9)
    job = shares.job(Part(Path("0"), 3), TRAITS, {})
    assert (job.concurrency, job.rpm, job.max_cost, job.until) == (5, 33, None, None)
    assert Shares(options=options(concurrency=1), slots=3, left=9).job(
        Part(Path("0"), 3), TRAITS, {}
    ).concurrency == 1  # fmt: skip


def test_the_deadline_is_that_of_the_run() -> None:
    """A shard that begins late has only what is left of it."""
    shares = Shares(options=options(deadline=60.0), slots=1, left=2, began=1_000.0)
    job = shares.job(Part(Path("0"), 1), TRAITS, {})
    assert job.until == 1_060.0
    assert job.settings.deadline == 0.0
