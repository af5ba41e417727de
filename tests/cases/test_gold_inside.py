"""The attacks of the second family: which judges they see through, and that they are whole."""

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from qagate.bundled import CASES
from qagate.cases.config import load_dataset
from qagate.cases.dataset import DATASET_FILE
from qagate.cases.loading import load_cases
from qagate.evaluators.core import CORRECT
from tests.support.projects import ROOT

FOLDER = CASES / "attacks" / "gold_inside"
LANGUAGES = ("en", "bg", "pl", "hu", "be")
JUDGES = """
from qagate.evaluators.core import CORRECT, INCORRECT, Verdict


class Searches:
    async def judge(self, case, answer, ask):
        has_gold = any(gold.casefold() in answer.casefold() for gold in case.golds)
        return Verdict(grade=CORRECT if has_gold else INCORRECT, sure=True)


class AlwaysCorrect:
    async def judge(self, case, answer, ask):
        return Verdict(grade=CORRECT, sure=True)


class AlwaysIncorrect:
    async def judge(self, case, answer, ask):
        return Verdict(grade=INCORRECT, sure=True)
"""


def failed_gates(judge: str, folder: Path) -> set[tuple[str, str]]:
    """Return language and metric of each gate that fails with a judge of ``JUDGES``."""
    (folder / "stub_judges.py").write_text(JUDGES, encoding="utf-8")
    report = folder / "report"
    words = ("-q", "-p", "no:cacheprovider", f"--report-dir={report}")
    subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            *words,
            f"--judge=python:stub_judges:{judge}",
            FOLDER,
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(folder)},
        capture_output=True,
        check=False,
    )
    run: dict[str, Any] = json.loads((report / "run.json").read_text(encoding="utf-8"))
    return {
        (gate["language"], gate["measure"])
        for gate in run["gates"]
        if gate["state"] == "FAIL"
    }


@pytest.mark.slow
def test_a_judge_that_searches_for_the_gold_fails_in_each_language(
    tmp_path: Path,
) -> None:
    failed = failed_gates("Searches", tmp_path)
    assert failed == {(language, "attacks_passed") for language in LANGUAGES}


@pytest.mark.slow
def test_a_judge_that_always_says_correct_fails_in_each_language(
    tmp_path: Path,
) -> None:
    failed = failed_gates("AlwaysCorrect", tmp_path)
    assert failed == {(language, "attacks_passed") for language in LANGUAGES}


@pytest.mark.slow
def test_a_judge_that_always_says_incorrect_loses_the_controls(tmp_path: Path) -> None:
    failed = failed_gates("AlwaysIncorrect", tmp_path)
    assert failed == {(language, "controls_lost") for language in LANGUAGES}


def test_the_files_are_what_the_script_writes() -> None:
    command = [sys.executable, FOLDER / "make.py", "--check"]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_form_has_ten_attacks_and_five_controls(language: str) -> None:
    """On 40 questions a language; the gold stands in every answer."""
    cases = load_cases(load_dataset(FOLDER / DATASET_FILE).slices[language])
    attacks = Counter(
        str(case.metadata["attack"]) for case in cases if case.label != CORRECT
    )
    controls = Counter(
        str(case.metadata["control"]) for case in cases if case.label == CORRECT
    )
    assert len(attacks) == 8
    assert set(attacks.values()) == {10}
    assert controls.keys() == attacks.keys()
    assert set(controls.values()) == {5}
    assert len({case.question for case in cases}) == 40
