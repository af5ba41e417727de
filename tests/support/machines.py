"""Process groups that stand for machines: they share one ledger and all their items.

``python -m tests.support.machines WORK`` is one of them, WORK being the JSON of a Work; it prints a
Done as JSON. All of them work through the same items, each in an order of its own, so that claims
alone keep them from asking twice. An item takes two calls: an answer, and a grade for it.
"""

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path

from evaluators.answerers import PromptedAnswer
from evaluators.core import Ask, Case, Limits, Model, Reply, Request, Verdict
from evaluators.ledger import postgres
from evaluators.ledger_place import PostgresUrl, read_place
from evaluators.messages import Message
from evaluators.models import connect
from evaluators.models.spec import build
from evaluators.runtime.engine import Task
from evaluators.runtime.sender import CallSettings
from evaluators.runtime.session import CallSession
from evaluators.secrets import Key
from tests.support.engine_bench import PROMPT, correct
from tests.support.killing import SETTLED_SECONDS, Timed, until
from tests.support.loopback import Answer, Loopback, Seen, loopback, plausible
from tests.support.places import ask
from tests.support.scripted import make_case

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """What a machine does: items ``first`` and following, in an order of its ``name``.

    Without an ``url`` the model answers at once, without a network. ``lease`` are the seconds that
    the claims of a killed machine hold; 0 leaves them as they are.
    """

    ledger: str
    items: int
    name: int = 0
    url: str = ""
    first: int = 1
    rpm: int | None = None
    concurrency: int = 64
    lease: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What came of it: items that are not graded CORRECT, requests sent, and its time.

    ``started`` is when each call was let go, in monotonic seconds, which all processes share.
    """

    wrong: int
    started: list[float]
    requests: int
    begun: float
    ended: float
    cpu: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Grader:
    """A judge that asks the model for a grade, and takes any reply as a good one."""

    model: Model
    spec: str = "grader"

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        asked = f"Question: {case.question} Answer: {answer} Grade: "
        await ask(self.model, Request(messages=(Message(role="user", content=asked),)))
        return Verdict(grade="CORRECT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Instant:
    """A model that answers at once with a reply of usual length."""

    spec: str = "openai:instant"
    limits: Limits = field(default_factory=lambda: Limits(host="instant"))

    @property
    def identity(self) -> Mapping[str, object]:
        return {"name": self.spec}

    async def complete(self, request: Request) -> Reply:
        return Reply(text="A sentence of forty characters and more. " * 5)

    async def close(self) -> None:
        return


def do(work: Work) -> Done:
    """Do the work of a machine."""
    if work.lease:
        postgres.LEASE_S = work.lease
        postgres.RENEW_S = work.lease / 5
    model: Model = Instant()
    if work.url:
        url = f"{work.url}/v1"
        spec = build("openai", "m", url, f"openai:m@{url}")
        model = connect(spec, Key(f"machine-{work.name}"))
    model = clocked = Clocked(model=model)
    tasks = [
        Task(
            key=f"k{number}",
            case=make_case(number),
            repeat=1,
            answerer=PromptedAnswer(model=model, prompt=PROMPT),
            judge=Grader(model=model),
            passes=correct,
        )
        for number in range(work.first, work.first + work.items)
    ]
    random.Random(work.name).shuffle(tasks)
    settings = CallSettings(
        ledger=read_place(work.ledger),
        rpm=work.rpm,
        concurrency=work.concurrency,
    )
    session = CallSession({model.spec: model}, {}, settings)
    begun, cpu = time.time(), time.process_time()
    judged = session.judge({task.key: task for task in tasks}, lambda outcomes: None)
    states = [outcome.state for outcome in judged.outcomes.values()]
    return Done(
        wrong=work.items - states.count("passed"),
        started=clocked.started,
        requests=judged.requests,
        begun=begun,
        ended=time.time(),
        cpu=time.process_time() - cpu,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocked:
    """A model that notes when each call starts."""

    model: Model
    started: list[float] = field(default_factory=list)

    @property
    def spec(self) -> str:
        return self.model.spec

    @property
    def identity(self) -> Mapping[str, object]:
        return self.model.identity

    @property
    def limits(self) -> Limits:
        return self.model.limits

    async def complete(self, request: Request) -> Reply:
        self.started.append(time.monotonic())
        return await self.model.complete(request)

    async def close(self) -> None:
        await self.model.close()


class Machine:
    """A process group that does some work."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.machines", json.dumps(asdict(work))],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def kill(self) -> float:
        """Kill the group with SIGKILL, and return when; in monotonic seconds."""
        at = time.monotonic()
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.communicate()
        return at

    @property
    def waited(self) -> float:
        """For how many seconds all its threads were ready to go, but given no processor."""
        threads = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        with suppress(OSError):  # a thread has just ended
            return sum(int(one.read_text(encoding="ascii").split()[1]) for one in threads) / 1e9
        return 0.0

    @property
    def is_over(self) -> bool:
        return self._process.poll() is not None

    def result(self) -> Done:
        """Return what came of its work, once it is done."""
        said, _ = self._process.communicate()
        assert self._process.returncode == 0, f"machine {self.work.name} failed"
        return Done(**json.loads(said))


