"""Whole runs against servers and gateways that hang, lie, refuse or die."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from qagate.command import main
from qagate.evaluators.core import Outcome
from qagate.evaluators.models import connect
from qagate.evaluators.runtime import server as runtime_server
from qagate.evaluators.runtime.caller import CallSettings, RetryPolicy
from qagate.evaluators.runtime.outcomes import Status
from qagate.evaluators.text import PLACEHOLDER, Key
from tests.support.engine_bench import Bench, prompted
from tests.support.fixtures import Patch
from tests.support.loopback import (
    Answer,
    Handler,
    Loopback,
    Seen,
    good,
    loopback,
    plausible,
    reply,
)
from tests.support.model_calls import PROVIDERS, SECRET, both, error_body, spec_of, two
from tests.support.projects import Project
from tests.support.tables import kept, tabled

pytestmark = pytest.mark.untraced
NO_KEY, QUOTA = "No connected db.", "insufficient_quota"
NO_MODEL = (
    "Invalid model name passed in model=model-1. Call `/v1/models` to view the models"
)


def right(seen: Seen) -> Answer:
    return reply(seen, text="CORRECT")


OFTEN = RetryPolicy(attempts=5, first=0, longest=0)


def asked(
    folder: Path,
    handler: Handler,
    count: int,
    provider: str = "openai",
    first: int = 4,
    **settings: Any,
) -> tuple[dict[str, Outcome], Status, Loopback]:
    with loopback(handler=handler) as server:
        model = connect(spec_of(provider, server), Key(SECRET))
        tasks = [prompted(number, model) for number in range(count)]
        bench = Bench(folder, tasks, CallSettings(**settings))
        return (
            bench.run(window=count, models=[model], first=first),
            bench.engine.status,
            server,
        )


def number_of(seen: Seen) -> int:
    return int("".join(filter(str.isdigit, seen.prompt)))


def states(outcomes: dict[str, Outcome]) -> Counter[str]:
    return Counter(one.state for one in outcomes.values())


@pytest.mark.parametrize(
    ("provider", "words"),
    list(
        zip(
            PROVIDERS,
            (NO_KEY, NO_MODEL, f"{NO_KEY} (request req_0{{}}abc)"),
            strict=True,
        )
    ),
)
def test_first_calls_refused_alike_stop_the_run(
    tmp_path: Path, provider: str, words: str
) -> None:
    """Seven requests from all over the plan; the reason names key, model and URL (F12, F13)."""
    seen: list[Seen] = []

    def refuse(one: Seen) -> Answer:
        seen.append(one)
        return Answer(status=400, body=error_body(words.format(len(seen))))

    outcomes, status, server = asked(tmp_path, refuse, 240, provider)
    assert server.count == 7
    numbers = sorted(number_of(one) for one in seen)
    assert numbers[:4] == [0, 1, 2, 3]
    assert min(b - a for a, b in pairwise(numbers[3:])) > 20
    assert states(outcomes) == {"error": 7, "missing": 233}
    (reason,) = status.stops.values()
    assert words.format(7) in reason
    assert "check the API key, the model's name and the URL (127.0.0.1:" in reason
    assert {one.message for one in outcomes.values() if one.state == "missing"} == {
        reason
    }


@both
@pytest.mark.parametrize(
    ("status", "calls"), [(400, 24), (400, 2), (401, 24), (403, 24)]
)
def test_a_server_that_got_no_key_is_told(
    tmp_path: Path, provider: str, status: int, calls: int
) -> None:
    """The option that names one is written out, also for two calls; no key is to be checked."""

    def refuse(seen: Seen) -> Answer:
        return Answer(status=status, body=error_body(NO_KEY))

    with loopback(handler=refuse) as server:
        model = connect(spec_of(provider, server), Key(PLACEHOLDER))
        tasks = [prompted(number, model) for number in range(calls)]
        bench = Bench(tmp_path, tasks, CallSettings(concurrency=16))
        bench.run(window=24, models=[model], first=4)
    (reason,) = bench.engine.status.stops.values()
    host = server.url.partition("//")[2]
    assert (
        f"no key was sent to {host}; if it wants one: --key-env http://{host}" in reason
    )
    assert "check the API key" not in reason


def test_refusals_of_single_requests_stop_nothing(tmp_path: Path) -> None:
    """Bad requests among good ones, or for different reasons, are those items' errors."""
    words = ("no images", "no tables", "no lists")

    def handle(seen: Seen) -> Answer:
        number = number_of(seen)
        if number < 3:
            return Answer(status=400, body=error_body(words[number]))
        return (
            Answer(status=400, body=error_body(NO_KEY))
            if number % 4 == 0
            else right(seen)
        )

    outcomes, status, server = asked(tmp_path, handle, 40)
    assert states(outcomes) == {"error": 3 + 9, "passed": 28}
    assert (server.count, status.stops) == (40, {})


