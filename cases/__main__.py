"""``python -m cases COMMAND``: what can be done with the questions themselves."""

import argparse
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from evaluators.core import QAError, UsageProblem

FAILED, USAGE, INTERRUPTED = 1, 4, 130
NOTE = """\
exit codes: 0 done, 1 errors found or nothing fetched, 4 wrong arguments or an unreadable file,
130 interrupted; each command says more: python -m cases COMMAND --help"""


def _build(argv: Sequence[str]) -> int:
    from cases.builder import main as build  # noqa: PLC0415  # only this command needs it

    return build(argv)


def _check(argv: Sequence[str]) -> int:
    from cases.check import main as check  # noqa: PLC0415  # only this command needs it

    return check(argv)


def _download(argv: Sequence[str]) -> int:
    from cases.download import main as download  # noqa: PLC0415  # only this command needs it

    return download(argv)


@dataclass(frozen=True, slots=True)
class Command:
    """One subcommand: what it does, in a line, and what to run with the rest of the words."""

    help: str
    run: Callable[[Sequence[str]], int]


COMMANDS: Mapping[str, Command] = {
    "build": Command("make a BoolQ-type dataset from articles, with models and people", _build),
    "check": Command("look for what is wrong with datasets although they can be loaded", _check),
    "download": Command("fetch a public benchmark in its official form", _download),
}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        msg = f"{message}; see `python -m cases --help`"
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
        prog="python -m cases",
        usage="python -m cases [-h] COMMAND …",
        description=f"What can be done with the questions themselves.\n\ncommands:\n{commands}",
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
