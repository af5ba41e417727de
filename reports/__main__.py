"""``python -m reports COMMAND``: what can be done with recorded runs, offline."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from evaluators.core import QAError, UsageProblem

FAILED, USAGE, INTERRUPTED = 1, 4, 130
NOTE = """\
exit codes: 0 done, or every gate passed; 1 a gate failed, or the report could not be written;
4 wrong arguments or an unreadable run; 6 undecided; 130 interrupted;
each command says more: python -m reports COMMAND --help"""


def _render(argv: Sequence[str]) -> int:
    from reports.commands.render import main as render  # noqa: PLC0415  # only this command needs it

    return render(argv)


def _compare(argv: Sequence[str]) -> int:
    from reports.commands.compare import main as compare  # noqa: PLC0415  # as above

    return compare(argv)


def _gate(argv: Sequence[str]) -> int:
    from reports.commands.gate import main as gate  # noqa: PLC0415  # as above

    return gate(argv)


def _merge(argv: Sequence[str]) -> int:
    from reports.commands.merge import main as merge  # noqa: PLC0415  # as above

    return merge(argv)


def _review(argv: Sequence[str]) -> int:
    from reports.commands.review import main as review  # noqa: PLC0415  # as above

    return review(argv)


@dataclass(frozen=True, slots=True)
class Command:
    """One subcommand: what it does, in a line, and what to run with the rest of the words."""

    help: str
    run: Callable[[Sequence[str]], int]


COMMANDS: Mapping[str, Command] = {
    "render": Command("write the files of a report again, in any format", _render),
    "compare": Command("compare two runs item by item", _compare),
    "gate": Command("decide with other gates or another baseline", _gate),
    "merge": Command("put the runs of CI shards together", _merge),
    "review": Command("hand answers to people, and take their verdicts back", _review),
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        msg = f"{message}; see `python -m reports --help`"
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
    parser = _Parser(
        prog="python -m reports",
        usage="python -m reports [-h] COMMAND …",
        description=f"What can be done with recorded runs, offline.\n\ncommands:\n{commands}",
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
