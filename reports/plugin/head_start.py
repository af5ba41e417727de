"""What a run begins before its tests are collected: loading SDKs, and even the first calls."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

import pytest

from evaluators.core import RECORDED, UsageError, parse_judges
from evaluators.models import load
from evaluators.models.catalogue import load_catalogue
from evaluators.models.spec import Spec, parse
from evaluators.runtime.process import EngineProcess, fork_early
from reports.plugin.options import RunOptions

NARROWING = (
    *("qa_shard", "keyword", "markexpr", "deselect", "ignore", "ignore_glob", "lf", "stepwise"),
    *("collectonly", "setuponly", "setupplan", "showfixtures", "show_fixtures_per_test"),
    *("cacheshow", "pyargs", "doctestmodules"),
)
"""Options that drop tests, or run none."""

ENDING = ("maxfail", "stepwise", "usepdb", "trace")
"""pytest's options that may end a run before its last test."""

HOOKS = (
    *("pytest_collection", "pytest_collect_directory", "pytest_collection_modifyitems"),
    *("pytest_ignore_collect", "pytest_pycollect_makeitem"),
)
"""Where a plugin may drop tests."""

IGNORING = ("collect_ignore", "collect_ignore_glob")
"""What a conftest.py calls the files that pytest is to skip."""

KNOWN = ("_pytest.", "xdist.", "reports.plugin", "_hypothesis_pytestplugin", "anyio.",
         "pytest_asyncio.")  # fmt: skip
"""Plugins that drop no test unless one of the options above tells them to."""

EARLY = pytest.StashKey[EngineProcess]()


def start_early(config: pytest.Config, options: RunOptions) -> None:
    """Start the engine's process if models will be asked: SDKs take most of a second to load."""
    words = {options.model, *parse_judges(options.judges).models()} - {RECORDED}
    catalogue: Mapping[str, Spec] = {}
    specs = []
    with suppress(UsageError):  # wrong names are reported when all is checked
        catalogue = load_catalogue(own=options.models) if words else {}
    for word in sorted(words):
        with suppress(UsageError):
            specs.append(parse(word, catalogue))
    early = fork_early(partial(load, specs)) if specs else None
    if early is not None:
        config.stash[EARLY] = early
        config.add_cleanup(early.abandon)


def takes_everything(config: pytest.Config, files: Sequence[Path]) -> bool:
    """Whether probably nothing drops a test of these files; a wrong True costs little."""
    only_first = (config.getoption("qa_limit") or "").startswith("first")
    plugins = config.pluginmanager.get_plugins()
    folders = [Path(config.invocation_params.dir, word).resolve() for word in config.args]
    hooks = (one for name in HOOKS for one in getattr(config.hook, name).get_hookimpls())
    unknown = [one.plugin for one in hooks if not one.plugin_name.startswith(KNOWN)]
    modules = (str(getattr(one, "__name__", "") or type(one).__module__) for one in unknown)
    return not (
        only_first
        or any(getattr(config.option, name, None) for name in NARROWING)
        or any(getattr(plugin, name, None) for plugin in plugins for name in IGNORING)
        or not all(name.startswith(KNOWN) for name in modules)
        or not all(folder.is_dir() for folder in folders)
        or not all(_is_collected(file.parent.resolve(), folders, config) for file in files)
    )


def _is_collected(home: Path, folders: Collection[Path], config: pytest.Config) -> bool:
    """Whether pytest will probably find a test with the ``qa`` marker in a dataset's folder."""

    def matches(name: str, setting: str) -> bool:
        return any(fnmatch(name, pattern) for pattern in config.getini(setting))

    above = [one for one in (home, *home.parents) if any(map(one.is_relative_to, folders))]
    plugins = config.pluginmanager.get_plugins()
    loaded = {Path(str(getattr(plugin, "__file__", ""))).resolve() for plugin in plugins}
    for one in above:
        conftest = one / "conftest.py"
        if conftest.exists() and conftest.resolve() not in loaded:  # it may drop tests
            return False
        if one not in folders and matches(one.name, "norecursedirs"):
            return False
    modules = (one for one in home.glob("*.py") if matches(one.name, "python_files"))
    has_test = any(one.is_file() and b"mark.qa" in one.read_bytes() for one in modules)
    return bool(above) and has_test
