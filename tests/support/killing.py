"""Runs that are killed: a project, a server that notes when replies leave, what came of it."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from evaluators.core import UsageError
from evaluators.ledger.opening import open_store
from evaluators.ledger_place import read_place
from tests.conftest import INI, MODULE, item
from tests.support.loopback import Answer, Loopback, Seen, loopback, plausible

Victim = Literal["controller", "engine", "worker", "group"]
VICTIMS: tuple[Victim, ...] = ("controller", "engine", "worker", "group")
SETTLED_SECONDS = 0.25  # a reply that was delivered so long before a kill must have been kept
YAML = """
kind: graded
judge: unmeasured
rubric: plain.en.yaml
languages: {en: {file: en.jsonl, gates: {correct: {min: 0.5}}}}
"""
PROMPT = """
name: answer
language: en
version: "1"
user: "Answer: {question}"
"""
RUBRIC = """
name: plain
language: en
version: "1"
protocol: tool
user: "Question: {question} Reference: {target} Submission: {predicted_answer}"
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed(Answer):
    """An answer that says when it leaves."""

    leaves: Callable[[], object]

    @property
    def content(self) -> bytes:
        self.leaves()
        content: bytes = Answer.content.__get__(self)
        return content


@dataclass
class Trace:
    """What the server saw: each request's prompt and time, and each reply's."""

    delay: float
    sent: list[tuple[str, float]] = field(default_factory=list)
    left: list[tuple[str, float]] = field(default_factory=list)

    def answer(self, seen: Seen) -> Answer:
        """Grade every second item CORRECT, after the delay."""
        prompt = seen.prompt
        self.sent.append((prompt, time.monotonic()))
        good = plausible(lambda asked, name, schema: grade(prompt) if name == "grade" else "so")
        return Timed(
            body=good(seen).body,
            delay=self.delay,
            leaves=lambda: self.left.append((prompt, time.monotonic())),
        )

    def lost(self, kill: "Kill") -> set[str]:
        """Return the prompts asked again although the killed run had long had their reply.

        What an earlier run had under way when that one was killed is not this run's to lose.
        """
        again = {prompt for prompt, at in self.sent if at > kill.at}
        settled = kill.at - SETTLED_SECONDS
        return again & {prompt for prompt, at in self.left if kill.begun <= at <= settled}

    def asked(self, until: float) -> int:
        """Return how many different requests had come by then."""
        return len({prompt for prompt, at in self.sent if at <= until})

    @property
    def repeats(self) -> int:
        """How many requests were sent more than once, each time counted."""
        return len(self.sent) - len({prompt for prompt, _ in self.sent})


