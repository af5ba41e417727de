"""Which datasets the command line's paths hold."""

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from evaluators.core import UsageError

FILE = "dataset.yaml"
_SKIPPED = frozenset({"node_modules", "build", "dist", "__pycache__", "venv"})


def dataset_files(arguments: Iterable[str], here: Path, root: Path) -> list[Path]:
    """Return the ``dataset.yaml`` files in, under or beside these paths and node ids, sorted.

    Raises UsageError where one lies outside pytest's rootdir: then an option's value was taken
    for a path, and this project's settings were not read.
    """
    found = {
        path.resolve()
        for argument in arguments
        for path in _candidates(here / argument.partition("::")[0])
    }
    for path in sorted(found):
        if not path.is_relative_to(root.resolve()):
            msg = (
                f"rootdir is {root}, but {path} lies outside it: an option's path stood as a word "
                "of its own; write --option=PATH, or give --rootdir"
            )
            raise UsageError(msg)
    return sorted(found)


def _candidates(path: Path) -> Iterator[Path]:
    if path.is_file():
        beside = path.parent / FILE
        if beside.is_file():
            yield beside
        return
    for folder, names, files in os.walk(path):
        names[:] = [name for name in names if name[0] != "." and name not in _SKIPPED]
        if FILE in files:
            yield Path(folder) / FILE
