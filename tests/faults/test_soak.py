"""Random faults of all kinds cost time and items, never a grade and never the verdict."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from tests.benchmarks.soak import Seed, Soak
from tests.support.soaking import FAULTS, Ended, Failing

KEYS = ("a", "b")
CALM = Ended(
    verdict="PASS",
    counts={"plan": 2, "passed": 2, "error": 0, "missing": 0, "stopped": 0},
    outcomes=dict.fromkeys(KEYS, ("passed", "CORRECT", "Sofia")),
    seconds=1.0,
    peaks={"engine": 80.0},
)
GOOD = Seed(
    seed=1, requests=4, injected=Counter(), faulty=CALM, resumed=CALM, calm=CALM, repeated=0
)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_a_run_among_faults_ends_as_one_without(tmp_path: Path, seed: int) -> None:
    """F29: one state an item, no wrong grade or verdict; a second run asks for what lacks alone."""
    one = Soak(tmp_path, items=100, workers=2).run(seed)
    assert one.problems == []
    assert one.injected.total() >= 5


@pytest.mark.parametrize(
    ("bad", "problem"),
    [
        (replace(GOOD, faulty=replace(CALM, verdict="FAIL")), "a wrong verdict"),
        (replace(GOOD, resumed=replace(CALM, verdict="FAIL")), "another verdict after"),
        (replace(GOOD, resumed=replace(CALM, verdict="INCONCLUSIVE")), "another verdict after"),
        (replace(GOOD, faulty=replace(CALM, counts={"plan": 2, "passed": 1})), "an item in no"),
        (replace(GOOD, faulty=replace(CALM, counts={"plan": 3, "passed": 2})), "an item in no"),
        (replace(GOOD, repeated=1), "a kept reply asked again"),
        (replace(GOOD, faulty=replace(CALM, peaks={"engine": 131.0})), "memory"),
        (
            replace(
                GOOD,
                faulty=replace(
                    CALM, outcomes={**CALM.outcomes, "b": ("passed", "INCORRECT", "Sofia")}
                ),
            ),
            "a wrong grade",
        ),
    ],
)
def test_the_soak_sees_what_goes_wrong(bad: Seed, problem: str) -> None:
    """Each of its checks fails where it should, and alone."""
    (found,) = bad.problems
    assert found.startswith(problem)
    assert GOOD.problems == []
    assert not replace(GOOD, faulty=replace(CALM, verdict="INCONCLUSIVE")).problems


def test_faults_follow_from_the_seed_alone() -> None:
    """The same prompt meets the same faults whenever it comes; each kind happens."""
    prompts = [f"time number {number}?" for number in range(6000)]
    first, second = (Failing(delay=0.0, seed=7) for _ in range(2))
    found = {prompt: first._fault(prompt) for prompt in prompts}
    assert found == {prompt: second._fault(prompt) for prompt in reversed(prompts)}
    met = Counter(name for name in found.values() if name)
    assert 0.08 <= met.total() / len(prompts) <= 0.13
    assert set(met) >= set(FAULTS) - {"429", "503"}
