"""Gateways: refusals of all calls alike, upstreams that die, and servers that ask for no retry."""

import contextlib
import os
import shutil
import socket
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from evaluators.core import Outcome
from evaluators.models import connect
from evaluators.runtime.caller import CallSettings
from evaluators.runtime.outcomes import Status
from evaluators.text import PLACEHOLDER, Key
from tests.support.engine_bench import Bench, prompted
from tests.support.loopback import Answer, Handler, Loopback, Seen, loopback, plausible, reply
from tests.support.model_calls import SECRET, both, error_body, spec_of
from tests.support.projects import Project
from tests.support.tables import tabled

NO_KEY = "No connected db."
NO_MODEL = "Invalid model name passed in model=model-1. Call `/v1/models` to view the models"


def good(seen: Seen) -> Answer:
    return reply(seen, text="CORRECT")


def asked(
    folder: Path, handler: Handler, count: int, provider: str = "openai", concurrency: int = 16
) -> tuple[dict[str, Outcome], Status, Loopback]:
    """Ask a server about items, with the usual patience."""
    with loopback(handler=handler) as server:
        model = connect(spec_of(provider, server), Key(SECRET))
        tasks = [prompted(number, model) for number in range(count)]
        bench = Bench(folder, tasks, CallSettings(concurrency=concurrency))
        outcomes = bench.run(window=count, models=[model], first=4)
        return outcomes, bench.engine.status, server


def number_of(seen: Seen) -> int:
    return int("".join(filter(str.isdigit, seen.prompt)))


def states(outcomes: dict[str, Outcome]) -> Counter[str]:
    return Counter(one.state for one in outcomes.values())


