"""What all commands share: their exit codes, and a parser whose errors are one line."""

import argparse
from typing import NoReturn

from qagate.evaluators.core import UsageError

FAILED, UNWRITTEN, USAGE, INTERRUPTED = 1, 3, 4, 130
"""Exit codes of a command that cannot do what it was asked; 0 is done."""


class CommandParser(argparse.ArgumentParser):
    """A parser that raises UsageError where argparse would exit."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with what is wrong."""
        raise UsageError(f"{message}; see `{self.prog} --help`")
