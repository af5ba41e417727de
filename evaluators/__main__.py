"""``python -m evaluators COMMAND``: what can be done with recorded replies and with judges."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from evaluators.core import QAError, UsageProblem

FAILED, USAGE, INTERRUPTED = 1, 4, 130
NOTE = """\
exit codes: 0 done, 1 not done for a reason outside the arguments, 4 wrong arguments or a wrong
file, 130 interrupted; each command says more: python -m evaluators COMMAND --help"""


def _ledger(argv: Sequence[str]) -> int:
    from evaluators.ledger.commands import main as ledger  # noqa: PLC0415  # only it needs it

    return ledger(argv)


def _calibrate(argv: Sequence[str]) -> int:
    from evaluators.calibration.command import main as calibrate  # noqa: PLC0415

    return calibrate(argv)


def _attack(argv: Sequence[str]) -> int:
    from evaluators.attacks.command import main as attack  # noqa: PLC0415

    return attack(argv)


@dataclass(frozen=True, slots=True)
class Command:
    """One subcommand: what it does, in a line, and what to run with the rest of the words."""

    help: str
    run: Callable[[Sequence[str]], int]


COMMANDS: Mapping[str, Command] = {
    "calibrate": Command("measure a judge against labelled answers; print its card", _calibrate),
    "attack": Command("try to fool a judge; print how often that worked", _attack),
    "ledger": Command("what is in the ledger and what it cost; export, import, prune", _ledger),
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        msg = f"{message}; see `python -m evaluators --help`"
        raise UsageProblem(msg)


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return the exit code; every error is one line on stderr."""
    words = sys.argv[1:] if argv is None else argv
    try:
        options = _parser().parse_args(words[:1])
        return COMMANDS[options.command].run(words[1:])
    except UsageProblem as problem:
        return _ended(str(problem), USAGE)
    except QAError as error:
        return _ended(str(error), FAILED)
    except KeyboardInterrupt:
        return _ended("interrupted", INTERRUPTED)


def _parser() -> argparse.ArgumentParser:
    commands = "\n".join(f"  {name:<10}{command.help}" for name, command in COMMANDS.items())
    what = "What can be done with recorded replies and with judges."
    parser = _Parser(
        prog="python -m evaluators",
        usage="python -m evaluators [-h] COMMAND …",
        description=f"{what}\n\ncommands:\n{commands}",
        epilog=NOTE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=list(COMMANDS), metavar="COMMAND", help="one of these")
    return parser


def _ended(message: str, code: int) -> int:
    encoding = sys.stderr.encoding or "utf-8"
    line = f"{message}\n".encode(encoding, "backslashreplace").decode(encoding)
    sys.stderr.write(line)
    return code


if __name__ == "__main__":
    sys.exit(main())
