"""``qagate demo``: a FAIL that everybody can make in a minute."""

from pathlib import Path

import pytest

from qagate.command import main
from qagate.evaluators.core import QAError
from qagate.reports.extras.demo.command import (
    BASELINE,
    Item,
    new_answer,
    old_answer,
    run_quietly,
)

Captured = pytest.CaptureFixture[str]


def items(language: str) -> list[Item]:
    """Return 240 items of a language, half of them with a yes."""
    return [
        Item(number=number, language=language, is_yes=number % 2 == 0)
        for number in range(240)
    ]


def right(answers: list[str], asked: list[Item]) -> int:
    """Return how many answers are right."""
    pairs = zip(answers, asked, strict=True)
    return sum(answer == item.word_for_right for answer, item in pairs)


@pytest.mark.parametrize("language", ["be", "en"])
def test_the_old_model_is_right_on_eleven_of_twelve(language: str) -> None:
    """In both languages alike."""
    asked = items(language)
    assert right([old_answer(item) for item in asked], asked) == 220


def test_the_new_model_lost_noes_in_one_language() -> None:
    """A yes is answered as before, and English is as good as it was."""
    belarusian, english = items("be"), items("en")
    yeses = [item for item in belarusian if item.is_yes]
    assert right([new_answer(item) for item in english], english) == 220
    assert right([new_answer(item) for item in yeses], yeses) == len(yeses)
    assert right([new_answer(item) for item in belarusian], belarusian) < 170


@pytest.mark.slow
def test_it_ends_as_the_gate_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Captured
) -> None:
    """The lost language fails, the other passes, and the page lies where the run says."""
    monkeypatch.chdir(tmp_path)
    code = main(["demo", "shown"])
    printed = capfd.readouterr().out
    assert code == 1
    assert "FAIL         boolq:be       drop" in printed
    assert "PASS         boolq:en       drop" in printed
    assert "exit code 1: so your CI would stop this upgrade" in printed
    assert (tmp_path / "shown/reports/out/report.html").is_file()


def test_a_folder_that_is_there_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """The command names it and writes nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "qagate-demo").mkdir()
    assert main(["demo"]) == 4
    assert "qagate-demo: is there already" in capsys.readouterr().err
    assert list((tmp_path / "qagate-demo").iterdir()) == []


def test_a_step_that_fails_is_said_with_its_last_line(tmp_path: Path) -> None:
    """Here nothing was run that could be promoted."""
    with pytest.raises(QAError, match="promote old-model` ended in 4:"):
        run_quietly(tmp_path, ["promote", BASELINE])
