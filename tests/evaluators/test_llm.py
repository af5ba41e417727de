"""Judges: what is asked, when it is asked again, when nothing is; and ratings in parts."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.evaluators import core
from qagate.evaluators.judges.offline import YesNoJudge
from qagate.evaluators.judges.rubric_judge import (
    RubricJudge,
    ask_until_read,
    judge_messages,
)
from qagate.evaluators.kept_requests import request_key
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.replies.readers import Invalid, read_scores
from qagate.evaluators.rubric import (
    PASS_BAR,
    RUBRICS,
    Protocol,
    Rubric,
    combined,
    load_rubric,
)
from qagate.evaluators.runtime.caller import Meter
from tests.support.figures import some
from tests.support.recorded import caller
from tests.support.scripted import Scripted, ask_for, complete, make_case, make_rubric
from tests.support.tables import tabled


def replies(*given: core.Reply) -> Callable[[core.Request], core.Reply]:
    left = list(given)
    return lambda request: left.pop(0)


def judge_it(
    judge: core.Judge, answer: str = "Пловдив", golds: tuple[str, ...] = ("София",)
) -> core.Verdict:
    return asyncio.run(judge.judge(make_case(golds=golds), answer, complete))


def call(name: str, arguments: str) -> core.Reply:
    return core.Reply(calls=(core.ToolCall(name=name, arguments=arguments),))


def test_a_grade_comes_from_one_forced_call() -> None:
    """Reason first, then one of three words; temperature 0; the rubric's version is kept."""
    model = Scripted(
        replies(call("grade", '{"reason": "друг град", "grade": "INCORRECT"}'))
    )
    judge = RubricJudge(model=model, rubric=make_rubric("tool"))
    assert judge_it(judge) == core.Verdict(grade="INCORRECT", reason="друг град")
    (request,) = model.requests
    tool = some(request.tool)
    assert tool.name == "grade"
    assert list(tool.schema["properties"]) == ["reason", "grade"]  # type: ignore[call-overload]
    assert tool.schema["properties"]["grade"]["enum"] == list(core.GRADES)  # type: ignore[index]
    assert request.parameters["temperature"] == 0
    assert (request.version, request.repeat, request.attempt) == ("r.bg@1#abc", 1, 0)
    assert judge.spec == model.spec


def test_a_bare_protocol_has_no_place_for_a_reason() -> None:
    """The verdict is the function's one field, and a description promises no other."""
    chooser = Scripted(lambda _: call("grade", '{"grade": "INCORRECT"}'))
    rater = Scripted(lambda _: call("rate", '{"rating": 2}'))
    judge_it(RubricJudge(model=chooser, rubric=make_rubric("tool", bare=True)))
    judge_it(RubricJudge(model=rater, rubric=make_rubric("rate", bare=True)))
    for request in (*chooser.requests, *rater.requests):
        tool = some(request.tool)
        assert len(tool.schema["required"]) == 1  # type: ignore[arg-type]
        assert "reason" not in f"{tool}"


@pytest.mark.parametrize(
    ("protocol", "text"), [("letter", "A"), ("json", '{"grade": "CORRECT"}')]
)
def test_letters_and_json_are_asked_as_plain_text(
    protocol: Protocol, text: str
) -> None:
    """A rubric that asks for text gets no function to call."""
    model = Scripted(replies(core.Reply(text=text)))
    assert (
        judge_it(RubricJudge(model=model, rubric=make_rubric(protocol))).grade
        == core.CORRECT
    )
    assert model.requests[0].tool is None


def test_json_by_a_schema_has_the_fields_of_the_call() -> None:
    text = '{"reason": "друг град", "grade": "INCORRECT"}'
    model = Scripted(replies(core.Reply(text=text)))
    judge = RubricJudge(model=model, rubric=make_rubric("json_schema"))
    assert judge_it(judge) == core.Verdict(grade="INCORRECT", reason="друг град")
    (request,) = model.requests
    assert request.as_json
    assert list(some(request.tool).schema["properties"]) == ["reason", "grade"]  # type: ignore[call-overload]


