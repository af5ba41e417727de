"""Our judges as metrics: scores, errors, and calls from any thread, loop or process."""

import asyncio
import gc
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from pathlib import Path

import pytest
from deepeval.errors import MissingTestCaseParamsError
from deepeval.test_case import LLMTestCase

from evaluators.core import CallError, JudgeError, StoppedError, UsageError
from evaluators.judges.metric import JudgeMetric, JudgeSession
from evaluators.runtime.caller import CallSettings
from tests.support.loopback import Answer, Loopback, loopback, plausible
from tests.support.own_rules import POLITE


def case(answer: str = "The city below Vitosha", gold: str | None = "Sofia") -> LLMTestCase:
    return LLMTestCase(
        input="What is the capital of Bulgaria?", actual_output=answer, expected_output=gold
    )


def test_rules_of_ones_own_are_a_metric_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``python:MODULE:CLASS`` names them, for grades and for ratings."""
    (tmp_path / "metric_rules.py").write_text(POLITE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    spec = "python:metric_rules:Polite"
    assert JudgeMetric(judge=spec).measure(case("Sofia, please")) == 1
    assert JudgeMetric(judge=spec).measure(case("Sofia")) == 0
    assert JudgeMetric(judge=spec, rubric="eba").measure(case("Sofia, please")) == 1


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback() as running:
        yield running


@pytest.fixture
def judge(server: Loopback, tmp_path: Path) -> Iterator[JudgeSession]:
    made = JudgeSession(f"openai:j@{server.url}/v1", CallSettings(ledger=tmp_path / "ledger"))
    yield made
    made.close()


def test_scores_of_rules() -> None:
    """Offline: no ledger, no key; 0 for what is wrong or not attempted, and the reason is told."""
    metric = JudgeMetric()
    assert (metric.__name__, metric.evaluation_model) == ("Judge", "lexical")
    assert metric.measure(case("Sofia")) == 1.0
    assert metric.is_successful()
    assert metric.measure(case("I do not know")) == 0.0
    assert not metric.is_successful()
    assert metric.reason
    rating = JudgeMetric(rubric="eba", threshold=0)
    assert rating.measure(case("Sofia")) == 1.0
    assert rating.measure(case("Plovdiv")) == 0.0
    assert rating.is_successful()


def test_what_a_judge_needs_must_be_there() -> None:
    """A missing gold is deepeval's own error, so that its runners may skip the metric."""
    with pytest.raises(MissingTestCaseParamsError, match="'expected_output' cannot be None"):
        JudgeMetric().measure(case(gold=None))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: JudgeMetric("opnai:x"), "did you mean 'openai'"),
        (lambda: JudgeMetric(rubric="none"), "not known"),
        (lambda: JudgeSession("openai:x"), "OPENAI_API_KEY"),
        (
            lambda: JudgeSession("openai:x@http://127.0.0.1:9/v1", CallSettings(max_cost=1.0)),
            "no price is known",
        ),
    ],
)
def test_a_wrong_choice_is_refused_at_once(
    make: Callable[[], object], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before any test case is measured."""
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(UsageError, match=message):
        make()


def test_a_call_is_made_once_and_kept(
    judge: JudgeSession, server: Loopback, tmp_path: Path
) -> None:
    """The same case costs nothing again, not even on another judge or without a network."""
    metric = JudgeMetric(judge)
    assert metric.measure(case()) == 1.0
    assert metric.input_tokens
    assert metric.evaluation_cost is None
    assert metric.measure(case()) == 1.0
    judge.close()
    rated = JudgeMetric(judge, rubric="eba")
    assert rated.measure(case("Elsewhere [[conclusion=1]]")) == pytest.approx(1 / 3)
    replaying = JudgeSession(judge.name, CallSettings(ledger=tmp_path / "ledger", replay=True))
    assert JudgeMetric(replaying).measure(case()) == 1.0
    with pytest.raises(CallError, match="not in the ledger"):
        JudgeMetric(replaying).measure(case("Elsewhere"))
    replaying.close()
    assert server.count == 2


def test_a_judge_that_fails_gives_no_score(judge: JudgeSession, server: Loopback) -> None:
    """Neither does the score of the case before stay; the next case is measured as ever."""
    metric = JudgeMetric(judge)
    assert metric.measure(case()) == 1.0
    broken = plausible(lambda seen, name, schema: "?")
    with loopback(Answer(status=400, body={"error": {"message": "no"}}), handler=broken) as bad:
        other = JudgeMetric(JudgeSession(f"openai:j@{bad.url}/v1", judge.settings))
        with pytest.raises(CallError):
            other.measure(case("Elsewhere"))
        assert (other.score, other.success, other.is_successful()) == (None, None, False)
        assert other.error
        with pytest.raises(JudgeError, match="3 replies without a verdict"):
            asyncio.run(other.a_measure(case("Elsewhere")))
        assert other.score is None
        other.judge.close()
    assert metric.measure(case("Again")) == 1.0
    assert metric.error is None


def test_the_budget_holds(
    server: Loopback, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What could take the metrics over their limit is not asked."""
    entry = f"{{provider: openai, model: j, base_url: '{server.url}/v1', prices: {{input: 1, "
    path = tmp_path / "models.yaml"
    path.write_text(f"paid: {entry}output: 100}}}}\n", encoding="utf-8")
    monkeypatch.setattr("evaluators.models.catalogue.load_catalogue.__defaults__", (path,))
    judge = JudgeSession("paid", CallSettings(ledger=tmp_path / "ledger", max_cost=0.0001))
    with pytest.raises(StoppedError, match="max-cost"):
        JudgeMetric(judge).measure(case())
    judge.close()
    assert server.count == 0


async def both(metric: JudgeMetric, number: int) -> tuple[float, float]:
    """Measure in a loop that is running, once without and once with blocking it."""
    first = await metric.a_measure(case(f"Elsewhere {number}"))
    return first, metric.measure(case(f"Elsewhere {number}"))


def test_any_loop_or_thread_may_ask(judge: JudgeSession, server: Loopback) -> None:
    """No loop, a running one, another after it, eight threads at once."""
    metric = JudgeMetric(judge)
    assert metric.measure(case("Elsewhere")) == 1.0
    for number in range(3):
        assert asyncio.run(both(JudgeMetric(judge), number)) == (1.0, 1.0)
    with ThreadPoolExecutor(8) as pool:
        found = pool.map(lambda n: JudgeMetric(judge).measure(case(f"There {n}")), range(32))
        assert list(found) == [1.0] * 32
    assert metric.measure(case("Elsewhere still")) == 1.0
    assert server.count == 1 + 3 + 32 + 1


def test_a_cancelled_measure_keeps_what_was_paid(tmp_path: Path) -> None:
    """A runner that gives up on a case does not lose the reply that is on its way."""
    slow = plausible()
    with loopback(handler=lambda seen: Answer(body=slow(seen).body, delay=0.3)) as server:
        judge = JudgeSession(f"openai:j@{server.url}/v1", CallSettings(ledger=tmp_path / "ledger"))
        metric = JudgeMetric(judge)

        async def give_up() -> None:
            async with asyncio.timeout(0.1):
                await metric.a_measure(case())

        with pytest.raises(TimeoutError):
            asyncio.run(give_up())
        assert metric.score is None
        assert metric.measure(case()) == 1.0
        assert server.count == 1
        judge.close()


def test_closing_gives_up_what_is_in_flight(tmp_path: Path) -> None:
    """It waits for no slow server; a judge that was never asked closes as well."""
    with loopback(Answer(action="hang")) as server:
        judge = JudgeSession(f"openai:j@{server.url}/v1", CallSettings(ledger=tmp_path / "ledger"))
        judge.close()
        made = ThreadPoolExecutor(1).submit(JudgeMetric(judge).measure, case())
        while not server.count:
            time.sleep(0.01)
        judge.close()
        with pytest.raises(CancelledError):
            made.result(30)


def test_a_judge_that_nobody_holds_ends_its_thread(server: Loopback, tmp_path: Path) -> None:
    """Metrics made anew for every test leave no threads and no open files behind."""
    before = threading.active_count()
    for number in range(3):
        judge = JudgeSession(f"openai:j@{server.url}/v1", CallSettings(ledger=tmp_path / "ledger"))
        assert JudgeMetric(judge).measure(case(f"Elsewhere {number}")) == 1.0
        del judge
        gc.collect()
    assert threading.active_count() == before
