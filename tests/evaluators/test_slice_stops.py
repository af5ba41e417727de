"""What fails at every item of a slice costs ten items, and says why."""

from dataclasses import replace
from pathlib import Path

from qagate.evaluators import core
from qagate.evaluators.judges.rubric_judge import RubricJudge
from qagate.evaluators.kept_requests import request_key
from qagate.evaluators.runtime.caller import CallSettings, RetryPolicy
from qagate.evaluators.runtime.server import TIMEOUT
from qagate.evaluators.runtime.slice_stops import IN_A_ROW, SLICE_STOPPED, UNREADABLE
from qagate.evaluators.runtime.task import Task
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


def talking_without_end_in(language: str) -> Scripted:
    """Return a model whose calls time out in one language, and are answered at once else."""

    def answer(request: core.Request) -> core.Reply:
        if request.messages[-1].content.startswith(language):
            raise core.TransientError("timeout", "no reply in time")
        return core.Reply(text="CORRECT", output_tokens=1)

    return Scripted(answer, spec="openai:model")


def asked_of(model: Scripted, *languages: str, each: int = 30) -> list[Task]:
    """Return tasks of one slice a language, graded by their own words."""
    tasks = []
    for language in languages:
        for number in range(each):
            case = make_case(number, language=language, question=f"{language} {number}")
            task = prompted(number, model)
            tasks.append(replace(task, key=f"{language}-{number}", case=case))
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
    said = bench.engine.status.stops[SLICE_STOPPED]
    assert said.startswith("simpleqa:bg")
    assert said.endswith("; likewise simpleqa:pl")


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


NO_PAUSES = CallSettings(concurrency=1, retry=RetryPolicy(first=0, longest=0))


def test_a_language_without_an_end_costs_its_own_items_alone(tmp_path: Path) -> None:
    """Ten of its items at the most are waited for; the other language is graded whole."""
    model = talking_without_end_in("bg")
    bench = Bench(tmp_path, asked_of(model, "bg", "pl"), NO_PAUSES)
    outcomes = bench.run()
    assert {one.state for one in ended(outcomes, "pl")} == {"passed"}
    assert {one.kind for one in ended(outcomes, "bg")} == {TIMEOUT}
    tried = [one for one in ended(outcomes, "bg") if one.state == "error"]
    assert IN_A_ROW <= len(tried) <= IN_A_ROW + IN_HAND
    stop = bench.engine.status.stops[SLICE_STOPPED]
    assert stop.startswith("simpleqa:bg: 10 items in a row had no reply in time")


def test_after_a_time_out_other_slices_go_first(tmp_path: Path) -> None:
    """The items in hand are tried again; all others of the slice wait for the others' end."""
    model = talking_without_end_in("bg")
    Bench(tmp_path, asked_of(model, "bg", "pl"), NO_PAUSES).run(first=4)
    order = [request.messages[-1].content for request in model.requests]
    last_polish = max(order.index(f"pl {number}") for number in range(30))
    bulgarian = {text for text in order[:last_polish] if text.startswith("bg")}
    assert len(bulgarian) <= IN_HAND + 1


def test_a_short_call_after_a_time_out_is_kept(tmp_path: Path) -> None:
    """It is paid for, so it stands in the ledger and in what its item cost."""
    model = talking_without_end_in("bg")
    bench = Bench(tmp_path, asked_of(model, "bg", each=1), NO_PAUSES)
    outcome = bench.run()["bg-0"]
    short_calls = [one for one in model.requests if "short call" in one.version]
    assert len(short_calls) == 1
    assert bench.ledger.get(request_key(model.identity, short_calls[0])) is not None
    assert outcome.usage.spent == 0.5


def test_a_short_call_without_a_reply_leaves_the_item_its_time_out(
    tmp_path: Path,
) -> None:
    model = talking_without_end_in("")
    model.limits = core.Limits(item_deadline=0.2)
    outcome = Bench(tmp_path, asked_of(model, "bg", each=1), NO_PAUSES).run()["bg-0"]
    assert (outcome.state, outcome.usage.spent) == ("error", 0.0)