def test_an_unreadable_reply_is_asked_again_and_a_readable_one_never() -> None:
    """The same prompt, a higher attempt; the first reading is final, two bad ones an error."""
    model = Scripted(
        replies(core.Reply(text="A or B"), core.Reply(text="B"), core.Reply(text="A"))
    )
    assert (
        judge_it(RubricJudge(model=model, rubric=make_rubric("letter"))).grade
        == "INCORRECT"
    )
    assert [request.attempt for request in model.requests] == [0, 1]
    assert model.requests[0].messages == model.requests[1].messages
    model = Scripted(
        replies(core.Reply(text="A", finish="length"), core.Reply(text="A\nB"))
    )
    words = "2 replies without a verdict: .*'length'; no single grade.*"
    with pytest.raises(core.JudgeError, match=words):
        judge_it(RubricJudge(model=model, rubric=make_rubric("letter")))
    assert [request.attempt for request in model.requests] == [0, 1]


@pytest.mark.parametrize(
    ("finishes", "advises"), [(("length", "length"), True), (("length", "stop"), False)]
)
def test_a_judge_whose_replies_are_all_cut_needs_more_tokens(
    *, finishes: tuple[str, str], advises: bool
) -> None:
    model = Scripted(
        replies(*[core.Reply(text="A or B", finish=finish) for finish in finishes])
    )
    with pytest.raises(core.JudgeError) as caught:
        judge_it(RubricJudge(model=model, rubric=make_rubric("letter")))
    assert ("raise the judge's max_tokens" in str(caught.value)) == advises


def test_a_judge_that_draws_its_replies_is_asked_three_times() -> None:
    """A model that takes no temperature may say something readable the third time."""
    model = Scripted(
        lambda _: core.Reply(text="A\nB"), limits=core.Limits(is_random=True)
    )
    with pytest.raises(core.JudgeError, match="3 replies without a verdict"):
        judge_it(RubricJudge(model=model, rubric=make_rubric("letter")))
    assert [request.attempt for request in model.requests] == [0, 1, 2]


def test_a_rating_comes_from_one_forced_call() -> None:
    """An integer from 1 to 10; an empty slot would read as an expert who says nothing."""
    model = Scripted(
        replies(call("rate", '{"rating": 11}'), call("rate", '{"rating": 9}'))
    )
    judge = RubricJudge(model=model, rubric=make_rubric("rate"))
    assert judge_it(judge, golds=("",)) == core.Verdict(rating=9)
    assert (
        "(none was given: judge by the context"
        in model.requests[1].messages[-1].content
    )
    assert [request.attempt for request in model.requests] == [0, 1]
    assert some(model.requests[0].tool).name == "rate"
    assert judge.spec == model.spec


def test_the_same_answer_may_be_judged_once_more() -> None:
    """A second judgement is a request of its own; nothing else in it differs."""
    model = Scripted(
        lambda request: call("grade", '{"reason": "", "grade": "CORRECT"}')
    )
    first = RubricJudge(model=model, rubric=make_rubric("tool"))
    judge_it(first)
    judge_it(replace(first, repeat=2))
    one, two = model.requests
    assert (one.repeat, two.repeat) == (1, 2)
    assert one == replace(two, repeat=1)
    rater = Scripted(lambda request: call("rate", '{"rating": 9}'))
    judge_it(RubricJudge(model=rater, rubric=make_rubric("rate"), repeat=3))
    assert rater.requests[0].repeat == 3


def test_yes_and_no_need_no_model() -> None:
    """An answer that is neither is UNANSWERED, with a reason, and no error."""
    judge = YesNoJudge(yes="Так", no="Не")
    verdicts = [judge_it(judge, answer) for answer in ("Так, бо", "не.", "Не ведаю")]
    assert [one.grade for one in verdicts] == [core.YES, core.NO, core.UNANSWERED]
    assert all(one.reason for one in verdicts)
    assert judge.spec == "rule:yes_no"


class JudgeRun:
    """A judge in a run of its own each time: its replies are those of the list, by attempt."""

    def __init__(self, path: Path, *replies: str) -> None:
        self.path = path
        self.model = Scripted(lambda request: core.Reply(text=replies[request.attempt]))

    @property
    def asked(self) -> list[int]:
        return [request.attempt for request in self.model.requests]

    def run(self) -> str | None:
        with Ledger(self.path) as ledger:
            ask = caller(ledger).metered(Meter(price=lambda *_: 0.0))
            request = replace(ask_for("grade this"), parameters={"temperature": 0})
            asking = ask_until_read(self.model, request, ask, read)
            try:
                return asyncio.run(asking)[0]
            except core.JudgeError as error:
                assert str(error).endswith(": hm; hm")
                return None


def read(reply: core.Reply) -> str | Invalid:
    return Invalid(reason="hm") if reply.text == "?" else reply.text


