"""The installed command `qagate`: every command by one name, next to any packages."""

import csv
import os
import sys
from dataclasses import replace
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from subprocess import CompletedProcess, run
from typing import Any
from unittest.mock import Mock

import pytest

from qagate import command
from qagate.bundled import CASES
from qagate.cases.extras.builder.recipe import SourceGroup, find_recipe, load_recipe
from qagate.evaluators.reading import load_yaml
from qagate.reports.commands import build
from qagate.reports.commands.data_sets import IGNORED, TEXTS, new
from qagate.reports.doors import COMMANDS
from tests.support.fixtures import Captured, Patch
from tests.support.projects import Project
from tests.support.tables import tabled

ROOT = Path(__file__).parents[2]
NEW: Any = load_yaml(TEXTS)


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """The environment of a process that has the package, as a wheel brings it."""
    site = tmp_path / "site"
    site.mkdir()
    (site / "qagate").symlink_to(ROOT / "qagate")
    for name in (
        "cases",
        "evaluators",
    ):  # where they lie beside the code, as in a clone
        (site / name).symlink_to(ROOT / name)
    return {**os.environ, "PYTHONPATH": str(site), "PYTEST_ADDOPTS": ""}


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A repository with a data set, and with packages named as ours."""
    folder = tmp_path / "theirs"
    for name in ("reports", "evaluators"):
        (folder / name).mkdir(parents=True)
        (folder / name / "__init__.py").touch()
    assert new(["folk", "--lang", "de", "--to", str(folder)]) == 0
    return folder


def called(
    home: Path, installed: dict[str, str], *words: str
) -> "CompletedProcess[str]":
    return run(
        [sys.executable, *words], cwd=home, env=installed, text=True, capture_output=True,
        check=False,
    )  # fmt: skip


@pytest.mark.parametrize("found", ["1.2.3", None])
def test_the_version(found: str | None, monkeypatch: Patch, capsys: Captured) -> None:
    """As its metadata has it; a clone that was never installed says so."""
    known = (
        Mock(return_value=found)
        if found
        else Mock(side_effect=PackageNotFoundError("qagate"))
    )
    monkeypatch.setattr("qagate.command.version", known)
    with pytest.raises(SystemExit) as ended:
        command.main(["--version"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(
        f"qagate {found or '(run from its source'}"
    )


def test_no_message_names_a_package_of_ours() -> None:
    """No index has one of our name, so `pip install qagate[extra]` would mislead."""
    for path in (ROOT / "qagate").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "pip install 'qagate" not in text
        assert "pip install qagate" not in text


@pytest.mark.parametrize("source", ["pages.xml.bz2", "pages.jsonl"])
def test_needs_a_parser(
    source: str, tmp_path: Path, monkeypatch: Patch, capsys: Captured
) -> None:
    """With any other sources in the recipe; the message names the file and what to install."""
    recipe = tmp_path / "recipe.yaml"
    bundled = load_recipe(find_recipe("be"))
    group = SourceGroup(name="news", files=(tmp_path / source,), licence="CC0")
    monkeypatch.setattr(
        build, "load_recipe", lambda _: replace(bundled, sources=(group,))
    )
    monkeypatch.setattr("qagate.evaluators.optional.find_spec", lambda _: None)
    words = [
        "build",
        "boolq",
        "sample",
        "--recipe",
        str(recipe),
        "--folder",
        str(tmp_path / "to"),
    ]
    assert command.main(words) != 0
    said = "mwparserfromhell is not installed; pip install 'mwparserfromhell>=0.7'"
    assert (said in capsys.readouterr().err) is (source != "pages.jsonl")


def test_a_command_is_run(capsys: Captured, tmp_path: Path) -> None:
    """With its own words and exit code; the help has all three packages' and pytest's."""
    assert command.main(["new", "folk", "--to", str(tmp_path)]) == 0
    assert (tmp_path / "folk" / "dataset.yaml").is_file()
    assert command.main(["new", "folk", "--to", str(tmp_path)]) == 4
    assert "is there already" in capsys.readouterr().err
    assert command.main(["nosuch"]) == 4
    with pytest.raises(SystemExit):
        command.main(["--help"])
    said = capsys.readouterr().out
    assert all(f"\n  {name} " in said for name in COMMANDS)


@pytest.mark.slow
def test_the_help_names_the_command(home: Path, installed: dict[str, str]) -> None:
    """Run from a checkout, outside of it."""
    ended = called(home, installed, "-P", "-m", "qagate", "run", "--help")
    assert ended.stdout.startswith("usage: qagate run [options]")


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["plain", "n2"])
def test_packages_with_the_names_of_our_folders_are_left_alone(
    home: Path, installed: dict[str, str], workers: tuple[str, ...]
) -> None:
    """A repository's own `reports` and `evaluators` can be imported next to ours."""
    (home / "pytest.ini").write_text("[pytest]\npythonpath = .\n", encoding="utf-8")
    (home / "evaluators" / "__init__.py").write_text("ROWS = [1]\n", encoding="utf-8")
    theirs = (
        "from evaluators import ROWS\n\n\ndef test_rows():\n    assert ROWS == [1]\n"
    )
    (home / "test_theirs.py").write_text(theirs, encoding="utf-8")
    words = ("-P", "-m", "qagate", "run", *workers, "folk", "test_theirs.py")
    ended = called(home, installed, *words)
    assert ended.returncode == 6, ended.stdout + ended.stderr
    assert "GATES INCONCLUSIVE (1 of 1): exit 6" in ended.stdout
    assert "warning" not in ended.stdout
    assert (home / "reports" / "out" / "report.html").is_file()


