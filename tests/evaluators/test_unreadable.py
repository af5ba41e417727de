"""A judge that cannot be read costs ten items of a slice, and two slices at the most."""

from dataclasses import replace
from pathlib import Path

from qagate.evaluators import core
from qagate.evaluators.judges.rubric_judge import RubricJudge
from qagate.evaluators.runtime.caller import CallSettings
from qagate.evaluators.runtime.task import Task
from qagate.evaluators.runtime.unreadable import IN_A_ROW, UNREADABLE
from tests.support.engine_bench import Bench, prompted
from tests.support.scripted import Scripted, make_case, make_rubric

ONE_AT_A_TIME = CallSettings(concurrency=1)
IN_HAND = 2
"""Items at work at a time, with one call at a time."""


def mumbling(request: core.Request) -> core.Reply:
    return core.Reply(text="A or B")


def answering() -> Scripted:
    return Scripted(lambda request: core.Reply(text="София"), spec="openai:model")


def judged_by(judge: Scripted, *languages: str, each: int = 30) -> list[Task]:
    """Return tasks of one slice a language, all judged by the same model."""
    model = answering()
    rubric_judge = RubricJudge(model=judge, rubric=make_rubric("letter"))
    tasks = []
    for language in languages:
        for number in range(each):
            task = prompted(number, model)
            case = make_case(number, language=language, question=f"{language} {number}")
            key = f"{language}-{number}"
            tasks.append(replace(task, key=key, case=case, judge=rubric_judge))
    return tasks


def ended(outcomes: dict[str, core.Outcome], language: str) -> list[core.Outcome]:
    return [outcomes[key] for key in outcomes if key.startswith(language)]


def test_ten_unreadable_verdicts_in_a_row_stop_a_slice(tmp_path: Path) -> None:
    """Each of them is asked for twice; the other items are not asked at all."""
    judge = Scripted(mumbling, spec="openai:judge")
    outcomes = Bench(tmp_path, judged_by(judge, "bg"), ONE_AT_A_TIME).run()
    assert 2 * IN_A_ROW <= len(judge.requests) <= 2 * (IN_A_ROW + IN_HAND)
    assert {outcome.kind for outcome in outcomes.values()} == {UNREADABLE}
    unasked = [one for one in outcomes.values() if one.state == "missing"]
    assert len(unasked) >= 30 - IN_A_ROW - IN_HAND
    assert unasked[0].message.startswith("simpleqa:bg: 10 verdicts in a row")


def test_a_stopped_slice_leaves_the_others_alone(tmp_path: Path) -> None:
    def grade(request: core.Request) -> core.Reply:
        is_bulgarian = "bg " in request.messages[-1].content
        return core.Reply(text="A or B" if is_bulgarian else "A")

    judge = Scripted(grade, spec="openai:judge")
    outcomes = Bench(tmp_path, judged_by(judge, "bg", "pl"), ONE_AT_A_TIME).run()
    assert {one.state for one in ended(outcomes, "pl")} == {"passed"}
    assert "missing" in {one.state for one in ended(outcomes, "bg")}


def test_a_second_slice_that_cannot_be_read_ends_the_run(tmp_path: Path) -> None:
    judge = Scripted(mumbling, spec="openai:judge")
    bench = Bench(tmp_path, judged_by(judge, "bg", "pl", "en"), ONE_AT_A_TIME)
    outcomes = bench.run()
    assert {one.state for one in ended(outcomes, "en")} == {"missing"}
    assert len(judge.requests) <= 2 * 2 * (IN_A_ROW + IN_HAND)
    assert bench.engine.status.stops[UNREADABLE].startswith("simpleqa:bg")


def test_a_readable_verdict_in_between_begins_the_count_anew(tmp_path: Path) -> None:
    def grade(request: core.Request) -> core.Reply:
        question = request.messages[-1].content.split('"')[1]
        return core.Reply(text="A" if question.endswith(("0", "5")) else "A or B")

    judge = Scripted(grade, spec="openai:judge")
    outcomes = Bench(tmp_path, judged_by(judge, "bg"), ONE_AT_A_TIME).run()
    assert {one.state for one in outcomes.values()} == {"passed", "error"}


def test_what_is_kept_of_a_stopped_slice_counts(tmp_path: Path) -> None:
    """Items that another run has paid for are graded, and nothing more is sent."""
    good = Scripted(lambda request: core.Reply(text="A"), spec="openai:judge")
    kept = judged_by(good, "bg")[20:]
    Bench(tmp_path, kept, ONE_AT_A_TIME).run()
    judge = Scripted(mumbling, spec="openai:judge")
    outcomes = Bench(tmp_path, judged_by(judge, "bg"), ONE_AT_A_TIME).run()
    assert [outcomes[task.key].state for task in kept] == ["passed"] * 10
    assert outcomes["bg-15"].state == "missing"
