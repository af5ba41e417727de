"""``qagate``: every command by one name."""

from collections.abc import Sequence

from qagate.evaluators.command_line import PROGRAMS, Command, Program

NOTE = """\
exit codes: 0 done, or every gate passed; 1 a gate failed; 4 wrong arguments; 6 INCONCLUSIVE; the
README has them all"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code; every error is one line on stderr."""
    commands: dict[str, Command] = {}
    for package in ("reports", "evaluators", "cases"):
        commands |= PROGRAMS[package].commands
    what = "May this language-model upgrade ship?"
    return Program(what=what, commands=commands, note=NOTE).run(argv)
