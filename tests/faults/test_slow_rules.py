"""Rules that take long hold up nobody; a text that repeats costs no more than its length."""

import ast
import asyncio
import importlib
import pkgutil
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from pydantic import BaseModel

from qagate import cases, evaluators, reports
from qagate.cases.extras.builder.sampling import clean
from qagate.evaluators.core import (
    Ask,
    Case,
    JudgeError,
    Message,
    Outcome,
    ReadAnswer,
    Reply,
    Request,
    Verdict,
)
from qagate.evaluators.extras.deepeval.metric import read_text
from qagate.evaluators.extras.lexical.judge import LexicalJudge, grade
from qagate.evaluators.extras.lexical.overlap import rate
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.rubric import encode
from qagate.evaluators.runtime import engine
from qagate.evaluators.runtime.caller import Caller, CallSettings
from qagate.evaluators.runtime.engine import Engine
from qagate.evaluators.runtime.outcomes import OutcomeWriter
from qagate.evaluators.runtime.schedule import Schedule
from qagate.evaluators.runtime.task import Task
from qagate.evaluators.text import mask, one_line
from qagate.evaluators.user_code import SHORT, off_the_loop
from tests.support.fixtures import Patch
from tests.support.projects import Project
from tests.support.scripted import make_case
from tests.support.tables import kept, tabled

REQUEST = Request(messages=(Message(role="user", content="?"),))


HELD: str = kept(__file__, "held")


async def no_ask(model: object, request: Request) -> Reply:
    raise AssertionError(request)


async def ticking(ticks: list[float]) -> None:
    while True:
        ticks.append(time.monotonic())
        await asyncio.sleep(0.01)


def test_the_loop_goes_on_beside_a_slow_rule() -> None:
    """A rule that computes leaves the loop free, and its verdict counts."""
    ticks: list[float] = []

    def work(ask: Ask) -> int:
        end = time.monotonic() + 30
        while len(ticks) <= 5 and time.monotonic() < end:
            pass
        return 7

    async def run() -> int:
        ticker = asyncio.create_task(ticking(ticks))
        result = await off_the_loop("python:m:C", work, no_ask)
        ticker.cancel()
        return result

    assert asyncio.run(run()) == 7
    assert len(ticks) > 5


def test_a_rules_own_time_out_is_not_ours() -> None:
    """What the rule raises is passed on."""

    def work(ask: Ask) -> None:
        raise TimeoutError(ask)

    with pytest.raises(TimeoutError, match="ask_from_thread"):
        asyncio.run(off_the_loop("python:m:C", work, no_ask))


def test_asking_a_model_takes_none_of_the_rules_time() -> None:
    """A judge of one's own may ask, from its own loop; what it waits for is not its slowness."""
    loops: list[object] = []

    async def ask(model: object, request: Request) -> Reply:
        loops.append(asyncio.get_running_loop())
        await asyncio.sleep(0.5)
        return Reply(text="fine")

    async def both(there: Ask) -> Sequence[Reply]:
        return await asyncio.gather(there(None, REQUEST), there(None, REQUEST))  # type: ignore[arg-type]

    async def run() -> str:
        loops.append(asyncio.get_running_loop())
        replies = await off_the_loop(
            "p", lambda there: asyncio.run(both(there)), ask, 0.2
        )
        return " ".join(reply.text for reply in replies)

    assert asyncio.run(run()) == "fine fine"
    assert len(set(map(id, loops))) == 1


def test_a_judge_that_is_given_up_asks_nothing_more() -> None:
    """``judge_timeout`` names judge and seconds (S3); a rule whose time is up spends nothing."""
    asked: list[Request] = []
    ends: list[BaseException] = []
    over = threading.Event()

    async def ask(model: object, request: Request) -> Reply:
        asked.append(request)
        return Reply(text="fine")

    async def late(there: Ask) -> None:
        time.sleep(0.3)  # what it does wrong
        try:
            await there(None, REQUEST)  # type: ignore[arg-type]
        except RuntimeError as error:
            ends.append(error)
        over.set()

    async def run() -> None:
        with pytest.raises(JudgeError, match=r"p: no verdict within 0\.1 s") as caught:
            await off_the_loop("p", lambda there: asyncio.run(late(there)), ask, 0.1)
        assert caught.value.kind == "judge_timeout"
        await asyncio.to_thread(over.wait, 10)

    asyncio.run(run())
    assert len(ends) == 1
    assert asked == []


