"""The pytest plugin. It does nothing until the paths of a run hold a ``dataset.yaml``.

One process, the one that the user started, is the controller: it validates, runs the engine and
writes the report. Tests, in xdist's workers or in the same process, wait for their own item.
"""

import gc
from pathlib import Path

import pytest

from reports.plugin.options import add_options
from reports.plugin.session import SESSION, begin, join
from reports.plugin.tests import (
    Verdicts,
    pytest_collection_modifyitems,
    pytest_generate_tests,
)

__all__ = [
    "pytest_collection_modifyitems",
    "pytest_generate_tests",
]


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    add_options(parser)


@pytest.hookimpl(tryfirst=True)
def pytest_cmdline_main(config: pytest.Config) -> None:
    """Keep a dry run in this one process: there is nothing to distribute."""
    if config.getoption("qa_dry_run"):
        config.option.numprocesses = None
        config.option.tx = []
        config.option.dist = "no"


def pytest_configure(config: pytest.Config) -> None:
    """Validate everything in the controller, before any call; exit code 4 for the user's errors."""
    config.addinivalue_line("markers", "qa(dataset): one case for each item of a dataset")
    config.pluginmanager.register(Verdicts(), "qa-verdicts")
    if hasattr(config, "workerinput"):
        join(config)
        return
    begin(config, Path(config.invocation_params.dir))


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let the collector of garbage pass over the items: they are alive to the end."""
    if SESSION in session.config.stash:
        gc.freeze()


def pytest_unconfigure(config: pytest.Config) -> None:
    """Let pytest's five last garbage collections pass over a run's items."""
    if SESSION in config.stash:
        gc.freeze()
