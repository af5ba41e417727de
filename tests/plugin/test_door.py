"""The light plugin of every project where qagate is installed: when it wakes, and clashes."""

import os
import subprocess
import sys
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from qagate import door
from qagate.evaluators.kinds import KINDS
from tests.support.projects import MODULE, ROOT, Project

OURS = "kind: graded\njudge: unmeasured\nlanguages: {en: {file: en.jsonl}}\n"
ROW = '{"question": "q?", "answer": "Sofia", "predicted_answer": "Sofia"}\n'
MODES = {"plain": (), "n2": ("-n", "2")}


@pytest.fixture
def folk(project: Project) -> Project:
    """A project with one data set, in which no plugin is named."""
    (project.path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    project.write("folk/dataset.yaml", OURS)
    project.write("folk/en.jsonl", ROW)
    project.write("folk/test_folk.py", MODULE.format(name="folk"))
    return project


def ran(project: Project, *words: str) -> "CompletedProcess[str]":
    """Run pytest with the door as its entry point would load it, in a process of its own."""
    options = ("-P", "-m", "pytest", "-p", "no:deepeval", "-p", "qagate_door_only")
    paths = {**os.environ, "PYTHONPATH": f"{ROOT}{os.pathsep}{project.path / 'site'}"}
    # `-p qagate` would name the plugin; an entry point does not.
    project.write("site/qagate_door_only.py", 'pytest_plugins = ("qagate.door",)\n')
    return subprocess.run(
        [sys.executable, *options, *words],
        cwd=project.path,
        env=paths,
        text=True,
        capture_output=True,
        check=False,
    )


def test_its_kinds_are_those_of_data_sets() -> None:
    assert set(door.KINDS) == set(KINDS)


@pytest.mark.parametrize(
    ("text", "is_ours"),
    [
        ("kind: graded\n", True),
        ("# a comment\nkind:   'yes_no'\n", True),
        ('{"kind": "rated", "languages": {}}', True),
        ("\ufeffkind: judged\n", True),
        ("kind: gradde\nlanguages: {}\n", False),
        ("name: folk\nsplits:\n  - kind: graded\n", False),
        ("kinds: graded\n", False),
        ("", False),
    ],
)
def test_a_declaration_is_known_by_its_kind(
    text: str, is_ours: bool, tmp_path: Path
) -> None:
    file = tmp_path / "dataset.yaml"
    file.write_text(text, encoding="utf-8")
    assert door.is_declaration(file) is is_ours


def test_a_declaration_that_cannot_be_read_counts_as_ours(tmp_path: Path) -> None:
    """Its error is told then, and the data set is not left out in silence."""
    assert door.is_declaration(tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("workers", MODES.values(), ids=MODES)
def test_a_data_set_of_ours_wakes_the_plugin(
    folk: Project, workers: tuple[str, ...]
) -> None:
    ended = ran(folk, *workers, "folk")
    assert ended.returncode == 6, ended.stdout + ended.stderr
    assert "1 passed" in ended.stdout
    assert (folk.path / "reports" / "out" / "run.json").is_file()


@pytest.mark.slow
def test_another_tools_data_set_is_ignored_in_silence(project: Project) -> None:
    """Nothing of ours is declared, so a conftest may declare the same option."""
    (project.path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    project.write("dataset.yaml", "kind: table\nlanguages: [en]\n")
    option = "def pytest_addoption(parser):\n    parser.addoption('--model')\n"
    project.write("conftest.py", option)
    project.write("test_theirs.py", "def test_theirs():\n    pass\n")
    ended = ran(project, "--model", "x")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "1 passed" in ended.stdout
    assert not (project.path / "reports").exists()


@pytest.mark.slow
@pytest.mark.parametrize("plugin", [(), ("-p", "qagate")], ids=["door", "named"])
def test_a_clash_of_options_is_one_line_and_exit_4(
    folk: Project, plugin: tuple[str, ...]
) -> None:
    option = "def pytest_addoption(parser):\n    parser.addoption('--model')\n"
    folk.write("conftest.py", option)
    ended = ran(folk, *plugin, "folk")
    assert ended.returncode == 4
    (line,) = filter(None, ended.stderr.splitlines())
    assert "--model" in line
    assert "put qagate_prefix = true into pytest's settings" in line


@pytest.mark.slow
@pytest.mark.parametrize("workers", MODES.values(), ids=MODES)
def test_a_project_with_such_options_takes_ours_by_their_twins(
    folk: Project, workers: tuple[str, ...]
) -> None:
    """The short name reaches the project's own option, and never ours."""
    (folk.path / "pytest.ini").write_text("[pytest]\nqagate_prefix = true\n", "utf-8")
    folk.write(
        "conftest.py",
        "def pytest_addoption(parser):\n    parser.addoption('--model')\n",
    )
    theirs = "def test_theirs(pytestconfig):\n    assert pytestconfig.getoption('--model') == 'x'\n"
    folk.write("folk/test_theirs.py", theirs)
    ended = ran(folk, *workers, "folk", "--model", "x", "--qa-report-dir=there")
    assert ended.returncode == 6, ended.stdout + ended.stderr
    assert "2 passed" in ended.stdout
    assert (folk.path / "there" / "run.json").is_file()


@pytest.mark.slow
@pytest.mark.parametrize("plugin", [(), ("-p", "qagate")], ids=["door", "named"])
def test_a_mistyped_kind_is_named(folk: Project, plugin: tuple[str, ...]) -> None:
    """No data set of ours that has a test is ever left out in silence."""
    folk.write("folk/dataset.yaml", OURS.replace("graded", "gradde"))
    ended = ran(folk, *plugin, "folk")
    assert ended.returncode == 4, ended.stdout + ended.stderr
    assert "folk/dataset.yaml: no `kind` of a data set; declare one of" in ended.stderr


@pytest.mark.slow
def test_a_data_set_beyond_the_search_is_named(folk: Project) -> None:
    """The search gives up after some folders; a test of ours is then an error, not unknown."""
    for number in range(door.MAX_FOLDERS + 1):
        (folk.path / "a" / f"{number:04}").mkdir(parents=True)
    ended = ran(folk)
    assert ended.returncode == 4, ended.stdout + ended.stderr
    assert "name the data set's folder, or give -p qagate" in ended.stderr
