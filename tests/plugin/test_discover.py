"""Datasets are found in, under and beside the paths of a command line, and nowhere else."""

from pathlib import Path

import pytest

from evaluators.core import UsageError
from reports.plugin.discover import dataset_files


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for folder in ("cases/a", "cases/b", "cases/.hidden", "cases/node_modules/x", "tests"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "dataset.yaml").touch()
    (tmp_path / "tests" / "dataset.yaml").unlink()
    (tmp_path / "cases" / "a" / "test_a.py").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["cases"], ["cases/a", "cases/b"]),
        (["cases/a"], ["cases/a"]),
        (["cases/a/test_a.py"], ["cases/a"]),
        (["cases/a/test_a.py::test_a[x-y]"], ["cases/a"]),
        (["cases/b", "cases"], ["cases/a", "cases/b"]),
        (["tests"], []),
        (["absent"], []),
    ],
)
def test_what_a_path_holds(tree: Path, arguments: list[str], found: list[str]) -> None:
    """Folders are searched, hidden and foreign ones passed over; a file looks beside itself."""
    expected = [tree.resolve() / name / "dataset.yaml" for name in found]
    assert dataset_files(arguments, tree, tree) == expected


def test_a_moved_rootdir_is_refused(tree: Path) -> None:
    """A dataset outside of rootdir means that an option's value was taken for a path."""
    with pytest.raises(UsageError, match="write --option=PATH"):
        dataset_files(["cases"], tree, tree / "tests")
