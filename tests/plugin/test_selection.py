"""Whether tests are known before they are collected: only where nothing can drop one."""

from pathlib import Path

import pytest

from reports.plugin.head_start import may_end_early, takes_everything
from tests.conftest import Project

DROPPING = """
def pytest_collection_modifyitems(items):
    del items[0]
"""


@pytest.fixture
def capital(project: Project) -> Project:
    """Return a project with one dataset of two items."""
    project.dataset("capital", {"bg": ["Sofia", "Paris"]})
    return project


def known(project: Project, *arguments: str) -> bool:
    """Return what is said of a run with these arguments in a project."""
    config = project.parse_config(*arguments)
    return takes_everything(config, sorted(project.path.glob("qa/*/dataset.yaml")))


@pytest.mark.parametrize("arguments", [("qa",), ("qa/capital",), ("qa", "-x"), ("-v", "qa")])
def test_whole_folders_are_run_as_they_are(capital: Project, arguments: tuple[str, ...]) -> None:
    """Folders without a filter hold just what is planned; how a run ends makes no difference."""
    assert known(capital, *arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        ("qa", "-k", "bg"),
        ("qa", "-m", "capital"),
        ("qa/capital/test_capital.py",),
        ("qa/capital/test_capital.py::test_capital",),
        ("qa", "--deselect", "qa/capital"),
        ("qa", "--ignore", "qa/capital"),
        ("qa", "--ignore-glob", "*capital*"),
        ("qa", "--collect-only"),
        ("qa", "--setup-plan"),
        ("qa", "--fixtures"),
    ],
    ids=" ".join,
)
def test_whatever_narrows_a_run_is_waited_for(capital: Project, arguments: tuple[str, ...]) -> None:
    """A filter, a single module, or a run without tests: what is selected must be seen first."""
    assert not known(capital, *arguments)


def test_failed_first_may_drop_tests(capital: Project) -> None:
    """``--lf`` and ``--sw`` decide by an earlier run."""
    ini = (capital.path / "pytest.ini").read_text().replace("-p no:cacheprovider", "")
    capital.write("pytest.ini", ini)
    assert known(capital, "qa")
    assert not known(capital, "qa", "--lf")
    assert not known(capital, "qa", "--sw")


@pytest.mark.parametrize("text", [DROPPING, "collect_ignore_glob = ['*capital*']\n"])
def test_a_conftest_that_drops_tests_is_waited_for(capital: Project, text: str) -> None:
    """Code of the user's own may drop what it likes."""
    capital.write("conftest.py", text)
    assert not known(capital, "qa")


def test_a_conftest_that_is_not_loaded_yet_is_waited_for(capital: Project) -> None:
    """What a conftest.py further down holds is known only once tests are collected."""
    capital.write("qa/capital/conftest.py", DROPPING)
    assert not known(capital, "qa")


def test_a_harmless_conftest_changes_nothing(capital: Project) -> None:
    """One that is loaded and drops nothing is no reason to wait."""
    capital.write("qa/conftest.py", "def pytest_report_header():\n    return 'ours'\n")
    assert known(capital, "qa")


@pytest.mark.parametrize(
    ("text", "sound"),
    [
        ("import nothing_of_that_name\n", False),
        ("from nothing_of_that_name import x\n", False),
        ("def test_x(:\n", False),
        ("import json, os.path\nfrom pytest import mark\n", True),
        ("import json\0\n", False),
        ("import pytest\npytest.skip('later', allow_module_level=True)\n", False),
        ("import json\nWORDS = json.loads('[')\n", False),
        ("from . import beside\nLIMIT: int = 3\n\n\nclass TestIt:\n    pass\n", True),
    ],
)
def test_a_broken_module_is_waited_for(capital: Project, text: str, sound: bool) -> None:
    """A module that cannot be collected ends the run: nothing may be paid for before that."""
    capital.write("qa/test_more.py", text)
    assert known(capital, "qa") == sound


def test_hidden_and_cached_folders_are_passed_over(capital: Project) -> None:
    """What pytest does not collect need not be sound."""
    capital.write("qa/.old/test_old.py", "import nothing_of_that_name\n")
    capital.write("qa/__pycache__/test_old.py", "import nothing_of_that_name\n")
    assert known(capital, "qa")


def test_a_dataset_without_a_module_is_waited_for(capital: Project) -> None:
    """Items that no test beside them asks for may never be run."""
    capital.write("qa/orphan/dataset.yaml", "kind: graded\n")
    assert not known(capital, "qa")


def test_a_module_without_a_qa_test_is_waited_for(capital: Project) -> None:
    """A dataset whose module asks for none of its items has no test."""
    capital.write("qa/capital/test_capital.py", "def test_nothing():\n    pass\n")
    assert not known(capital, "qa")


def test_a_folder_that_pytest_skips_is_waited_for(capital: Project) -> None:
    """``norecursedirs`` keeps pytest out of a folder that holds a dataset."""
    ini = (capital.path / "pytest.ini").read_text()
    capital.write("pytest.ini", f"{ini}norecursedirs = capital\n")
    assert not known(capital, "qa")


@pytest.mark.parametrize(
    ("arguments", "early"),
    [
        ((), False),
        (("-x",), True),
        (("--maxfail", "3"), True),
        (("--sw",), True),
        (("--pdb",), True),
    ],
)
def test_what_may_end_a_run_early_is_known(
    capital: Project,
    arguments: tuple[str, ...],
    early: bool,
) -> None:
    """Ahead of tests that may never come only a window is asked."""
    ini = (capital.path / "pytest.ini").read_text().replace("-p no:cacheprovider", "")
    capital.write("pytest.ini", ini)
    assert may_end_early(capital.parse_config("qa", *arguments)) == early


def test_a_module_that_cannot_be_read_is_waited_for(capital: Project) -> None:
    """A link into nowhere is no module."""
    module = Path(capital.path, "qa/capital/test_capital.py")
    module.unlink()
    module.symlink_to("/nowhere/at/all.py")
    assert not known(capital, "qa")


def test_a_dataset_beside_the_paths_is_waited_for(capital: Project) -> None:
    """A folder below the one of a dataset holds none of its tests."""
    capital.write("qa/capital/more/test_more.py", "def test_nothing():\n    pass\n")
    assert not known(capital, "qa/capital/more")
