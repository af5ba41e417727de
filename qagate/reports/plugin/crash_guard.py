"""A crash in a hook of pytest ends the session with one line and exit code 3.

pytest tells most crashes to ``pytest_internalerror``, with pages of traceback; CrashGuard
answers there with ``pytest.exit``. Three kinds of crash never come there by themselves:

- pytest takes a crash in the collection or in a phase of a test for a failure of the user's,
  which is exit code 1: ``told`` brings it there;
- after the session nobody listens: ``pytest_sessionfinish``, ``pytest_unconfigure`` and the
  cleanups that ``add_cleanup`` adds;
- before the session, neither: ``ends_process``.

Nobody listens there to a QAError either: it ends the session, or the process, with its line.

A crash in a worker of xdist arrives in the controller as text.
"""

import argparse
import sys
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import NoReturn, ParamSpec, TypeVar

import pytest

from qagate.evaluators.command_line import UNWRITTEN, USAGE
from qagate.evaluators.core import QAError, UsageError
from qagate.evaluators.crash import CRASHED, Crash, crash_of, end, report
from qagate.evaluators.output import say
from qagate.evaluators.text import harmless, mask, one_line

ERRORS_OF_PYTEST = (
    argparse.ArgumentError,
    pytest.UsageError,
    pytest.exit.Exception,
    pytest.Collector.CollectError,
)
"""Errors that pytest understands wherever they are raised."""
FORESEEN = (QAError, *ERRORS_OF_PYTEST)
"""Errors that are no crash: pytest, or this plugin, raises them on purpose."""
IN_WORKER = "worker_internal_error"
"""The function of xdist that tells the controller of a crash in a worker."""
P = ParamSpec("P")
T = TypeVar("T")


class CrashGuard:
    """The hooks of the process that the user started which turn a crash into one line."""

    def __init__(self) -> None:
        self.line = ""
        """What there is to say of the first crash; empty as long as there was none."""

    def note(self, crash: Crash) -> str:
        """Return the line about the first crash; what follows from it is not told."""
        if not self.line:
            self.line = report(crash)
        return self.line

    def run(self, work: Callable[[], object]) -> None:
        """Do the work of a thread, and note its crash; a lost terminal is none."""
        try:
            work()
        except OSError:
            raise
        except Exception as error:  # noqa: BLE001  # whatever it is
            self.note(crash_of(error))

    @pytest.hookimpl(tryfirst=True)
    def pytest_internalerror(
        self, excinfo: pytest.ExceptionInfo[BaseException]
    ) -> None:
        """End the session before anybody prints the traceback."""
        if isinstance(excinfo.value, Exception):
            pytest.exit(self.note(_crash_in(excinfo)), returncode=CRASHED)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(
        self, session: pytest.Session
    ) -> Generator[None, object, object]:
        """Give the session its code, whatever else happened in it.

        An error here ends by ``pytest.exit``, which pytest still understands.
        """
        try:
            result = yield
        except ERRORS_OF_PYTEST:
            raise
        except QAError as error:
            pytest.exit(_line_of(error), returncode=_code_of(error))
        except Exception as error:  # noqa: BLE001  # whatever it is
            pytest.exit(self.note(crash_of(error)), returncode=CRASHED)
        if self.line:
            session.exitstatus = CRASHED
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_unconfigure(self) -> Generator[None, object, object]:
        """End the process: nobody else would give it another code than 1."""
        try:
            return (yield)
        except ERRORS_OF_PYTEST:
            raise
        except Exception as error:  # noqa: BLE001  # whatever it is
            _end_process(error)


def _line_of(error: QAError) -> str:
    return harmless(mask(str(error).replace("\n", "\\n")))


def _code_of(error: QAError) -> int:
    """Return the exit code of an error that left the run without a verdict."""
    return USAGE if isinstance(error, UsageError) else UNWRITTEN


def _end_process(error: Exception) -> NoReturn:
    """Say in one line what went wrong, and end the process. Raises SystemExit."""
    if not isinstance(error, QAError):
        end(error)
    say(sys.stderr, _line_of(error))
    raise SystemExit(_code_of(error))


def _crash_in(excinfo: pytest.ExceptionInfo[BaseException]) -> Crash:
    """Return the crash that pytest tells of, in this process or in a worker."""
    if excinfo.traceback[-1].name != IN_WORKER:
        return crash_of(excinfo.value)
    text = mask(str(excinfo.value))
    last_line = text.rstrip().rpartition("\n")[2]
    return Crash(summary=f"{one_line(last_line)} (in a worker)", traceback=text)


def guard_of(config: pytest.Config) -> CrashGuard | None:
    """Return the guard of a session; None in a worker."""
    for plugin in config.pluginmanager.get_plugins():
        if isinstance(plugin, CrashGuard):
            return plugin
    return None


@contextmanager
def told(config: pytest.Config) -> Iterator[None]:
    """Tell of a crash where pytest would take it for a failure of the user's."""
    try:
        yield
    except FORESEEN:
        raise
    except Exception as error:  # noqa: BLE001  # whatever it is
        # In a worker xdist tells the controller; elsewhere the guard raises pytest.exit.
        excinfo = pytest.ExceptionInfo.from_exception(error)
        config.notify_exception(excinfo, config.option)
        pytest.exit("an internal error, told to the controller", returncode=CRASHED)


@contextmanager
def told_in_collection(config: pytest.Config) -> Iterator[None]:
    """Do as ``told``; pytest takes what is raised in a collection for a collection error."""
    try:
        with told(config):
            yield
    except pytest.exit.Exception as error:
        raise pytest.Collector.CollectError(str(error)) from None


def add_cleanup(config: pytest.Config, work: Callable[[], object]) -> None:
    """Have work done when pytest ends; an error in it ends the process."""

    @ends_process
    def cleanup() -> None:
        work()

    config.add_cleanup(cleanup)


def ends_process(work: Callable[P, T]) -> Callable[P, T]:
    """Return work of which an error ends the process: pytest would not catch it."""

    @wraps(work)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return work(*args, **kwargs)
        except ERRORS_OF_PYTEST:
            raise
        except (
            BrokenPipeError
        ):  # nobody reads the output any more: pytest's own to tell
            raise
        except Exception as error:  # noqa: BLE001  # whatever it is
            _end_process(error)

    return guarded
