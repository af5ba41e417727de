"""``qagate COMMAND``: the table of all commands, and one line for every error."""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from itertools import islice
from typing import NoReturn

from qagate.evaluators.core import QAError, UsageError
from qagate.evaluators.output import UnwrittenError, say

FAILED, UNWRITTEN, USAGE, INTERRUPTED = 1, 3, 4, 130


VALUED = frozenset((
    "--adjudications", "--anchor", "--baseline", "--batch-wait", "--calibration",
    "--concurrency", "--deadline", "--fresh", "--gates", "--items", "--judge", "--key-env",
    "--languages", "--ledger", "--limit", "--max-cost", "--model", "--models", "--prompt",
    "--repeats", "--report-dir", "--rpm", "--seed", "--shard", "-c", "-k", "-m", "-n", "-o",
    "-p", "-r", "-W", "--basetemp", "--capture", "--color", "--config-file", "--confcutdir",
    "--deselect", "--dist", "--durations", "--durations-min", "--ignore", "--ignore-glob",
    "--import-mode", "--junit-xml", "--junitxml", "--log-cli-level", "--log-file", "--log-level",
    "--maxfail", "--numprocesses", "--override-ini", "--rootdir", "--show-capture", "--tb",
    "--verbosity",
))  # fmt: skip
"""Options of a run that take the word after them, where no '=' binds it: ours, and pytest's."""


@dataclass(frozen=True, slots=True)
class Command:
    """One subcommand: its line of help, and the function that takes its words."""

    help: str
    module: str
    function: str = "main"

    def run(self, words: Sequence[str]) -> int:
        """Load the module and run the command; return its exit code."""
        code: int = getattr(import_module(self.module), self.function)(words)
        return code


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """Several commands by one name: ``qagate``, or a package's own part of it."""

    what: str
    """One line of help."""
    commands: Mapping[str, Command]
    note: str
    """The exit codes, for the help."""

    def run(self, argv: Sequence[str] | None = None) -> int:
        """Run one command and return the exit code; ``argv`` None takes the process's words."""
        words = sys.argv[1:] if argv is None else argv
        try:
            return self.commands[self._parser().parse_args(words[:1]).command].run(
                words[1:]
            )
        except QAError as error:
            say(sys.stderr, str(error).replace("\n", "\\n"))
            kinds = {UsageError: USAGE, UnwrittenError: UNWRITTEN}
            return next(
                (kinds[kind] for kind in kinds if isinstance(error, kind)), FAILED
            )
        except OSError as error:
            if (
                not error.filename
            ):  # of a stream, such as after `| head`: drop what it holds back
                with suppress(OSError, ValueError):
                    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            if not isinstance(error, BrokenPipeError):
                where = error.filename or "output"
                say(
                    sys.stderr,
                    f"{where}: cannot be written or read ({error.strerror or error})",
                )
            return UNWRITTEN
        except KeyboardInterrupt:
            say(sys.stderr, "interrupted")
            return INTERRUPTED

    def _parser(self) -> argparse.ArgumentParser:
        listed = "\n".join(
            f"  {name:<10}{one.help}" for name, one in self.commands.items()
        )
        installed = "(run from its source, not installed)"
        with suppress(PackageNotFoundError):
            installed = version("qagate")
        parser = CommandParser(
            prog="qagate",
            usage="qagate [-h] [--version] COMMAND …",
            description=f"{self.what}\n\ncommands:\n{listed}",
            epilog=f"{self.note}\neach command says more: qagate COMMAND --help",
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        parser.add_argument(
            "--version", action="version", version=f"qagate {installed}"
        )
        parser.add_argument(
            "command",
            choices=list(self.commands),
            metavar="COMMAND",
            help="one of these",
        )
        return parser


class CommandParser(argparse.ArgumentParser):
    """A parser whose errors are one line, which names the command's help."""

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with what is wrong."""
        raise UsageError(f"{message}; see `{self.prog} --help`")

    def parse_with_run(
        self, words: Sequence[str]
    ) -> tuple[argparse.Namespace, list[str]]:
        """Return the command's own options, and the words that go to a run, each with its value."""
        own, rest, left = list[str](), list[str](), iter(words)
        for word in left:
            name, equals, _ = word.replace("--qa-", "--", 1).partition("=")
            if name not in VALUED or name in self._option_string_actions:
                own.append(word)
            else:
                rest += [word] if equals else [word, *islice(left, 1)]
        options, others = self.parse_known_args(own)
        return options, [*rest, *others]


def _own(module: str = "", **helps: str) -> dict[str, Command]:
    """Return commands by name: each the ``main`` of its own module, or functions of one module."""
    named = {"list": "list_runs"}
    return {
        name: Command(
            text,
            f"qagate.reports.commands.{module or name}",
            named.get(name, name) if module else "main",
        )
        for name, text in helps.items()
    }


PROGRAMS: Mapping[str, Program] = {
    "cases": Program(
        what="Commands for data sets.",
        commands={
            "build": Command(
                "make a BoolQ-type dataset from articles, with models and people",
                "qagate.reports.extras.builder.command",
            ),
            "new": Command(
                "write the files of a data set of your own",
                "qagate.cases.extras.new.command",
            ),
            "draw": Command(
                "draw fresh questions from a table by a recipe",
                "qagate.cases.extras.draw.command",
            ),
            "check": Command(
                "look for what is wrong with datasets although they can be loaded",
                "qagate.cases.extras.check.command",
            ),
            "download": Command(
                "fetch a public benchmark, or answers that people labelled",
                "qagate.cases.extras.download.command",
            ),
        },
        note="exit codes: 0 done, 1 errors found or nothing fetched, 4 wrong arguments or an "
        "unreadable file,\n130 interrupted",
    ),
    "evaluators": Program(
        what="Commands for recorded replies and judges.",
        commands=_own(
            calibrate="measure a judge against labelled answers; print its card"
        )
        | _own("calibrate", attack="try to fool a judge; print how often that worked")
        | _own(ledger="what is in the ledger and what it cost; export, import, prune"),
        note="exit codes: 0 done, 1 not done for a reason outside the arguments, 4 wrong arguments "
        "or a wrong\nfile, 130 interrupted",
    ),
    "reports": Program(
        what="Commands for recorded runs, offline.",
        commands=_own(run="pytest with qagate's plugin, and all options of both")
        | _own(
            "run", rejudge="judge the answers of an earlier run anew, by today's golds"
        )
        | _own(
            "recorded_runs",
            render="write the files of a report again, in any format",
            compare="compare two runs item by item",
            gate="decide with other gates or another baseline",
            show="print an item with its prompts and replies",
            merge="put the runs of CI shards together",
            list="list the runs that are kept",
            promote="keep a run by name",
            decide="decide over two results of another tool",
        )
        | {
            "review": Command(
                "hand answers to people, and take their verdicts back",
                "qagate.reports.extras.sequential.review_command",
            )
        },
        note="exit codes: 0 done, or every gate passed; 1 a gate failed; 3 the report could not "
        "be written;\n4 wrong arguments or an unreadable run; 6 INCONCLUSIVE; 130 interrupted",
    ),
}
"""What ``python -m PACKAGE`` offers, by package; ``qagate`` offers all of it."""
