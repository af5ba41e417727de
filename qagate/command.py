"""``qagate COMMAND``: every command by one name, and one line on stderr for every error.

``python -m cases``, ``evaluators`` and ``reports`` in a checkout are the same program.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, version

from qagate.evaluators.command_line import (
    FAILED,
    INTERRUPTED,
    UNWRITTEN,
    USAGE,
    CommandParser,
)
from qagate.evaluators.core import QAError, UsageError
from qagate.evaluators.crash import CRASHED, crash_of, report
from qagate.evaluators.output import UnwrittenError, say
from qagate.evaluators.text import mask
from qagate.reports.doors import COMMANDS, load_command

NOTE = """\
exit codes: 0 done, or every gate passed; 1 a gate failed; 4 wrong arguments; 6 INCONCLUSIVE; the
README has them all
each command says more: qagate COMMAND --help"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code; ``argv`` None takes the process's words."""
    words = sys.argv[1:] if argv is None else argv
    try:
        name = _parser().parse_args(words[:1]).command
        return load_command(name)(words[1:])
    except QAError as error:
        say(sys.stderr, mask(str(error).replace("\n", "\\n")))
        return _code_of(error)
    except OSError as error:
        _report_unwritten(error)
        return UNWRITTEN
    except KeyboardInterrupt:
        say(sys.stderr, "interrupted")
        return INTERRUPTED
    except Exception as error:  # noqa: BLE001  # never 1, which says that a gate failed
        say(sys.stderr, report(crash_of(error)))
        return CRASHED


def _code_of(error: QAError) -> int:
    if isinstance(error, UsageError):
        return USAGE
    if isinstance(error, UnwrittenError):
        return UNWRITTEN
    return FAILED


def _report_unwritten(error: OSError) -> None:
    """Say what could not be written or read; a reader that has gone, as of ``| head``, is no error.

    An error without a file name is one of a stream: what the stream still holds is dropped, or
    Python would try to write it once more at exit.
    """
    if not error.filename:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return
    place = error.filename or "output"
    say(
        sys.stderr,
        f"{place}: cannot be written or read ({error.strerror or error})",
    )


def _parser() -> CommandParser:
    lines = [f"  {name:<10}{command.help}" for name, command in COMMANDS.items()]
    listed = "\n".join(lines)
    parser = CommandParser(
        prog="qagate",
        usage="qagate [-h] [--version] COMMAND …",
        description=f"May this language-model upgrade ship?\n\ncommands:\n{listed}",
        epilog=NOTE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"qagate {_version()}")
    parser.add_argument(
        "command", choices=list(COMMANDS), metavar="COMMAND", help="one of these"
    )
    return parser


def _version() -> str:
    try:
        return version("qagate")
    except PackageNotFoundError:
        return "(run from its source, not installed)"
