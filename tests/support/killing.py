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
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from qagate.evaluators.core import UsageError
from qagate.evaluators.ledger.place import read_place
from qagate.evaluators.ledger.sqlite import open_store
from tests.support.loopback import Answer, Loopback, Seen, loopback, plausible
from tests.support.projects import new_project

Victim = Literal["controller", "engine", "worker", "group"]
SETTLED_SECONDS = 0.25  # what was sent is still on its way through the server


@dataclass
class Trace:
    """What the server saw: each request's prompt and time."""

    delay: float
    sent: list[tuple[str, float]] = field(default_factory=list)

    def answer(self, seen: Seen) -> Answer:
        prompt = seen.prompt
        self.sent.append((prompt, time.monotonic()))
        good = plausible(
            lambda asked, name, schema: grade(prompt) if name == "grade" else "so"
        )
        return replace(good(seen), delay=self.delay)

    def asked(self, until: float) -> int:
        return len({prompt for prompt, at in self.sent if at <= until})

    @property
    def repeats(self) -> int:
        return len(self.sent) - len({prompt for prompt, _ in self.sent})


def grade(prompt: str) -> str:
    number = prompt.partition("time number ")[2].partition("?")[0]
    return "INCORRECT" if number.endswith("7") else "CORRECT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """Who was killed, and how many replies the ledger had afterwards."""

    victim: Victim
    over: float
    """When the server had heard the last of the run, in monotonic seconds."""
    kept: int


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
        process = self.start()
        until(lambda: len(self.trace.sent) > before or process.poll() is not None)
        time.sleep(seconds)
        struck = process.poll() is None and strike(process.pid, victim, chance)
        process.wait(120)
        until(lambda: not alive(process.pid))
        self.kept.append(self.count())
        if struck:
            time.sleep(SETTLED_SECONDS)
            self.kills.append(
                Kill(victim=victim, over=time.monotonic(), kept=self.kept[-1])
            )

    @property
    def fatal(self) -> list[Kill]:
        """The kills that ended a run; a dead worker does not."""
        return [kill for kill in self.kills if kill.victim != "worker"]

    def finish(self) -> tuple[int, Mapping[str, Any]]:
        code = self.start().wait(120)
        self.kept.append(self.count())
        return code, self.outcomes()

    def outcomes(self) -> Mapping[str, Any]:
        path = self.folder / "reports" / "out" / "records.jsonl"
        records = [
            json.loads(line)
            for line in path.read_text(encoding="utf-8").split("\n")
            if line
        ]
        return {
            one["key"]: (one["outcome"], one["grade"], one["answer"]) for one in records
        }

    def count(self) -> int:
        place = read_place(self.ledger, self.folder)
        with suppress(UsageError), closing(open_store(place, read_only=True)) as store:
            return int(store.read("SELECT count(*) FROM calls")[0][0])
        return 0


def strike(pid: int, victim: Victim, chance: random.Random) -> bool:
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
        for child in (
            Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        ):
            # A forked process goes by its parent's command, a worker by its own.
            found["engine" if command(int(child)) == command(pid) else "worker"].append(
                int(child)
            )
    return found


def command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def alive(group: int) -> bool:
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


@contextmanager
def chain(folder: Path, items: int, delay: float, *options: str) -> Iterator[Chain]:
    new_project(folder).asked(items)
    trace = Trace(delay=delay)
    with loopback(handler=trace.answer) as server:
        yield Chain(folder=folder, server=server, trace=trace, options=options)
