"""The model server of the benchmarks, a process of its own that answers after a fixed time.

``python -m tests.benchmarks.server SECONDS`` prints its address, then answers each line on its
standard input with what it has seen since the line before, as JSON.
"""

import json
import subprocess
import sys
import time
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

from qagate.evaluators.output import say
from tests.benchmarks.common import ROOT
from tests.support.loopback import Answer, Handler, Seen, loopback, plausible


class Load(NamedTuple):
    """What a server saw: requests, their mean and highest number in flight, its own CPU seconds,
    and the monotonic times of the first request and of the last reply."""

    requests: int
    mean: float
    peak: int
    cpu: float
    first: float
    last: float


class Server:
    """A server process, from the side of the benchmark."""

    def __init__(self, process: "subprocess.Popen[str]") -> None:
        self._process = process
        self.url = self._ask("")

    def load(self) -> Load:
        """Return what it has seen since the last call."""
        return Load(**json.loads(self._ask("\n")))

    def _ask(self, line: str) -> str:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(line)
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


@contextmanager
def serving(latency: float) -> Iterator[Server]:
    """Run a server process for a block."""
    command = [sys.executable, "-m", "tests.benchmarks.server", str(latency)]
    pipe = subprocess.PIPE
    process = subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True)
    try:
        yield Server(process)
    finally:
        process.communicate(timeout=10)


def slow(latency: float) -> Handler:
    """Return a handler that answers in this many seconds; a third of the answers are wrong."""

    def grade(seen: Seen, name: str, schema: Mapping[str, Any]) -> object:
        if "enum" not in schema:
            return "The answer and the expected answer were compared."
        return schema["enum"][zlib.crc32(seen.prompt.encode()) % 3 == 0]

    answer = plausible(grade)

    def handle(seen: Seen) -> Answer:
        return replace(answer(seen), delay=latency)

    return handle


def main(latency: float) -> None:
    """Serve until standard input ends."""
    with loopback(handler=slow(latency)) as server:
        say(sys.stdout, server.url)
        began = time.process_time()
        for _ in sys.stdin:
            seen = [one.at for one in server.requests] or [time.monotonic()]
            first, last, cpu = seen[0], seen[-1] + latency, time.process_time()
            mean = server.count * latency / (last - first)
            load = Load(server.count, mean, server.peak, cpu - began, first, last)
            server.requests.clear()
            server.peak, began = 0, cpu
            say(sys.stdout, json.dumps(load._asdict()))


if __name__ == "__main__":
    main(float(sys.argv[1]))
