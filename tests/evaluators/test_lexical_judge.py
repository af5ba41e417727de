"""The lexical judge: what it says of the examples of six languages, and what it may never do."""

import asyncio
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluators.core import CORRECT, GRADES, INCORRECT, Case, Model, Reply, Request, Verdict
from evaluators.judges.lexical.answer_analysis import LIMIT
from evaluators.judges.lexical.lexical_judge import LexicalJudge, grade
from evaluators.reading import load_yaml
from tests.benchmarks.labelled import evouna
from tests.benchmarks.lexical import measure

EXAMPLES = Path(__file__).parent / "lexical_examples.yaml"
FILL = " ".join(f"word{chr(97 + number % 26)}{chr(97 + number // 26)}" for number in range(70))


def case(*golds: str, language: str = "en", question: str = "What is it?") -> Case:
    return Case(
        id="x", dataset="d", language=language, row=1, question=question, golds=golds or ("Paris",)
    )


def graded(*golds: str, answer: str, question: str = "What is it?") -> str:
    return str(grade(case(*golds, question=question), answer).grade)


async def never(model: Model, request: Request) -> Reply:
    raise AssertionError(request)


def examples() -> Iterator[Any]:
    for group in cast("list[Mapping[str, Any]]", load_yaml(EXAMPLES)):
        for example in group["examples"]:
            name = example.get("name", f"{example.get('language', '')} {example['answer'][:40]}")
            whole = {**group["all"], **example, "claim": group["claim"]}
            yield pytest.param(whole, id=f"{group['name']}: {name}")


@pytest.mark.parametrize("example", [*examples()])
def test_examples(example: Mapping[str, Any]) -> None:
    """Every example is graded as its group claims, and is sure where it says so."""
    golds = [example["gold"]] if isinstance(example["gold"], str) else example["gold"]
    item = case(*golds, language=example["language"], question=example["question"])
    verdict = grade(item, example["answer"])
    assert verdict.grade == example["grade"], example["claim"]
    sure = {True: "yes", False: "no"}[verdict.sure]
    assert example.get("sure", sure) == sure, example["claim"]


def test_the_judge_grades_without_asking() -> None:
    """The judge is a Judge, named lexical, and its verdict is that of the rules."""
    judge = LexicalJudge()
    verdict = asyncio.run(judge.judge(case("Paris"), "Paris", never))
    assert judge.spec == "lexical"
    assert verdict == Verdict(grade=CORRECT, reason="the answer is the gold", sure=True)


@given(st.text(max_size=80), st.text(max_size=80), st.sampled_from(["en", "bg", "hu", "zz"]))
def test_never_raises_and_always_grades(gold: str, answer: str, language: str) -> None:
    """Whatever the texts, there is one of the three grades and a reason, the same every time."""
    item = case(gold, language=language)
    verdict = grade(item, answer)
    assert verdict.grade in GRADES
    assert verdict.reason
    assert verdict == grade(item, answer)


@given(st.from_regex(r"[A-Za-zА-я][A-Za-zА-я ]{0,30}[A-Za-zА-я]", fullmatch=True))
def test_the_gold_itself_is_right(gold: str) -> None:
    """Every gold of letters is a right answer to its own question."""
    assert graded(gold, answer=gold) == CORRECT


HUGE = {
    "letters": "a" * 10**6,
    "words": "Paris or " * 120_000,
    "list": "Paris, " * 150_000,
    "figures": "1," * 500_000,
    "ranges": "1-2-" * 250_000,
    "dates": "12 of 3 " * 120_000,
    "choices": "I choose, " * 100_000,
    "marks": "a" + "\u0316\u0301" * 500_000,
    "nul": "\0" * 10**6,
    "surrogates": "\ud800" * 10**6,
    "invisible": "\u200b" * 10**6,
}


@pytest.mark.parametrize("answer", HUGE.values(), ids=HUGE)
def test_huge_and_broken_answers(answer: str) -> None:
    """A megabyte of anything is graded, and is never CORRECT beyond doubt."""
    verdict = grade(case("Paris", "120k", "5 March 1999"), answer)
    assert verdict.grade in GRADES
    assert not (verdict.grade == CORRECT and verdict.sure)


