"""``qagate run`` and ``qagate rejudge``: pytest with qagate's plugin."""

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from evaluators.command_line import CommandParser

COMPANIONS = ("deepeval", "asyncio", "repeat", "rerunfailures", "anyio")
"""Plugins that come with deepeval: a run needs none of them, and they take seconds."""
QUIET = (
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",
)  # the plugin is loaded already


def module() -> tuple[str, Path]:
    """Return the name and file of the module that ``-p`` loads, installed or in a checkout."""
    for name in ("qagate", "reports.plugin.qagate"):
        found = find_spec(name)
        if found and found.origin:
            return name, Path(found.origin)
    raise ModuleNotFoundError("qagate")


def main(arguments: Sequence[str]) -> int:
    """Run pytest with our plugin alone and importlib's import mode; with ``--on ray``, shards."""
    if any(word.partition("=")[0] == "--on" for word in arguments):
        on_ray: int = import_module("reports.commands.on_ray").main(arguments)
        return on_ray
    off = [word for name in COMPANIONS for word in ("-p", f"no:{name}")]
    brought = ["-p", module()[0], *off, *QUIET, "--import-mode=importlib"]
    code = int(pytest.main([*brought, *arguments]))
    if code == pytest.ExitCode.USAGE_ERROR and "reports.plugin" not in sys.modules:
        # pytest rejected one of its own options before it loaded a plugin
        import_module("reports.plugin").withdraw(arguments, Path.cwd())
    return code


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
