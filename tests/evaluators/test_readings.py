"""Further answers are judged with their item, and never instead of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from qagate.evaluators import core
from qagate.evaluators.answers.reader import read_text
from qagate.evaluators.core import Outcome, Reply, Request
from qagate.evaluators.judges.rubric_judge import RubricJudge
from qagate.evaluators.runtime.task import ReadingTask, Task
from tests.support.engine_bench import (
    Bench,
    Echo,
    SomeCalls,
    correct,
    prompted,
    task,
)
from tests.support.scripted import Scripted, make_case, make_rubric


def reading(answer: str | None, judge: core.Judge | None = None) -> ReadingTask:
    return ReadingTask(
        case=make_case(1),
        judge=judge or Echo(),
        passes=correct,
        answer=None if answer is None else read_text(answer),
    )


def run(folder: Path, item: Task, **readings: ReadingTask) -> Outcome:
    """Return how an item with these readings ends."""
    outcomes = Bench(folder, [replace(item, readings=readings)]).run()
    return outcomes[item.key]


def test_an_earlier_answer_is_judged_with_its_item(tmp_path: Path) -> None:
    outcome = run(tmp_path, task(1, "CORRECT"), baseline=reading("INCORRECT"))
    assert outcome.state == "passed"
    assert outcome.readings["baseline"].state == "failed"
    assert outcome.readings["baseline"].answer == "INCORRECT"


def test_an_earlier_answer_is_judged_where_the_item_has_none(tmp_path: Path) -> None:
    """Otherwise the pair would lack both sides, and the item's worst case would be its best."""
    outcome = run(tmp_path, task(1, None), baseline=reading("CORRECT"))
    assert outcome.state == "error"
    assert outcome.readings["baseline"].state == "passed"


@pytest.mark.parametrize(
    ("answer", "kind"),
    [("unreadable", "judge_unreadable"), ("refused", "too_long"), ("bug", "internal")],
)
def test_a_reading_that_cannot_be_had_is_no_grade(
    tmp_path: Path, answer: str, kind: str
) -> None:
    outcome = run(tmp_path, task(1, "CORRECT"), baseline=reading(answer))
    read = outcome.readings["baseline"]
    assert (read.state, read.kind, read.verdict) == ("error", kind, None)
    assert outcome.state == "passed"


def test_an_earlier_run_without_an_answer_has_a_reading_without_a_grade(
    tmp_path: Path,
) -> None:
    outcome = run(tmp_path, task(1, "CORRECT"), baseline=reading(None))
    read = outcome.readings["baseline"]
    assert (read.state, read.kind) == ("missing", "no_earlier_answer")


def test_the_new_answer_may_be_read_once_more(tmp_path: Path) -> None:
    """By the golds of then, for instance: here by a judge that turns every grade."""
    new_then = replace(reading(None, Contrary()), reads_new_answer=True)
    outcome = run(tmp_path, task(1, "CORRECT"), then=new_then)
    assert outcome.readings["then"].answer == "CORRECT"
    assert outcome.readings["then"].state == "failed"


class Contrary:
    """Says the opposite of the answer."""

    spec = "contrary"

    async def judge(self, case: core.Case, answer: str, ask: core.Ask) -> core.Verdict:
        return core.Verdict(
            grade=core.INCORRECT if answer == core.CORRECT else core.CORRECT
        )


def test_without_a_new_answer_it_is_not_read_once_more(tmp_path: Path) -> None:
    new_then = replace(reading(None), reads_new_answer=True)
    outcome = run(tmp_path, task(1, None), then=new_then)
    assert outcome.readings["then"].kind == "no_recorded_answer"


# What readings cost


def letter(grade: str) -> Scripted:
    """Return a judge's model that gives one letter, at half a dollar a call."""
    return Scripted(lambda request: Reply(text=grade), spec="openai:judge")


def asking(model: core.Model) -> RubricJudge:
    return RubricJudge(model=model, rubric=make_rubric("letter"))


def test_a_reading_is_paid_by_its_item_and_is_no_part_of_answering(
    tmp_path: Path,
) -> None:
    model = Scripted(lambda request: Reply(text="новият отговор"))
    judge = asking(letter("A"))
    item = replace(prompted(1, model), judge=judge)
    outcome = run(tmp_path, item, baseline=reading("старият отговор", judge))
    assert (outcome.usage.requests, outcome.usage.spent) == (3, 1.5)
    assert (outcome.answering.requests, outcome.answering.spent) == (1, 0.5)
    assert outcome.readings["baseline"].usage.spent == 0.5


def test_the_same_answer_to_the_same_case_is_judged_by_one_call(tmp_path: Path) -> None:
    model = letter("A")
    judge = asking(model)
    item = replace(task(1, "същият отговор"), judge=judge)
    outcome = run(tmp_path, item, baseline=reading("същият отговор", judge))
    assert len(model.requests) == 1
    assert outcome.readings["baseline"].state == "passed"
    assert outcome.readings["baseline"].calls == outcome.calls


def test_readings_of_an_item_are_asked_side_by_side(tmp_path: Path) -> None:
    """Three waits of a server take as long as one: each call sees the others under way."""
    model = letter("A")
    item = replace(task(1, "първи отговор"), judge=asking(model))
    seen: list[int] = []
    bench = Bench(
        tmp_path,
        [
            replace(
                item,
                readings={
                    "baseline": reading("втори отговор", asking(model)),
                    "anchor": reading("трети отговор", asking(model)),
                },
            )
        ],
    )

    def note(request: Request) -> Reply:
        seen.append(len(bench.engine._caller._under_way))
        return Reply(text="A")

    model.handler = note
    bench.run()
    assert seen == [3, 3, 3]


def test_a_reading_for_which_no_money_is_left_is_missing(tmp_path: Path) -> None:
    judge = asking(letter("A"))
    item = replace(
        task(1, "нов отговор"),
        judge=judge,
        readings={"baseline": reading("стар отговор", judge)},
    )
    outcome = Bench(tmp_path, [item], budget=SomeCalls(1)).run()["k1"]
    read = outcome.readings["baseline"]
    assert (outcome.state, read.state, read.kind) == ("passed", "missing", "budget")


def test_a_ledger_that_keeps_no_reading_ends_the_run(tmp_path: Path) -> None:
    """What is paid for could not be kept: nothing more may be asked."""
    item = replace(task(1, "CORRECT"), readings={"baseline": reading("full")})
    bench = Bench(tmp_path, [item])
    bench.run()
    assert bench.engine.failure == "disk full"
