"""``python -m evaluators COMMAND``: the commands of ``qagate`` for recorded replies and judges."""

import sys
from collections.abc import Mapping, Sequence

from evaluators.command_line import Command, Program

NOTE = """\
exit codes: 0 done, 1 not done for a reason outside the arguments, 4 wrong arguments or a wrong
file, 130 interrupted"""
COMMANDS: Mapping[str, Command] = {
    "calibrate": Command(
        "measure a judge against labelled answers; print its card", "reports.commands.calibrate"
    ),
    "attack": Command(
        "try to fool a judge; print how often that worked", "reports.commands.attack"
    ),
    "ledger": Command(
        "what is in the ledger and what it cost; export, import, prune",
        "reports.commands.ledger",
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code; every error is one line on stderr."""
    what = "Commands for recorded replies and judges."
    return Program(prog="qagate", what=what, commands=COMMANDS, note=NOTE).run(argv)


if __name__ == "__main__":
    sys.exit(main())
