"""The pytest plugin. It does nothing unless the paths of a run hold a ``dataset.yaml``.

The process that the user started is the controller: it validates, runs the engine and writes
the report. Tests, in xdist's workers or in the same process, wait for their own item.

Here stand the hooks of both. The controller's own begin in ``start.py`` and go on in
``controller.py``; those of a process that runs tests are in ``worker.py``.
"""

from qagate.reports.plugin import first_seconds

# isort: split
import errno
import gc
import sys
from pathlib import Path
from types import FrameType

import pytest

try:
    import qagate.cases.dataset
    import qagate.evaluators.core  # noqa: F401
except ModuleNotFoundError as error:
    raise pytest.UsageError(
        f"{error.name} is not installed for {sys.executable}; install what qagate needs there"
    ) from None
from qagate.cases import discovery
from qagate.cases.dataset import Plan
from qagate.door import PREFIX_HELP, PREFIX_SETTING
from qagate.evaluators.core import UsageError
from qagate.evaluators.output import UnwrittenError
from qagate.evaluators.text import SHOWN, harmless, one_line
from qagate.reports.plugin import crash_guard, worker
from qagate.reports.plugin.option_table import declare_options
from qagate.reports.plugin.worker import (
    pytest_collection_modifyitems,
    pytest_generate_tests,
)

CRASH_GUARD = "qa-crash-guard"
_CONFIGURED = pytest.StashKey[bool]()
"""Set once pytest has accepted the command line: from then on errors are ours."""

__all__ = ["pytest_collection_modifyitems", "pytest_generate_tests"]


@crash_guard.ends_process
def pytest_addoption(
    parser: pytest.Parser, pluginmanager: pytest.PytestPluginManager
) -> None:
    """Declare the options, and what is done where pytest itself rejects a word."""
    config = pluginmanager.get_plugin("pytestconfig")
    if not isinstance(config, pytest.Config):
        declare_options(parser, ())
        return
    try:
        prefixed_only = bool(config.getini(PREFIX_SETTING))
    except ValueError:  # the door, which declares it, is no plugin of this run
        parser.addini(PREFIX_SETTING, PREFIX_HELP, type="bool", default=False)
        prefixed_only = False
    crash_guard.add_cleanup(config, lambda: _withdraw_if_rejected(config))
    words = config.invocation_params.args
    declare_options(parser, words, prefixed_only=prefixed_only)


def _withdraw_if_rejected(config: pytest.Config) -> None:
    """Let no earlier verdict stand where pytest ended by an error before it configured a run."""
    is_error = sys.exc_info()[0] is not None
    if not is_error or config.stash.get(_CONFIGURED, False):
        return
    from qagate.reports.plugin.start import withdraw  # noqa: PLC0415  # only for such a run

    withdraw(config.invocation_params.args, config.invocation_params.dir)


def pytest_configure(config: pytest.Config) -> None:
    """Validate everything in the controller before any call; the user's errors are exit code 4."""
    config.stash[_CONFIGURED] = True
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(crash_guard.CrashGuard(), CRASH_GUARD)
    config.addinivalue_line(
        "markers", "qa(dataset): one case for each item of a dataset"
    )
    config.pluginmanager.register(worker.Verdicts(), "qa-verdicts")
    first_seconds.take_over(_stop)
    crash_guard.add_cleanup(config, lambda: first_seconds.give_back(_stop))
    try:
        worker_input = _worker_input(config)
    except UsageError as problem:
        raise pytest.UsageError(harmless(str(problem))) from None
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise
        raise pytest.UsageError(
            f"{one_line(str(error.filename), SHOWN)}: no file has so long a name; if this is the "
            "text itself, of a prompt for example, put it into a file and name that"
        ) from None
    except UnwrittenError as problem:
        pytest.exit(harmless(str(problem)), int(pytest.ExitCode.INTERNAL_ERROR))
    guard = config.pluginmanager.unregister(name=CRASH_GUARD)
    if worker_input is None:
        return
    # Registered last, so that its wrappers are around those of all others.
    if guard is not None:
        config.pluginmanager.register(guard, CRASH_GUARD)
    config.stash[worker.WORKER_INPUT] = worker_input
    config.pluginmanager.register(worker.WorkerHooks(worker_input), "qa-worker-hooks")
    _declare_markers(config, worker_input.plan)


def _worker_input(config: pytest.Config) -> worker.WorkerInput | None:
    """Return what the tests of this process need; None where the run is none of ours."""
    if hasattr(config, "workerinput"):
        return worker.read_worker_input(config.workerinput)
    from qagate.reports.plugin.start import begin  # noqa: PLC0415  # workers begin nothing

    return begin(config)


def _declare_markers(config: pytest.Config, plan: Plan) -> None:
    """Declare a marker for each data set and each language, for ``-m``."""
    languages: set[str] = set()
    for dataset in plan.datasets:
        config.addinivalue_line(
            "markers", f"{dataset.name}: items of the dataset {dataset.name}"
        )
        languages.update(dataset.slices)
    for language in sorted(languages):
        config.addinivalue_line(
            "markers", f"{language}: items in the language {language}"
        )


def _stop(number: int, frame: FrameType | None) -> None:
    pytest.exit(first_seconds.LINE, returncode=first_seconds.EXIT_CODE)


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart() -> None:
    """Give Ctrl-C back to pytest, which ends a session properly."""
    first_seconds.give_back(_stop)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Pass over attacks on the judge that no path of the run names."""
    with crash_guard.told_in_collection(config):
        if not collection_path.is_dir():
            return None
        named = discovery.named_paths(config.args, config.invocation_params.dir)
        return discovery.is_left_out(collection_path, named) or None


def pytest_collection_finish(session: pytest.Session) -> None:
    """Let garbage collection skip the items, which live to the end."""
    _spare_garbage_collection(session.config)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Let pytest's five last garbage collections skip a run's items."""
    _spare_garbage_collection(config)


def _spare_garbage_collection(config: pytest.Config) -> None:
    if worker.WORKER_INPUT in config.stash:
        gc.freeze()
