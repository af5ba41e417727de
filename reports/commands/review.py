"""``python -m reports review``: answers for people to judge, and their verdicts taken back."""

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from cases.review.adjudications import load_adjudications, merged, save_adjudications
from cases.review.issued import FILE as SHEET
from cases.review.issued import load_issued
from cases.review.reviews import read_sheets
from cases.review.sheet_files import FALLBACK, texts_in
from evaluators.core import UsageError
from evaluators.judges.adjudicated import FILE
from evaluators.output import plural, say, write_texts
from reports.commands.rate_criteria import accept_ratings, issue_form
from reports.commands.recorded_runs import (
    RUN_HELP,
    Parser,
    home,
    read_baseline,
    transcripts_of,
    whole_number,
)
from reports.commands.until_decided import add_options, agreement_lines, until_decided
from reports.review.human_review import SAMPLE, Pick, accept, at_most, labelled, pick, reasons_of
from reports.review.review_sheet import issue_to
from reports.run import clean
from reports.run.report import Report
from reports.run.run_reader import load_report
from reports.verdict.recount import rebuilt

UNDECIDED = 6
ISSUED = Path("reports", "out", SHEET)


def main(argv: Sequence[str]) -> int:
    """Write the form, accept what reviewers sent back, or export labels; return the exit code."""
    options = _parser().parse_args(argv)
    if options.until_decided:
        if options.criteria:
            raise UsageError("review: --criteria decides no gate; leave out --until-decided")
        (run,) = _paths(options, "RUN")
        return until_decided(run, options)
    if options.accept:
        return _accept(options)
    if options.export_judges:
        return _export(options)
    return _sheet(options)


def _read(options: argparse.Namespace, path: Path) -> tuple[Report, tuple[Pick, ...]]:
    """Return a run, and which of its answers are picked with these options."""
    report = load_report(path)
    if options.baseline is not None:
        report = rebuilt(report, read_baseline(options.baseline, [report]))
    picks = pick(report, options.sample, options.seed)
    return report, at_most(picks, options.limit, options.seed)


def _sheet(options: argparse.Namespace) -> int:
    (path,) = _paths(options, "RUN")
    if options.criteria:
        return issue_form(path, options)
    _, picks = _read(options, path)
    if not picks:
        raise UsageError(f"{path}: nothing to review: no answer that a person has not judged yet")
    paths = issue_to(options.to or home(path), picks, transcripts=transcripts_of(path))
    words = texts_in(FALLBACK).reasons
    counts = [f"{count:>6}  {words[reason]}" for reason, count in reasons_of(picks).items()]
    say(sys.stdout, f"{plural(len(picks), 'answer')} to review", *counts, *map(str, paths))
    return 0


def _accept(options: argparse.Namespace) -> int:
    _paths(options)
    issued = load_issued(options.sheet or ISSUED)
    reviews = read_sheets(options.accept)
    issued.check(reviews)
    if any(issued.items[one.item].criterion for one in reviews):
        return accept_ratings(reviews, issued, options)
    path = options.to or Path(FILE)
    old = load_adjudications(path) if path.exists() else {}
    today = datetime.now(UTC).date().isoformat()
    accepted = accept(reviews, today, issued.items, options.min_reviewers)
    adjudications, refused = merged(old, accepted.adjudications)
    save_adjudications(adjudications, path)
    added = plural(len(adjudications) - len(old), "new verdict")
    lines = [
        *agreement_lines(reviews),
        f"{added}, {len(adjudications)} in {path}",
        *(f"overrules the judge: {line}" for line in accepted.overruled),
        *(f"waits for another reviewer: {line}" for line in accepted.waiting),
        *(f"conflict, for a third person: {line}" for line in accepted.conflicts),
        *(f"undecided: {line}" for line in accepted.undecided),
        *(f"refused: {line}" for line in refused),
    ]
    say(sys.stdout, *map(clean.line, lines))  # names and ids come from files others filled in
    return UNDECIDED if accepted.conflicts or accepted.waiting or refused else 0