@tabled("words", "first", "kind")
def test_early_refusals_are_their_items(
    tmp_path: Path, words: str, first: int, kind: str
) -> None:
    """Other places of the plan are tried; a content filter never speaks of the key (F12)."""

    def handle(seen: Seen) -> Answer:
        if number_of(seen) < first and number_of(seen) % 10 < 9:
            return Answer(status=400, body=error_body(words))
        return right(seen)

    outcomes, status, server = asked(tmp_path, handle, 240)
    assert (server.count, status.stops) == (240, {})
    assert states(outcomes) == {
        "error": first * 9 // 10,
        "passed": 240 - first * 9 // 10,
    }
    assert {one.kind for one in outcomes.values() if one.state == "error"} == {kind}


@pytest.mark.parametrize("status", [307, 401, 402, 403, 404])
@pytest.mark.parametrize("in_a_row", [2, 3])
def test_a_stray_status_of_a_model_that_answers(
    tmp_path: Path, status: int, in_a_row: int
) -> None:
    """It is its item's error; three without a success between them end the run."""
    seen: list[Seen] = []

    def handle(one: Seen) -> Answer:
        seen.append(one)
        stray = len(seen) > 8 and len(seen) % 8 < in_a_row
        return Answer(status=status, body=error_body("no")) if stray else right(one)

    outcomes, run, server = asked(tmp_path, handle, 40, concurrency=1)
    if in_a_row < 3:
        assert states(outcomes) == {"error": 8, "passed": 32}
        assert run.stops == {}
    else:
        assert states(outcomes) == {"error": 2 + 3, "passed": 13, "missing": 22}
        assert server.count == 18
        assert len(run.stops) == 1


@both
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_wants_no_retry_gets_none(
    tmp_path: Path, provider: str, status: int
) -> None:
    """``x-should-retry: false`` makes a failure final; ``true`` changes nothing (R6)."""
    headers = {"x-should-retry": "false"}

    def handle(seen: Seen) -> Answer:
        if "7" in seen.prompt:
            return Answer(status=status, headers=headers, body=error_body("never mind"))
        return right(seen)

    outcomes, _, server = asked(tmp_path, handle, 10, provider)
    assert states(outcomes) == {"error": 1, "passed": 9}
    assert server.count == 10
    assert "not to be tried again" in outcomes["k7"].message


