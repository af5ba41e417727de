"""The forecast is the run's own: the calls that items would take, and what they cost."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace

import pytest

from qagate.cases.tasks import PromptedAnswer, RecordedAnswer
from qagate.evaluators import core
from qagate.evaluators.answers.reader import read_text
from qagate.evaluators.extras.lexical.judge import LexicalJudge
from qagate.evaluators.extras.panel.cascade import CascadeJudge
from qagate.evaluators.extras.panel.panel import PanelJudge
from qagate.evaluators.judges.rubric_judge import RubricJudge
from qagate.evaluators.kept_requests import request_key
from qagate.evaluators.models.pricing import PriceTier, Pricing
from qagate.evaluators.models.spec import Prices, Spec, parse
from qagate.evaluators.runtime.answer_ages import THIS_RUN
from qagate.evaluators.runtime.forecast import (
    NOTHING_KEPT,
    Call,
    Forecast,
    GradedBy,
    KeptReplies,
    calls_ahead,
    canary_calls,
    judged_anew,
    make_forecast,
    reading_calls,
    why_anew,
)
from qagate.evaluators.runtime.task import ReadingTask, Task
from tests.support.engine_bench import correct
from tests.support.figures import some
from tests.support.scripted import (
    PROMPT,
    Scripted,
    kept_in,
    make_case,
    make_rubric,
)


def model(spec: str) -> Scripted:
    return Scripted(lambda request: pytest.fail("asked"), spec=spec)


def choice(spec: str, system: str = "") -> RubricJudge:
    return RubricJudge(model=model(spec), rubric=make_rubric(system=system))


ANSWERER = PromptedAnswer(model=model("m"), prompt=PROMPT)


def ahead(
    judge: core.Judge,
    recorded: str | None = None,
    answerer: core.Answerer = ANSWERER,
    kept: Mapping[str, core.Reply] | None = None,
) -> list[Call]:
    """Return the calls for an item that a model answers, unless its answer is recorded."""
    case = make_case(recorded=recorded)
    answerer = RecordedAnswer() if recorded else answerer
    task = Task(
        key="k", case=case, repeat=1, answerer=answerer, judge=judge, passes=correct
    )
    return asyncio.run(calls_ahead(task, kept_in(kept or {})))


def specs_of(calls: list[Call]) -> list[tuple[str, bool]]:
    return [(call.spec, call.kept) for call in calls]


def test_judges_are_foreseen() -> None:
    """Any that may be asked while the answer is unknown; of known answers those that will be."""
    panel = PanelJudge(judges=(choice("a"), choice("b")))
    assert specs_of(ahead(panel)) == [("m", False), ("a", False), ("b", False)]
    cascade = CascadeJudge(rules=LexicalJudge(), model=choice("a"))
    assert specs_of(ahead(cascade)) == [("m", False), ("a", False)]
    assert ahead(cascade, recorded="София") == []
    assert specs_of(ahead(choice("a"), recorded="Пловдив")) == [("a", False)]
    assert ahead(choice("a"), answerer=RecordedAnswer()) == []


def test_what_is_kept_is_free_and_followed() -> None:
    """A kept answer leads to its own judgement, which may be kept as well."""
    first, guess = ahead(choice("a"))
    assert (first.kept, guess.kept) == (False, False)
    kept = {
        request_key(ANSWERER.model.identity, first.request): core.Reply(text="Пловдив")
    }
    _, second = ahead(choice("a"), kept=kept)
    assert second.request != guess.request
    call = core.ToolCall(
        name="grade", arguments='{"reason": "r", "grade": "INCORRECT"}'
    )
    kept[request_key(model("a").identity, second.request)] = core.Reply(calls=(call,))
    assert specs_of(ahead(choice("a"), kept=kept)) == [("m", True), ("a", True)]


def test_calls_add_up() -> None:
    """Kept calls take nothing; an unknown price makes the sum unknown, not smaller."""
    spec: Spec = parse("openai:m", {})
    prices = Prices(input=0, output=1e4)
    tariff = Pricing(tiers=(PriceTier(above=0, prices=prices),), source="t")
    (call, _) = ahead(choice("m"))
    kept = Call(spec="m", request=call.request, kept=True)
    total = make_forecast([call, kept, call], {"m": spec}, {"m": tariff}, set())
    assert (total.calls, total.kept, total.tokens_out) == (3, 1, 200)
    assert total.cost == 2.0
    assert total.most == 2 * 40.96
    unknown = make_forecast([call], {"m": spec}, {"m": None}, set())
    assert (unknown.cost, unknown.cached, unknown.most) == (None, None, None)
    assert ((total + unknown).cost, (total + unknown).known) == (None, 2.0)
    assert Forecast() + total == total


def test_a_rubric_is_paid_for_once_where_a_provider_keeps_it() -> None:
    """The first call writes it, all others read it; what an item adds is paid for by each. A short
    rubric is kept by nobody, and calls without one have nothing in common."""
    spec = parse("anthropic:m", {})
    prices = Prices(input=10, output=0, cache_read=1, cache_write=12.5)
    tariff = Pricing(tiers=(PriceTier(above=0, prices=prices),), source="t")
    calls = ahead(choice("m", "Correct is what is so. " * 500), recorded="Пловдив") * 11
    total = make_forecast(calls, {"m": spec}, {"m": tariff}, set())
    assert 0.15 < some(total.cached) / some(total.cost) < 0.25
    for one in (choice("m", "Correct is what is so."), choice("m")):
        found = ahead(one, recorded="Пловдив") * 3
        alike = make_forecast(found, {"m": spec}, {"m": tariff}, set())
        assert alike.cached == alike.cost


# What is judged besides the run's own answers


def letter_judge(spec: str = "a") -> RubricJudge:
    return RubricJudge(model=model(spec), rubric=make_rubric("letter"))


def with_reading(answer: str, own: str = "София") -> Task:
    """Return an item with a recorded answer, and an earlier answer to read."""
    case = make_case(1, recorded=own)
    judge = letter_judge()
    reading = ReadingTask(
        case=case, judge=judge, passes=correct, answer=read_text(answer)
    )
    return Task(
        key="k",
        case=case,
        repeat=1,
        answerer=RecordedAnswer(),
        judge=judge,
        passes=correct,
        readings={"baseline": reading},
    )


def readings_ahead(task: Task, kept: KeptReplies) -> list[Call]:
    calls_of_item = asyncio.run(calls_ahead(task, kept))
    return asyncio.run(reading_calls(task, kept, calls_of_item))["baseline"]


def test_an_earlier_answer_is_read_by_a_call_of_its_own() -> None:
    assert specs_of(readings_ahead(with_reading("Варна"), NOTHING_KEPT)) == [
        ("a", False)
    ]


def test_the_same_answer_needs_no_second_call() -> None:
    assert readings_ahead(with_reading("София"), NOTHING_KEPT) == []


def test_a_kept_grade_of_an_earlier_answer_is_free() -> None:
    task = with_reading("Варна")
    (call,) = readings_ahead(task, NOTHING_KEPT)
    kept = {request_key(model("a").identity, call.request): core.Reply(text="B")}
    assert specs_of(readings_ahead(task, kept_in(kept))) == [("a", True)]


def test_a_void_grade_of_an_earlier_answer_is_not() -> None:
    task = with_reading("Варна")
    (call,) = readings_ahead(task, NOTHING_KEPT)
    replies = {request_key(model("a").identity, call.request): core.Reply(text="B")}
    kept = replace(kept_in(replies), counts_since=lambda _: 2.0)
    assert specs_of(readings_ahead(task, kept)) == [("a", False)]


def test_of_the_baselines_model_no_kept_answer_is_free() -> None:
    """A run asks it anew, so that a dry run must not call it free."""
    task = replace(with_reading(""), answerer=ANSWERER, age=THIS_RUN)
    request = item_ahead(task)[0].request
    kept = {request_key(model("m").identity, request): core.Reply(text="да")}
    assert specs_of(item_ahead(task, kept))[0] == ("m", False)


def item_ahead(task: Task, kept: Mapping[str, core.Reply] | None = None) -> list[Call]:
    return asyncio.run(calls_ahead(task, kept_in(kept or {})))


def labelled(number: int, answer: str) -> Task:
    return replace(
        with_reading("", own=answer),
        key=f"k{number}",
        case=make_case(number, recorded=answer),
        readings={},
        is_labelled=True,
    )


def test_kept_grades_are_asked_anew_as_canaries() -> None:
    """As many as the run will ask: 45 of 60 that do not pass, and all of 7 that do."""
    tasks = [labelled(number, f"wrong {number}") for number in range(60)]
    tasks += [labelled(number, f"right {number}") for number in range(100, 107)]
    replies = {}
    for task in tasks:
        (call,) = item_ahead(task)
        grade = "A" if task.case.recorded.startswith("right") else "B"  # type: ignore[union-attr]
        key = request_key(model("a").identity, call.request)
        replies[key] = core.Reply(text=grade)
    calls = asyncio.run(canary_calls(tasks, kept_in(replies)))
    assert specs_of(calls) == [("a", False)] * (45 + 7)


def test_where_no_grade_is_kept_there_are_no_canaries_ahead() -> None:
    assert asyncio.run(canary_calls([labelled(1, "x")], NOTHING_KEPT)) == []


BEFORE = GradedBy(judge="openai:j", rubric="simpleqa.en@1")


@pytest.mark.parametrize(
    ("now", "why"),
    [
        (replace(BEFORE, judge="openai:k"), "the judge was openai:j"),
        (replace(BEFORE, rubric="simpleqa.en@2"), "the rubric changed"),
        (replace(BEFORE, fresh="r2"), "--fresh r2"),
        (BEFORE, "their grades are not kept here, or are void"),
    ],
)
def test_why_answers_are_judged_anew(now: GradedBy, why: str) -> None:
    assert why_anew(BEFORE, now) == why


def test_what_is_judged_anew_is_said_in_words() -> None:
    assert judged_anew(1690, "v1", "the rubric changed") == (
        "1,690 answers of v1 are judged anew: the rubric changed"
    )
