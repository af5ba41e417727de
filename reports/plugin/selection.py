"""Whether a run's tests will be all those that are planned, told before they are collected."""

import ast
import os
from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatch
from importlib.util import find_spec
from pathlib import Path

import pytest

NARROWING = (
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


def takes_everything(config: pytest.Config, files: Sequence[Path]) -> bool:
    """Whether nothing can drop a test of the datasets in these files, or break their modules.

    A False is a guess on the safe side. A True can be wrong where a module fails as it is run.
    """
    if any(getattr(config.option, name, None) for name in NARROWING) or _others(config):
        return False
    folders = [Path(config.invocation_params.dir, argument) for argument in config.args]
    if not all(folder.is_dir() for folder in folders):
        return False
    skipped = config.getini("norecursedirs")
    found = {path for folder in folders for path in _python_files(folder, skipped)}
    plugins = config.pluginmanager.get_plugins()
    if any(getattr(plugin, name, None) for plugin in plugins for name in IGNORING):
        return False
    loaded = {getattr(plugin, "__file__", None) for plugin in plugins}
    if any(path.name == "conftest.py" and str(path) not in loaded for path in found):
        return False
    patterns = config.getini("python_files")
    bodies = {path: _body(path) for path in found if _matches(path.name, patterns)}
    homes = {path.parent.resolve() for path, body in bodies.items() if any(map(_is_qa, body))}
    sound = all(body and all(map(_is_harmless, body)) for body in bodies.values())
    return sound and all(file.parent.resolve() in homes for file in files)


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


def _python_files(folder: Path, skipped: Collection[str]) -> Iterator[Path]:
    for here, names, files in os.walk(folder):
        names[:] = [name for name in names if name != "__pycache__" and not _matches(name, skipped)]
        yield from (Path(here, name) for name in files if name.endswith(".py"))


def _matches(name: str, patterns: Collection[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def _body(module: Path) -> list[ast.stmt]:
    """Return a module's statements; none where it cannot be parsed."""
    try:
        return ast.parse(module.read_bytes()).body
    except (OSError, SyntaxError, ValueError):
        return []


def _is_qa(statement: ast.stmt) -> bool:
    """Whether a statement is a test with the ``qa`` marker."""
    marks = statement.decorator_list if isinstance(statement, ast.FunctionDef) else []
    names = (mark.func if isinstance(mark, ast.Call) else mark for mark in marks)
    return any(isinstance(name, ast.Attribute) and name.attr == "qa" for name in names)


def _is_harmless(statement: ast.stmt) -> bool:
    """Whether a statement can neither fail nor skip the module as it is imported."""
    if isinstance(statement, ast.Import | ast.ImportFrom):
        try:
            return all(map(find_spec, _imported(statement)))
        except (ImportError, ValueError):
            return False
    if isinstance(statement, ast.Expr | ast.Assign | ast.AnnAssign):
        return isinstance(statement.value, ast.Constant)
    return isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)


def _imported(statement: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Return the packages that an import needs, but for those beside the module itself."""
    if isinstance(statement, ast.Import):
        yield from (alias.name.partition(".")[0] for alias in statement.names)
    elif statement.module and not statement.level:
        yield statement.module.partition(".")[0]
