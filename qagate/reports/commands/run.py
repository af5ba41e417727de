"""``qagate run`` and ``qagate rejudge``: pytest with qagate's plugin.

Other commands are runs as well, with words of their own: a RunParser parts those from the words
that pytest is given.
"""

import argparse
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import pytest

from qagate.bundled import bundled_dataset
from qagate.evaluators.command_line import CommandParser
from qagate.evaluators.core import UsageError
from qagate.evaluators.output import say
from qagate.reports.doors import RUN_ELSEWHERE, load_run_elsewhere

BROUGHT = (
    "-p",
    "qagate",
    "-p",
    "no:deepeval",  # its plugin takes seconds to load, and a run needs none of it
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",  # our package is loaded already
)
"""The words that pytest is given before the user's own."""

PLUGIN = "qagate.reports.plugin"

VALUED = frozenset((
    "--accept-changed", "--adjudications", "--anchor", "--baseline", "--batch-wait",
    "--concurrency", "--deadline", "--fresh", "--gates", "--items", "--judge",
    "--key-env", "--languages", "--ledger", "--limit", "--max-cost", "--model", "--models",
    "--prompt", "--recorded", "--repeats", "--report-dir", "--rpm", "--seed", "--shard",
    "--shards-at-once",
    "-c", "-k", "-m", "-n",
    "-o", "-p", "-r", "-W", "--basetemp", "--capture", "--color", "--config-file", "--confcutdir",
    "--deselect", "--dist", "--durations", "--durations-min", "--ignore", "--ignore-glob",
    "--import-mode", "--junit-xml", "--junitxml", "--log-cli-level", "--log-file", "--log-level",
    "--maxfail", "--numprocesses", "--override-ini", "--rootdir", "--show-capture", "--tb",
    "--verbosity",
))  # fmt: skip
"""Options of a run that take the word after them, where no '=' binds it: ours, and pytest's."""


HELP_OF_BOTH = "--help-pytest"
PYTESTS_HELP = "--help"
EXAMPLES = """\
examples:
  qagate run cases/simpleqa                                    the recorded answers, offline
  qagate run cases/ --dry-run --model openai:NAME --judge anthropic:NAME   calls, cost, odds
  qagate run cases/ -n 8 --model openai:NAME --judge anthropic:NAME --max-cost 50
  qagate run cases/ -n 8 --model openai:NEW --judge openai:NAME --baseline=last-release
  qagate run cases/simpleqa -k "en and capital"                a few items; missed ones are shown

all options of pytest work as well, such as -k, -m, -n, -x, -v and --lf; `qagate run --help-pytest`
prints them. exit codes: 0 every gate passed; 1 a gate failed; 2 interrupted; 3 no report; 4 wrong
arguments; 5 nothing was selected; 6 INCONCLUSIVE"""


def is_asked_for_help(words: Sequence[str]) -> bool:
    """Return whether one of the words asks for help, and is no value of an option before it."""
    before = ""
    for word in words:
        if word in ("-h", PYTESTS_HELP) and before not in VALUED:
            return True
        before = word
    return False


