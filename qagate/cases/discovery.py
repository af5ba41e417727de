"""Which data sets a command is about: the ``dataset.yaml`` files that its words lead to.

A word is a path or a pytest node id. A file stands for the data set beside it, a folder for all
data sets below it. Attacks are the exception: they cost money and say nothing of the model, so
they are left out unless a word names their own folder or something in it.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from qagate.cases.dataset import DATASET_FILE, SliceFiles
from qagate.door import is_declaration, searched_names
from qagate.evaluators.core import UsageError
from qagate.evaluators.kinds import JUDGED
from qagate.evaluators.reading import load_settings

_ATTACKS = re.compile(rb"^attacks:\s*true\b", re.MULTILINE)


def dataset_files(arguments: Iterable[str], here: Path, root: Path) -> list[Path]:
    """Return our ``dataset.yaml`` files that these paths and node ids lead to, sorted.

    Another tool's ``dataset.yaml``, without a ``kind`` of ours, is passed over. Raises UsageError
    for a file outside ``root``, which is pytest's rootdir.
    """
    named = named_paths(arguments, here)
    our_files = {file.resolve() for file in _files_below(named) if is_declaration(file)}
    files = []
    for file in sorted(our_files):
        if is_left_out(file.parent, named):
            continue
        if not file.is_relative_to(root.resolve()):
            # Usually ``--option PATH`` is to blame, with an option that pytest does not know
            # yet: it takes PATH for a folder of tests, and may choose the rootdir by it.
            raise UsageError(
                f"rootdir is {root}, but {file} lies outside it: an option's path stood "
                "as a word of its own; write --option=PATH, or give --rootdir"
            )
        files.append(file)
    return files


def labelled_files(
    folders: Iterable[Path], items: SliceFiles, root: Path
) -> Iterator[Path]:
    """Yield the ``dataset.yaml`` of each labelled data set that may measure a run's judge.

    They stand in, below or next to the run's folders, or with a file of ``--items``.
    Attacks measure no judge.
    """
    root = root.resolve()
    places = set()
    for folder in folders:
        home = folder.resolve()
        has_neighbours = home.parent.is_relative_to(root)
        places.add(home.parent if has_neighbours else home)
    for path in items.values():
        home = path.parent.resolve()
        if home.is_relative_to(root) and (home / DATASET_FILE).is_file():
            places.add(home)
    for file in dataset_files(map(str, sorted(places)), root, root):
        try:
            values = load_settings(file).values
        except UsageError:
            continue  # such a data set is no part of the run, nor is its error
        if values.get("kind") == JUDGED and "attacks" not in values:
            yield file


def named_paths(arguments: Iterable[str], here: Path) -> list[Path]:
    """Return the files and folders that these paths and node ids name."""
    return [(here / argument.partition("::")[0]).resolve() for argument in arguments]


def is_left_out(folder: Path, named: Iterable[Path]) -> bool:
    """Return whether a folder holds attacks, and no path names it or anything in it.

    Attacks may stand inside others: then the outermost folder of them counts.
    """
    if not _has_attacks(folder):
        return False
    while _has_attacks(folder.parent):
        folder = folder.parent
    return not any(path.is_relative_to(folder.resolve()) for path in named)


def _files_below(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield each ``dataset.yaml`` next to a file or below a folder, some more than once."""
    for path in paths:
        if path.is_file():
            neighbour = path.parent / DATASET_FILE
            if neighbour.is_file():
                yield neighbour
            continue
        for folder, names, files in os.walk(path):
            names[:] = searched_names(Path(folder), names)
            if DATASET_FILE in files:
                yield Path(folder) / DATASET_FILE


def _has_attacks(folder: Path) -> bool:
    """Return whether a folder's data set says ``attacks: true``; its errors come later."""
    try:
        return _ATTACKS.search((folder / DATASET_FILE).read_bytes()) is not None
    except OSError:
        return False
