"""``python -m reports gate``: other thresholds, or another baseline, on recorded outcomes."""

import sys
from collections.abc import Sequence
from pathlib import Path

from cases.config import load_gates
from evaluators.output import say
from reports.commands.common import RUN_HELP, Parser, read_baseline, save
from reports.recount import rebuilt, regated
from reports.render import console
from reports.run_reader import load_report


def main(argv: Sequence[str]) -> int:
    """Print the gates and return the exit code that the run would have had with them."""
    options = _parser().parse_args(argv)
    report = load_report(options.run)
    baseline = read_baseline(options.baseline, [report])
    if options.gates is None:
        decided = rebuilt(report, baseline)
    else:
        decided = regated(report, load_gates(options.gates), baseline)
    say(sys.stdout, *console.gates(decided), *save(decided, options.to), decided.decision.line)
    return decided.decision.code


def _parser() -> Parser:
    parser = Parser(
        "gate",
        "Decide on a recorded run again, with other gates or another baseline; asks no model.",
        "0 every gate passed, 1 a gate failed or the report could not be written, 2 the run was "
        "interrupted, 4 wrong arguments or no readable run, 6 undecided",
    )
    parser.add_argument("run", metavar="RUN", type=Path, help=RUN_HELP)
    parser.add_argument(
        "--gates",
        metavar="FILE",
        type=Path,
        help="thresholds in place of the run's own (dataset: {language: {measure: {min: …}}})",
    )
    parser.add_baseline()
    parser.add_to("a folder for the report with these gates")
    return parser
