"""The paths of a run: its data sets, and the folder of its report."""

import os
import re
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import pytest

from cases.dataset import Plan, SliceFile
from evaluators.core import UsageError
from evaluators.kinds import JUDGED
from evaluators.reading import load_settings
from evaluators.text import harmless

CHOOSING = ("keyword", "markexpr", "deselect", "ignore", "ignore_glob", "lf", "stepwise")
"""pytest's options by which a user chooses tests."""
DATASET_FILE = "dataset.yaml"
_ATTACKS = re.compile(rb"^attacks:\s*true\b", re.MULTILINE)
_SKIPPED_FOLDERS = frozenset({"node_modules", "build", "dist", "__pycache__", "venv"})


def check_there(arguments: Iterable[str], here: Path) -> None:
    """Refuse a path that is not there: workers of xdist would pass over it without a word."""
    for argument in arguments:
        if not (here / argument.partition("::")[0]).exists():
            raise UsageError(f"file or directory not found: {argument}")


def dataset_files(arguments: Iterable[str], here: Path, root: Path) -> list[Path]:
    """Return the ``dataset.yaml`` files in, under or next to these paths and node ids, sorted.

    Attacks are left out unless named. Raises UsageError for one outside pytest's rootdir.
    """
    paths = named_paths(arguments, here)
    near = (path.parent / DATASET_FILE for path in paths if path.is_file())
    files = set(filter(Path.is_file, near))
    for path in paths:
        for folder, names, inside in os.walk(path):
            names[:] = [name for name in names if name[0] != "." and name not in _SKIPPED_FOLDERS]
            files |= {Path(folder) / DATASET_FILE} if DATASET_FILE in inside else set()
    every = {file.resolve() for file in files}
    found = sorted(file for file in every if not is_left_out(file.parent, paths))
    for file in found:
        if not file.is_relative_to(root.resolve()):
            raise UsageError(
                f"rootdir is {root}, but {file} lies outside it: an option's path stood as a word "
                "of its own; write --option=PATH, or give --rootdir"
            )
    return found


def labelled_files(
    folders: Iterable[Path], items: Iterable[SliceFile], root: Path
) -> Iterator[Path]:
    """Yield the ``dataset.yaml`` of each labelled data set that may measure the judge.

    They stand in, below or next to the run's folders, or with a file of ``--items``; no attacks.
    """
    root = root.resolve()
    homes = {folder.resolve() for folder in folders}
    places = {home.parent if home.parent.is_relative_to(root) else home for home in homes}
    given = {one.path.parent.resolve() for one in items}
    places |= {one for one in given if one.is_relative_to(root) and (one / DATASET_FILE).is_file()}
    for path in dataset_files(map(str, sorted(places)), root, root):
        try:
            values = load_settings(path).values
        except UsageError:
            continue  # its error is not this run's
        if values.get("kind") == JUDGED and "attacks" not in values:
            yield path


def named_paths(arguments: Iterable[str], here: Path) -> list[Path]:
    """Return the files and folders that these paths and node ids name."""
    return [(here / argument.partition("::")[0]).resolve() for argument in arguments]


def is_left_out(folder: Path, named: Iterable[Path]) -> bool:
    """Return whether a folder holds attacks, which a model is paid for, that no path names."""
    if not _has_attacks(folder):
        return False
    while _has_attacks(folder.parent):
        folder = folder.parent
    return not any(path.is_relative_to(folder.resolve()) for path in named)


def _has_attacks(folder: Path) -> bool:
    """Return whether the data set of a folder says ``attacks: true``; its errors come later."""
    try:
        return _ATTACKS.search((folder / DATASET_FILE).read_bytes()) is not None
    except OSError:
        return False


def check_collected(config: pytest.Config, plan: Plan, found: Collection[str]) -> None:
    """Refuse a run that lacks a data set under one of its folders: no test of it was collected.

    Options may choose tests; a labelled data set without a test measures the judge of others.
    """
    if config.option.pyargs or any(getattr(config.option, name, None) for name in CHOOSING):
        return
    here = Path(config.invocation_params.dir)
    folders = [path for path in named_paths(config.args, here) if path.is_dir()]
    lost = []
    for one in plan.datasets:
        keys = {item.key for item in plan.tests(one)}
        labels = not one.kind.answered and not any(part.attacks for part in one.slices.values())
        is_under = any(one.folder.resolve().is_relative_to(folder) for folder in folders)
        if keys and is_under and keys.isdisjoint(found) and not (labels and found):
            lost.append(f'{one.folder / DATASET_FILE}: no test with @pytest.mark.qa("{one.name}")')
    if lost:
        where = "add its test module (test_*.py), or leave it out by path, -k or -m"
        raise pytest.UsageError(harmless(f"{', '.join(lost)} was collected; {where}"))