@pytest.mark.parametrize(
    ("given", "reading", "asked"), [("??A", None, [0, 1]), ("?B", "B", [0, 1])]
)
def test_a_run_is_final(
    tmp_path: Path, given: str, reading: str | None, asked: list[int]
) -> None:
    """A judge is asked again for what could not be read, not for what is unwelcome."""
    judge = JudgeRun(tmp_path / "l", *given)
    assert [judge.run(), judge.run()] == [reading, reading]
    assert judge.asked == asked


EBA = [load_rubric(path) for path in sorted(RUBRICS.glob("eba.*.yaml"))]
ENGLISH = next(one for one in EBA if one.language == "en")
CAPS = ENGLISH.parts
FULL = dict.fromkeys(CAPS, 3)
CASE = make_case(golds=("No, under Article 395(1) CRR.",), language="en")


def rated(**scores: int) -> int:
    return combined(CAPS, {**FULL, **scores})


@tabled("scores", "rating")
def test_a_rating_is_the_lowest_cap_less_other_faults(
    scores: dict[str, int], rating: int
) -> None:
    """A wrong conclusion leaves 4 at most, a wrong basis or an invented duty 5: below the bar."""
    assert rated(**scores) == rating


def test_every_rating_keeps_to_the_table() -> None:
    """From 1 to 10; 10 for full scores alone; under every cap; a lost point never raises it."""
    for scores in product(range(4), repeat=4):
        own = dict(zip(CAPS, scores, strict=True))
        rating = combined(CAPS, own)
        assert 1 <= rating <= min(CAPS[name][score] for name, score in own.items())
        assert (rating == 10) == (own == FULL)
        for name, score in own.items():
            assert score == 0 or combined(CAPS, {**own, name: score - 1}) <= rating


@pytest.mark.parametrize("rubric", EBA, ids=lambda rubric: rubric.language)
def test_the_rubric_has_one_table_in_every_language(rubric: Rubric) -> None:
    """The same caps and pass bar, and the judge is told every part and score by its name."""
    assert (rubric.parts, rubric.pass_bar) == (CAPS, 7)
    for name, levels in rubric.parts.items():
        _, _, described = rubric.system.partition(f"\n{name}")
        scores = [
            line.partition(":")[0]
            for line in described.splitlines()
            if line[:2] == "- "
        ]
        assert scores[: len(levels)] == ["- 3", "- 2", "- 1", "- 0"]
        assert name in rubric.user


def test_what_is_asked_by_the_plain_rubric_never_changes() -> None:
    """Version, messages and function are in the keys of old ledgers; it asks for one number."""
    plain = load_rubric(RUBRICS / "eba_plain.en.yaml")
    assert (plain.parts, plain.pass_bar) == ({}, PASS_BAR)
    asked: list[core.Request] = []

    def reply_to(request: core.Request) -> core.Reply:
        asked.append(request)
        return called({"reason": "", "rating": 7})

    verdict = judged(Scripted(reply_to), plain)
    assert (verdict.rating, verdict.parts) == (7, {})
    assert [request_key({"name": "m"}, one)[:12] for one in asked] == ["cdeca7e21094"]


@tabled("protocol", "key", "why")
def test_a_misleading_table_is_refused(
    tmp_path: Path, protocol: str, key: str, why: str
) -> None:
    """A score allows no less than the one below it, the top score all; grades have no table."""
    path = tmp_path / "own.en.yaml"
    text = f"name: own\nlanguage: en\nversion: '1'\nprotocol: {protocol}\nuser: '{{question}} "
    path.write_text(
        f"{text}{{target}} {{predicted_answer}}'\n{key}\n", encoding="utf-8"
    )
    if not why:
        load_rubric(path)
        return
    with pytest.raises(core.UsageError, match=f"own.en.yaml.*{why}"):
        load_rubric(path)


def called(*arguments: object, name: str = "rate") -> core.Reply:
    texts = [one if isinstance(one, str) else json.dumps(one) for one in arguments]
    return core.Reply(
        calls=tuple(core.ToolCall(name=name, arguments=text) for text in texts)
    )


GOOD = {"reason": "all there", **FULL}
TEXT = json.dumps(GOOD)


def made(said: dict[str, Any]) -> core.Reply:
    """Return a reply from a table, in whose texts GOOD stands for the JSON of good scores."""
    fields = {key: said[key] for key in said if key != "calls"}
    calls = [changed(one) for one in said.get("calls", [])]
    if "text" in fields:
        fields["text"] = fields["text"].replace("GOOD", TEXT)
    return replace(called(*calls, name=fields.pop("name", "rate")), **fields)


