"""The options of a run as its command line gives them, without pytest."""

import argparse
from pathlib import Path
from typing import Any

from reports.plugin.options import RunOptions, declare, read_options


class _Words(argparse.Namespace):
    def getoption(self, name: str) -> Any:
        return getattr(self, name)


def options_of(*words: str, here: Path = Path()) -> RunOptions:
    """Return what these words of a command line ask for."""
    parser = argparse.ArgumentParser()
    declare(parser.add_argument)
    return read_options(parser.parse_args(words, _Words()), here)
