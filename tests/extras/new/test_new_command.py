"""`qagate new`: the files of a data set, which run as they are."""

import csv
import os
from pathlib import Path
from typing import Any

import pytest

from qagate import command
from qagate.cases.extras.new.command import main as new
from qagate.cases.extras.new.files import TEXTS
from qagate.cases.extras.new.repository import IGNORED
from qagate.evaluators.reading import load_yaml
from tests.support.fixtures import Captured
from tests.support.projects import Project

ROOT = Path(__file__).parents[3]
NEW: Any = load_yaml(TEXTS)


@pytest.mark.parametrize("language", ["de", "fr"])
@pytest.mark.parametrize("kind", list(NEW["kinds"]))
def test_a_new_data_set_runs_as_it_is(
    project: Project, kind: str, language: str
) -> None:
    """Each kind's files are whole: its rows are judged, and they are too few to decide its gate."""
    assert (
        new(["folk", "--lang", language, "--kind", kind, "--to", str(project.path)])
        == 0
    )
    assert project.run_in_process("folk").ret == 6
    assert [slice_["counts"]["error"] for slice_ in project.report()["slices"]] == [0]
    settings = (project.path / "folk" / "dataset.yaml").read_text(encoding="utf-8")
    assert ("drop: {max: 0.20}" in settings) is not kind.startswith("judged")


def test_it_says_which_drop_how_many_rows_show(
    tmp_path: Path, capsys: Captured
) -> None:
    assert new(["folk", "--to", str(tmp_path)]) == 0
    said = "40 rows can show a drop of 0.088 if no answer changes, "
    assert said in capsys.readouterr().out


def test_labelled_answers_are_compared_with_no_baseline(
    tmp_path: Path, capsys: Captured
) -> None:
    assert new(["labels", "--kind", "judged", "--to", str(tmp_path)]) == 0
    assert "can show" not in capsys.readouterr().out


@pytest.mark.parametrize("language", list(NEW["languages"]))
@pytest.mark.parametrize("kind", list(NEW["kinds"]))
def test_a_set_has_its_language(
    tmp_path: Path, kind: str, language: str, capsys: Captured
) -> None:
    """No English row is left where the language's own is known, and every row has all columns."""
    assert new(["folk", "--lang", language, "--kind", kind, "--to", str(tmp_path)]) == 0
    assert "translate" not in capsys.readouterr().out
    every = {
        file.name: file.read_text(encoding="utf-8")
        for file in (tmp_path / "folk").iterdir()
    }
    if language != "en":
        english = NEW["languages"]["en"]
        foreign = [english[key] for key in ("question", "expected", "claim")] + [
            "yes: 'yes'"
        ]
        assert not [
            text for text in every.values() if any(one in text for one in foreign)
        ]
    if data := every.get(f"{language}.csv"):
        assert len({len(row) for row in csv.reader(data.splitlines())}) == 1


def test_its_files_can_be_read_by_others(tmp_path: Path) -> None:
    """They are to be committed, and another user runs them in CI."""
    before = os.umask(0o022)
    try:
        new(["folk", "--to", str(tmp_path)])
    finally:
        os.umask(before)
    for file in (tmp_path / "folk").iterdir():
        assert file.stat().st_mode & 0o777 == 0o644


def test_lines_to_translate_are_named(tmp_path: Path, capsys: Captured) -> None:
    """In a language without texts each English line has its number; so has the rubric a word."""
    new(["folk", "--lang", "fr", "--kind", "yes_no", "--to", str(tmp_path)])
    said = capsys.readouterr().out
    assert "dataset.yaml: translate line 8" in said
    assert "fr.csv: translate line 2\n" in said
    new(["kids", "--lang", "fr", "--to", str(tmp_path)])
    assert (
        "the judge reads English rules: there is no simpleqa.fr.yaml"
        in capsys.readouterr().out
    )


@pytest.mark.parametrize("before", [None, "", "*.log", "*.log\nreports/out/\n"])
def test_git_ignores_what_runs_write(tmp_path: Path, before: str | None) -> None:
    """In the repository's own file, whose lines stay, and each pattern once."""
    (tmp_path / ".git").mkdir()
    (tmp_path / "qa").mkdir()
    file = tmp_path / ".gitignore"
    if before is not None:
        file.write_text(before, encoding="utf-8")
    for name in ("folk", "kids"):
        assert new([name, "--to", str(tmp_path / "qa")]) == 0
    lines = file.read_text(encoding="utf-8").splitlines()
    assert lines[: len((before or "").splitlines())] == (before or "").splitlines()
    assert ".qa/" in lines
    assert len({line.removeprefix("**/") for line in lines}) == len(lines) >= 4
    assert not (tmp_path / "qa" / ".gitignore").exists()
    own = (ROOT / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {one.removeprefix("**/") for one in IGNORED} <= set(
        own
    )  # a clone stays as it is


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["Folk"], "a name of small letters"),
        (["../folk"], "a name of small letters"),
        (["folk", "--lang", "DE!"], "--lang: a language code such as de is needed"),
        (["folk", "--kind", "other"], "invalid choice"),
    ],
)
def test_a_new_set_is_named(
    words: list[str], said: str, tmp_path: Path, capsys: Captured
) -> None:
    """It becomes a folder and part of a function's name: exit 4, and nothing is written."""
    assert command.main(["new", *words, "--to", str(tmp_path)]) == 4
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
