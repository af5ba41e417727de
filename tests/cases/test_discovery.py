"""Which data sets paths lead to."""

from pathlib import Path

import pytest

from qagate.bundled import CASES
from qagate.cases.discovery import dataset_files, is_left_out
from qagate.evaluators.core import UsageError

ATTACKS = CASES / "attacks"


def declare(folder: Path, text: str = "kind: graded\n") -> Path:
    folder.mkdir(parents=True)
    file = folder / "dataset.yaml"
    file.write_text(text, encoding="utf-8")
    return file.resolve()


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Return a folder with data sets in places to search and in places to pass over."""
    for folder in ("cases/a", "cases/b", "cases/.hidden", "cases/build"):
        declare(tmp_path / folder)
    declare(tmp_path / "tests", "kind: table\nlanguages: [en]\n")  # another tool's
    (tmp_path / "cases" / "a" / "test_a.py").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["cases"], ["cases/a", "cases/b", "cases/build"]),
        (["cases/a"], ["cases/a"]),
        (["cases/a/test_a.py"], ["cases/a"]),
        (["cases/a/test_a.py::test_a[x-y]"], ["cases/a"]),
        (["cases/b", "cases"], ["cases/a", "cases/b", "cases/build"]),
        (["tests"], []),
        (["absent"], []),
    ],
)
def test_folders_are_searched_and_a_file_stands_for_its_own(
    tree: Path, arguments: list[str], found: list[str]
) -> None:
    """Hidden folders and those of other tools are passed over."""
    expected = [tree.resolve() / name / "dataset.yaml" for name in found]
    assert dataset_files(arguments, tree, tree) == expected


def test_a_moved_rootdir_is_refused(tree: Path) -> None:
    """A dataset outside of rootdir means that an option's value was taken for a path."""
    with pytest.raises(UsageError, match="write --option=PATH"):
        dataset_files(["cases"], tree, tree / "tests")


@pytest.fixture
def tricks(tmp_path: Path) -> Path:
    """Return the folder of attacks that stand next to another data set."""
    declare(tmp_path / "qa" / "capitals")
    return declare(tmp_path / "qa" / "tricks", "kind: judged\nattacks: true\n").parent


def test_attacks_are_left_out_unless_a_path_names_them(
    tmp_path: Path, tricks: Path
) -> None:
    capitals = tmp_path / "qa" / "capitals"
    assert dataset_files(["qa"], tmp_path, tmp_path) == [
        (capitals / "dataset.yaml").resolve()
    ]
    assert dataset_files(["qa/tricks"], tmp_path, tmp_path) == [tricks / "dataset.yaml"]


def test_a_folder_above_attacks_or_beside_them_does_not_name_them(
    tricks: Path,
) -> None:
    assert is_left_out(tricks, [tricks.parent, tricks.parent / "capitals"])
    assert not is_left_out(tricks, [tricks / "test_tricks.py"])


def test_what_is_no_attack_is_never_left_out(tricks: Path) -> None:
    assert not is_left_out(tricks.parent / "capitals", [])


@pytest.mark.parametrize("name", ["attacks_eba", "gold_inside"])
def test_attacks_inside_attacks_go_with_the_outer_ones(name: str) -> None:
    assert is_left_out(ATTACKS / name, [CASES])
    assert not is_left_out(ATTACKS / name, [ATTACKS])
