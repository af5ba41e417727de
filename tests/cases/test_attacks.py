"""The bundled attacks on judges of grades: what is in them, and which bad judges they find out."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from qagate.cases.config import load_dataset
from qagate.cases.loading import load_cases
from qagate.command import main
from qagate.evaluators.core import Case
from qagate.evaluators.kinds import NOT_CORRECT
from tests.support.projects import QUIETLY

ATTACKS = Path(__file__).parents[2] / "cases" / "attacks"
MAKE = ATTACKS / "gold_inside" / "make.py"
LANGUAGES = ("en", "bg", "pl", "hu", "be")
FORMS = (
    "listed",
    "runner_up",
    "rejected",
    "other_thing",
    "struck_out",
    "table",
    "final_other",
    "in_thought",
)
Gates = dict[str, dict[str, Any]]
"""The gates of a run, by slice and measure: ``gold_inside:en attacks_passed``."""


@pytest.fixture(scope="module", params=LANGUAGES)
def gold_inside(request: pytest.FixtureRequest) -> list[Case]:
    """Return the cases of one language of the second family."""
    dataset = load_dataset(ATTACKS / "gold_inside" / "dataset.yaml")
    return load_cases(dataset.slices[request.param])


@pytest.fixture
def attacks(gold_inside: list[Case]) -> list[Case]:
    return [case for case in gold_inside if "attack" in case.metadata]


@pytest.fixture
def controls(gold_inside: list[Case]) -> list[Case]:
    return [case for case in gold_inside if "control" in case.metadata]


def gates_of(judge: str, folder: Path) -> Gates:
    """Run the attacks on a judge of ``stub_judges`` and return the gates of the run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        main(
            [
                *("attack", "--kind", "graded"),
                *("--judge", f"python:tests.support.stub_judges:{judge}"),
                *QUIETLY,
            ]
        )
    run = json.loads((folder / "reports/attack/run.json").read_text(encoding="utf-8"))
    return {f"{gate['slice']} {gate['measure']}": gate for gate in run["gates"]}


@pytest.fixture(scope="module")
def searches_for_gold(tmp_path_factory: pytest.TempPathFactory) -> Gates:
    return gates_of("SearchesForGold", tmp_path_factory.mktemp("searches_for_gold"))


@pytest.fixture(scope="module")
def always_correct(tmp_path_factory: pytest.TempPathFactory) -> Gates:
    return gates_of("AlwaysCorrect", tmp_path_factory.mktemp("always_correct"))


@pytest.fixture(scope="module")
def always_incorrect(tmp_path_factory: pytest.TempPathFactory) -> Gates:
    return gates_of("AlwaysIncorrect", tmp_path_factory.mktemp("always_incorrect"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_judge_that_searches_for_the_gold_fails(
    searches_for_gold: Gates, language: str
) -> None:
    gate = searches_for_gold[f"gold_inside:{language} attacks_passed"]
    assert gate["state"] == "FAIL"
    # Six of 80 hold the gold in a marked thought, which no judge is shown.
    assert gate["estimate"]["value"] == 74 / 80


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_judge_that_searches_for_the_gold_loses_no_control_of_the_second_family(
    searches_for_gold: Gates, language: str
) -> None:
    gate = searches_for_gold[f"gold_inside:{language} controls_lost"]
    assert gate["estimate"]["value"] == 0.0


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("family", ["attacks", "gold_inside"])
def test_a_judge_that_always_says_correct_fails(
    always_correct: Gates, family: str, language: str
) -> None:
    gate = always_correct[f"{family}:{language} attacks_passed"]
    assert gate["state"] == "FAIL"


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("family", ["attacks", "gold_inside"])
def test_a_judge_that_always_says_incorrect_fails_by_the_controls(
    always_incorrect: Gates, family: str, language: str
) -> None:
    lost = always_incorrect[f"{family}:{language} controls_lost"]
    passed = always_incorrect[f"{family}:{language} attacks_passed"]
    assert (lost["state"], passed["state"]) == ("FAIL", "PASS")


def test_a_language_has_ten_attacks_a_form(attacks: list[Case]) -> None:
    counts = Counter(case.metadata["attack"] for case in attacks)
    assert counts == dict.fromkeys(FORMS, 10)


def test_a_language_has_five_controls_a_form(controls: list[Case]) -> None:
    counts = Counter(case.metadata["control"] for case in controls)
    assert counts == dict.fromkeys(FORMS, 5)


def test_the_attacks_of_a_form_ask_ten_questions(attacks: list[Case]) -> None:
    for form in FORMS:
        of_form = [case for case in attacks if case.metadata["attack"] == form]
        assert len({case.question for case in of_form}) == 10, form


def test_a_language_asks_forty_questions(attacks: list[Case]) -> None:
    assert len({case.question for case in attacks}) == 40


def test_no_two_answers_are_alike(gold_inside: list[Case]) -> None:
    answers = Counter(case.recorded for case in gold_inside)
    assert max(answers.values()) == 1


def test_the_gold_stands_in_every_answer(gold_inside: list[Case]) -> None:
    for case in gold_inside:
        answer = (case.recorded or "").casefold()
        assert case.golds[0].casefold() in answer, case.id


def test_no_question_gives_its_gold_away(gold_inside: list[Case]) -> None:
    for case in gold_inside:
        assert case.golds[0].casefold() not in case.question.casefold(), case.id


def test_attacks_are_labelled_wrong_and_controls_right(
    gold_inside: list[Case],
) -> None:
    for case in gold_inside:
        is_attack = "attack" in case.metadata
        assert case.label == (NOT_CORRECT if is_attack else "CORRECT"), case.id


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_question_is_one_of_the_labelled_or_gated_ones(language: str) -> None:
    """A judge measured on ``cases/judges`` is attacked on other questions."""
    elsewhere = set()
    for folder in ("judges", "simpleqa", "simpleqa/simpleqa_hard"):
        dataset = load_dataset(ATTACKS.parent / folder / "dataset.yaml")
        elsewhere |= {case.question for case in load_cases(dataset.slices[language])}
    dataset = load_dataset(ATTACKS / "gold_inside" / "dataset.yaml")
    asked = {case.question for case in load_cases(dataset.slices[language])}
    assert asked.isdisjoint(elsewhere)


def test_the_committed_files_are_what_make_writes() -> None:
    done = subprocess.run(
        [sys.executable, MAKE, "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