def help_text() -> str:
    """Return the help of ``qagate run``: our own options, and examples."""
    # Only for the help: pytest itself loads the plugin of a run.
    from qagate.reports.plugin.option_table import declare  # noqa: PLC0415

    parser = argparse.ArgumentParser(
        prog="qagate run",
        usage="qagate run [PATH | DATA_SET …] [options]",
        description="Put every item of the data sets to a model, let the judge grade the answers, "
        "write the report, and exit as the gates decide. A path is a folder with a dataset.yaml, "
        "or above such folders; a bundled data set goes by its name.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    declare(parser.add_argument)
    return parser.format_help()


class RunParser(CommandParser):
    """The parser of a command that is a run with options of its own."""

    def parse_with_run(
        self, words: Sequence[str]
    ) -> tuple[argparse.Namespace, list[str]]:
        """Return the command's own options, and the words that go to a run.

        An option of a run keeps the word after it, which would else be taken for a path.
        """
        own_words: list[str] = []
        run_words: list[str] = []
        takes_next = False
        for word in words:
            if takes_next:
                run_words.append(word)
                takes_next = False
                continue
            name, equals, _ = word.replace("--qa-", "--", 1).partition("=")
            if name in VALUED and name not in self._option_string_actions:
                run_words.append(word)
                takes_next = not equals
            else:
                own_words.append(word)
        options, other_words = self.parse_known_args(own_words)
        return options, [*run_words, *other_words]


class CommandName:
    """Names this command in pytest's help and errors."""

    def pytest_addoption(self, parser: pytest.Parser) -> None:
        """Replace the name that pytest takes where it is called from Python."""
        parser.prog = "qagate run"


def main(arguments: Sequence[str]) -> int:
    """Run pytest with our plugin and return its exit code; with ``--on ray``, in shards.

    A word that is no path but the name of a bundled data set stands for its folder.
    """
    if is_asked_for_help(arguments):
        say(sys.stdout, help_text())
        return 0
    for word in arguments:
        option = word.partition("=")[0]
        if option in RUN_ELSEWHERE:
            return load_run_elsewhere(option)(arguments)
    with_bundled = _with_bundled(arguments)
    _check_paths(with_bundled)
    words = [PYTESTS_HELP if word == HELP_OF_BOTH else word for word in with_bundled]
    code = int(pytest.main([*BROUGHT, *words], [CommandName()]))
    if code == pytest.ExitCode.USAGE_ERROR and PLUGIN not in sys.modules:
        # pytest rejected one of its own options before it loaded a plugin
        from qagate.reports.plugin.start import withdraw  # noqa: PLC0415  # only for such a run

        withdraw(arguments, Path.cwd())
    return code


def _with_bundled(arguments: Sequence[str]) -> list[str]:
    words: list[str] = []
    for word in arguments:
        is_value = bool(words) and words[-1] in VALUED
        folder = None
        if not is_value and word.isidentifier() and not Path(word).exists():
            folder = bundled_dataset(word)
        words.append(word if folder is None else str(folder))
    return words


def _check_paths(words: Sequence[str]) -> None:
    """Raise UsageError for a word that is no path, but nearly the path of a folder.

    Other words are pytest's to judge.
    """
    before = ""
    for word in words:
        path = Path(word.partition("::")[0])
        is_path = not word.startswith("-") and before not in VALUED
        before = word
        if not is_path or path.exists() or not path.parent.is_dir():
            continue
        folders = [entry.name for entry in path.parent.iterdir() if entry.is_dir()]
        close = get_close_matches(path.name, folders, n=1)
        if close:
            raise UsageError(
                f"{word}: there is no such path; did you mean {path.parent / close[0]}?"
            )


def rejudge(arguments: Sequence[str]) -> int:
    """Run over the answers of an earlier run, in a report folder of its own."""
    parser = RunParser(
        prog="qagate rejudge",
        usage="qagate rejudge RUN [PATH …] [options of qagate run]",
        description="Read all answers of an earlier run anew, by today's judge and data. No model "
        "answers; only the judge is asked. The report shows both readings and decides nothing: a "
        "run reads its baseline's answers itself. PATH names the data sets, as for `qagate run`.",
        epilog="exit codes: 0 all answers were read, 6 grades are lacking, others as of a run",
        allow_abbrev=False,
    )
    parser.add_argument(
        "run", metavar="RUN", help="a report folder, or a promoted run's name"
    )
    text = "default: %(default)s"
    parser.add_argument(
        "--report-dir", metavar="DIR", default="reports/rejudged", help=text
    )
    given, words = parser.parse_with_run(arguments)
    return main(
        [f"--model=recorded:{given.run}", f"--report-dir={given.report_dir}", *words]
    )
