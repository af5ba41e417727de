"""Which kept answers stand for new ones; counted at the model."""

import asyncio
import time
from collections.abc import Set
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from qagate.evaluators.core import Outcome, Reply, Request
from qagate.evaluators.ledger import KeptReply, Ledger
from qagate.evaluators.run_identity import RunIdentity
from qagate.evaluators.runtime.answer_ages import (
    ANY_AGE,
    THIS_RUN,
    AnswerAge,
    AnswerAges,
    Decision,
    kept_answer,
)
from qagate.evaluators.runtime.caller import Caller, CallSettings, Meter
from tests.support.engine_bench import Bench, prompted
from tests.support.scripted import Scripted, ask_for

DAY = 86_400.0
STARTED = 1_000 * DAY
RUN = RunIdentity(id="this", started=STARTED)
THREE_DAYS = AnswerAge(seconds=3 * DAY, dated_may_be_older=True)
UNDATED = replace(THREE_DAYS, dated_may_be_older=False)
VERSION = "m-2026-01-01"


def kept(days_old: float, model: str = "m", run: str = "other") -> KeptReply:
    return KeptReply(reply=Reply(model=model), at=STARTED - days_old * DAY, run=run)


@pytest.mark.parametrize(
    ("reply", "age", "named", "decision"),
    [
        (kept(9, run="this"), THIS_RUN, (), "use"),
        (kept(0), THIS_RUN, (), "ask"),
        (kept(0, VERSION), THIS_RUN, (VERSION,), "ask"),
        (kept(3), THREE_DAYS, (), "use"),
        (kept(3.1), THREE_DAYS, (), "ask"),
        (kept(-0.5), THREE_DAYS, (), "use"),
        (kept(-400), THREE_DAYS, (), "ask"),
        (kept(9, VERSION), THREE_DAYS, (), "find out"),
        (kept(9, VERSION), THREE_DAYS, (VERSION,), "use"),
        (kept(9, VERSION), THREE_DAYS, ("m-2026-02-02",), "ask"),
        (kept(9, VERSION), THREE_DAYS, ("",), "ask"),
        (kept(9, "m-turbo"), THREE_DAYS, ("m-turbo",), "use"),
        (kept(9, VERSION), UNDATED, (VERSION,), "ask"),
        (kept(999), ANY_AGE, (), "use"),
    ],
    ids=[
        "this run's own, however old",
        "the baseline's model",
        "a version of the baseline's model",
        "young",
        "old",
        "by a run that began later",
        "from the future: a clock was wrong",
        "an old version that may be named again",
        "an old version that is",
        "an old version that is not",
        "an old version, and the provider names none now",
        "a name that was not sent",
        "an old version that does not count",
        "any",
    ],
)
def test_which_kept_answers_count(
    reply: KeptReply, age: AnswerAge, named: tuple[str, ...], decision: Decision
) -> None:
    versions: Set[str] = set(named)
    assert kept_answer(reply, age, RUN, "m", versions) == decision


# Whole runs


@dataclass
class World:
    """A model under test, and runs that ask it twenty items on one ledger."""

    folder: Path
    age: AnswerAge = THREE_DAYS
    version: str = ""
    text: str = "CORRECT"

    def __post_init__(self) -> None:
        self.model = Scripted(lambda request: Reply(text=self.text, model=self.version))

    def run(self, run: str, *, days_later: float = 0, replay: bool = False) -> int:
        """Return how many requests a run of this id sends, which begins that much later."""
        before = len(self.model.requests)
        bench = Bench(
            self.folder,
            [replace(prompted(n, self.model), age=self.age) for n in range(20)],
            CallSettings(concurrency=8, replay=replay),
            run=RunIdentity(id=run, started=time.time() + days_later * DAY),
        )
        self.outcomes: dict[str, Outcome] = dict(bench.run())
        bench.engine.close()
        return len(self.model.requests) - before


def test_the_baselines_model_is_asked_everything_anew(tmp_path: Path) -> None:
    """A1, A2: new weights under the same name are another model."""
    world = World(tmp_path, age=THIS_RUN)
    world.run("old")
    world.text = "INCORRECT"
    assert world.run("new") == 20
    assert {outcome.state for outcome in world.outcomes.values()} == {"failed"}


def test_another_attempt_of_a_run_asks_nothing_anew(tmp_path: Path) -> None:
    world = World(tmp_path, age=THIS_RUN)
    world.run("new")
    assert world.run("new", days_later=9) == 0