def _export(options: argparse.Namespace) -> int:
    file, run = _paths(options, FILE, "RUN")
    report, picks = _read(options, run)
    found = labelled(report, load_adjudications(file), picks)
    if not found:
        raise UsageError(f"{file}: no grade or rating of an answer in {run}; nothing to export")
    for (language, rated), rows in sorted(found.items()):
        path: Path = options.export_judges
        if len(found) > 1:  # one language and one scale a file: a labelled dataset has no mixture
            marks = f".{language}" + (".rated" if rated else "")
            path = path.with_name(f"{path.stem}{marks}{path.suffix or '.jsonl'}")
        lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        write_texts([(path, lines)])
        say(
            sys.stdout,
            f"{path}: {plural(len(rows), 'labelled answer')} in {language}; measure a judge: "
            f"pytest cases/judges --items judges:{language}={path}",
        )
    return 0


def _paths(options: argparse.Namespace, *names: str) -> list[Path]:
    """Return the words without an option. Raises UsageError where there is another number."""
    found: list[Path] = options.paths
    if len(found) != len(names):
        wanted = " ".join(names) or "no path"
        advice = "see `python -m reports review --help`"
        raise UsageError(f"review: {wanted} is needed here, got {len(found)}; {advice}")
    return found


def _add_accepting(parser: argparse.ArgumentParser) -> None:
    text = f"with --accept: the sheet.json that was written with the form (default: {ISSUED})"
    parser.add_argument("--sheet", metavar="FILE", type=Path, help=text)
    text = (
        "with --accept: how many have to agree on a verdict (default: 2 where an answer passes "
        "that the judge let fail, 1 elsewhere and with --until-decided)"
    )
    parser.add_argument("--min-reviewers", metavar="N", type=whole_number, help=text)


def _add_ways(parser: argparse.ArgumentParser) -> None:
    """Declare what else can be done than writing the form of verdicts; one at a time."""
    either = parser.add_mutually_exclusive_group()
    either.add_argument(
        "--accept",
        metavar="FILE",
        nargs="+",
        type=Path,
        help="what reviewers sent back (.json or .csv): put what they agree on into --to",
    )
    either.add_argument(
        "--export-judges",
        metavar="FILE",
        type=Path,
        help="write labelled items from two paths, adjudications.yaml and RUN, as JSONL; with the "
        "form's --sample, --seed and --baseline they keep why each was picked",
    )
    either.add_argument(
        "--criteria",
        metavar="FILE",
        type=Path,
        help="have answers drawn at random rated by the questions in this YAML file, each with "
        "name, question and scale (1..7); --accept takes the ratings into a file of their own",
    )


def _parser() -> Parser:
    parser = Parser(
        "review",
        "Write the answers of a run that are worth a person's time as a form and as CSV; accept "
        "the verdicts that come back; make labelled items for cases/judges of them.",
        "0 done, 1 could not be written, 4 wrong arguments or unreadable files, 6 reviewers "
        "disagree, are too few or contradict an earlier verdict (the rest is written)",
    )
    parser.add_argument("paths", metavar="RUN", nargs="*", type=Path, help=RUN_HELP)
    _add_ways(parser)
    text = f"the form's folder (default: that of the run), or with --accept the file ({FILE})"
    parser.add_argument("--to", metavar="PATH", type=Path, help=text)
    _add_accepting(parser)
    parser.add_baseline()
    parser.add_anchor()
    add_options(parser)
    text = f"how many answers to draw beside those that stand out (default: {SAMPLE})"
    parser.add_argument("--sample", metavar="N", type=whole_number, default=SAMPLE, help=text)
    text = "at most so many answers, those that matter most (default: all)"
    parser.add_argument("--limit", metavar="N", type=whole_number, help=text)
    text = "seed of what is drawn (default: 0)"
    parser.add_argument("--seed", metavar="S", type=whole_number, default=0, help=text)
    return parser
