"""``python -m reports merge``: the runs of CI shards as the one run that they are parts of."""

import sys
from collections.abc import Sequence
from pathlib import Path

from evaluators.output import say
from reports.commands.common import RUN_HELP, Parser, read_baseline, save
from reports.recount import merged
from reports.render import console
from reports.run_reader import load_report


def main(argv: Sequence[str]) -> int:
    """Write the report of all runs together and return the exit code that it would have had."""
    options = _parser().parse_args(argv)
    reports = [load_report(path) for path in options.runs]
    report = merged(reports, read_baseline(options.baseline, reports))
    say(sys.stdout, *console.gates(report), *save(report, options.to), report.decision.line)
    return report.decision.code


def _parser() -> Parser:
    parser = Parser(
        "merge",
        "Put the runs of CI shards together. Refuses runs of different models, judges, seeds, data "
        "files, prompts, rubrics or gates; an item in two of them must have come to the same.",
        "those of the whole run: 0 every gate passed, 1 a gate failed or the report could not be "
        "written, 2 a shard was interrupted, 4 wrong arguments or runs that do not belong "
        "together, 6 undecided",
    )
    parser.add_argument("runs", metavar="RUN", nargs="+", type=Path, help=RUN_HELP)
    parser.add_baseline()
    parser.add_to("a folder for the report of the whole", required=True)
    return parser