def changed(call: object) -> object:
    """Return a call's arguments: good ones with other fields, where GONE takes one away."""
    if not isinstance(call, dict):
        return call.replace("GOOD", TEXT) if isinstance(call, str) else call
    return {key: value for key, value in {**GOOD, **call}.items() if value != "GONE"}


@tabled("said")
def test_scores_come_from_the_call_or_from_json_alone(said: dict[str, Any]) -> None:
    """Calls that agree are one; JSON may stand in a fence, behind thoughts."""
    assert read_scores(made(said), FULL) == FULL


@tabled("said")
def test_what_leaves_a_doubt_is_no_score(said: dict[str, Any]) -> None:
    """Missing, doubled, foreign and out-of-range fields, prose, cut and filtered replies."""
    assert isinstance(read_scores(made(said), FULL), Invalid)


@pytest.mark.parametrize(
    "bad", [4, -1, 1.5, True, None, "", "03", "three", [3], {"score": 3}, "٣"]
)
def test_a_score_is_a_whole_number_of_its_scale(bad: object) -> None:
    """Or the text of its plain digits; nothing is rounded or clamped."""
    assert isinstance(read_scores(called({**GOOD, "completeness": bad}), FULL), Invalid)


KEYS = st.sampled_from([*CAPS, "reason", "rating", "Conclusion", "grade"])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 15) | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=3),
    max_leaves=5,
)  # fmt: skip


@given(
    JSON
    | st.dictionaries(KEYS, JSON, max_size=6)
    | st.fixed_dictionaries(dict.fromkeys(CAPS, JSON))
)
def test_any_reply_is_scores_in_range_or_invalid(value: object) -> None:
    """For any shape: never an exception, never a part left out, rounded or made up."""
    text = json.dumps(value)
    for one in (called(text), core.Reply(text=text), called(text, text)):
        found = read_scores(one, FULL)
        if isinstance(found, Invalid):
            continue
        assert isinstance(value, dict)
        assert list(found) == list(CAPS)
        assert all(type(score) is int and 0 <= score <= 3 for score in found.values())
        assert all(float(value[name]) == score for name, score in found.items())


@given(st.text(max_size=80) | st.text(alphabet='{}[]":,0123 conclusion', max_size=60))
def test_no_text_raises(text: str) -> None:
    """Any text, lone surrogates included, alone or as arguments."""
    for one in (
        core.Reply(text=text),
        called(text),
        core.Reply(text=text, finish=text),
    ):
        assert isinstance(read_scores(one, FULL), dict | Invalid)


def judged(
    model: core.Model, rubric: Rubric = ENGLISH, case: core.Case = CASE
) -> core.Verdict:
    judge = RubricJudge(model=model, rubric=rubric)
    return asyncio.run(judge.judge(case, "Yes, it is allowed.", complete))


def test_the_judge_scores_and_the_table_rates() -> None:
    """The call takes the reason first, then four integers; the verdict shows all of them."""
    model = Scripted(
        lambda _: called({**GOOD, "legal_basis": 1, "reason": "Article 127."})
    )
    verdict = judged(model)
    assert (verdict.rating, verdict.parts["legal_basis"]) == (5, 1)
    said = (
        "conclusion 3, legal basis 1, completeness 3, nothing invented 3: Article 127."
    )
    assert verdict.reason == said
    (request,) = model.requests
    schema: Any = some(request.tool).schema
    assert list(schema["properties"]) == schema["required"] == ["reason", *CAPS]
    assert schema["properties"]["completeness"] == {
        "type": "integer",
        "minimum": 0,
        "maximum": 3,
    }
    assert request.messages == judge_messages(ENGLISH, CASE, "Yes, it is allowed.")


def test_unreadable_scores_are_asked_for_again_and_then_an_error() -> None:
    """Twice; no rating is made of three scores out of four."""
    bad = (called({**GOOD, "conclusion": 4}), core.Reply(text="3 3 3 3"))
    left = list(bad)
    model = Scripted(lambda _: left.pop(0))
    with pytest.raises(
        core.JudgeError, match="conclusion: want an integer from 0 to 3, got 4"
    ):
        judged(model)
    assert [request.attempt for request in model.requests] == [0, 1]
    left = [bad[0], core.Reply(text=TEXT)]
    assert judged(Scripted(lambda _: left.pop(0))).rating == 10