@dataclass
class Sending:
    """One request as the server saw it, in monotonic seconds; ``left`` None has no reply yet."""

    machine: int
    at: float
    left: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """A kill, in monotonic seconds.

    ``starved`` is for how long of its last second the machine was ready to go but had no processor.
    """

    machine: int
    at: float
    starved: float


@dataclass
class Traffic:
    """What the server saw, by prompt; a reply is in flight for ``settled`` seconds more."""

    delay: float
    settled: float = SETTLED_SECONDS
    sent: dict[str, list[Sending]] = field(default_factory=lambda: defaultdict(list))
    kills: list[Death] = field(default_factory=list)

    def answer(self, seen: Seen) -> Answer:
        machine = int(seen.headers["authorization"].rpartition("-")[2])
        one = Sending(machine, seen.at)
        self.sent[seen.prompt].append(one)
        leaves = partial(self._leaves, one)
        return Timed(body=plausible()(seen).body, delay=self.delay, leaves=leaves)

    def _leaves(self, one: Sending) -> None:
        one.left = one.left or time.monotonic()

    @property
    def times(self) -> list[float]:
        """When each request came, in order."""
        return sorted(one.at for sendings in self.sent.values() for one in sendings)

    @property
    def repeats(self) -> int:
        """How many requests came again, each time counted."""
        return sum(len(sendings) - 1 for sendings in self.sent.values())

    @property
    def paid_twice(self) -> int:
        """How many came again although their reply had arrived long before a kill, or without one.

        What a starved machine had not read yet proves nothing.
        """
        return sum(lag > self.settled for lag in self.lags)

    @property
    def lags(self) -> list[float]:
        """For each reply that was paid twice, how long before its machine's death it had left.

        Less the time for which that machine was ready to go and got no processor.
        """
        again = (one for sendings in self.sent.values() for one in sendings[:-1])
        return sorted(self._lag(one) for one in again)

    def has_seen(self, machine: int, since: float) -> bool:
        """Return whether a machine has sent anything since then."""
        latest = [sendings[-1] for sendings in list(self.sent.values())]
        return any(one.machine == machine and one.at > since for one in latest)

    def _lag(self, one: Sending) -> float:
        deaths = [kill for kill in self.kills if kill.machine == one.machine and kill.at >= one.at]
        if not deaths:
            return float("inf")
        death = min(deaths, key=lambda kill: kill.at)
        return death.at - death.starved - (one.left or death.at)


class Fleet:
    """Machines that do the same work; one that is killed begins again at once."""

    def __init__(self, works: Sequence[Work]) -> None:
        self.machines = [Machine(work) for work in works]
        self._begun = [time.monotonic()] * len(works)

    def kill(self, traffic: Traffic, chance: random.Random) -> bool:
        """Kill one some time after its first request; return False once it has ended instead."""
        name = chance.randrange(len(self.machines))
        machine = self.machines[name]
        until(lambda: machine.is_over or traffic.has_seen(name, self._begun[name]))
        time.sleep(chance.uniform(0.0, 1.0))
        waited = machine.waited
        time.sleep(chance.uniform(0.0, 1.0))
        if machine.is_over:
            return False
        starved = machine.waited - waited
        traffic.kills.append(Death(machine=name, at=machine.kill(), starved=starved))
        self._begun[name] = time.monotonic()
        self.machines[name] = Machine(machine.work)
        return True

    def results(self) -> list[Done]:
        """Return what came of each machine's work, once all of it is done."""
        return [machine.result() for machine in self.machines]


def count(ledger: str) -> int:
    """Return how many replies a ledger has."""
    return int(str(ask(PostgresUrl(ledger), "SELECT count(*) FROM calls")))


@contextmanager
def serving(delay: float, settled: float = SETTLED_SECONDS) -> Iterator[tuple[Loopback, Traffic]]:
    """Serve machines for a block, and note what they ask."""
    traffic = Traffic(delay, settled)
    with loopback(handler=traffic.answer) as server:
        yield server, traffic


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(do(Work(**json.loads(sys.argv[1]))))))
