"""``python -m cases COMMAND``: the commands of ``qagate`` for data sets."""

import sys
from collections.abc import Mapping, Sequence

from evaluators.command_line import Command, Program

NOTE = """\
exit codes: 0 done, 1 errors found or nothing fetched, 4 wrong arguments or an unreadable file,
130 interrupted"""
COMMANDS: Mapping[str, Command] = {
    "build": Command(
        "make a BoolQ-type dataset from articles, with models and people", "reports.commands.build"
    ),
    "new": Command("write the files of a data set of your own", "reports.commands.new"),
    "check": Command(
        "look for what is wrong with datasets although they can be loaded", "reports.commands.check"
    ),
    "download": Command(
        "fetch a public benchmark, or answers that people labelled", "reports.commands.download"
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code; every error is one line on stderr."""
    what = "Commands for data sets."
    return Program(prog="qagate", what=what, commands=COMMANDS, note=NOTE).run(argv)


if __name__ == "__main__":
    sys.exit(main())
