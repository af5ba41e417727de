"""What a run may begin before its tests are collected: loading SDKs, and even the first calls."""

import ast
import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import pytest

from evaluators.answerers import RECORDED
from evaluators.core import UsageError
from evaluators.models import load
from evaluators.models.catalogue import load_catalogue
from evaluators.models.spec import Spec, parse
from evaluators.runtime.engine_process import EngineProcess, fork_early
from reports.plugin.options import RunOptions
from reports.plugin.run_models import judges_of

NARROWING = (
    "qa_shard",
    "keyword",
    "markexpr",
    "deselect",
    "ignore",
    "ignore_glob",
    "lf",
    "stepwise",
    "collectonly",
    "setuponly",
    "setupplan",
    "showfixtures",
    "show_fixtures_per_test",
    "cacheshow",
    "pyargs",
    "doctestmodules",
)
"""pytest's options that drop tests, or run none."""

ENDING = ("maxfail", "stepwise", "usepdb", "trace")
"""pytest's options that may end a run before its last test."""

HOOKS = (
    "pytest_collection",
    "pytest_collect_directory",
    "pytest_collection_modifyitems",
    "pytest_ignore_collect",
    "pytest_pycollect_makeitem",
)
"""Where a plugin may drop tests."""

IGNORING = ("collect_ignore", "collect_ignore_glob")
"""What a conftest.py names the files by that pytest is to pass over."""

OWN = (
    "_pytest.",
    "xdist.",
    "reports.plugin",
    "_hypothesis_pytestplugin",
    "anyio.",
    "pytest_asyncio.",
)
"""Plugins that drop none unless one of the options above says so."""

EARLY = pytest.StashKey[EngineProcess]()


def start_early(config: pytest.Config, options: RunOptions) -> None:
    """Start the engine's process if models will be asked: an SDK takes most of a second.

    Nothing is checked here. The process ends with the session if it is given no job.
    """
    specs = _specs(options)
    early = fork_early(partial(load, specs)) if specs else None
    if early is not None:
        config.stash[EARLY] = early
        config.add_cleanup(early.abandon)


def _specs(options: RunOptions) -> list[Spec]:
    """Return the models that are named rightly; what is wrong is said once all is checked."""
    words = {options.model, *judges_of(options).models()} - {RECORDED}
    catalogue: Mapping[str, Spec] = {}
    if words:
        with suppress(UsageError):
            catalogue = load_catalogue(own=options.models)
    found = []
    for word in sorted(words):
        with suppress(UsageError):
            found.append(parse(word, catalogue))
    return found


def takes_everything(config: pytest.Config, files: Sequence[Path]) -> bool:
    """Whether nothing can drop a test of the datasets in these files.

    A False is a guess on the safe side. A True can be wrong if a test module fails as it is run:
    the replies to the calls made until that is noticed are in the ledger.
    """
    only_first = (config.getoption("qa_limit") or "").startswith("first")
    narrowed = only_first or any(getattr(config.option, name, None) for name in NARROWING)
    if narrowed or _others(config):
        return False
    plugins = config.pluginmanager.get_plugins()
    if any(getattr(plugin, name, None) for plugin in plugins for name in IGNORING):
        return False
    folders = [Path(config.invocation_params.dir, word).resolve() for word in config.args]
    loaded = {Path(str(getattr(plugin, "__file__", ""))).resolve() for plugin in plugins}
    return (
        all(folder.is_dir() for folder in folders)
        and all(_is_collected(file.parent.resolve(), folders, loaded, config) for file in files)
        and all(map(_is_harmless, _modules(folders, config)))
    )


def _is_collected(
    home: Path, folders: Collection[Path], loaded: Collection[Path], config: pytest.Config
) -> bool:
    """Whether pytest will find a test with the ``qa`` marker in a dataset's folder."""
    above = [one for one in (home, *home.parents) if any(map(one.is_relative_to, folders))]
    conftests = [one / "conftest.py" for one in above]
    skipped = config.getini("norecursedirs")
    if (
        not above
        or any(_matches(one.name, skipped) for one in above if one not in folders)
        or any(path.exists() and path.resolve() not in loaded for path in conftests)
    ):
        return False
    patterns = config.getini("python_files")
    modules = [one for one in home.glob("*.py") if _matches(one.name, patterns)]
    return any(one.is_file() and b"mark.qa" in one.read_bytes() for one in modules)


def _modules(folders: Collection[Path], config: pytest.Config) -> Iterator[Path]:
    """Yield the test modules in these folders."""
    patterns, skipped = config.getini("python_files"), config.getini("norecursedirs")
    for folder in folders:
        for here, names, files in os.walk(folder):
            names[:] = [one for one in names if one != "__pycache__" and not _matches(one, skipped)]
            yield from (Path(here, name) for name in files if _matches(name, patterns))


def _is_harmless(module: Path) -> bool:
    """Whether a test module is sure to be imported whole: a broken one ends a run before any call.

    It imports what is there, defines functions and classes, and names constants.
    """
    try:
        body = ast.parse(module.read_bytes()).body
        names = {name for one in body for name in _imported(one)}
        found = all(map(find_spec, names))
    except (OSError, ImportError, SyntaxError, ValueError):
        return False
    simple = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    return found and all(
        isinstance(one, simple) or isinstance(getattr(one, "value", None), ast.Constant)
        for one in body
    )


def _imported(statement: ast.stmt) -> Iterator[str]:
    """Yield the packages that an import needs, but for those beside the module itself."""
    if isinstance(statement, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in statement.names)
    elif isinstance(statement, ast.ImportFrom) and statement.module and not statement.level:
        yield statement.module.partition(".")[0]


def _matches(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def may_end_early(config: pytest.Config) -> bool:
    """Whether tests may be left out at the end: then little is to be asked ahead of them."""
    return any(getattr(config.option, name, None) for name in ENDING)


def _others(config: pytest.Config) -> bool:
    """Whether a plugin that is not known here has a say in what is collected."""
    return any(
        not implementation.plugin_name.startswith(OWN)
        and not _module(implementation.plugin).startswith(OWN)
        for name in HOOKS
        for implementation in getattr(config.hook, name).get_hookimpls()
    )


def _module(plugin: object) -> str:
    return str(getattr(plugin, "__name__", "") or type(plugin).__module__)
