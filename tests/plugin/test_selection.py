"""Whether tests are known before they are collected: only where nothing can drop one."""

import pytest

from reports.plugin.head_start import takes_everything
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


@pytest.mark.parametrize(
    ("path", "text", "is_known"),
    [
        ("conftest.py", DROPPING, False),
        ("conftest.py", "collect_ignore_glob = ['*capital*']\n", False),
        ("qa/capital/conftest.py", DROPPING, False),
        ("qa/conftest.py", "def pytest_report_header():\n    return 'ours'\n", True),
    ],
    ids=["drops", "ignores", "not loaded yet", "harmless"],
)
def test_a_conftest_that_may_drop_tests_is_waited_for(
    capital: Project, path: str, text: str, is_known: bool
) -> None:
    """One that drops tests, or is not loaded yet; a harmless one that is loaded changes nothing."""
    capital.write(path, text)
    assert known(capital, "qa") == is_known
