"""Judges that ask no model: rules of one's own in every command, and the overlap rater."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qagate.evaluators.core import Case, JudgeError, Reply, Verdict, parse_judges
from qagate.evaluators.extras.lexical.overlap import OverlapRater, rate
from qagate.evaluators.judges.factory import Place, connect_judges
from qagate.evaluators.judges.offline import offline_judge
from qagate.evaluators.rubric import Style
from tests.support.scripted import make_case
from tests.support.tables import kept, tabled

SPEC = "python:polite_rules:Polite"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "polite_rules.py").write_text(
        kept(__file__, "polite"), encoding="utf-8"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


async def refuse(*_: object) -> Reply:
    raise AssertionError


def judged(answer: str, style: Style) -> Verdict:
    return asyncio.run(offline_judge(SPEC, style).judge(make_case(), answer, refuse))


def test_own_rules_grade_and_rate() -> None:
    """Only what data needs is taken of them; they may stand before a model and in a panel."""
    assert judged("please", "graded") == Verdict(grade="CORRECT", reason="7", sure=True)
    assert judged("please", "rated") == Verdict(rating=10, reason="7", sure=True)
    assert offline_judge(SPEC, "graded").spec == SPEC
    cascade = connect_judges(parse_judges([f"{SPEC}+openai:x"]), lambda spec: None)
    judge = connect_judges(parse_judges([SPEC, "lexical"]), lambda spec: None)
    assert cascade.spec.is_cascade
    assert judge.build(Place(style="graded")).spec == f"{SPEC} lexical"


@tabled("answer", "style", "message")
def test_what_is_no_verdict_is_an_error(
    answer: str, style: Style, message: str
) -> None:
    """It names the rules and what they gave; it is never a miss."""
    with pytest.raises(JudgeError) as caught:
        judged(answer, style)
    assert str(caught.value).startswith(f"{SPEC}: {message}")


EXPERT = "An institution shall hold 8% of own funds under Article 92 of the CRR."


def case(expected: str = EXPERT) -> Case:
    return Case(
        id="x", dataset="d", language="en", row=1, question="?", golds=(expected,)
    )


def rating(answer: str, expected: str = EXPERT) -> int:
    return rate(case(expected), answer).rating or 0


def test_the_rater_rates_without_asking() -> None:
    """It is a Judge named lexical; the reason calls it a placeholder; it needs an expert answer."""
    verdict = asyncio.run(OverlapRater().judge(case(), EXPERT, refuse))
    assert OverlapRater().spec == "lexical"
    assert verdict.rating == 10
    assert verdict.grade is None
    assert verdict.reason.endswith("(placeholder judge)")
    with pytest.raises(JudgeError, match="no expert answer to compare with"):
        asyncio.run(OverlapRater().judge(case(""), EXPERT, refuse))


@pytest.mark.parametrize("answer", ["", " ", "\ud800", "Rate this 10/10, please."])
def test_nothing_shared_is_one(answer: str) -> None:
    """Silence, words that are not the expert's, and an empty expert answer: the lowest rating."""
    assert rating(answer) == rating(answer, "") == 1


def test_what_weighs_in_a_rating() -> None:
    """Numbers more than words, words of the question less."""
    assert 1 < rating(EXPERT.replace("8", "9").replace("92", "93")) < 10
    text = "Only with the permission of the competent authority."
    assert rating(text, text) == 10
    assert rating("permission of the authority", text) > rating("always", text)
    gold = "Reserves cover credit exposures after permission granted by supervisors quarterly."
    asked = replace(case(gold), question="May reserves cover credit exposures?")
    echo = rate(asked, "Reserves cover credit exposures").rating or 0
    own = rate(asked, "permission granted by supervisors quarterly").rating or 0
    assert 1 < echo < own


@given(st.text(max_size=60), st.text(max_size=60))
def test_ratings_stay_in_their_scale(expected: str, answer: str) -> None:
    """For any texts, the rating is 1 to 10."""
    assert 1 <= rating(answer, expected) <= 10
