"""Our judges as deepeval's metrics, in a project that is somebody else's."""

import json

import pytest

from tests.conftest import ROOT
from tests.support.loopback import Answer, Seen, loopback, plausible

HOST = """
import json
from pathlib import Path

import pytest
from deepeval import assert_test, evaluate
from deepeval.evaluate import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig
from deepeval.test_case import LLMTestCase

from evaluators.runtime.caller import CallSettings
from evaluators.judges.judge_session import JudgeSession
from evaluators.judges.metric import JudgeMetric

SHARED = JudgeSession({judge!r}, CallSettings(ledger=Path("kept.sqlite3")))


def case(answer, number=0, gold="Sofia"):
    question = f"What is the capital of Bulgaria, asked for the time {{number}}?"
    return LLMTestCase(input=question, actual_output=answer, expected_output=gold)


def test_right():
    both = [JudgeMetric(SHARED), JudgeMetric(SHARED, rubric="eba")]
    assert_test(case("The city below Vitosha"), both)
    assert_test(case("Sofia"), [JudgeMetric(), JudgeMetric(rubric="eba")], run_async=False)


@pytest.mark.parametrize(
    ("answer", "metric"),
    [
        ("Elsewhere [[grade=INCORRECT]]", JudgeMetric(SHARED)),
        ("Elsewhere [[conclusion=0]]", JudgeMetric(SHARED, rubric="eba")),
        ("Plovdiv", JudgeMetric()),
    ],
)
def test_wrong(answer, metric):
    with pytest.raises(AssertionError, match="failed"):
        assert_test(case(answer, gold="Sofia"), [metric])


def test_many_at_once():
    cases = [case(f"Elsewhere [[conclusion=1]] {{n}}", n) for n in range(12)]
    cases.append(case("Elsewhere [[broken=yes]]", 99))
    found = evaluate(
        cases,
        [JudgeMetric(SHARED), JudgeMetric(SHARED, rubric="eba", threshold=0)],
        async_config=AsyncConfig(run_async=True, max_concurrent=8),
        display_config=DisplayConfig(show_indicator=False, print_results=False),
        cache_config=CacheConfig(write_cache=False),
        error_config=ErrorConfig(ignore_errors=True),
    )
    rows = [[one.name, one.score, one.error] for r in found.test_results for one in r.metrics_data]
    Path("rows.json").write_text(json.dumps(rows))
"""
INI = f"""
[pytest]
pythonpath = {ROOT}
addopts = -p no:deepeval -p no:asyncio -p no:repeat -p no:rerunfailures -p no:anyio
    -p no:cacheprovider
"""


def unreadable_where_broken(seen: Seen) -> Answer:
    """Return a plausible reply, but one without any verdict where the answer asks for it."""
    if "[[broken=yes]]" in seen.prompt:
        return plausible(lambda asked, name, schema: "?")(seen)
    return plausible()(seen)


@pytest.mark.slow
def test_assert_test_and_evaluate_take_our_metrics(pytester: pytest.Pytester) -> None:
    """One run of a host's tests: scores as promised, every call made once, an error is no score.

    Row F27 of the fault matrix.
    """
    with loopback(handler=unreadable_where_broken) as server:
        pytester.makefile(".ini", pytest=INI)
        pytester.makepyfile(test_host=HOST.format(judge=f"openai:j@{server.url}/v1"))
        done = pytester.runpytest_subprocess()
        done.assert_outcomes(passed=5)
        assert server.count == 2 + 2 + 12 * 2 + 3 * 2
        assert server.peak <= 16
        rows = json.loads((pytester.path / "rows.json").read_text())
    good = [(name, score) for name, score, error in rows if error is None]
    assert sorted(set(good)) == [("Judge", pytest.approx(1 / 3)), ("Judge", 1.0)]
    assert len(good) == 24
    bad = [(name, score, "3 replies without a verdict" in error) for name, score, error in rows
           if error is not None]  # fmt: skip
    assert sorted(bad) == [("Judge", None, True), ("Judge", None, True)]
