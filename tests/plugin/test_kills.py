"""Whatever is killed: what was paid for is kept, and the next run comes to the same verdicts."""

import random
import sys
from pathlib import Path

import pytest

from tests.support.killing import Victim, chain

ITEMS, DELAY, CONCURRENCY = 60, 0.1, "6"

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are found in /proc")


def test_runs_killed_one_after_the_other_lose_nothing(tmp_path: Path) -> None:
    """Kill -9 of group, controller, engine, worker: no kept call is repeated, none is lost."""
    chance = random.Random(4)
    plan: list[tuple[Victim, float]] = [
        ("group", 0.4), ("controller", 0.2), ("worker", 0.3), ("engine", 0.2), ("group", 0.5)
    ]  # fmt: skip
    with chain(
        tmp_path / "disturbed", ITEMS, DELAY, "-n", "2", "--concurrency", CONCURRENCY
    ) as one:
        for victim, seconds in plan:
            one.run_killed(victim, seconds, chance)
        disturbed = one.finish()
    with chain(tmp_path / "quiet", ITEMS, 0.0, "-n", "2", "--concurrency", CONCURRENCY) as quiet:
        assert disturbed == quiet.finish()
    assert quiet.trace.repeats == 0
    unkept = [one.trace.asked(kill.over) - kill.kept for kill in one.fatal]
    assert max(unkept) <= 2 * int(CONCURRENCY), "an item has one call under way at most"
    assert one.trace.repeats <= sum(unkept)
    assert one.kept == sorted(one.kept), "progress never goes back"
    assert one.kept[-1] == 2 * ITEMS