def test_a_new_answer_is_kept_beside_the_older_one(tmp_path: Path) -> None:
    world = World(tmp_path, age=THIS_RUN)
    world.run("old")
    world.text = "INCORRECT"
    world.run("new")
    assert world.run("old", replay=True) == 0
    assert {outcome.state for outcome in world.outcomes.values()} == {"passed"}


def test_young_answers_of_another_model_are_taken(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run("old")
    assert world.run("new", days_later=2.9) == 0


def test_answers_older_than_allowed_are_asked_anew(tmp_path: Path) -> None:
    """R1: the same staging name, last week."""
    world = World(tmp_path)
    world.run("old")
    assert world.run("new", days_later=4) == 20


def test_one_call_tells_whether_a_version_is_still_the_same(tmp_path: Path) -> None:
    world = World(tmp_path, version=VERSION)
    world.run("old")
    assert world.run("new", days_later=4) == 1
    assert {outcome.state for outcome in world.outcomes.values()} == {"passed"}


@pytest.mark.parametrize("provider", ["python", "http"])
def test_what_the_user_runs_names_no_version_of_the_code_behind_it(
    tmp_path: Path, provider: str
) -> None:
    """A function's name and release are ours, and stay where another module changes."""
    world = World(tmp_path, version=VERSION)
    world.model.provider = provider
    world.run("old")
    assert world.run("new", days_later=4) == 20


def test_another_version_is_asked_everything_anew(tmp_path: Path) -> None:
    world = World(tmp_path, version=VERSION)
    world.run("old")
    world.version = "m-2026-02-02"
    assert world.run("new", days_later=4) == 20


def test_another_attempt_knows_the_version_already(tmp_path: Path) -> None:
    world = World(tmp_path, version=VERSION)
    world.run("old")
    world.run("new", days_later=4)
    assert world.run("new", days_later=4) == 0


def test_a_replay_takes_the_answers_that_its_run_took(tmp_path: Path) -> None:
    """One was asked anew, and the others are older than allowed."""
    world = World(tmp_path, version=VERSION)
    world.run("old")
    world.run("new", days_later=4)
    assert world.run("new", days_later=4, replay=True) == 0
    assert {outcome.state for outcome in world.outcomes.values()} == {"passed"}


def test_a_replay_heeds_no_answer_that_a_later_run_asked_for(tmp_path: Path) -> None:
    """It would count as young, and the run decided on its own."""
    world = World(tmp_path)
    world.run("first")
    world.text = "INCORRECT"
    world.age = THIS_RUN
    world.run("second")
    world.age = THREE_DAYS
    assert world.run("first", replay=True) == 0
    assert {outcome.state for outcome in world.outcomes.values()} == {"passed"}


def test_what_a_replay_may_not_ask_is_absent(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run("old")
    assert world.run("new", days_later=4, replay=True) == 0
    kinds = {outcome.kind for outcome in world.outcomes.values()}
    assert kinds == {"not_in_ledger"}


def test_where_the_call_that_tells_fails_another_one_tells(tmp_path: Path) -> None:
    """No item waits for ever, and only the one that failed has no answer."""
    world = World(tmp_path, version=VERSION)
    world.run("old")
    reply = world.model.handler
    failures = [ValueError("odd")]

    def once_failing(request: object) -> Reply:
        if failures:
            raise failures.pop()
        return reply(request)  # type: ignore[arg-type]

    world.model.handler = once_failing
    assert world.run("new", days_later=4) == 2
    states = [outcome.state for outcome in world.outcomes.values()]
    assert (states.count("error"), states.count("passed")) == (1, 19)


@pytest.mark.parametrize(("age", "requests"), [(THREE_DAYS, 1), (THIS_RUN, 2)])
def test_runs_at_once_share_an_answer_where_it_is_young_enough(
    tmp_path: Path, age: AnswerAge, requests: int
) -> None:
    """One of them asks, the other waits for it; each asks itself where only that counts."""

    class Slow(Scripted):
        async def complete(self, request: Request) -> Reply:
            await asyncio.sleep(0.1)
            return await super().complete(request)

    model = Slow(lambda _: Reply(text="so"))

    async def both(first: Ledger, second: Ledger) -> None:
        asking = []
        for ledger, run in ((first, "a"), (second, "b")):
            identity = RunIdentity(id=run, started=time.time())
            caller = Caller(ledger, CallSettings(), lambda *_: 0.0, run=identity)
            meter = Meter(price=lambda *_: 0.0)
            asking.append(AnswerAges(caller).asking(meter, age)(model, ask_for("q")))
        await asyncio.gather(*asking)

    with Ledger(tmp_path / "l") as first, Ledger(tmp_path / "l") as second:
        asyncio.run(both(first, second))
    assert len(model.requests) == requests