MASTER = "sk-master-0123456789abcdef"
PROXY: str = kept(__file__, "proxy")


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A LiteLLM proxy that demands a key, before a server of ours; returns its address."""
    folder = tmp_path_factory.mktemp("proxy")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with loopback(handler=plausible()) as upstream:
        (folder / "config.yaml").write_text(
            PROXY.format(upstream.url, MASTER), encoding="utf-8"
        )
        words = (
            "litellm",
            "--config",
            "config.yaml",
            "--host",
            "127.0.0.1",
            "--port",
            f"{port}",
        )
        at_home = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False"}
        quiet = subprocess.DEVNULL
        with subprocess.Popen(
            words, cwd=folder, env=os.environ | at_home, stdout=quiet, stderr=quiet
        ) as process:
            for _ in range(120):
                with (
                    contextlib.suppress(OSError),
                    socket.create_connection(("127.0.0.1", port)),
                ):
                    break
                time.sleep(0.5)
            yield f"http://127.0.0.1:{port}"
            process.terminate()


@pytest.mark.slow
@pytest.mark.skipif(
    not shutil.which("litellm"), reason="needs pip install 'litellm[proxy]'"
)
@both
def test_proxy_with_a_key(
    project: Project, monkeypatch: Patch, proxy: str, provider: str
) -> None:
    """Without its key named: the option to give; with a wrong one: what to check; else graded."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "sk-of-the-provider-0123456789")
    project.asked(3)
    name, url = (
        ("anthropic-m", proxy)
        if provider == "anthropic"
        else ("openai-m", f"{proxy}/v1")
    )
    spec = f"{provider}:{name}@{url}"
    named = ("qa/capital", "--allow-self-judge", f"--model={spec}", f"--judge={spec}")
    last = project.run_in_process(*named).outlines[-1]
    assert (
        f"no key was sent to {proxy[7:]}; if it wants one: --key-env {url}=NAME" in last
    )
    assert "check the API key" not in last
    monkeypatch.setenv("GATEWAY", "sk-wrong-0123456789abcdef")
    last = project.run_in_process(*named, f"--key-env={url}=GATEWAY").outlines[-1]
    assert "NOTHING GRADED: exit 4" in last
    assert "check the API key" in last
    monkeypatch.setenv("GATEWAY", MASTER)
    done = project.run_in_process(*named, f"--key-env={url}=GATEWAY")
    assert done.ret == 0, done.stdout.str()
    entry = (
        f"provider: {provider}, model: {name}, base_url: '{url}', api_key_env: GATEWAY"
    )
    project.write("house.yaml", f"house: {{{entry}}}\n")
    words = ("--model=house", "--judge=house", "--models=house.yaml", "--fresh=again")
    assert project.run_in_process(*named[:2], *words).ret == 0


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

    def handle(seen: Seen) -> Answer:
        return Answer(body=BROKEN[number_of(seen)])

    outcomes, status, server = asked(
        tmp_path, handle, count, provider, first=count, retry=OFTEN
    )
    assert states(outcomes) == {"error": count}
    kinds = Counter(one.kind for one in outcomes.values())
    assert kinds == {"bad_body": count - 1, "error_body": 1}
    assert set(Counter(number_of(seen) for seen in server.requests).values()) == {3}
    assert status.retried == {"bad_body": 2 * (count - 1), "error_body": 2}


@two
@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (401, "", "auth"),
        (403, "", "auth"),
        (404, "", "not_found"),
        (429, QUOTA, "quota"),
    ],
)
def test_what_stops_a_run(
    tmp_path: Path, provider: str, status: int, code: str, kind: str
) -> None:
    """One request tells it: one ERROR, the rest MISSING for the same reason (F13)."""
    answer = Answer(status=status, body=error_body("no", code=code))
    outcomes, ended, server = asked(
        tmp_path, lambda seen: answer, 100, provider, first=100
    )
    assert (server.count, states(outcomes)) == (1, {"error": 1, "missing": 99})
    assert {one.kind for one in outcomes.values()} == {*ended.stops} == {kind}


@two
def test_a_context_that_is_too_long_is_that_item_s_error(
    tmp_path: Path, provider: str
) -> None:
    """Ten of 200 items do not fit: ten ERRORs of one request each, 190 graded (F14)."""
    body = error_body(
        "prompt is too long: 9 tokens > 8", code="context_length_exceeded"
    )

    def handle(seen: Seen) -> Answer:
        return right(seen) if number_of(seen) % 20 else Answer(status=400, body=body)

    outcomes, _, server = asked(tmp_path, handle, 200, provider)
    assert {one.kind for one in outcomes.values()} == {"", "context_length"}
    assert states(outcomes) == {"error": 10, "passed": 190}
    assert server.count == 200


