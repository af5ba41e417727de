"""Plug-ins that run failing tests again: not where gates decide."""

import sys

import pytest

from tests.conftest import Project

YAML = "kind: graded\nlanguages:\n  en: {file: en.jsonl, gates: {correct: {min: 0.5}}}\n"

# What pytest-rerunfailures, pytest-retry and flaky declare, as a plug-in of the test's own.
PLUGIN = """
def pytest_addoption(parser):
    parser.addoption("--reruns", dest="reruns", type=int)
    parser.addoption("--force-reruns", dest="force_reruns", type=int)
    parser.addoption("--retries", dest="retries", type=int)
    parser.addoption("--force-flaky", dest="force_flaky", action="store_true")
    parser.addini("reruns", "", default=None)
"""


@pytest.fixture
def capitals(project: Project) -> Project:
    """Return a project with a miss, and plug-ins that could run it again."""
    project.dataset("capital", {"en": ["Sofia", "Sofia", "Plovdiv"]}, YAML)
    project.write("again.py", PLUGIN)
    return project


@pytest.mark.parametrize(
    "option", ["--reruns=3", "--force-reruns=1", "--retries=2", "--force-flaky"]
)
def test_running_misses_again_is_refused(
    capitals: Project, option: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit 4 and the reason, from the environment as from the command line."""
    monkeypatch.setenv("PYTEST_ADDOPTS", f"{option} -x -p again")
    monkeypatch.setenv("PYTHONPATH", str(capitals.path))
    result = capitals.run("qa")
    assert result.ret == 4
    name = option.partition("=")[0]
    result.stderr.fnmatch_lines([f"ERROR: {name}: a miss is a finding and is not run again*"])
    assert not (capitals.path / "reports").exists()


def test_an_ini_file_is_no_way_around(capitals: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A setting counts as the option does; 0 switches it off."""
    monkeypatch.setenv("PYTHONPATH", str(capitals.path))
    result = capitals.run("-p", "again", "-o", "reruns=2", "qa")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: reruns (in the ini file): *"])
    assert capitals.run("-p", "again", "-o", "reruns=0", "qa").ret == 0


def test_without_gates_it_is_allowed_and_said(
    capitals: Project, mode: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """--gates off is plain pytest: the report only notes what was done."""
    monkeypatch.setenv("PYTHONPATH", str(capitals.path))
    result = capitals.run(*mode, "-p", "again", "--retries=2", "--gates", "off", "qa")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["note: failing tests were run again: --retries"])


def test_the_real_plugin_is_heard(project: Project) -> None:
    """pytest-rerunfailures, where it is installed, is refused by name."""
    pytest.importorskip("pytest_rerunfailures")
    project.dataset("capital", {"en": ["Sofia"]}, YAML)
    ini = (project.path / "pytest.ini").read_text(encoding="utf-8")
    project.write("pytest.ini", ini.replace("-p no:rerunfailures", ""))
    result = project.pytester.run(sys.executable, "-m", "pytest", "--reruns", "3", "qa")
    assert result.ret == 4
    result.stderr.fnmatch_lines(["ERROR: --reruns: *--gates off*"])