def test_what_stands_beyond_the_limit_does_not_count() -> None:
    """The gold after 32,000 characters of something else is not read."""
    assert graded("Paris", answer="London " * (LIMIT // 7 + 1) + "Paris") == INCORRECT


def test_a_gold_in_passing_does_not_count() -> None:
    """A gold after another date, after much else, or in the question's own words is no answer."""
    asked = "Who sang it first?"
    assert graded("1970", answer="It was 1957; however, some say it was in 1970.") == INCORRECT
    assert graded("7", answer="There are 172 steps. However, with the yard it is 7.") == INCORRECT
    assert graded("Crosby", answer=f"{FILL} is Crosby") == CORRECT
    late = f"Nobody did not. {' '.join(FILL.split()[:30])} Crosby"
    assert graded("Crosby", answer=late) == INCORRECT
    listed = f"It was Vallee, Crosby, and others. {' '.join(FILL.split()[:25])}"
    assert graded("Crosby", answer=listed, question=asked) == INCORRECT
    echo = graded("MarginOfErr", answer="No margin of err in it.", question="Which margin of err?")
    assert echo == INCORRECT


def test_a_question_for_several_wants_half_of_them() -> None:
    """A talkative answer with fewer than half of several golds does not answer for them."""
    golds = ("Corn", "Hay", "Cotton", "Wheat", "Rice")
    asked = "What are the main crops?"
    rest = "according to offices that count fields barns mills roads ports"
    assert graded(*golds, answer=f"Corn {rest}", question=asked) == INCORRECT
    assert graded(*golds, answer=f"Corn, hay, rice {rest}", question=asked) == CORRECT
    assert graded(*golds, answer="Corn", question=asked) == CORRECT
    long = f"Farms there are old. {' '.join(FILL.split()[:20])}. Some grow corn."
    assert graded(*golds, answer=long, question="What grows?") == INCORRECT


def test_a_long_answer_is_not_sure() -> None:
    """A right answer is left to a model where it says much besides, less so where golds differ."""
    filler = " in the zyxwv of abcde"
    verdict = grade(case("Paris"), "Paris" + filler * 25)
    assert (verdict.grade, verdict.sure) == (CORRECT, False)
    open_ended = case("Alpha", "Omega")
    assert grade(open_ended, "It was Alpha.").sure
    assert not grade(open_ended, "It was Alpha," + " zyxwv abcde fghij" * 8).sure


def test_only_the_whole_name_is_surely_right() -> None:
    """Given and family name are right, but another member of the family may bear them."""
    item = case("William Sydney Porter", question="Who wrote it?")
    verdict = grade(item, "William Porter wrote it.")
    assert (verdict.grade, verdict.sure) == (CORRECT, False)
    assert grade(item, "William Sydney Porter wrote it.").sure


def test_two_names_of_one_thing_allow_no_third() -> None:
    """Accepted forms that share no word are names of one answer: another beside them is wrong."""
    both = ("Toruń", "Thorn")
    assert graded(*both, answer="Toruń and Kraków", question="In which town?") == INCORRECT
    assert graded(*both, answer="Toruń (Thorn)", question="In which town?") == CORRECT


@pytest.mark.slow
def test_many_golds_and_a_long_answer_stay_cheap() -> None:
    """Sixty golds against an answer that repeats one of them are graded like any other."""
    golds = [
        f"Name{chr(97 + i % 26)}{chr(97 + i // 26)} Family{chr(97 + i % 26)}" for i in range(60)
    ]
    answer = "Nameaa Familya and others went to town. " * 800
    assert graded(*golds, answer=answer, question="Who are the ten?") == INCORRECT


@pytest.mark.slow
def test_agreement_with_people_stays() -> None:
    """On questions answered by five models the judge agrees with people as far as it did."""
    data = Path(__file__).parents[3] / "shared" / "data"
    if not (data / "evouna").is_dir():
        pytest.skip("the labelled answers are not beside this repository")
    found = measure(list(evouna(data))[::4])
    assert found.agreement.value > 0.875
    assert found.precision.value > 0.98
    assert found.sure.value > 0.22
    assert found.settled_right.value >= 0.995
    assert found.settled.value > 0.985
