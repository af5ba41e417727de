"""Whole runs against a server that hangs, lies or refuses, in both wire formats."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from evaluators.core import Outcome
from evaluators.models import connect
from evaluators.runtime.caller import CallSettings, RetryPolicy
from evaluators.text import Key
from tests.support.engine_bench import Bench, prompted
from tests.support.loopback import Answer, Handler, Loopback, Seen, loopback, reply
from tests.support.model_calls import SECRET, both, error_body, spec_of, two

ONCE = RetryPolicy(attempts=1, first=0, longest=0)
OFTEN = RetryPolicy(attempts=5, first=0, longest=0)

FAULTS: Mapping[str, Answer] = {
    "hang": Answer(action="hang"),
    "headers only": Answer(action="headers", body="{}"),
    "headers of an error": Answer(action="headers", body="{}", status=503),
    "drip": Answer(action="drip", body=" " * 10_000, delay=0.05),
    "drip of an error": Answer(action="drip", body=" " * 10_000, delay=0.05, status=429),
    "endless": Answer(action="endless"),
    "endless error": Answer(action="endless", status=500),
    "late": Answer(delay=30.0),
    "reset": Answer(action="reset"),
    "short": Answer(action="raw", body="HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\n{}"),
    "not http": Answer(action="raw", body="hello\r\n\r\n"),
}


class Run:
    """How the items of one run against a server ended."""

    def __init__(self, bench: Bench, outcomes: Mapping[str, Outcome], server: Loopback) -> None:
        self.bench = bench
        self.outcomes = outcomes
        self.server = server
        self.states = Counter(one.state for one in outcomes.values())
        self.kinds = Counter(one.kind for one in outcomes.values() if one.state == "error")


def run(folder: Path, provider: str, handler: Handler, count: int, **changes: float) -> Run:
    """Ask a server about items; with a deadline for its calls each of them is tried once."""
    patience = ONCE if changes else OFTEN
    with loopback(handler=handler) as server:
        model = connect(spec_of(provider, server, **changes), Key(SECRET))
        tasks = [prompted(number, model) for number in range(count)]
        bench = Bench(folder, tasks, CallSettings(retry=patience))
        return Run(bench, bench.run(window=count, models=[model]), server)


def number_of(seen: Seen) -> int:
    """Which item a request is about."""
    return int("".join(filter(str.isdigit, seen.prompt)))


def good(seen: Seen) -> Answer:
    return reply(seen, text="CORRECT")


def faulty(answers: Mapping[int, Answer]) -> Handler:
    """Answer some items as told and the others well."""
    return lambda seen: answers.get(number_of(seen)) or good(seen)


@two
def test_every_fault_ends_and_the_others_go_on(tmp_path: Path, provider: str) -> None:
    """Eleven ways not to reply are an ERROR each; every other item is graded."""
    answers = dict(enumerate(FAULTS.values(), start=3))
    result = run(tmp_path, provider, faulty(answers), 20, deadline=0.5)
    assert result.states == {"error": len(FAULTS), "passed": 20 - len(FAULTS)}
    assert result.kinds == {"timeout": 6, "bad_body": 2, "connection": 3}
    assert result.bench.engine.status.in_flight == 0


BROKEN: Sequence[object] = (
    "",
    "<!doctype html><title>Sign in</title>",
    "[]",
    '{"choices": [{"message": {"content": "CORR',
    b"\xff\xfe\x00",
    "[" * 5000,
    error_body("the model crashed"),
)


@both
def test_no_broken_body_is_an_answer(tmp_path: Path, provider: str) -> None:
    """Bodies under status 200 are tried three times each, then an ERROR; none is kept (F12)."""
    count = len(BROKEN)
    result = run(tmp_path, provider, lambda seen: Answer(body=BROKEN[number_of(seen)]), count)
    assert result.states == {"error": count}
    assert result.kinds == {"bad_body": count - 1, "error_body": 1}
    assert set(Counter(number_of(seen) for seen in result.server.requests).values()) == {3}
    assert result.bench.engine.status.retried == {"bad_body": 2 * (count - 1), "error_body": 2}


@two
@pytest.mark.parametrize(
    ("answer", "kind", "items"),
    [
        (Answer(status=401, body=error_body("wrong key")), "auth", 500),
        (Answer(status=403, body=error_body("no")), "auth", 100),
        (Answer(status=404, body=error_body("no such model")), "not_found", 100),
        (Answer(status=429, body=error_body("x", code="insufficient_quota")), "quota", 100),
    ],
)
def test_what_no_call_can_get_past_stops_the_run(
    tmp_path: Path, provider: str, answer: Answer, kind: str, items: int
) -> None:
    """One request tells it: one ERROR, the rest MISSING for the same reason, one line for both.

    Row F13 of the fault matrix.
    """
    result = run(tmp_path, provider, lambda seen: answer, items)
    assert result.server.count == 1
    assert result.states == {"error": 1, "missing": items - 1}
    assert {one.kind for one in result.outcomes.values()} == {kind}
    assert list(result.bench.engine.status.stops) == [kind]


@two
def test_a_context_that_is_too_long_is_that_item_s_error(tmp_path: Path, provider: str) -> None:
    """Ten of 200 items do not fit: ten ERRORs of one request each, 190 graded (F14)."""
    body = error_body("prompt is too long: 9 tokens > 8", code="context_length_exceeded")
    answers = {number: Answer(status=400, body=body) for number in range(0, 200, 20)}
    result = run(tmp_path, provider, faulty(answers), 200)
    assert result.kinds == {"context_length": 10}
    assert result.states == {"error": 10, "passed": 190}
    assert result.server.count == 200


@two
def test_nobody_asks_before_the_announced_time(tmp_path: Path, provider: str) -> None:
    """After the first refusal every item waits, not only the one that was refused."""
    left = [Answer(status=429, headers={"retry-after-ms": "300"})]
    result = run(tmp_path, provider, lambda seen: left.pop() if left else good(seen), 4)
    first, *others = (seen.at for seen in result.server.requests)
    assert result.states == {"passed": 4}
    assert min(others) >= first + 0.3
