"""Whether the engine may begin before pytest has collected the tests.

Collection takes a while, longer still with workers, and the plan names all items long
before. So the engine gets a head start where the tests will probably be the planned items:
whole folders are run, no option of pytest narrows them, and no plugin or ``conftest.py``
that we do not know may drop a test. A wrong yes costs little, as only a few items are
asked ahead; a wrong no costs the time of the collection.
"""

from collections.abc import Collection, Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

import pytest

from qagate.reports.plugin.collected import CHOOSING

NARROWING_OPTIONS = (
    "qa_shard",
    *CHOOSING,
    "collectonly",
    "setuponly",
    "setupplan",
    "showfixtures",
    "show_fixtures_per_test",
    "cacheshow",
    "pyargs",
    "doctestmodules",
)
"""Options that drop tests, or run none."""
KNOWN_PLUGINS = (
    "_pytest.",
    "xdist.",
    "qagate.door",
    "qagate.reports.plugin",
    "_hypothesis_pytestplugin",
    "anyio.",
    "pytest_asyncio.",
)
"""Plugins that drop no test unless one of the options above tells them to."""


def takes_all_items(config: pytest.Config, files: Sequence[Path]) -> bool:
    """Whether every planned item of these ``dataset.yaml`` files probably has a test."""
    limit = config.getoption("qa_limit") or ""
    if limit.startswith("first"):
        return False
    if any(config.getoption(name, None) for name in NARROWING_OPTIONS):
        return False
    if _may_drop_tests(config):
        return False
    start = config.invocation_params.dir
    folders = [Path(start, word).resolve() for word in config.args]
    if not all(folder.is_dir() for folder in folders):
        return False
    return all(_has_test(file.parent.resolve(), folders, config) for file in files)


def _may_drop_tests(config: pytest.Config) -> bool:
    """Whether a loaded plugin, or a ``conftest.py`` among them, may drop tests."""
    for plugin in config.pluginmanager.get_plugins():
        # What a conftest.py calls the files that pytest is to skip.
        ignored_files = getattr(plugin, "collect_ignore", None)
        ignored_patterns = getattr(plugin, "collect_ignore_glob", None)
        if ignored_files or ignored_patterns:
            return True
    return any(
        not module.startswith(KNOWN_PLUGINS) for module in _modules_of_hooks(config)
    )


def _modules_of_hooks(config: pytest.Config) -> Iterator[str]:
    """Yield the names of the plugins, or of their modules, that take part in collection."""
    hooks = config.pluginmanager.hook
    may_drop_tests = (
        hooks.pytest_collection,
        hooks.pytest_collect_directory,
        hooks.pytest_collection_modifyitems,
        hooks.pytest_ignore_collect,
        hooks.pytest_pycollect_makeitem,
    )
    for caller in may_drop_tests:
        for hook in caller.get_hookimpls():
            if hook.plugin_name.startswith(KNOWN_PLUGINS):
                yield hook.plugin_name
            else:  # a plugin may be registered under any name
                module_name = getattr(hook.plugin, "__name__", "")
                yield str(module_name or type(hook.plugin).__module__)


def _has_test(
    folder: Path, named_folders: Collection[Path], config: pytest.Config
) -> bool:
    """Whether pytest will probably find a test with the ``qa`` marker in a dataset's folder."""
    searched = _searched_folders(folder, named_folders)
    if not searched:
        return False
    loaded_files = set()
    for plugin in config.pluginmanager.get_plugins():
        loaded_files.add(Path(str(getattr(plugin, "__file__", ""))).resolve())
    for parent in searched:
        conftest = parent / "conftest.py"
        if conftest.exists() and conftest.resolve() not in loaded_files:
            return False  # it may drop tests
        if parent not in named_folders and _matches(parent, "norecursedirs", config):
            return False
    for module in folder.glob("*.py"):
        is_collected = _matches(module, "python_files", config) and module.is_file()
        if is_collected and b"mark.qa" in module.read_bytes():
            return True
    return False


def _searched_folders(folder: Path, named_folders: Collection[Path]) -> list[Path]:
    """Return those of a folder and its parents that pytest enters on the way to it."""
    searched = []
    for parent in (folder, *folder.parents):
        if any(parent.is_relative_to(named) for named in named_folders):
            searched.append(parent)
    return searched


def _matches(path: Path, setting: str, config: pytest.Config) -> bool:
    """Whether a path's name matches one of the patterns of an ini setting."""
    return any(fnmatch(path.name, pattern) for pattern in config.getini(setting))
