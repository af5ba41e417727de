"""What a run may begin before its tests are collected: loading SDKs, and even the first calls."""

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

import pytest

from evaluators.answerers import RECORDED
from evaluators.core import UsageError
from evaluators.models import load
from evaluators.models.catalogue import load_catalogue
from evaluators.models.spec import Spec, parse
from evaluators.runtime.engine_process import EngineProcess, fork_early
from reports.plugin.options import Options
from reports.plugin.run_models import judges_of

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

EARLY = pytest.StashKey[EngineProcess]()


def start_early(config: pytest.Config, options: Options) -> None:
    """Start the engine's process if models will be asked: an SDK takes most of a second.

    Nothing is checked here. The process ends with the session if it is given no job.
    """
    specs = _specs(options)
    early = fork_early(partial(load, specs)) if specs else None
    if early is not None:
        config.stash[EARLY] = early
        config.add_cleanup(early.abandon)


def _specs(options: Options) -> list[Spec]:
    """Return the models that are named rightly; what is wrong is said once all is checked."""
    words = {options.model, *judges_of(options).models()} - {RECORDED}
    catalogue: Mapping[str, Spec] = {}
    if words:
        with suppress(UsageError):
            catalogue = load_catalogue()
    found = []
    for word in sorted(words):
        with suppress(UsageError):
            found.append(parse(word, catalogue))
    return found


def takes_everything(config: pytest.Config, files: Sequence[Path]) -> bool:
    """Whether nothing can drop a test of the datasets in these files.

    A False is a guess on the safe side. A True can be wrong if a test module cannot be imported:
    the replies to the calls made until that is noticed are in the ledger.
    """
    if any(getattr(config.option, name, None) for name in NARROWING) or _others(config):
        return False
    plugins = config.pluginmanager.get_plugins()
    if any(getattr(plugin, name, None) for plugin in plugins for name in IGNORING):
        return False
    folders = [Path(config.invocation_params.dir, word).resolve() for word in config.args]
    loaded = {Path(str(getattr(plugin, "__file__", ""))).resolve() for plugin in plugins}
    return all(folder.is_dir() for folder in folders) and all(
        _is_collected(file.parent.resolve(), folders, loaded, config) for file in files
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
