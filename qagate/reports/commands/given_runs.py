"""What the commands on recorded runs share: their parser, the runs given, how they end.

A run is given as its report folder, its ``run.json`` or the name under which it was promoted.
"""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from qagate.cases.adjudication_files import load_adjudications
from qagate.evaluators.command_line import CommandParser
from qagate.evaluators.core import UsageError
from qagate.evaluators.output import say
from qagate.reports.render import console
from qagate.reports.render.writer import write
from qagate.reports.run.audit_plan import load_plan
from qagate.reports.run.baseline import Baseline, load_baseline
from qagate.reports.run.baselines import find_run
from qagate.reports.run.clean import line
from qagate.reports.run.judge_replies import of_folders
from qagate.reports.run.read_again import as_read_by
from qagate.reports.run.report import Report, Role
from qagate.reports.run.report_folder import (
    TRANSCRIPTS,
    check_apart,
    folder_of,
    later_command,
)
from qagate.reports.run.run_json import load_report
from qagate.reports.run.transcripts import Source, of_files

OUT = Path("reports", "out")
"""Where a run writes its report unless told otherwise."""
RUN_HELP = "a report folder, its run.json, or the name of a promoted run"


class RecordedRunParser(CommandParser):
    """The parser of one command on recorded runs."""

    def __init__(self, name: str, description: str, codes: str) -> None:
        super().__init__(
            prog=f"qagate {name}",
            description=description,
            epilog=f"exit codes: {codes}",
            allow_abbrev=False,
        )

    def add_last_run(self) -> None:
        """Declare ``RUN``, by default the last one in this folder."""
        self.add_argument(
            "run",
            metavar="RUN",
            type=find_run,
            nargs="?",
            default=OUT,
            help=f"{RUN_HELP} ({OUT})",
        )

    def add_to(self, text: str, *, required: bool = False) -> None:
        """Declare ``--to DIR``."""
        self.add_argument(
            "--to", metavar="DIR", type=output_folder, required=required, help=text
        )

    def add_earlier(self) -> None:
        """Declare ``--baseline RUN``, ``--adjudications FILE`` and ``--anchor RUN``."""
        text = "the run to compare with; by default the one that the run itself was compared with"
        self.add_argument("--baseline", metavar="RUN", help=text)
        text = "verdicts by people, for gates with `evidence: audited`"
        self.add_argument("--adjudications", metavar="FILE", type=Path, help=text)
        self.add_anchor()

    def add_anchor(self) -> None:
        """Declare ``--anchor RUN``."""
        text = "a fixed earlier run that drop and rise gates must pass too (default: the run's own)"
        self.add_argument("--anchor", metavar="RUN", help=text)


def output_folder(text: str) -> Path:
    """Return the path of a folder to write to, which need not exist."""
    path = Path(text)
    if not text or (path.exists() and not path.is_dir()):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not a folder; name one, it is made where it does not exist"
        )
    return path


# The runs given


def load_run_to_decide(path: Path) -> Report:
    """Return the report of a run that is to be decided again. Raises UsageError.

    It says if a later command was to write into its folder and was refused or killed: who then
    asks for the verdict means that command's, and not that of the run before it.
    """
    report = load_report(path)
    later = later_command(folder_of(path))
    if not later:
        return report
    return replace(report, session=replace(report.session, superseded=later))


def read_earlier(
    options: argparse.Namespace, reports: Sequence[Report]
) -> tuple[Baseline | None, Baseline | None]:
    """Return the baseline and the anchor, by the options that ``add_earlier`` declares."""
    people, to = options.adjudications, options.to
    baseline = read_baseline(options.baseline, reports, people=people, to=to)
    anchor = read_baseline(options.anchor, reports, "anchor", people=people, to=to)
    if baseline is not None:
        baseline = as_read_by(baseline, reports)
    if anchor is not None:
        anchor = as_read_by(anchor, reports)
    return baseline, anchor


def read_baseline(
    given: str | None,
    reports: Sequence[Report],
    role: Role = "baseline",
    people: Path | None = None,
    to: Path | None = None,
) -> Baseline | None:
    """Return the run to compare with: the one given, else the one that these were compared with.

    Raises UsageError for one that cannot be read, lies in ``to``, or is not the one compared with:
    without it the drop gates would be gone, and a failed run could pass.
    """
    if given is None:
        baseline = _recorded_baseline(reports, role)
    else:
        baseline = load_baseline(find_run(given), role)
    if baseline is None:
        return None
    if to:
        check_apart(Path(baseline.path), to, role, "--to")
    if people:
        return replace(
            baseline, people=load_adjudications(people), plan=load_plan(people)
        )
    return baseline


def _recorded_baseline(reports: Sequence[Report], role: Role) -> Baseline | None:
    """Return the run that these were compared with; None where they were not."""
    if role == "baseline":
        paths = {report.baseline for report in reports if report.baseline}
        comparisons = [report.comparison for report in reports]
    else:
        paths = {report.anchor for report in reports if report.anchor}
        comparisons = [report.since_anchor for report in reports]
    if not paths:
        return None
    if len(paths) > 1:
        named = " and ".join(sorted(paths))
        raise UsageError(
            f"the runs were compared with {named}; say which with --{role}=RUN"
        )
    try:
        baseline = load_baseline(Path(*paths), role)
    except UsageError as problem:
        raise UsageError(
            f"the run was compared with its {role}: {problem}; "
            f"or say where with --{role}=RUN"
        ) from None
    for comparison in comparisons:
        if comparison and comparison.sha256 != baseline.sha256:
            raise UsageError(
                f"{baseline.path} is no longer what the run was compared with; "
                f"give --{role}=RUN"
            )
    return baseline


def transcripts_of(*runs: Path) -> Source | None:
    """Return what was sent and returned in these runs, None where no file says so."""
    return of_files(folder_of(run) / TRANSCRIPTS for run in runs)


# How they end


def save(report: Report, to: Path | None, *runs: Path) -> list[str]:
    """Write the report whole into a folder, if one is given; return the lines that say so."""
    if to is None:
        return []
    paths = write(
        report,
        to,
        transcripts_of(*runs),
        judge_replies=of_folders(map(folder_of, runs)),
    )
    return [f"report: {path}" for path in paths if path.suffix == ".html"]


def check_people_decide(report: Report, people: Path | None) -> None:
    """Raise UsageError where verdicts by people are given, and no gate asks for them."""
    if people and not any(gate.audit for gate in report.decision.gates):
        raise UsageError(
            "--adjudications: decides nothing without --baseline and an audited gate"
        )


def say_decided(report: Report, to: Path | None, folder: Path, *runs: Path) -> int:
    """Write the report where asked, print its gates and what to do next; return the exit code.

    ``folder`` is where the printed next steps find the report.
    """
    saved = save(report, to, *runs)
    lines = [
        *console.gates(report, folder),
        *console.verdict_lines(report),
        *saved,
        *console.next_step(report, folder),
        report.decision.line,
    ]
    say(sys.stdout, *map(line, lines))
    return report.decision.code
