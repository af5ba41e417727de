"""The installed command `qagate`: every command by one name, next to any packages."""

import os
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path
from subprocess import CompletedProcess, run
from unittest.mock import Mock

import pytest

from qagate import command
from qagate.bundled import CASES
from qagate.cases.extras.new.command import main as new
from qagate.reports.commands.run import is_asked_for_help
from qagate.reports.doors import COMMANDS
from qagate.reports.plugin.option_table import NAMES
from tests.support.fixtures import Captured, Patch
from tests.support.projects import Project

ROOT = Path(__file__).parents[2]


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
    assert ended.stdout.startswith("usage: qagate run [PATH")


@pytest.mark.slow
def test_pytests_own_help_is_there_too(home: Path, installed: dict[str, str]) -> None:
    """By a word of its own."""
    ended = called(home, installed, "-P", "-m", "qagate", "run", "--help-pytest")
    assert ended.stdout.startswith("usage: qagate run [options]")
    assert "--last-failed" in ended.stdout


@pytest.mark.parametrize("word", ["-h", "--help"])
def test_help_shows_our_options_with_examples(
    word: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Each of ours and none of pytest's; the exit codes close it."""
    assert command.main(["run", "cases/smoke", word]) == 0
    said = capsys.readouterr().out
    assert all(f"--{name}" in said for name in NAMES)
    assert "--last-failed" not in said
    assert "qagate run cases/ --dry-run" in said
    assert "exit codes: 0 every gate passed" in said


def test_a_value_that_reads_like_help_is_a_value() -> None:
    """``-k`` takes the word after it."""
    assert not is_asked_for_help(["cases/smoke", "-k", "-h"])
    assert is_asked_for_help(["cases/smoke", "-k", "en", "-h"])


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
    """An earlier verdict must not outlive, in CI, a run that never began."""
    in_ci = {**installed, "CI": "true"}
    words = ("-P", "-m", "qagate", "run", "folk")
    assert called(home, in_ci, *words).returncode == 6
    assert called(home, in_ci, *words, "--maxfail=x").returncode == 4
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


@pytest.mark.parametrize("word", ["regulcje", "qa/regulacj", "regulcje::test_a"])
def test_a_folder_misspelt_is_said_before_anything_starts(
    word: str, tmp_path: Path, monkeypatch: Patch, capsys: Captured
) -> None:
    (tmp_path / "regulacje").mkdir()
    (tmp_path / "qa" / "regulacje").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert command.main(["run", word]) == 4
    assert "there is no such path; did you mean " in capsys.readouterr().err
