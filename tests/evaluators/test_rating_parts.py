"""Ratings in parts: reading the scores, asking for them, and the one rating that they make."""

import asyncio
import json
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.core import Case, JudgeError, Model, Reply, Request, ToolCall, UsageError, Verdict
from evaluators.judges.factory import RUBRICS
from evaluators.judges.llm import RatingJudge, judge_messages
from evaluators.models import connect
from evaluators.replies.readers import Invalid, read_scores
from evaluators.rubric import PASS_BAR, Rubric, combined, load_rubric
from evaluators.secrets import Key
from evaluators.text import request_key
from tests.support.loopback import Answer, Seen, loopback, plausible, reply
from tests.support.model_calls import SECRET, both, spec_of
from tests.support.scripted import Scripted, complete, make_case
from tests.support.tables import tabled

EBA = [load_rubric(path) for path in sorted(RUBRICS.glob("eba.*.yaml"))]
ENGLISH = next(one for one in EBA if one.language == "en")
CAPS = ENGLISH.parts
FULL = dict.fromkeys(CAPS, 3)
CASE = make_case(golds=("No, under Article 395(1) CRR.",), language="en")


def rated(**scores: int) -> int:
    return combined(CAPS, {**FULL, **scores})


@tabled("scores", "rating")
def test_a_rating_is_the_lowest_cap_less_one_for_each_other_fault(
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
        scores = [line.partition(":")[0] for line in described.splitlines() if line[:2] == "- "]
        assert scores[: len(levels)] == ["- 3", "- 2", "- 1", "- 0"]
        assert name in rubric.user


def test_the_plain_rubric_asks_for_one_number() -> None:
    """It has no table, and the usual pass bar."""
    plain = load_rubric(RUBRICS / "eba_plain.en.yaml")
    assert (plain.parts, plain.pass_bar) == ({}, PASS_BAR)


def test_what_is_asked_by_the_plain_rubric_never_changes() -> None:
    """Its version, its messages and the function are in the key of every reply in old ledgers."""
    plain = load_rubric(RUBRICS / "eba_plain.en.yaml")
    asked: list[Request] = []

    def reply_to(request: Request) -> Reply:
        asked.append(request)
        return called({"reason": "", "rating": 7})

    verdict = judged(Scripted(reply_to), plain)
    assert (verdict.rating, verdict.parts) == (7, {})
    assert [request_key({"name": "m"}, one)[:12] for one in asked] == ["cdeca7e21094"]


@tabled("protocol", "key", "why")
def test_a_table_that_could_mislead_is_refused(
    tmp_path: Path, protocol: str, key: str, why: str
) -> None:
    """A score allows no less than the one below it, the top score all; grades have no table."""
    path = tmp_path / "own.en.yaml"
    text = f"name: own\nlanguage: en\nversion: '1'\nprotocol: {protocol}\nuser: '{{question}} "
    path.write_text(f"{text}{{target}} {{predicted_answer}}'\n{key}\n", encoding="utf-8")
    if not why:
        load_rubric(path)
        return
    with pytest.raises(UsageError, match=f"own.en.yaml.*{why}"):
        load_rubric(path)


def called(*arguments: object, name: str = "rate") -> Reply:
    texts = [one if isinstance(one, str) else json.dumps(one) for one in arguments]
    return Reply(calls=tuple(ToolCall(name=name, arguments=text) for text in texts))


GOOD = {"reason": "all there", **FULL}
TEXT = json.dumps(GOOD)


def made(said: dict[str, Any]) -> Reply:
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


@pytest.mark.parametrize("bad", [4, -1, 1.5, True, None, "", "03", "three", [3], {"score": 3}, "٣"])
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
    for one in (called(text), Reply(text=text), called(text, text)):
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
    for one in (Reply(text=text), called(text), Reply(text=text, finish=text)):
        assert isinstance(read_scores(one, FULL), dict | Invalid)


def judged(model: Model, rubric: Rubric = ENGLISH, case: Case = CASE) -> Verdict:
    judge = RatingJudge(model=model, rubric=rubric)
    return asyncio.run(judge.judge(case, "Yes, it is allowed.", complete))


def test_the_judge_scores_and_the_table_rates() -> None:
    """The call takes the reason first, then four integers; the verdict shows all of them."""
    model = Scripted(lambda _: called({**GOOD, "legal_basis": 1, "reason": "Article 127."}))
    verdict = judged(model)
    assert (verdict.rating, verdict.parts["legal_basis"]) == (5, 1)
    said = "conclusion 3, legal basis 1, completeness 3, nothing invented 3: Article 127."
    assert verdict.reason == said
    (request,) = model.requests
    assert request.tool is not None
    schema = request.tool.schema
    assert list(schema["properties"]) == schema["required"] == ["reason", *CAPS]  # type: ignore[call-overload]
    assert schema["properties"]["completeness"] == {"type": "integer", "minimum": 0, "maximum": 3}  # type: ignore[index]
    assert request.messages == judge_messages(ENGLISH, CASE, "Yes, it is allowed.")


def test_unreadable_scores_are_asked_for_again_and_then_an_error() -> None:
    """Three times; no rating is made of three scores out of four."""
    bad = called({**GOOD, "conclusion": 4}), called({"rating": 9}), Reply(text="3 3 3 3")
    left = list(bad)
    model = Scripted(lambda _: left.pop(0))
    with pytest.raises(JudgeError, match="conclusion: want an integer from 0 to 3, got 4"):
        judged(model)
    assert [request.attempt for request in model.requests] == [0, 1, 2]
    left = [bad[0], Reply(text=TEXT)]
    assert judged(Scripted(lambda _: left.pop(0))).rating == 10


@both
@pytest.mark.parametrize("with_functions", [True, False])
def test_both_wire_formats_carry_the_scores(provider: str, *, with_functions: bool) -> None:
    """As a forced call, or as JSON in the text from a server that knows no functions."""

    def handle(seen: Seen) -> Answer:
        if with_functions:
            return plausible(lambda _, name, schema: schema.get("maximum", "so"))(seen)
        return reply(seen, text=TEXT)

    async def run(model: Model) -> Verdict:
        try:
            return await RatingJudge(model=model, rubric=ENGLISH).judge(CASE, "No.", complete)
        finally:
            await model.close()

    with loopback(handler=handle) as server:
        verdict = asyncio.run(run(connect(spec_of(provider, server), Key(SECRET))))
    assert (verdict.rating, verdict.parts) == (10, FULL)
