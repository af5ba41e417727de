"""``qagate run`` and ``qagate rejudge``: pytest with qagate's plugin."""

import sys
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path

import pytest

from qagate.bundled import bundled_dataset
from qagate.evaluators.command_line import VALUED, CommandParser

BROUGHT = (
    *("-p", "qagate"),
    *("-p", "no:deepeval"),  # its plugin takes seconds, and a run needs none of it
    *(
        "-W",
        "ignore::pytest.PytestAssertRewriteWarning",
    ),  # our package is loaded already
)
"""The words that pytest is given before the user's own."""


class CommandName:
    """Names this command in pytest's help and errors."""

    def pytest_addoption(self, parser: pytest.Parser) -> None:
        """Replace the name that pytest takes where it is called from Python."""
        parser.prog = "qagate run"


def main(arguments: Sequence[str]) -> int:
    """Run pytest with our plugin and return its exit code; with ``--on ray``, in shards.

    A word that is no path but the name of a bundled data set stands for its folder.
    """
    if any(word.partition("=")[0] == "--on" for word in arguments):
        on_ray: int = import_module("qagate.reports.extras.ray.on_ray").main(arguments)
        return on_ray
    code = int(pytest.main([*BROUGHT, *_with_bundled(arguments)], [CommandName()]))
    if (
        code == pytest.ExitCode.USAGE_ERROR
        and "qagate.reports.plugin" not in sys.modules
    ):
        # pytest rejected one of its own options before it loaded a plugin
        import_module("qagate.reports.plugin").withdraw(arguments, Path.cwd())
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


def rejudge(arguments: Sequence[str]) -> int:
    """Run over the answers of an earlier run, in a report folder of its own."""
    parser = CommandParser(
        prog="qagate rejudge",
        usage="qagate rejudge RUN [PATH …] [options of qagate run]",
        description="Judge all answers of an earlier run anew, by the data as they are now. No "
        "model answers; only the judge is asked. The report can serve as a baseline. PATH names "
        "the data sets, as for `qagate run`.",
        epilog="exit codes are those of a run",
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
