"""A real LiteLLM proxy on loopback: its refusals, its dead upstream, its rate limit.

It is no part of the locked requirements: ``pip install "litellm[proxy]"`` anywhere, and its program
in ``PATH`` or its path in ``QA_LITELLM``.
"""

import os
import shutil
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from evaluators.core import Model, Outcome
from evaluators.models import connect
from evaluators.models.spec import build
from evaluators.runtime.engine import Status
from evaluators.runtime.sender import CallSettings
from evaluators.secrets import Key
from tests.support.engine_bench import Bench, prompted
from tests.support.loopback import Answer, Seen, loopback, reply

PROGRAM = os.environ.get("QA_LITELLM") or shutil.which("litellm")
KEY = "sk-qa-loopback-5ecret-0123456789abcdef"  # a weak one is refused
STARTS = 90.0  # seconds that the proxy may take
CONFIG = """
model_list:
  - model_name: good
    litellm_params: {{model: openai/x, api_key: none, mock_response: CORRECT}}
  - model_name: refusing
    litellm_params: {{model: openai/x, api_key: none, mock_response: litellm.RateLimitError}}
  - model_name: five
    litellm_params: {{model: openai/x, api_key: none, mock_response: CORRECT, rpm: 5}}
  - model_name: behind
    litellm_params: {{model: openai/x, api_key: none, api_base: "http://127.0.0.1:{port}/v1"}}
router_settings:
  num_retries: 0
  disable_cooldowns: true
  optional_pre_call_checks: [enforce_model_rate_limits]
general_settings: {{master_key: {key}}}
"""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        PROGRAM is None, reason='no LiteLLM here: pip install "litellm[proxy]", set QA_LITELLM'
    ),
]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@pytest.fixture(scope="module")
def upstream() -> int:
    """Return the port at which the proxy looks for its upstream; nobody listens there yet."""
    return free_port()


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory, upstream: int) -> Iterator[str]:
    """Return the address of a running proxy."""
    folder = tmp_path_factory.mktemp("litellm")
    config = folder / "config.yaml"
    config.write_text(CONFIG.format(port=upstream, key=KEY), encoding="utf-8")
    port = free_port()
    command = [str(PROGRAM), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)]
    environment = {**os.environ, "LITELLM_TELEMETRY": "False", "LITELLM_LOCAL_MODEL_COST_MAP": "1"}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, env=environment)
    address = f"http://127.0.0.1:{port}"
    try:
        wait_until_it_answers(f"{address}/health/liveliness")
        yield address
    finally:
        process.terminate()
        process.wait(20)


def wait_until_it_answers(url: str) -> None:
    end = time.monotonic() + STARTS
    while time.monotonic() < end:
        try:
            urllib.request.urlopen(url, timeout=2).close()
        except (urllib.error.URLError, OSError):
            time.sleep(0.3)
        else:
            return
    pytest.fail(f"no LiteLLM at {url} after {STARTS:g} s")


def model_of(proxy: str, name: str, key: str = KEY) -> Model:
    return connect(build("openai", name, f"{proxy}/v1", f"openai:{name}@{proxy}/v1"), Key(key))


def asked(
    folder: Path, model: Model, count: int, deadline: float | None = None
) -> tuple[dict[str, Outcome], Status]:
    """Ask a model of the proxy about items, with the usual patience."""
    tasks = [prompted(number, model) for number in range(count)]
    bench = Bench(folder, tasks, CallSettings(deadline=deadline))
    return bench.run(window=count, models=[model]), bench.engine.status


def states(outcomes: dict[str, Outcome]) -> Counter[str]:
    return Counter(one.state for one in outcomes.values())


def test_a_good_model(tmp_path: Path, proxy: str) -> None:
    """One request an item, and nothing held up."""
    outcomes, status = asked(tmp_path, model_of(proxy, "good"), 40)
    assert states(outcomes) == {"passed": 40}
    assert (status.requests, dict(status.retried)) == (40, {})


@pytest.mark.parametrize(
    ("name", "key", "words"),
    [("good", "sk-wrong", "No connected db."), ("nobody", KEY, "Invalid model name passed in")],
)
def test_a_wrong_key_or_model_name(
    tmp_path: Path, proxy: str, name: str, key: str, words: str
) -> None:
    """Three requests; the reason has the proxy's words, and what to check."""
    outcomes, status = asked(tmp_path, model_of(proxy, name, key), 240)
    assert states(outcomes) == {"error": 3, "missing": 237}
    assert status.requests == 3
    (reason,) = status.stops.values()
    assert words in reason
    assert "check the API key, the model's name and the URL" in reason


def test_a_rate_limit_without_end(tmp_path: Path, proxy: str) -> None:
    """A few requests; whoever got no answer is told of the 429."""
    outcomes, status = asked(tmp_path, model_of(proxy, "refusing"), 40, deadline=20)
    assert states(outcomes) == {"missing": 40}
    assert status.requests <= 12
    assert all("HTTP 429" in one.message for one in outcomes.values())


def test_a_dead_upstream_is_waited_for(tmp_path: Path, proxy: str, upstream: int) -> None:
    """HTTP 500 for every call until the upstream is back: no item is lost."""

    def back(seen: Seen) -> Answer:
        return reply(seen, text="CORRECT")

    done = threading.Event()

    def come_back() -> None:
        time.sleep(8)
        with loopback(handler=back, port=upstream):
            done.wait(120)

    thread = threading.Thread(target=come_back)
    thread.start()
    try:
        begun = time.monotonic()
        outcomes, status = asked(tmp_path, model_of(proxy, "behind"), 60)
    finally:
        done.set()
        thread.join()
    assert states(outcomes) == {"passed": 60}
    assert status.requests <= 60 + 25
    assert time.monotonic() - begun <= 1.25 * 8 + 5 + 15


def test_few_calls_a_minute_are_used_up(tmp_path: Path, proxy: str) -> None:
    """Five calls a minute, without any Retry-After: fifteen items in 1.3 times what they need."""
    begun = time.monotonic()
    outcomes, _ = asked(tmp_path, model_of(proxy, "five"), 15)
    assert states(outcomes) == {"passed": 15}
    assert time.monotonic() - begun <= 1.3 * 180