@pytest.mark.slow
def test_an_option_that_pytest_rejects_withdraws_the_verdict(
    home: Path, installed: dict[str, str]
) -> None:
    """An earlier PASS must not outlive a run that never began."""
    words = ("-P", "-m", "qagate", "run", "folk")
    assert called(home, installed, *words).returncode == 6
    assert called(home, installed, *words, "--maxfail=x").returncode == 4
    report = home / "reports" / "out" / "run.json"
    assert "NO VERDICT" in report.read_text(encoding="utf-8")


def test_a_bundled_data_set_runs_by_its_name(
    monkeypatch: Patch, project: Project
) -> None:
    """As from a wheel in an empty folder; a path of that name goes first, and values stay."""
    asked: list[list[str]] = []

    def note(words: list[str], plugins: list[object]) -> int:
        asked.append(words)
        return 0

    monkeypatch.setattr(pytest, "main", note)
    command.main(["run", "-m", "smoke", "smoke", "eba"])
    assert asked[-1][-4:] == ["-m", "smoke", str(CASES / "smoke"), str(CASES / "eba")]
    (project.path / "smoke").mkdir()
    command.main(["run", "smoke"])
    assert asked[-1][-1] == "smoke"


@pytest.mark.slow
def test_a_package_that_is_not_installed_is_said(home: Path, tmp_path: Path) -> None:
    """It is not taken for one in the way: exit 4, no traceback."""
    bare = "import sys, pytest; sys.modules['msgspec'] = None; sys.exit(pytest.main(sys.argv[1:]))"
    paths = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_ADDOPTS": ""}
    ended = called(home, paths, "-P", "-c", bare, "-p", "qagate.reports.plugin", "folk")
    assert ended.returncode == 4
    (line,) = filter(None, ended.stderr.splitlines())
    assert line.startswith(
        f"ERROR: msgspec is not installed for {sys.executable}; install"
    )


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
    assert ("drop: {max: 0.05}" in settings) is not kind.startswith("judged")


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


def test_lines_to_translate_are_named(tmp_path: Path, capsys: Captured) -> None:
    """In a language without texts each English line has its number; so has the rubric a word."""
    new(["folk", "--lang", "fr", "--kind", "yes_no", "--to", str(tmp_path)])
    said = capsys.readouterr().out
    assert "dataset.yaml: translate line 7" in said
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


@tabled("words", "said")
def test_a_new_set_is_named(
    words: list[str], said: str, tmp_path: Path, capsys: Captured
) -> None:
    """It becomes a folder and part of a function's name: exit 4, and nothing is written."""
    assert command.main(["new", *words, "--to", str(tmp_path)]) == 4
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
