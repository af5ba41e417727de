"""``qagate merge``: the runs of CI shards become one run, and gates decide over the whole."""

import glob
from collections.abc import Sequence
from pathlib import Path

from qagate.evaluators.core import UsageError
from qagate.reports.commands.given_runs import (
    RUN_HELP,
    RecordedRunParser,
    check_people_decide,
    load_run_to_decide,
    read_earlier,
    say_decided,
)
from qagate.reports.extras.merge.recount import merged
from qagate.reports.run import report_folder
from qagate.reports.run.report_folder import PREVIOUS


def main(argv: Sequence[str]) -> int:
    """Write the report of all runs together and return the exit code that it would have had."""
    parser = RecordedRunParser(
        "merge",
        "Put the runs of CI shards together. Refuses runs of different models, judges, seeds, data "
        "files, prompts, rubrics or gates; an item in two of them must have the same record in "
        "both. If a shard is missing, the verdict is INCONCLUSIVE and names it.",
        "those of the whole run: 0 every gate passed, 1 a gate failed, 2 a shard was interrupted, "
        "3 the report could not be written, 4 wrong arguments or runs that do not belong "
        "together, 6 INCONCLUSIVE",
    )
    text = f"{RUN_HELP}; or all that a pattern in quotes matches, such as 'shards/*'"
    parser.add_argument("runs", metavar="RUN", nargs="+", help=text)
    parser.add_earlier()
    parser.add_to("a folder for the report of the whole", required=True)
    options = parser.parse_args(argv)
    with report_folder.refusing(options.to, *map(Path, options.runs)):
        paths: dict[Path, None] = {}
        for text in options.runs:
            paths |= dict.fromkeys(_matching(text))
        reports = [load_run_to_decide(path) for path in paths]
        baseline, anchor = read_earlier(options, reports)
        report = merged(reports, baseline, anchor)
        check_people_decide(report, options.adjudications)
    return say_decided(report, options.to, options.to, *paths)


def _matching(text: str) -> list[Path]:
    """Return the runs that a word names: one, or all that a pattern in quotes matches.

    Runs that others replaced (``out.previous``) match no pattern.
    """
    if not glob.has_magic(text) or Path(text).exists():
        return [Path(text)]
    names = sorted(glob.glob(text))  # noqa: PTH207  # the pattern may be absolute
    runs = [Path(name) for name in names if not name.endswith(PREVIOUS)]
    if not runs:
        raise UsageError(f"{text}: no report folder matches")
    return runs
