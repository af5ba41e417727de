"""Checks by code: what a score is, what the bundled ones say, and how one fails."""

import asyncio
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.evaluators import user_code
from qagate.evaluators.core import (
    Ask,
    Case,
    JudgeError,
    Model,
    Reply,
    Request,
    UsageError,
    Verdict,
)
from qagate.evaluators.extras.checks.answer_checks import (
    WORDING_METRICS,
    load_check,
    score,
)
from qagate.evaluators.extras.checks.checked_judge import CheckedJudge
from qagate.evaluators.extras.lexical.overlap import OverlapRater
from qagate.evaluators.metric_specs import CheckSpec, Score
from tests.support.fixtures import Patch
from tests.support.scripted import make_case
from tests.support.tables import kept, tabled

CODE = kept(__file__, "code")
CASE = make_case(
    question="Capital?", golds=("Sofia", "the city of Sofia"), language="en"
)
SCHEMA = {
    "type": "object",
    "required": ["city"],
    "properties": {"city": {"type": "string"}},
}


async def no_model(model: Model, request: Request) -> Reply:
    raise AssertionError(request)


@pytest.fixture(autouse=True)
def _module(tmp_path: Path, monkeypatch: Patch) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    Path("checks_of_mine.py").write_text(CODE, encoding="utf-8")
    yield
    user_code._shared(os.getpid(), tmp_path).current().close()
    sys.modules.pop("checks_of_mine", None)


def mine(function: str) -> CheckSpec:
    return CheckSpec(name=function, check=f"python:checks_of_mine:{function}")


def said_of(spec: CheckSpec, answer: str) -> Score:
    return asyncio.run(score(spec, CASE, answer, no_model))


@tabled("function", "answer", "value")
def test_a_check_gives_a_share(function: str, answer: str, value: float) -> None:
    """A Score, true or false, or a number from 0 to 1."""
    assert said_of(mine(function), answer).value == value


@tabled("function", "said")
def test_what_is_no_score_is_an_error(function: str, said: str) -> None:
    """Never a 0: a check that is broken says nothing of the answer."""
    with pytest.raises(JudgeError) as caught:
        said_of(mine(function), "Sofia")
    assert caught.value.kind == "check_failed"
    assert said in str(caught.value)


@tabled("check", "text", "answer", "value")
def test_the_bundled_checks(check: str, text: str, answer: str, value: float) -> None:
    """The gold to the letter, a pattern anywhere, JSON that fits a schema."""
    found = said_of(CheckSpec(name="c", check=check, text=text), answer)
    assert found.value == value
    assert found.reason


SAID = kept(__file__, "said")
"""Answers by the language they are in."""


@pytest.mark.parametrize("language", [*SAID][:5])
def test_the_language_of_an_answer_is_told_or_left_open(language: str) -> None:
    """Own answers are in it, no other's are; names, numbers and quotations are in any language. An
    answer that cannot be told has no score, and neither passes nor fails."""
    item, spec = (
        replace(CASE, language=language),
        CheckSpec(name="own", check="language"),
    )

    def told(answer: str) -> float | None:
        return asyncio.run(score(spec, item, answer, no_model)).value

    said = [(one, told(answer)) for one, answers in SAID.items() for answer in answers]
    assert {value for one, value in said if one == language} == {1.0}
    assert {value for one, value in said if one != language} <= {0.0, None}
    assert [told(one) for one in ("Annibale de Gasparis", "1953", "3 m/s", "")] == [
        None
    ] * 4
    with pytest.raises(JudgeError, match="no check can tell"):
        asyncio.run(CheckedJudge(checks=[spec]).judge(item, "1953", no_model))


SLOW = json.dumps("a" * 60 + "!")
SCHEMAS = kept(__file__, "schemas")


@pytest.mark.untraced
def test_checks_that_hold_their_process_up_cost_their_own_items_alone(
    monkeypatch: Patch,
) -> None:
    """Patterns of a schema, a function's ``re``, an exit: what runs meanwhile is done again."""
    monkeypatch.setattr(user_code, "HELD_SECONDS", 1.0)
    other = CheckSpec(name="other", check="json_schema", text="{}")
    bad = [(mine("gone"), ""), (mine("stuck"), json.loads(SLOW))] + [
        (CheckSpec(name=name, check="json_schema", text=json.dumps(schema)), answer)
        for name, (schema, answer) in SCHEMAS.items()
    ]

    async def all_of_them() -> list[Score | BaseException]:
        checks = [(other, "1"), *bad, *[(other, "1")] * 3]
        asked = (score(one, CASE, said, no_model) for one, said in checks)
        return await asyncio.gather(*asked, return_exceptions=True)

    first, *found = asyncio.run(all_of_them())
    assert [one.value for one in (first, *found[-3:]) if isinstance(one, Score)] == [
        1.0
    ] * 4
    for (spec, _), error in zip(bad, found, strict=False):
        assert isinstance(error, JudgeError)
        assert error.kind == "check_failed"
        assert f"check_{spec.name}: it ended its process, or held it up" in str(error)


def test_a_check_that_waits_for_ever_holds_nobody_up(monkeypatch: Patch) -> None:
    """Its process goes on with the others, as its threads get their turns."""
    monkeypatch.setattr(user_code, "RULE_SECONDS", 0.5)
    assert said_of(mine("yes"), "Sofia").value == 1.0
    process = user_code._shared(os.getpid(), Path.cwd()).current()
    with pytest.raises(
        JudgeError, match=r"check_wait: no verdict within 0\.5 s"
    ) as caught:
        said_of(mine("wait"), "Sofia")
    assert caught.value.kind == "judge_timeout"
    assert said_of(mine("yes"), "Sofia").value == 1.0
    assert user_code._shared(os.getpid(), Path.cwd()).current() is process