@pytest.mark.parametrize("length", [SHORT, SHORT + 1])
def test_a_long_answer_gets_the_same_verdict(length: int) -> None:
    """The lexical judge says the same with a thread and without one."""
    case, answer = make_case(1), "Sofia. ".ljust(length, "-")
    assert asyncio.run(LexicalJudge().judge(case, answer, no_ask)) == grade(
        case, answer
    )


class Beats(OutcomeWriter):
    def __init__(self) -> None:
        self.times: list[float] = []
        self.posted: list[Outcome] = []

    def beat(self) -> None:
        self.times.append(time.monotonic())

    def post(self, outcomes: Sequence[Outcome]) -> None:
        self.posted.extend(outcomes)

    def end(self, message: str) -> None:
        pass


class Blocking:
    spec = "rule:blocking"

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        time.sleep(1.0)
        return Verdict(grade="CORRECT")


class Said:
    spec = "recorded"

    async def answer(self, case: Case, repeat: int, ask: Ask) -> ReadAnswer:
        return ReadAnswer(text="fine")


@pytest.mark.parametrize(("stuck", "beats"), [(300.0, True), (0.05, False)])
def test_the_heart_beats(
    tmp_path: Path, monkeypatch: Patch, stuck: float, beats: bool
) -> None:
    """A loop held up for a moment is not a lost engine; one held up for minutes is (S3)."""
    monkeypatch.setattr(engine, "STUCK_SECONDS", stuck)
    monkeypatch.setattr(engine, "BEAT_SECONDS", 0.1)
    writer = Beats()
    task = Task(
        key="k", case=make_case(1), repeat=1, answerer=Said(), judge=Blocking(),
        passes=lambda case, verdict: True,
    )  # fmt: skip
    with Ledger(tmp_path / "ledger") as ledger:
        caller = Caller(
            ledger, CallSettings(ledger=tmp_path / "ledger"), lambda *_: None
        )
        schedule = Schedule(["k"], 2)
        schedule.select(["k"])
        began = time.monotonic()
        asyncio.run(Engine({"k": task}, caller, writer, 1).run(schedule))
    assert [one.state for one in writer.posted] == ["passed"]
    assert any(0.3 < when - began < 0.9 for when in writer.times) is beats


@pytest.mark.slow
def test_an_engine_that_is_held_up_is_ended_and_names_the_item(
    project: Project,
) -> None:
    """``--deadline`` holds, and the line says which item and what to do, on every run (S3)."""
    project.dataset("capital", {"en": ["Sofia"] * 3})
    project.write("held.py", HELD)
    words = (
        "--judge",
        "python:held:Held",
        "--deadline",
        "1",
        "qa",
    )
    for _ in range(2):
        done = project.run(*words)
        assert done.ret == 6
        said = " ".join(done.stdout.str().split())
        assert "was held up and ended" in said
        assert "while code of yours judged or answered capital-en-q" in said


def test_a_judge_ends_with_the_run(project: Project) -> None:
    """No matter what a judge does after the run's time is up, its item is MISSING, not an ERROR."""
    project.dataset("capital", {"en": ["Sofia"]})
    project.write(
        "held.py", HELD.replace("re.match", "__import__('time').sleep(60); str")
    )
    words = (
        "--judge",
        "python:held:Held",
        "--deadline",
        "0.5",
        "qa",
    )
    assert project.run_in_process(*words).ret == 6
    assert [record["outcome"] for record in project.records()] == ["missing"]
    assert "(--deadline)" in str(project.records()[0]["error"])


LENGTH = 16_000  # characters
SECONDS = 1.0  # a rule that takes quadratic time needs half a minute
UNITS = kept(__file__, "units")
QUESTIONS = kept(__file__, "questions")
GOLDS = {
    "name": ("Sofia",),
    "date": ("12 May 1921", "1921"),
    "many": ("Paris", *"ABCDEFGHIJKLM"),
}


class Scored(BaseModel):
    """What one of deepeval's metrics asks for."""

    score: float


READERS: dict[str, Callable[[str], object]] = {
    "paragraphs": clean,
    "deepeval": lambda text: read_text(Scored, Reply(text=text)),
    "fence": lambda text: read_text(Scored, Reply(text=f"```{text}x")),
    "mask": mask,
    "line": one_line,
    "slot": encode,
}


