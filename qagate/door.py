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
from itertools import islice
from pathlib import Path

import pytest

PLUGIN = "qagate.reports.plugin"
DATASET_FILE = "dataset.yaml"
KINDS = ("graded", "rated", "yes_no", "choice", "judged", "checked")
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
PREFIX_HELP = "give qagate's options no other names than --qa-NAME"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the setting for a project that has options with names of ours."""
    parser.addini(PREFIX_SETTING, PREFIX_HELP, type="bool", default=False)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_load_initial_conftests(
    early_config: pytest.Config, parser: pytest.Parser
) -> Generator[None]:
    """Load the plugin if this run needs it. Raises UsageError for a clash of option names."""
    manager = early_config.pluginmanager
    try:
        _load_if_needed(early_config)
        yield
        if manager.has_plugin(PLUGIN):
            # pytest 9.0 compares the names of options only when it parses some.
            parser.parse_known_args([])
    except argparse.ArgumentError as error:
        raise pytest.UsageError(
            f"{error}: qagate has an option of that name, and so has a conftest.py or another "
            f"plugin; put {PREFIX_SETTING} = true into pytest's settings, and write qagate's "
            "options as --qa-NAME"
        ) from None


def _load_if_needed(config: pytest.Config) -> None:
    """Load the plugin for a run that names it or holds a data set of ours."""
    try:
        has_dataset = _has_dataset(_searched_paths(config))
        is_named = "qagate" in config.known_args_namespace.plugins
        if has_dataset or is_named:
            config.pluginmanager.import_plugin(PLUGIN)
    except (argparse.ArgumentError, pytest.UsageError):
        raise
    except Exception as error:  # noqa: BLE001  # pytest would end with 1, as if a test had failed
        from qagate.evaluators.crash import end  # noqa: PLC0415  # costs other projects nothing

        end(error)


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
    paths = [path for path in paths if _is_there(path)]
    if not paths and here == config.rootpath:
        for pattern in config.getini("testpaths"):
            paths.extend(sorted(here.glob(pattern)))
    return paths or [here]


def _is_there(path: Path) -> bool:
    """Return whether a path exists; a folder that cannot be entered shows nothing.

    Until pytest has read the options, a word after one may stand here as a path.
    """
    try:
        return path.exists()
    except OSError:
        return False


def _has_dataset(paths: Iterable[Path]) -> bool:
    """Return whether one of the first folders of these paths holds a data set of ours."""
    return any(map(_declares, islice(_folders(paths), MAX_FOLDERS)))


def _folders(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield the folders that hold a data set's files: next to a file, and under a folder."""
    for path in paths:
        if path.is_file():
            yield path.parent
            continue
        for folder, names, _ in os.walk(path):
            yield Path(folder)
            names[:] = searched_names(Path(folder), names)


def _declares(folder: Path) -> bool:
    """Return whether a folder holds a data set of ours.

    Raises UsageError where only its test is one of ours: a mistyped ``kind`` must not
    leave a data set out in silence.
    """
    declaration = folder / DATASET_FILE
    if not _is_there(declaration) or not declaration.is_file():
        return False
    if is_declaration(declaration):
        return True
    for module in folder.glob("*.py"):
        if b"mark.qa(" in module.read_bytes():
            raise pytest.UsageError(wrong_kind(declaration))
    return False


def searched_names(folder: Path, names: Iterable[str]) -> list[str]:
    """Return which folders inside one are searched for data sets, sorted.

    Hidden ones are not, nor those that tools make, unless such a one is a data set itself.
    """
    searched = []
    for name in sorted(names):
        is_made_by_tools = name in _SKIPPED
        if is_made_by_tools and (folder / name / DATASET_FILE).is_file():
            is_made_by_tools = False
        if not name.startswith(".") and not is_made_by_tools:
            searched.append(name)
    return searched
