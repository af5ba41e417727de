"""Rules of one's own in Python, in the commands and held to what the data needs."""

import asyncio
from pathlib import Path

import pytest

from evaluators.__main__ import main
from evaluators.core import JudgeError, Reply, UsageError
from evaluators.judges.factory import Place, connect_judges
from evaluators.judges.judge_spec import parse_judges
from evaluators.judges.offline import files_of, offline_judge
from evaluators.rubric import Style
from tests.support.labelled_rows import write
from tests.support.own_rules import POLITE
from tests.support.scripted import make_case

SPEC = "python:polite_rules:Polite"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder with one module of rules."""
    (tmp_path / "polite_rules.py").write_text(POLITE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


async def refuse(*_: object) -> Reply:
    raise AssertionError


def label(answer: str, style: Style) -> str:
    judge = offline_judge(SPEC, style)
    return asyncio.run(judge.judge(make_case(), answer, refuse)).label


def test_one_class_grades_and_rates() -> None:
    """Graded data takes its grade, rated data its rating; what is not needed is dropped."""
    assert (label("please", "graded"), label("please", "rated")) == ("CORRECT", "10")
    assert offline_judge(SPEC, "graded").spec == SPEC


@pytest.mark.parametrize(
    ("answer", "style", "message"),
    [
        ("odd", "graded", "want CORRECT, INCORRECT, NOT_ATTEMPTED; got grade 'POLITE'"),
        ("odd", "rated", "want a rating of 1 to 10; got grade 'POLITE', rating None"),
        ("silent", "graded", "want a Verdict, got None"),
        ("broken", "graded", "ValueError: no such word"),
    ],
)
def test_what_is_no_verdict_is_an_error(answer: str, style: Style, message: str) -> None:
    """It names the rules and what they gave; it is never a miss."""
    with pytest.raises(JudgeError) as caught:
        label(answer, style)
    assert str(caught.value).startswith(f"{SPEC}: {message}")


def test_they_may_stand_before_a_model_and_in_a_panel() -> None:
    """As the lexical judge may; their file is part of the judge's version."""
    cascade = connect_judges(parse_judges([f"{SPEC}+openai:x"]), lambda spec: None)
    judge = connect_judges(parse_judges([SPEC, "lexical"]), lambda spec: None)
    assert cascade.spec.is_cascade
    assert judge.build(Place(style="graded")).spec == f"{SPEC} lexical"
    assert [path.name for path in files_of(SPEC)] == ["polite_rules.py"]
    assert judge.version != cascade.version


def test_calibrate_measures_them(capsys: pytest.CaptureFixture[str]) -> None:
    """The card of an offline judge, without any ledger."""
    rows: list[dict[str, object]] = [
        {"question": "q?", "gold": "g", "predicted": "please", "label": "CORRECT"},
        {"question": "r?", "gold": "g", "predicted": "now", "label": "INCORRECT"},
    ]
    assert main(["calibrate", "--judge", SPEC, write("l.jsonl", rows)]) == 0
    out = capsys.readouterr().out
    assert f"# Judge card: {SPEC}" in out
    assert "| agreement            | 1.000" in out
    assert not Path(".qa").exists()


def test_attack_attacks_them(capsys: pytest.CaptureFixture[str]) -> None:
    """The bundled attacks are put to rules of one's own too."""
    assert main(["attack", "--judge", SPEC, "--languages", "en"]) == 0
    assert f"# Attacks on {SPEC}" in capsys.readouterr().out


def test_a_class_that_is_not_there_ends_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    """One line and exit 4."""
    assert main(["attack", "--judge", "python:polite_rules:Rude"]) == 4
    assert "module 'polite_rules' has no class 'Rude'" in capsys.readouterr().err
    with pytest.raises(UsageError, match="want python:MODULE:CLASS"):
        offline_judge("python:polite_rules", "graded")