@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_time_in_proportion(name: str) -> None:
    """No repeated unit makes 16,000 characters cost a second."""
    assert slow_units(READERS[name]) == {}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("language", "golds"),
    [*((one, "many") for one in QUESTIONS), ("en", "name"), ("be", "date")],
)
def test_rules_take_time_in_proportion(language: str, golds: str) -> None:
    """Neither the lexical judge nor its rater needs a second for 16,000 characters (S3)."""
    question = QUESTIONS[language]
    case = Case(
        id="q",
        dataset="",
        language=language,
        row=1,
        question=question,
        golds=GOLDS[golds],
    )
    assert slow_units(lambda answer: grade(case, answer)) == {}
    assert slow_units(lambda answer: rate(case, answer)) == {}


def test_the_limit_holds_for_what_is_read() -> None:
    """One character may be eighteen once it is in its compatible form: they are what counts."""
    case = Case(
        id="q", dataset="d", language="en", row=1, question="Who?", golds=("Sofia",)
    )
    start = time.process_time()
    verdict = grade(case, "Sofia. " + "ﷺ" * LENGTH)
    assert time.process_time() - start < SECONDS
    assert not verdict.sure


def slow_units(read: Callable[[str], object]) -> dict[str, float]:
    """Return the CPU seconds that texts of one repeated unit took, where they are too many."""
    read("warm")
    slow = {}
    for unit in UNITS:
        text = (unit * (LENGTH // len(unit) + 1))[:LENGTH]
        start = time.process_time()
        read(text)
        slow[unit] = time.process_time() - start
    return {unit: spent for unit, spent in slow.items() if spent > SECONDS}


# Patterns


def modules() -> Iterator[Any]:
    for package in (cases, evaluators, reports):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith(".__main__") and ".test_" not in found.name:
                yield importlib.import_module(found.name)


def written_patterns(module: Any) -> Iterator[str]:
    """Yield the patterns that a module's functions give to ``re`` as they stand."""
    tree = ast.parse(Path(module.__file__).read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        called = node.func if isinstance(node, ast.Call) else None
        if isinstance(called, ast.Attribute) and ast.unparse(called.value) == "re":
            first = node.args[0]  # type: ignore[attr-defined]
            if isinstance(first, ast.Constant):
                yield str(first.value)


REPEATS = {"MAX_REPEAT", "MIN_REPEAT"}
PARTS: dict[str, Callable[[Any], list[Any]]] = {
    **dict.fromkeys([*REPEATS, "POSSESSIVE_REPEAT"], lambda value: [value[2]]),
    **dict.fromkeys(["ASSERT", "ASSERT_NOT"], lambda value: [value[1]]),
    "SUBPATTERN": lambda value: [value[3]],
    "BRANCH": lambda value: value[1],
    "ATOMIC_GROUP": lambda value: [value],
}


def is_nested(parsed: Any, *, inside: bool = False) -> bool:
    """Say whether something repeated without bound holds what is repeated without bound."""
    for name, value in parsed:
        kind = str(name)
        repeated = kind in REPEATS and value[1] is _parser.MAXREPEAT
        if repeated and inside:
            return True
        kept = kind in REPEATS or kind in {"SUBPATTERN", "BRANCH"}
        parts = PARTS[kind](value) if kind in PARTS else []
        if any(is_nested(part, inside=kept and (inside or repeated)) for part in parts):
            return True
    return False


@tabled("pattern", "nested")
def test_a_nested_repetition_is_seen(pattern: str, nested: bool) -> None:
    """The check knows what it is to find."""
    assert is_nested(_parser.parse(pattern)) is nested


@pytest.mark.slow
def test_no_pattern_repeats_a_repetition() -> None:
    """No regular expression of the product can be made to try exponentially many ways (C5)."""
    patterns = {}
    for module in modules():
        for name, value in vars(module).items():
            if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
                patterns[f"{module.__name__}.{name}"] = value.pattern
        for number, text in enumerate(written_patterns(module)):
            patterns[f"{module.__name__} {number}"] = text
    assert len(patterns) > 100
    assert {
        name for name, text in patterns.items() if is_nested(_parser.parse(text))
    } == set()
