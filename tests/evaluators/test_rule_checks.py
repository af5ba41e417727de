"""Rules before a model: of what they settle, the model judges some; counted at its server."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from qagate.cases.tasks import RecordedAnswer
from qagate.evaluators import core
from qagate.evaluators.core import CORRECT, INCORRECT, Reply, Request
from qagate.evaluators.extras.panel.cascade import CascadeJudge
from qagate.evaluators.judges.rubric_judge import RubricJudge
from qagate.evaluators.judges.rule_checks import (
    checks_in_part,
    in_drawn_order,
    rules_of,
)
from qagate.evaluators.ledger import LedgerError
from qagate.evaluators.run_identity import RunIdentity
from qagate.evaluators.runtime.budget import Budget
from qagate.evaluators.runtime.caller import CallSettings
from qagate.evaluators.runtime.forecast import NOTHING_KEPT, rule_check_calls
from qagate.evaluators.runtime.outcomes import Status
from qagate.evaluators.runtime.task import Task
from tests.evaluators.test_canaries import Waves
from tests.support.engine_bench import Bench, correct
from tests.support.scripted import Scripted, make_case, make_rubric


@dataclass(frozen=True)
class SureRules:
    """Rules that call every answer right, and are sure of those that say so."""

    spec: str = "python:rules:Sure"

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        return core.Verdict(grade=CORRECT, sure=answer.startswith("sure"))


@dataclass
class World:
    """A cascade, and runs over recorded answers on one ledger."""

    folder: Path
    settled: int = 100
    left: int = 20
    """Answers that the rules leave to the model."""
    languages: tuple[str, ...] = ("bg",)
    reply: Callable[[Request], Reply] = lambda request: Reply(text="A")
    model: Scripted = field(init=False)

    def __post_init__(self) -> None:
        self.model = Scripted(self.reply, spec="openai:judge")

    @property
    def judge(self) -> CascadeJudge:
        asked = RubricJudge(model=self.model, rubric=make_rubric("letter"))
        return CascadeJudge(rules=SureRules(), model=asked)

    @property
    def tasks(self) -> list[Task]:
        tasks = []
        for language in self.languages:
            for number in range(self.settled + self.left):
                word = "sure" if number < self.settled else "perhaps"
                answer = f"{word} {language} {number}"
                task = Task(
                    key=f"{language}-{number}",
                    case=make_case(number, language=language, recorded=answer),
                    repeat=1,
                    answerer=RecordedAnswer(),
                    judge=self.judge,
                    passes=correct,
                )
                tasks.append(task)
        return tasks

    def run(
        self,
        run: str = "first",
        *,
        most: int = 60,
        replay: bool = False,
        budget: Budget | None = None,
    ) -> Status:
        bench = Bench(
            self.folder,
            self.tasks,
            CallSettings(concurrency=8, replay=replay),
            budget,
            RunIdentity(id=run, started=0.0),
            checked_answers=most,
        )
        bench.run(window=10_000)
        bench.engine.close()
        return bench.engine.status


def test_sixty_settled_answers_of_each_slice_go_to_the_model_once(
    tmp_path: Path,
) -> None:
    """A10: without them nothing says how often the rules are right on a run's own answers."""
    world = World(tmp_path, languages=("bg", "en"))
    status = world.run()
    assert len(status.rule_checks) == 2 * 60
    assert set(status.rule_checks.values()) == {CORRECT}
    assert len(world.model.requests) == 2 * (60 + 20)
    assert status.judges_usage.requests == 2 * 60


def test_all_are_checked_where_rules_settle_fewer(tmp_path: Path) -> None:
    status = World(tmp_path, settled=7).run()
    assert sorted(status.rule_checks) == sorted(f"bg-{number}" for number in range(7))


def test_the_same_answers_are_checked_however_fast_they_come(tmp_path: Path) -> None:
    """In a replay too, which asks nothing."""
    world = World(tmp_path)
    first = world.run()
    asked = len(world.model.requests)
    again = world.run(replay=True)
    assert again.rule_checks == first.rule_checks
    drawn = in_drawn_order(f"bg-{number}" for number in range(120))
    settled = [key for key in drawn if int(key.removeprefix("bg-")) < 100]
    assert set(first.rule_checks) == set(settled[:60])
    assert len(world.model.requests) == asked


def test_a_later_run_on_the_ledger_pays_for_no_check_again(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.run()
    asked = len(world.model.requests)
    status = world.run("second")
    assert len(world.model.requests) == asked
    assert len(status.rule_checks) == 60


def test_what_the_model_says_stands_beside_the_rules_verdict(tmp_path: Path) -> None:
    status = World(tmp_path, reply=lambda request: Reply(text="B")).run()
    assert set(status.rule_checks.values()) == {INCORRECT}


def test_a_check_without_a_grade_says_so(tmp_path: Path) -> None:
    def refuse(request: Request) -> Reply:
        raise core.RefusedError("refused", "no")

    status = World(tmp_path, left=0, reply=refuse).run()
    assert list(status.rule_checks.values()) == [""] * 60
    assert status.failure == ""


def test_a_ledger_that_keeps_nothing_ends_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(request: Request) -> Reply:
        raise LedgerError("disk full")

    status = World(tmp_path, left=0, reply=full).run()
    assert status.failure == "disk full"


def test_shards_share_the_checks_of_a_slice(tmp_path: Path) -> None:
    assert [checks_in_part(parts) for parts in (1, 8, 60, 100)] == [60, 8, 1, 1]
    status = World(tmp_path).run(most=checks_in_part(8))
    assert len(status.rule_checks) == 8


def test_in_batches_checks_take_one_more_wave_at_most(tmp_path: Path) -> None:
    world = World(tmp_path, settled=70, left=10)
    bench = Bench(tmp_path, world.tasks, run=RunIdentity(id="first", started=0.0))
    route = Waves(bench.ledger)
    bench.engine._caller.route = route
    bench.run(window=10_000)
    assert len(bench.engine.status.rule_checks) == 60
    assert len(route.waves) <= 2
    assert sum(map(len, route.waves)) == 60 + 10


def test_checks_of_known_answers_are_foreseen(tmp_path: Path) -> None:
    world = World(tmp_path, languages=("bg", "en"))
    calls = asyncio.run(rule_check_calls(world.tasks, NOTHING_KEPT, 60))
    assert len(calls) == 2 * 60
    world.run()
    asked = [request.messages for request in world.model.requests]
    assert all(call.request.messages in asked for call in calls)


def test_only_rules_before_a_model_are_checked(tmp_path: Path) -> None:
    assert rules_of("lexical+openai:j") == "lexical"
    assert [rules_of(judge) for judge in ("lexical", "openai:j", "a b")] == [""] * 3
