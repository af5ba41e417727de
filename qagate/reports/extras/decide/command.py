"""``qagate decide``: results of another tool become runs of ours, and gates decide."""

import argparse
import shlex
import sys
from collections.abc import Iterator, Sequence

from qagate.evaluators.output import plural, say
from qagate.reports.extras.decide.candidates import (
    Candidate,
    candidates_of,
    decided_together,
)
from qagate.reports.extras.decide.options import decide_parser
from qagate.reports.gates.decide import FAILED, INCONCLUSIVE, OK
from qagate.reports.render import console
from qagate.reports.render.writer import write
from qagate.reports.run import report_folder
from qagate.reports.run.clean import line
from qagate.reports.run.report import Report


def main(argv: Sequence[str]) -> int:
    """Decide over results of another tool; write the reports and return the exit code."""
    options = decide_parser().parse_args(argv)
    with report_folder.refusing(options.to):
        return _decided(options)


def _decided(options: argparse.Namespace) -> int:
    candidates = candidates_of(options)
    reports = decided_together(candidates)
    lines = []
    if not options.gates:
        lines.append(
            f"no --gates: the deciding score may drop by {options.margin:g} in each slice, "
            "and in all together"
        )
    for candidate, report in zip(candidates, reports, strict=True):
        if candidate.name:
            lines.append(f"candidate    {candidate.name}")
        lines += _report_lines(candidate, report)
    code = reports[0].decision.code
    if len(candidates) > 1:
        report_folder.mark(options.to, shlex.join(sys.argv))
        code = worst_code([report.decision.code for report in reports])
        lines.append(_line_over_all(candidates, reports, code))
    say(sys.stdout, *map(line, lines))
    return code


def _report_lines(candidate: Candidate, report: Report) -> list[str]:
    """Write a candidate's report, and return what it says."""
    paths = write(report, candidate.folder)
    lines = [
        *_smallest_drops(report),
        *console.gates(report),
        *console.verdict_lines(report),
    ]
    lines += [f"report: {path}" for path in paths if path.suffix == ".html"]
    lines += console.next_step(report, candidate.folder)
    lines.append(report.decision.line)
    return lines


def _smallest_drops(report: Report) -> Iterator[str]:
    """Yield which change the pairs of each gate can show, before what they did show.

    As far as the interval reaches below the estimate: with no change at all, a margin below
    that would stay undecided.
    """
    for gate in report.decision.gates:
        interval = gate.estimate.interval
        value = gate.estimate.value
        if interval is None or value is None or not gate.threshold.paired:
            continue
        reach = max(value - interval[0], interval[1] - value)
        pairs = plural(gate.estimate.n, "pair")
        yield f"{gate.slice}: {pairs} can show a {gate.name} from {reach:.3f} on"


# Over all candidates


def worst_code(codes: Sequence[int]) -> int:
    """Return the exit code over all candidates: 0 only if each of them passes."""
    if FAILED in codes:
        return FAILED
    return OK if set(codes) == {OK} else INCONCLUSIVE


def _line_over_all(
    candidates: Sequence[Candidate], reports: Sequence[Report], code: int
) -> str:
    """Return the last line: how many candidates pass, and each with its verdict."""
    verdicts = [
        f"{candidate.name} {report.verdict}"
        for candidate, report in zip(candidates, reports, strict=True)
    ]
    passed = sum(report.decision.code == OK for report in reports)
    share = f"CANDIDATES ({passed} of {len(candidates)} pass)"
    return f"{share}: exit {code}; {', '.join(verdicts)}"