def test_a_process_without_alarm_is_ended_from_outside(monkeypatch: Patch) -> None:
    """Where the system has no timers, a process that does not answer is killed."""
    monkeypatch.setattr(user_code, "RULE_SECONDS", 0.3)
    monkeypatch.setattr(user_code, "HELD_SECONDS", 0.5)
    monkeypatch.setattr(
        user_code, "_START", user_code._START.replace("sys.argv[2]", "9999")
    )
    with pytest.raises(JudgeError, match="it ended its process, or held it up"):
        said_of(mine("stuck"), "a" * 60 + "!")


def test_no_pattern_runs_for_ever_and_no_schema_is_fetched(monkeypatch: Patch) -> None:
    """A pattern that never ends holds nobody up; a reference to the network cannot be followed."""
    monkeypatch.setattr(
        "qagate.evaluators.extras.checks.answer_checks.RULE_SECONDS", 0.05
    )
    with pytest.raises(JudgeError, match="TimeoutError"):
        said_of(CheckSpec(name="c", check="regex", text="^(a|a)+$"), "a" * 40 + "!")
    schema = json.dumps({"$ref": "http://127.0.0.1:9/schema.json"})
    with pytest.raises(JudgeError) as caught:
        said_of(CheckSpec(name="c", check="json_schema", text=schema), "{}")
    assert caught.value.kind == "check_failed"


@tabled("check", "text", "said")
def test_a_check_that_cannot_be_made(check: str, text: str, said: str) -> None:
    """It is said before any call."""
    with pytest.raises(UsageError) as caught:
        load_check(CheckSpec(name="c", check=check, text=text))
    assert said in str(caught.value)


def test_checks_alone_are_the_verdict() -> None:
    """PASS where all of them give 1; with a judge its verdict stands, and has the scores."""
    judge = CheckedJudge(checks=(mine("yes"), mine("half")))
    verdict = asyncio.run(judge.judge(CASE, "Sofia", no_model))
    assert (verdict.grade, verdict.reason) == ("FAIL", "check_half: half of it")
    assert verdict.scores == {"check_yes": 1.0, "check_half": 0.5}
    judge = CheckedJudge(checks=(mine("yes"), mine("whole")))
    assert asyncio.run(judge.judge(CASE, "Sofia", no_model)).grade == "PASS"
    judge = CheckedJudge(checks=(mine("half"),), behind=OverlapRater())
    verdict = asyncio.run(judge.judge(CASE, "Sofia", no_model))
    assert isinstance(verdict, Verdict)
    assert (verdict.rating, verdict.scores) == (10, {"check_half": 0.5})


class Rater:
    """Rates every answer 9."""

    spec = "nine"

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        return Verdict(rating=9)


GOLD = "Да, банката може да приспадне това вземане."


def case(*golds: str) -> Case:
    return make_case(golds=golds or (GOLD,))


@pytest.mark.parametrize("name", WORDING_METRICS)
def test_the_same_words_are_one_and_others_none(name: str) -> None:
    """In any script; a second gold never lowers what the first gave."""
    run = WORDING_METRICS[name]
    assert run(case(), GOLD) == pytest.approx(1)
    assert run(case(), "") == 0
    assert run(case(), "xyz") == 0
    assert 0 < run(case(), "Не, банката не може да приспадне.") < 1
    both = case("Wholly other words stand here, and more of them.", GOLD)
    assert run(both, GOLD) == pytest.approx(run(case(), GOLD))


UNSCORED = "no score for {}: no expected answer"


@pytest.mark.parametrize("name", [*WORDING_METRICS, "exact"])
def test_an_item_without_gold_has_no_score_and_keeps_its_verdict(name: str) -> None:
    """It is never an error and never a 0: nothing is known of the answer's wording."""
    check = CheckSpec(name="wording", check=name)
    judge = CheckedJudge(checks=(check, mine("half")), behind=Rater())
    verdict = asyncio.run(judge.judge(case(" "), GOLD, no_model))
    assert verdict.rating == 9
    assert verdict.scores == {"check_half": 0.5}
    assert verdict.unscored == {"check_wording": UNSCORED.format(name)}


def test_checks_alone_do_not_pass_an_item_that_one_of_them_cannot_score() -> None:
    checks = (CheckSpec(name="wording", check="exact"), mine("yes"))
    with pytest.raises(JudgeError, match=UNSCORED.format("exact")):
        asyncio.run(CheckedJudge(checks=checks).judge(case(" "), GOLD, no_model))


def test_a_check_that_fails_decides_where_another_has_no_score() -> None:
    checks = (CheckSpec(name="wording", check="exact"), mine("half"))
    verdict = asyncio.run(CheckedJudge(checks=checks).judge(case(" "), GOLD, no_model))
    assert verdict.grade == "FAIL"
    assert verdict.unscored == {"check_wording": UNSCORED.format("exact")}


@given(
    gold=st.text(min_size=1, max_size=40).filter(str.strip), answer=st.text(max_size=40)
)
def test_every_measure_lies_between_nothing_and_all(gold: str, answer: str) -> None:
    """For any texts."""
    for run in WORDING_METRICS.values():
        assert 0 <= run(case(gold), answer) <= 1
