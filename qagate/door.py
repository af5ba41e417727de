"""What pytest loads in every project where qagate is installed (entry point ``pytest11``).

This file costs such a project nothing: it needs pytest and the standard library alone. The plugin
itself, ``qagate.reports.plugin``, is loaded only for a run that names it (``-p qagate``, as
``qagate run`` does), or whose paths hold a ``dataset.yaml`` of ours.

It is loaded late, after all other plugins and before the project's conftest files, so that a clash
of option names with either is met here, in one place.
"""

import argparse
import os
import re
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

PLUGIN = "qagate.reports.plugin"
DATASET_FILE = "dataset.yaml"
KINDS = ("graded", "rated", "yes_no", "judged", "checked")
"""The kinds of data sets, as ``qagate.evaluators.kinds.KINDS`` has them."""
_KIND = re.compile(
    rb"""(?:\A\xef\xbb\xbf|^|[{,][ \t]*)["']?kind["']?[ \t]*:[ \t]*["']?(\w*)""",
    re.MULTILINE,
)
_SKIPPED = frozenset(
    {"node_modules", "build", "dist", "__pycache__", "venv", "site-packages"}
)
MAX_FOLDERS = 1_000
"""How many folders are searched for a data set before the search is given up."""
PREFIX_SETTING = "qagate_prefix"
PREFIX_HELP = "declare qagate's options as --qa-NAME only"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the one setting that a project needs whose options have the names of ours."""
    parser.addini(PREFIX_SETTING, PREFIX_HELP, type="bool", default=False)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser
) -> Generator[None]:
    """Load the plugin after all others; say in one line which option two of them declare."""
    manager = early_config.pluginmanager
    is_named = "qagate" in early_config.known_args_namespace.plugins
    has_dataset = _has_dataset(_searched_paths(early_config))
    with _clash_in_one_line():
        if is_named or has_dataset:
            manager.import_plugin(PLUGIN)
        yield
        if manager.has_plugin(PLUGIN):
            parser.parse_known_args([])  # pytest 9.0 finds a clash only now


def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Say why a test of a data set is no test case of ours. Raises UsageError."""
    if config.pluginmanager.has_plugin(PLUGIN):
        return
    for item in items:
        if item.get_closest_marker("qa") is None:
            continue
        declaration = item.path.parent / DATASET_FILE
        if declaration.is_file() and not is_declaration(declaration):
            raise pytest.UsageError(wrong_kind(declaration))
        raise pytest.UsageError(
            f"{item.path}: a test of a data set, but no {DATASET_FILE} was found in the "
            f"first {MAX_FOLDERS:,} folders; name the data set's folder, or give -p qagate"
        )


def is_declaration(file: Path) -> bool:
    """Return whether a ``dataset.yaml`` declares a data set of ours: by its ``kind``.

    A file that cannot be read counts as one, so that its error is told.
    """
    try:
        match = _KIND.search(file.read_bytes())
    except OSError:
        return True
    return match is not None and match[1].decode("ascii", "replace") in KINDS


def wrong_kind(declaration: Path) -> str:
    """Return what is wrong with a ``dataset.yaml`` that is not ours, next to a test of ours."""
    return f"{declaration}: no `kind` of a data set; declare one of {', '.join(KINDS)}"


def _searched_paths(config: pytest.Config) -> list[Path]:
    """Return the paths of the command line that exist, or those that pytest takes instead."""
    here = config.invocation_params.dir
    words = config.known_args_namespace.file_or_dir
    paths = [here / word.partition("::")[0] for word in words]
    paths = [path for path in paths if path.exists()]
    if not paths and here == config.rootpath:
        for pattern in config.getini("testpaths"):
            paths.extend(sorted(here.glob(pattern)))
    return paths or [here]


def _has_dataset(paths: Iterable[Path]) -> bool:
    folders_left = MAX_FOLDERS
    for path in paths:
        if path.is_file() and _declares(path.parent):
            return True
        for folder, names, _ in os.walk(path):
            if _declares(Path(folder)):
                return True
            folders_left -= 1
            if folders_left == 0:
                return False
            names[:] = sorted(name for name in names if _is_searched(name))
    return False


def _declares(folder: Path) -> bool:
    """Return whether a folder holds a data set of ours.

    Raises UsageError where only its test is one of ours: a mistyped ``kind`` must not
    leave a data set out in silence.
    """
    declaration = folder / DATASET_FILE
    if not declaration.is_file():
        return False
    if is_declaration(declaration):
        return True
    for module in folder.glob("*.py"):
        if b"mark.qa(" in module.read_bytes():
            raise pytest.UsageError(wrong_kind(declaration))
    return False


def _is_searched(folder_name: str) -> bool:
    return not folder_name.startswith(".") and folder_name not in _SKIPPED


@contextmanager
def _clash_in_one_line() -> Iterator[None]:
    try:
        yield
    except argparse.ArgumentError as error:
        raise pytest.UsageError(
            f"{error}: a plugin or conftest.py declares an option of qagate's; set "
            f"{PREFIX_SETTING} = true in pytest's settings; qagate's are then --qa-NAME"
        ) from None