ITEMS = 12


@pytest.fixture
def capitals(project: Project) -> Project:
    return project.asked(ITEMS)


def options(answers: str, judges: str = "") -> tuple[str, ...]:
    return (
        "--model",
        f"openai:m@{answers}/v1",
        "--judge",
        f"openai:j@{judges or answers}/v1",
    )


def refusing(status: int, words: str) -> Handler:
    return lambda seen: Answer(status=status, body=error_body(words))


def check_end(project: Project, result: pytest.RunResult, cause: str) -> None:
    """Exit 4, the last line names the cause, and so does every file that people read."""
    assert result.ret == 4
    assert result.outlines[-1].startswith("NOTHING GRADED: exit 4; ")
    assert cause in result.outlines[-1]
    assert all(said in project.text("summary.md") for said in ("exit 4", cause))
    assert {record["outcome"] for record in project.records()} <= {"error", "missing"}
    assert len(project.records()) == ITEMS


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
@tabled("status", "words", "requests")
def test_wrong_key(
    capitals: Project, status: int, words: str, requests: int, workers: int
) -> None:
    """The words of the server stand in the last line; nobody is asked in vain."""
    with loopback(handler=refusing(status, words)) as server:
        result = capitals.run_with(workers, *options(server.url), "qa")
    assert server.count == requests
    check_end(capitals, result, words)


def test_a_host_that_cannot_be_reached(capitals: Project, monkeypatch: Patch) -> None:
    """The line says which host, and that it could not be reached."""
    monkeypatch.setattr(runtime_server, "NEVER_REACHED_SECONDS", 0.5)
    result = capitals.run_in_process(*options("http://127.0.0.1:9"), "qa")
    check_end(capitals, result, "127.0.0.1:9 could not be reached for")


def test_a_host_that_answers_no_call(capitals: Project, monkeypatch: Patch) -> None:
    """A server whose every reply is HTTP 500 from the first call on is not waited for long."""
    monkeypatch.setattr(runtime_server, "NEVER_ANSWERED_SECONDS", 1.0)
    with loopback(handler=refusing(500, "upstream is dead")) as server:
        result = capitals.run_in_process(*options(server.url), "qa")
    check_end(capitals, result, "upstream is dead")
    assert "has given no reply for" in result.outlines[-1]


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_judge_with_a_wrong_key(capitals: Project, workers: int) -> None:
    """Answers alone are no grade: the same end, for the judge's key; so says ``qagate gate``."""
    with (
        loopback(handler=good) as one,
        loopback(handler=refusing(401, "wrong key")) as two,
    ):
        result = capitals.run_with(workers, *options(one.url, two.url), "qa")
    check_end(capitals, result, "openai:j@")
    assert main(["gate", str(capitals.out)]) == 4


def test_a_run_that_graded_something_is_inconclusive(capitals: Project) -> None:
    """A quota that ends in mid-run leaves 6: what was graded stands in the report."""
    seen = []

    def handle(one: Seen) -> Answer:
        seen.append(one)
        return (
            good(one)
            if len(seen) <= 10
            else Answer(status=402, body=error_body("used up"))
        )

    with loopback(handler=handle) as server:
        result = capitals.run_in_process(
            *options(server.url), "--concurrency", "1", "qa"
        )
    assert result.ret == 6
    assert "passed" in {record["outcome"] for record in capitals.records()}


def test_the_user_s_own_bounds_are_no_error(capitals: Project) -> None:
    """Where --deadline ends a run before its first grade nothing is wrong with the options."""
    with loopback(handler=lambda seen: Answer(action="hang")) as server:
        result = capitals.run_in_process(*options(server.url), "--deadline", "1", "qa")
    assert result.ret == 6
