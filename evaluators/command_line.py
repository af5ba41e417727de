"""The frame of ``qagate COMMAND``: a table of commands, and one line for every error."""

import argparse
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import NoReturn

from evaluators.core import QAError, UsageError
from evaluators.output import UnwrittenError, say

FAILED, UNWRITTEN, USAGE, INTERRUPTED = 1, 3, 4, 130


REMOVED: Mapping[str, str] = {
    "--first": "say --limit first:N",
    "--show-misses": "say -rf",
    "--tie-breaker": "name an odd number of judges",
    "--reask-invalid": "say --fresh NAME, which asks everything anew",
    "--audit": "a model always judges 5 % of what the rules of lexical+SPEC settle; leave it out",
    "--trust-ledger": "sign the rows with QA_LEDGER_KEY, or name a ledger of your own",
    "--large": "split the file into several data sets",
    "--quota": "--shard K/N parts --rpm, --concurrency and --max-cost; to share limits between "
    "runs, put a gateway in front of the model",
    "--batch-rest": "run again without --batch: what has no reply is then asked directly",
}
"""Removed options, with what to use instead."""


def removed(option: str) -> str:
    """Return the line that answers a removed option."""
    return f"{option} was removed: {REMOVED[option]}"


@dataclass(frozen=True, slots=True)
class Command:
    """One subcommand: its line of help, and the function that takes its words."""

    help: str
    module: str
    function: str = "main"

    def run(self, words: Sequence[str]) -> int:
        """Load the module and run the command; return its exit code."""
        code: int = getattr(import_module(self.module), self.function)(words)
        return code


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program of several commands."""

    prog: str
    what: str
    """One line of help."""
    commands: Mapping[str, Command]
    note: str
    """The exit codes, for the help."""

    def run(self, argv: Sequence[str] | None) -> int:
        """Run one command and return the exit code; ``argv`` None takes the process's words."""
        words = sys.argv[1:] if argv is None else argv
        try:
            options = self._parser().parse_args(words[:1])
            return self.commands[options.command].run(words[1:])
        except UsageError as problem:
            return _ended(str(problem), USAGE)
        except UnwrittenError as error:
            return _ended(str(error), UNWRITTEN)
        except QAError as error:
            return _ended(str(error), FAILED)
        except KeyboardInterrupt:
            return _ended("interrupted", INTERRUPTED)

    def _parser(self) -> argparse.ArgumentParser:
        listed = "\n".join(f"  {name:<10}{one.help}" for name, one in self.commands.items())
        prog = self.prog
        parser = CommandParser(
            prog=prog,
            usage=f"{prog} [-h] COMMAND …",
            description=f"{self.what}\n\ncommands:\n{listed}",
            epilog=f"{self.note}\neach command says more: {prog} COMMAND --help",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument(
            "command", choices=list(self.commands), metavar="COMMAND", help="one of these"
        )
        return parser


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors are one line that names the command's help.

    An option that was removed is answered by what to use.
    """

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with what is wrong."""
        words = (word.partition("=")[0] for word in message.split())
        if option := next((word for word in words if word in REMOVED), ""):
            raise UsageError(removed(option))
        raise UsageError(f"{message}; see `{self.prog} --help`")


def _ended(message: str, code: int) -> int:
    say(sys.stderr, message)
    return code
