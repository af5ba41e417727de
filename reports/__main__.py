"""``python -m reports COMMAND``: the commands of ``qagate`` for recorded runs, offline."""

import sys
from collections.abc import Mapping, Sequence

from evaluators.command_line import Command, Program

NOTE = """\
exit codes: 0 done, or every gate passed; 1 a gate failed, or the report could not be written;
4 wrong arguments or an unreadable run; 6 INCONCLUSIVE; 130 interrupted"""
RUNS = "reports.commands.recorded_runs"
COMMANDS: Mapping[str, Command] = {
    "render": Command("write the files of a report again, in any format", RUNS, "render"),
    "compare": Command("compare two runs item by item", RUNS, "compare"),
    "gate": Command("decide with other gates or another baseline", RUNS, "gate"),
    "show": Command("print an item with its prompts and replies", RUNS, "show"),
    "merge": Command("put the runs of CI shards together", RUNS, "merge"),
    "list": Command("list the runs that are kept", RUNS, "list_runs"),
    "promote": Command("keep a run by name", RUNS, "promote"),
    "review": Command(
        "hand answers to people, and take their verdicts back", "reports.commands.review"
    ),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code; every error is one line on stderr."""
    what = "Commands for recorded runs, offline."
    return Program(prog="qagate", what=what, commands=COMMANDS, note=NOTE).run(argv)


if __name__ == "__main__":
    sys.exit(main())