@both
@pytest.mark.parametrize("words", [NO_KEY, NO_MODEL, f"{NO_KEY} (request req_0{{}}abc)"])
def test_first_calls_that_are_refused_alike_stop_the_run(
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
    assert {one.message for one in outcomes.values() if one.state == "missing"} == {reason}


@both
@pytest.mark.parametrize("status", [400, 401, 403])
def test_a_server_that_got_no_key_is_said_to_have_got_none(
    tmp_path: Path, provider: str, status: int
) -> None:
    """The option that names one is written out; nobody is told to check a key."""

    def refuse(seen: Seen) -> Answer:
        return Answer(status=status, body=error_body("No connected db."))

    with loopback(handler=refuse) as server:
        model = connect(spec_of(provider, server), Key(PLACEHOLDER))
        tasks = [prompted(number, model) for number in range(24)]
        bench = Bench(tmp_path, tasks, CallSettings(concurrency=16))
        bench.run(window=24, models=[model], first=4)
    (reason,) = bench.engine.status.stops.values()
    host = server.url.partition("//")[2]
    assert f"no key was sent to {host}; if it wants one: --key-env http://{host}" in reason
    assert "check the API key" not in reason


def test_refusals_of_single_requests_stop_nothing(tmp_path: Path) -> None:
    """Bad requests beside good ones, or for different reasons, are those items' errors."""
    words = ("no images", "no tables", "no lists")

    def handle(seen: Seen) -> Answer:
        number = number_of(seen)
        if number < 3:
            return Answer(status=400, body=error_body(words[number]))
        return Answer(status=400, body=error_body(NO_KEY)) if number % 4 == 0 else good(seen)

    outcomes, status, server = asked(tmp_path, handle, 40)
    assert states(outcomes) == {"error": 3 + 9, "passed": 28}
    assert (server.count, status.stops) == (40, {})


@both
@tabled("words", "first", "kind")
def test_items_refused_at_the_start_are_their_own_errors(
    tmp_path: Path, provider: str, words: str, first: int, kind: str
) -> None:
    """Other places of the plan are tried; a content filter never speaks of the key (F12)."""

    def handle(seen: Seen) -> Answer:
        if number_of(seen) < first and number_of(seen) % 10 < 9:
            return Answer(status=400, body=error_body(words))
        return good(seen)

    outcomes, status, server = asked(tmp_path, handle, 240, provider)
    assert (server.count, status.stops) == (240, {})
    assert states(outcomes) == {"error": first * 9 // 10, "passed": 240 - first * 9 // 10}
    assert {one.kind for one in outcomes.values() if one.state == "error"} == {kind}


@both
@pytest.mark.parametrize("status", [307, 401, 402, 403, 404])
@pytest.mark.parametrize("in_a_row", [2, 3])
def test_a_stray_status_of_a_model_that_answers(
    tmp_path: Path, provider: str, status: int, in_a_row: int
) -> None:
    """It is its item's error; three without a success between them end the run."""
    seen: list[Seen] = []

    def handle(one: Seen) -> Answer:
        seen.append(one)
        stray = len(seen) > 8 and len(seen) % 8 < in_a_row
        return Answer(status=status, body=error_body("no")) if stray else good(one)

    outcomes, run, server = asked(tmp_path, handle, 40, provider, concurrency=1)
    if in_a_row < 3:
        assert states(outcomes) == {"error": 8, "passed": 32}
        assert run.stops == {}
    else:
        assert states(outcomes) == {"error": 2 + 3, "passed": 13, "missing": 22}
        assert server.count == 18
        assert len(run.stops) == 1


@both
@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_server_that_wants_no_retry_gets_none(tmp_path: Path, provider: str, status: int) -> None:
    """``x-should-retry: false`` makes a failure final; ``true`` changes nothing (R6)."""
    headers = {"x-should-retry": "false"}

    def handle(seen: Seen) -> Answer:
        if "7" in seen.prompt:
            return Answer(status=status, headers=headers, body=error_body("never mind"))
        return good(seen)

    outcomes, _, server = asked(tmp_path, handle, 10, provider)
    assert states(outcomes) == {"error": 1, "passed": 9}
    assert server.count == 10
    assert "not to be tried again" in outcomes["k7"].message


MASTER = "sk-master-0123456789abcdef"
PROXY = """
model_list:
  - model_name: openai-m
    litellm_params: {{model: openai/m, api_base: "{0}/v1", api_key: upstream}}
  - model_name: anthropic-m
    litellm_params: {{model: anthropic/m, api_base: "{0}", api_key: upstream}}
general_settings: {{master_key: {1}}}
"""


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A LiteLLM proxy that demands a key, before a server of ours; returns its address."""
    folder = tmp_path_factory.mktemp("proxy")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    with loopback(handler=plausible()) as upstream:
        (folder / "config.yaml").write_text(PROXY.format(upstream.url, MASTER), encoding="utf-8")
        words = ("litellm", "--config", "config.yaml", "--host", "127.0.0.1", "--port", f"{port}")
        at_home = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LITELLM_TELEMETRY": "False"}
        quiet = subprocess.DEVNULL
        with subprocess.Popen(
            words, cwd=folder, env=os.environ | at_home, stdout=quiet, stderr=quiet
        ) as process:
            for _ in range(120):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
                time.sleep(0.5)
            yield f"http://127.0.0.1:{port}"
            process.terminate()


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("litellm"), reason="needs pip install 'litellm[proxy]'")
@both
def test_a_real_proxy_that_demands_a_key(
    project: Project, monkeypatch: pytest.MonkeyPatch, proxy: str, provider: str
) -> None:
    """Without its key named: the option to give; with a wrong one: what to check; else graded."""
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.setenv(name, "sk-of-the-provider-0123456789")
    project.asked(3)
    name, url = ("anthropic-m", proxy) if provider == "anthropic" else ("openai-m", f"{proxy}/v1")
    spec = f"{provider}:{name}@{url}"
    named = ("qa/capital", "--allow-self-judge", f"--model={spec}", f"--judge={spec}")
    last = project.run_in_process(*named).outlines[-1]
    assert f"no key was sent to {proxy[7:]}; if it wants one: --key-env {url}=NAME" in last
    assert "check the API key" not in last
    monkeypatch.setenv("GATEWAY", "sk-wrong-0123456789abcdef")
    last = project.run_in_process(*named, f"--key-env={url}=GATEWAY").outlines[-1]
    assert "NOTHING GRADED: exit 4" in last
    assert "check the API key" in last
    monkeypatch.setenv("GATEWAY", MASTER)
    done = project.run_in_process(*named, f"--key-env={url}=GATEWAY")
    assert done.ret == 0, done.stdout.str()
    entry = f"provider: {provider}, model: {name}, base_url: '{url}', api_key_env: GATEWAY"
    project.write("house.yaml", f"house: {{{entry}}}\n")
    words = ("--model=house", "--judge=house", "--models=house.yaml", "--fresh=again")
    assert project.run_in_process(*named[:2], *words).ret == 0
