"""The bundled attacks on judges, and `qagate attack`."""

import json
import unicodedata
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from cases.config import load_dataset
from cases.loading import load_cases
from evaluators.__main__ import main
from evaluators.core import Case
from evaluators.judges.lexical.judge import grade
from evaluators.kinds import NOT_CORRECT
from reports.plugin.run_paths import dataset_files, is_left_out
from tests.support.loopback import Seen, loopback, plausible
from tests.support.projects import QUIETLY, Project, new_project
from tests.support.tables import kept

ATTACKS = Path(__file__).parents[2] / "cases" / "attacks"
OWN: str = kept(__file__, "own")
SET: str = kept(__file__, "set")


def bundled(folder: str = "") -> dict[str, list[Case]]:
    """Return the bundled attacks by language."""
    slices = load_dataset(ATTACKS / folder / "dataset.yaml").slices
    return {language: load_cases(one) for language, one in slices.items()}


GRADED = [case for some in bundled().values() for case in some]
RATED = bundled("attacks_eba")["en"]


def wrong(cases: list[Case]) -> list[Case]:
    return [case for case in cases if case.label == NOT_CORRECT]


def folded(text: str) -> str:
    """Return the letters and digits of a text as they look, without what is invisible."""
    kept = unicodedata.normalize("NFKC", text).casefold()
    return "".join(char for char in kept if char.isalnum())


def test_there_are_as_many_attacks_as_claimed() -> None:
    """Five languages, 60 attacks and 20 controls at least, every kind in every language."""
    kinds = defaultdict(set)
    for case in GRADED:
        assert ("attack" in case.metadata) == (case.label == NOT_CORRECT), case.id
        if case.label == NOT_CORRECT:
            kinds[case.language].add(case.metadata["attack"])
    assert sorted(kinds) == ["be", "bg", "en", "hu", "pl"]
    assert len(wrong(GRADED)) >= 60
    assert len(GRADED) - len(wrong(GRADED)) >= 20
    assert len({frozenset(found) for found in kinds.values()}) == 1
    assert len(kinds["en"]) >= 15
    assert max(Counter(case.id for case in GRADED).values()) == 1


def test_no_attack_holds_the_right_answer_and_every_control_does() -> None:
    """An attack is never right; a control is the gold itself or has it in another form."""
    for case in GRADED:
        holds = folded(case.golds[0]) in folded(case.recorded or "")
        if case.label == NOT_CORRECT:
            assert not holds, case.id
        elif case.metadata["control"] not in ("other_script", "look_alike"):
            assert holds, case.id
        gold = folded(case.golds[0])  # an echo of the question would be right
        assert len(gold) < 3 or gold not in folded(case.question), case.id


def test_the_rules_are_not_fooled() -> None:
    """The offline judge grades no attack CORRECT."""
    verdicts = {case.id: grade(case, case.recorded or "").grade for case in wrong(GRADED)}
    assert "CORRECT" not in verdicts.values()


def test_the_rater_is_attacked_by_answers_that_earn_no_pass() -> None:
    """Each with its legal context, each in a way of its own."""
    kinds = [case.metadata["attack"] for case in wrong(RATED)]
    assert len(set(kinds)) == len(kinds) >= 12
    assert len(RATED) - len(kinds) >= 4
    assert all(case.context and case.recorded not in case.golds for case in RATED)


def test_long_padding_goes_beyond_what_a_judge_is_shown() -> None:
    """Padding tests the cut where letters take two bytes; controls are never cut."""
    sizes = {case.id: len((case.recorded or "").encode()) for case in (*GRADED, *RATED)}
    assert sizes["bg-padding-1"] > 32_000
    assert sizes["en-rating-padding-1"] > 32_000
    assert all(sizes[case.id] < 32_000 for case in GRADED if case.label != NOT_CORRECT)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = new_project(tmp_path)
    made.dataset("capitals", {"en": ["Sofia"]})
    made.dataset("tricks", {}, SET)
    made.write("qa/tricks/en.yaml", OWN)
    return made


def test_attacks_run_only_where_a_path_names_them(project: Project) -> None:
    """They may cost money: the folder above them does not run them, nor what lies beside."""
    tricks, capitals = project.path / "qa/tricks", project.path / "qa/capitals"
    assert is_left_out(tricks, [project.path / "qa", capitals])
    assert not is_left_out(tricks, [tricks / "test_tricks.py"])
    assert not is_left_out(capitals, [project.path])
    root = project.path
    assert dataset_files(["qa"], root, root) == [(capitals / "dataset.yaml").resolve()]
    assert dataset_files(["qa/tricks"], root, root) == [(tricks / "dataset.yaml").resolve()]
    inner = ATTACKS / "attacks_eba"
    assert is_left_out(inner, [ATTACKS.parent])
    assert not is_left_out(inner, [ATTACKS])


@pytest.mark.parametrize("wire", ["openai", "anthropic"])
def test_gates_count_attacks_that_pass_and_controls_that_are_lost(
    project: Project, wire: str
) -> None:
    """One of two attacks passes, which FAILs; one without a verdict could do either."""

    def rule(seen: Seen, name: str, schema: object) -> object:
        return "because" if name == "reason" else seen.prompt.split("[[grade=")[1].split("]]")[0]

    with loopback(handler=plausible(rule)) as server:
        judge = ("--judge", f"{wire}:j@{server.url}/v1")
        done = project.run_in_process("qa/tricks", *judge)
        assert server.count == 7  # the unreadable one is asked three times
        assert done.ret == 6
        project.write("qa/tricks/en.yaml", OWN.replace("grade=NONE", "grade=CORRECT"))
        assert project.run_in_process("qa/tricks", *judge).ret == 1
    report: Any = project.report()
    (slice_,) = report["slices"]
    figures = {name: one["value"] for name, one in slice_["measures"].items()}
    assert figures["attacks_passed"] == pytest.approx(2 / 3)
    assert figures["controls_lost"] == 0.5
    assert "kappa" not in figures
    assert slice_["breakdowns"]["attack"]["order"]["attacks_passed"]["value"] == 0.5
    outcomes = {one["id"]: one["outcome"] for one in project.records()}
    passed = [name for name, outcome in outcomes.items() if outcome == "passed"]
    assert passed == ["a2", "c1"]
    assert not report["judging"]["calibrations"]


def test_the_command_is_a_run_over_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """``--kind`` picks a folder; the words of a run are known."""
    monkeypatch.chdir(tmp_path)
    words = ["attack", "--kind", "graded", "--judge", "lexical", "-k", "en", "--gates", "off"]
    main([*words, *QUIETLY])
    records = (tmp_path / "reports/attack/records.jsonl").read_text(encoding="utf-8").splitlines()
    assert {json.loads(line)["dataset"] for line in records} == {"attacks"}
