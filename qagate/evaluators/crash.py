"""What nobody foresaw: told in one line, with an exit code of its own.

An error of ours that is no QAError is a crash. It decides nothing, so it must never end a
process with 1, which says that a gate failed, nor with 0. Wherever one is caught it becomes a
Crash, which may travel from the engine's process to pytest's; ``report`` keeps the traceback
in a file and returns the line for the user. These are the places:

- a command: ``qagate/command.py``;
- a hook, and all else that pytest runs: ``qagate/reports/plugin/crash_guard.py``;
- the engine, its process and the threads beside it: ``Status.crash``.
"""

import os
import sys
import tempfile
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import NoReturn

from qagate.evaluators.output import say
from qagate.evaluators.text import mask, one_line

CRASHED = 3
"""The exit code of a crash."""
PACKAGE = Path(__file__).parents[1]
FILE_PREFIX = "qagate-crash-"
"""Begins the name of a traceback's file, in the system's folder for temporary files."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Crash:
    """An error that nobody foresaw. It can be pickled, whatever the error held."""

    summary: str
    """The error and where it was raised, in one line."""
    traceback: str
    """Python's own text, without keys."""


class CrashedError(Exception):
    """A crash in another process."""

    def __init__(self, crash: Crash) -> None:
        super().__init__(crash.summary)
        self.crash = crash


def crash_of(error: BaseException) -> Crash:
    """Return an error as a crash; that of a CrashedError is the other process's."""
    if isinstance(error, CrashedError):
        return error.crash
    lines = traceback.format_exception(error)
    message = one_line(mask(f"{type(error).__name__}: {_text_of(error)}"))
    place = one_line(mask(_place(error.__traceback__)))
    return Crash(
        summary=f"{message} ({place})",
        traceback=mask("".join(lines)),
    )


def _text_of(error: BaseException) -> str:
    try:
        return str(error) or "no message"
    except Exception:  # noqa: BLE001  # an error whose own text cannot be made
        return "no message"


def _place(trace: TracebackType | None) -> str:
    """Return the file and line of ours that was reached last; of any code if none is ours."""
    place = "place unknown"
    for frame in traceback.extract_tb(trace):
        file = Path(frame.filename)
        if file.is_relative_to(PACKAGE):
            place = f"{file.relative_to(PACKAGE.parent)}:{frame.lineno}"
    if place == "place unknown" and trace is not None:
        last_frame = traceback.extract_tb(trace)[-1]
        place = f"{Path(last_frame.filename).name}:{last_frame.lineno}"
    return place


def report(crash: Crash) -> str:
    """Keep a crash's traceback in a new file of the user's own; return the line that names it."""
    kept = "its traceback could not be kept"
    try:
        file, name = tempfile.mkstemp(prefix=FILE_PREFIX, suffix=".txt")
        with os.fdopen(file, "w", encoding="utf-8", errors="backslashreplace") as text:
            text.write(crash.traceback)
        kept = f"its traceback is in {name}"
    except OSError:
        pass
    return (
        f"INTERNAL ERROR: exit {CRASHED}; {crash.summary}; {kept}; please report it, "
        "this is a fault of qagate and says nothing about the model"
    )


def end(error: Exception) -> NoReturn:
    """Say what crashed, and end the process. Raises SystemExit."""
    _flush_output()
    with suppress(OSError, ValueError):  # nobody can be told
        say(sys.stderr, report(crash_of(error)))
    raise SystemExit(CRASHED)


def _flush_output() -> None:
    """Write what the output still holds, or drop it: Python would try again, and end with 120."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