def grade(prompt: str) -> str:
    """Return what the judge says of an item: its number decides."""
    number = prompt.partition("time number ")[2].partition("?")[0]
    return "INCORRECT" if number.endswith("7") else "CORRECT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """Who was killed, and how many replies the ledger had afterwards.

    In monotonic seconds: ``begun`` before the run's first request, ``at`` just before the kill,
    ``over`` when the server had heard the last. ``starved`` is how long the engine's main
    thread could have run in the SETTLED_SECONDS before ``at`` but was given no processor.
    """

    victim: Victim
    begun: float
    at: float
    over: float
    kept: int
    starved: float


@dataclass
class Chain:
    """Runs on one ledger, one after the other, each of them killed until one is left to end."""

    folder: Path
    server: Loopback
    trace: Trace
    options: tuple[str, ...]
    ledger: str = "ledger.sqlite3"
    wires: tuple[str, str] = ("openai", "openai")  # the model's and the judge's
    kills: list[Kill] = field(default_factory=list)
    kept: list[int] = field(default_factory=list)

    def start(self) -> "subprocess.Popen[str]":
        """Start a run in a process group of its own."""
        urls = {"openai": f"{self.server.url}/v1", "anthropic": self.server.url}
        model, judge = (f"{wire}:{{}}@{urls[wire]}" for wire in self.wires)
        models = ("--model", model.format("m"), "--judge", judge.format("j"))
        words = ("-q", "--tb=no", *models, "--ledger", self.ledger, *self.options, "qa")
        return subprocess.Popen(
            [sys.executable, "-m", "pytest", *words],
            cwd=self.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run_killed(self, victim: Victim, seconds: float, chance: random.Random) -> None:
        """Start a run, kill something so long after its first request, wait for the end."""
        before = len(self.trace.sent)
        begun = time.monotonic()
        process = self.start()
        until(lambda: len(self.trace.sent) > before or process.poll() is not None)
        time.sleep(max(0.0, seconds - SETTLED_SECONDS))
        waited = waiting_seconds(process.pid)
        time.sleep(min(seconds, SETTLED_SECONDS))
        starved = waiting_seconds(process.pid) - waited
        at = time.monotonic()
        struck = process.poll() is None and strike(process.pid, victim, chance)
        process.wait(120)
        until(lambda: not alive(process.pid))
        self.kept.append(self.count())
        if struck:
            time.sleep(SETTLED_SECONDS)  # what was sent is still on its way through the server
            over = time.monotonic()
            self.kills.append(
                Kill(
                    victim=victim,
                    begun=begun,
                    at=at,
                    over=over,
                    kept=self.kept[-1],
                    starved=starved,
                )
            )

    @property
    def fatal(self) -> list[Kill]:
        """The kills that ended a run; a dead worker does not."""
        return [kill for kill in self.kills if kill.victim != "worker"]

    def finish(self) -> tuple[int, Mapping[str, Any]]:
        """Let a run end; return its exit code and how each item ended."""
        code = self.start().wait(120)
        self.kept.append(self.count())
        return code, self.outcomes()

    def outcomes(self) -> Mapping[str, Any]:
        """Return how each item of the latest run that has ended did so."""
        path = self.folder / "reports" / "out" / "records.jsonl"
        records = [
            json.loads(line) for line in path.read_text(encoding="utf-8").split("\n") if line
        ]
        return {one["key"]: (one["outcome"], one["grade"], one["answer"]) for one in records}

    def count(self) -> int:
        """Return how many replies the ledger has."""
        place = read_place(self.ledger, self.folder)
        with suppress(UsageError), closing(open_store(place, read_only=True)) as store:
            return int(store.read("SELECT count(*) FROM calls")[0][0])
        return 0


def strike(pid: int, victim: Victim, chance: random.Random) -> bool:
    """Kill with SIGKILL; return whether there was somebody to kill."""
    if victim == "group":
        os.killpg(pid, signal.SIGKILL)
        return True
    found = members(pid)[victim]
    if found:
        os.kill(chance.choice(found), signal.SIGKILL)
    return bool(found)


def members(pid: int) -> dict[Victim, list[int]]:
    """Return the processes of a run by what they are; ``pid`` is the controller's."""
    found: dict[Victim, list[int]] = {"controller": [pid], "engine": [], "worker": []}
    with suppress(OSError):  # it may just have ended
        for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split():
            # A forked process goes by its parent's command, a worker by its own.
            found["engine" if command(int(child)) == command(pid) else "worker"].append(int(child))
    return found


def waiting_seconds(pid: int) -> float:
    """Return how long the main thread of a run's engine has waited for a processor, ready to go."""
    spent = 0.0
    for engine in members(pid)["engine"]:
        with suppress(OSError):  # it may just have ended, or the kernel does not count
            _, waited, _ = Path(f"/proc/{engine}/schedstat").read_text(encoding="ascii").split()
            spent += int(waited) / 1e9
    return spent


def command(pid: int) -> bytes:
    """Return the command line of a process; empty where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def alive(group: int) -> bool:
    """Return whether a process group still has a member."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def until(condition: Callable[[], bool]) -> None:
    """Wait until something has come true; raises AssertionError after a minute."""
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError("it did not happen within a minute")


def make_project(folder: Path, items: int) -> None:
    """Write a project of so many items to be asked and judged."""
    files = {
        "pytest.ini": INI,
        "qa/capital/dataset.yaml": YAML,
        "qa/capital/answer.en.yaml": PROMPT,
        "qa/capital/plain.en.yaml": RUBRIC,
        "qa/capital/test_capital.py": MODULE.format(name="capital"),
        "qa/capital/en.jsonl": "".join(
            f"{json.dumps(item(n, None))}\n" for n in range(1, items + 1)
        ),
    }
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, encoding="utf-8")


@contextmanager
def chain(folder: Path, items: int, delay: float, *options: str) -> Iterator[Chain]:
    """Serve a project for a block."""
    make_project(folder, items)
    trace = Trace(delay=delay)
    with loopback(handler=trace.answer) as server:
        yield Chain(folder=folder, server=server, trace=trace, options=options)
