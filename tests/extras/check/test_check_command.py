"""`qagate check`: which data sets are checked, and what is printed of them."""

import shutil
from pathlib import Path

import pytest

from qagate.command import main
from tests.support.fixtures import Captured, Patch

YAML = """\
kind: graded
languages:
  en: {file: en.csv, gates: {correct: {min: 0.5}}}
  bg: {file: bg.csv, gates: {correct: {min: 0.5}}}
"""
HEAD = "id,question,answer,fact_id,source\n"
EN = HEAD + "a,Where is it?,Sofia,f1,web\nb,Who is it?,Vazov,f2,web\n"
BG = HEAD + "a,Къде е това?,София,f1,web\nb,Кой е това?,Вазов,f2,web\n"


@pytest.fixture
def project(tmp_path: Path, monkeypatch: Patch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "facts"
    folder.mkdir()
    for name, text in (("dataset.yaml", YAML), ("en.csv", EN), ("bg.csv", BG)):
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def check(words: list[str]) -> int:
    return main(["check", *words])


def spoil(file: Path, old: str, new: str) -> None:
    file.write_text(
        file.read_text(encoding="utf-8").replace(old, new), encoding="utf-8"
    )


def test_a_dataset_is_named_by_folder_or_file(project: Path, capsys: Captured) -> None:
    """A folder stands for every dataset.yaml below it; warnings fail in strict mode only."""
    for name in ("facts", "facts/dataset.yaml", "."):
        assert check([name]) == 0
        assert capsys.readouterr().out == "0 errors, 0 warnings: 4 items in 2 files\n"
    spoil(project / "en.csv", "Where is it?", "Where is Sofia?")
    assert check(["facts"]) == 0
    assert check(["facts", "--strict"]) == 1
    assert "1 warning:" in capsys.readouterr().out


def test_it_says_which_drop_the_items_show(project: Path, capsys: Captured) -> None:
    """Where a gate is on a change; a fact in two languages counts once in each."""
    spoil(project / "dataset.yaml", "{correct: {min: 0.5}}", "{drop: {max: 0.9}}")
    assert check(["facts"]) == 0
    said = "facts:en, facts:bg: 2 independent items can show a drop of 0.658 if no"
    assert said in capsys.readouterr().out


def test_bundled_sets_below_the_folder_are_checked_too(
    project: Path, capsys: Captured, monkeypatch: Patch
) -> None:
    """A data set that stands next to them hides none."""
    shutil.copytree(project, project.with_name("mine"))
    monkeypatch.setattr("qagate.cases.extras.check.command.CASES", project)
    assert check([]) == 0
    assert "8 items in 4 files" in capsys.readouterr().out


def test_a_data_set_can_say_what_is_not_to_be_told_and_why(
    project: Path, capsys: Captured
) -> None:
    """What is waived is counted and shown with its reason; a misspelt check is refused."""
    spoil(project / "bg.csv", "София", "Вaрна")
    spoil(project / "en.csv", "Where is it?", "Where is Sofia?")
    with (project / "dataset.yaml").open("a", encoding="utf-8") as file:
        file.write("check: {waive: {leak: known to all}}\n")
    assert check(["facts"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert "bg.csv: row 1: mixed-scripts: error" in lines[0]
    assert lines[1] == "facts/dataset.yaml: leak: waived, 1 not shown: known to all"
    assert lines[2] == "1 error, 0 warnings: 4 items in 2 files"
    for line, said in (
        ("{waive: {missing: x}}", "key 'missing': not known"),
        ("{waive: {leak: ''}}", "key 'leak': text is needed"),
        ("{stale: 12}", "key 'stale': not known"),
    ):
        (project / "dataset.yaml").write_text(
            f"{YAML}check: {line}\n", encoding="utf-8"
        )
        assert check(["facts"]) == 4
        assert said in capsys.readouterr().err


def test_a_file_that_cannot_be_loaded_hides_no_other(
    project: Path, capsys: Captured
) -> None:
    """The rest is checked, the refusal goes to the error stream, the code is 4."""
    spoil(project / "en.csv", "Sofia", "")
    spoil(project / "bg.csv", "Къде", "Къдe")
    assert check(["facts"]) == 4
    printed = capsys.readouterr()
    assert "facts/en.csv:2: row 1, column 'answer': empty" in printed.err
    assert "mixed-scripts" in printed.out
    assert printed.out.endswith(
        "2 errors, 0 warnings: 2 items in 2 files, 1 not loaded\n"
    )


def test_a_data_file_is_checked_as_a_bundled_slice(
    project: Path, capsys: Captured
) -> None:
    """Its own checks, in any language; errors sorted by file and row, a data set once."""
    assert check(["--as", "simpleqa:bg", "facts/bg.csv"]) == 0
    assert check(["facts/en.csv", "--as", "simpleqa:bg"]) == 1
    assert check(["facts/en.csv", "--as", "simpleqa:fi"]) == 0
    assert (
        "language: error: the question has no Cyrillic letter"
        in capsys.readouterr().out
    )
    assert check(["--as", "boolq:en", "facts/en.csv"]) == 4
    assert "facts/en.csv:1: " in capsys.readouterr().err
    spoil(project / "en.csv", "Who is it?", "Where is it?")
    spoil(project / "bg.csv", "Къде", "Къдe")
    assert check(["facts", "facts/dataset.yaml"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(": ")[:3] for line in lines[:-1]] == [
        ["facts/bg.csv", "row 1", "mixed-scripts"],
        ["facts/en.csv", "row 2", "conflict"],
    ]
    assert lines[-1] == "2 errors, 0 warnings: 4 items in 2 files"
