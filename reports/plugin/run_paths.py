"""The paths of a run: data sets in, under or beside those given, and where its report goes."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from evaluators.core import UsageError

DATASET_FILE = "dataset.yaml"
_SKIPPED_FOLDERS = frozenset({"node_modules", "build", "dist", "__pycache__", "venv"})


def check_there(arguments: Iterable[str], here: Path) -> None:
    """Refuse a path that is not there: workers of xdist would pass over it without a word."""
    for argument in arguments:
        if not (here / argument.partition("::")[0]).exists():
            raise UsageError(f"file or directory not found: {argument}")


def dataset_files(arguments: Iterable[str], here: Path, root: Path) -> list[Path]:
    """Return the ``dataset.yaml`` files in, under or beside these paths and node ids, sorted.

    Raises UsageError where one lies outside pytest's rootdir: then an option's value was taken
    for a path, and this project's settings were not read.
    """
    paths = [here / argument.partition("::")[0] for argument in arguments]
    found = sorted({file.resolve() for path in paths for file in _candidates(path)})
    for file in found:
        if not file.is_relative_to(root.resolve()):
            raise UsageError(
                f"rootdir is {root}, but {file} lies outside it: an option's path stood as a word "
                "of its own; write --option=PATH, or give --rootdir"
            )
    return found


def _candidates(path: Path) -> Iterator[Path]:
    if path.is_file():
        beside = path.parent / DATASET_FILE
        if beside.is_file():
            yield beside
        return
    for folder, names, files in os.walk(path):
        names[:] = [name for name in names if name[0] != "." and name not in _SKIPPED_FOLDERS]
        if DATASET_FILE in files:
            yield Path(folder) / DATASET_FILE


def check_report_folder(folder: Path) -> None:
    """Refuse a report folder that could not be written after everything is paid for."""
    nearest = next(path for path in (folder, *folder.parents) if path.exists())
    if not nearest.is_dir() or not os.access(nearest, os.W_OK | os.X_OK):
        raise UsageError(
            f"--report-dir: {folder} cannot be written ({nearest} is in the way); name another"
        )
