"""The parser of a command line: every error is one line that names the command's help."""

import argparse
from typing import NoReturn

from qagate.evaluators.core import UsageError


class CommandParser(argparse.ArgumentParser):
    """A parser that raises UsageError where argparse would exit."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with what is wrong."""
        raise UsageError(f"{message}; see `{self.prog} --help`")
