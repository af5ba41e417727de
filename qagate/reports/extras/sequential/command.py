"""``qagate review``: answers for people to judge, and what they say taken back."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from shlex import quote

from qagate.cases.adjudication_files import (
    keep_first,
    load_adjudications,
    save_adjudications,
)
from qagate.cases.extras.review import reviews as files
from qagate.cases.extras.review.sheet import FALLBACK, load_criteria, texts_in
from qagate.evaluators.adjudications import (
    ADJUDICATIONS_FILE,
    Adjudications,
    answer_digest,
)
from qagate.evaluators.core import UsageError
from qagate.evaluators.output import plural, say
from qagate.evaluators.text import listed
from qagate.reports.commands import given_runs as runs
from qagate.reports.extras.sequential import human_review as human
from qagate.reports.extras.sequential.sequential import AuditedGate, audited_gates_of
from qagate.reports.gates.decide import FAILED, INCONCLUSIVE, OK
from qagate.reports.run import clean
from qagate.reports.run.audit_plan import load_plan, save_plan
from qagate.reports.run.baseline import Baseline
from qagate.reports.run.baselines import find_run
from qagate.reports.run.record import in_order
from qagate.reports.run.report import REVIEW, Report
from qagate.reports.run.report_folder import folder_of
from qagate.reports.run.run_json import load_report
from qagate.reports.verdict.assemble import count_run
from qagate.reports.verdict.pairing import paired_slices
from qagate.reports.verdict.rebuild import inputs_of, rebuilt

Gates = Sequence[AuditedGate]
GATE_CODES = {
    "FAIL": FAILED,
    "INCONCLUSIVE": INCONCLUSIVE,
    "PASS": OK,
}  # the worst first
_UNTIL_DECIDED = (
    "let people decide: take the pairs of answers, RUN's and the baseline's, that decide its gates "
    "with `evidence: audited`; with --accept put verdicts into --adjudications first (not the "
    "option of a run that stops asking early)"
)


def main(argv: Sequence[str]) -> int:
    """Write the form, accept what reviewers sent back, or export labels; return the exit code."""
    options = _parser().parse_args(argv)
    if options.until_decided and options.criteria:
        raise UsageError(
            "review: --criteria decides no gate; leave out --until-decided"
        )
    _refuse_options_without_effect(options)
    if options.until_decided:
        _check_paths(options, "RUN")
        return _until_decided(options)
    if options.accept:
        _check_paths(options)
        return _accept(options)
    _check_paths(options, "RUN")
    return _ask(options)


def _refuse_options_without_effect(options: argparse.Namespace) -> None:
    """Raise UsageError for an option that does nothing without another one."""
    if not options.until_decided:
        _refuse("--pairs", options.pairs, needed="--until-decided")
        _refuse("--anchor", options.anchor, needed="--until-decided")
        _refuse("--adjudications", options.adjudications, needed="--until-decided")
    if not options.accept:
        _refuse("--sheet", options.sheet, needed="--accept")
        _refuse("--min-reviewers", options.min_reviewers, needed="--accept")


def _refuse(option: str, value: object, *, needed: str) -> None:
    if value is not None:
        raise UsageError(
            f"review: {option}: does nothing without {needed}; add it, or leave this out"
        )


def _check_paths(options: argparse.Namespace, *names: str) -> None:
    """Raise UsageError unless there is one path for each of these names."""
    if len(options.paths) == len(names):
        return
    wanted = " and ".join(names) or "no path"
    given = plural(len(options.paths), "path")
    raise UsageError(
        f"review: give {wanted} here, not {given}; see `qagate review --help`"
    )


def _read(
    options: argparse.Namespace, path: Path
) -> tuple[Report, tuple[human.Pick, ...]]:
    report = load_report(path)
    if options.baseline is not None and not options.criteria:
        report = rebuilt(report, runs.read_baseline(options.baseline, [report]))
    draw = human.pick_at_random if options.criteria else human.pick
    picks = draw(report, options.sample, options.seed)
    return report, human.at_most(picks, options.limit, options.seed)


def _ask(options: argparse.Namespace) -> int:
    run: Path = options.paths[0]
    criteria = load_criteria(options.criteria) if options.criteria else ()
    report, picks = _read(options, run)
    if not picks:
        why = "nothing to review: no answer stands out that nobody has judged; raise --sample"
        why = "no answer to rate; ask for some with --sample" if criteria else why
        raise UsageError(f"{run}: {why}")
    name, sources = (
        f"{report.run.get('id', '')} of {report.model}",
        runs.transcripts_of(run),
    )
    paths = human.issue_picks(
        options.to or folder_of(run), picks, sources, criteria, name
    )
    count = plural(len(picks), "answer")
    lines = [f"{count} drawn at random, to be rated by {len(criteria)} criteria:"]
    for one in criteria:
        low, *_, high = one.keys
        lines.append(f"  {low}-{high}  {one.name}")
    if not criteria:
        words, why_each = (
            texts_in(FALLBACK)["reasons"],
            [w for one in picks for w in one.reasons],
        )
        counts = {one: why_each.count(one) for one in human.REASONS if one in why_each}
        lines = [
            f"{count} to review",
            *(f"{n:>6}  {words[one]}" for one, n in counts.items()),
        ]
    say(sys.stdout, *map(clean.line, (*lines, *map(str, paths))))
    return 0


def _accept(options: argparse.Namespace) -> int:
    sheet = options.sheet or Path("reports", "out", files.ISSUED)
    items, reviews = files.read_issued(sheet, options.accept)
    rated = [one for one in reviews if items[one.item].criterion]
    verdicts = [one for one in reviews if not items[one.item].criterion]
    if rated and verdicts and options.to:
        what = (
            "verdicts and ratings by criteria go into two files; accept the two apart"
        )
        raise UsageError(f"--to {options.to}: {what}")
    is_open = False
    if rated:
        is_open = _take_ratings(
            rated, items, options.to or sheet.with_name(human.RATINGS)
        )
    if verdicts or not rated:
        to = options.to or Path(ADJUDICATIONS_FILE)
        is_open |= _take(verdicts, items, to, options.min_reviewers)
    return INCONCLUSIVE if is_open else OK


def _take(
    reviews: Sequence[files.Review],
    items: files.Asked,
    file: Path,
    least: int | None,
    gates: Gates = (),
) -> bool:
    """Put agreed verdicts into a file, say so, and return whether some are open."""
    old: Adjudications = load_adjudications(file) if file.exists() else {}
    accepted, said = human.accept(
        reviews, datetime.now(UTC).date().isoformat(), items, least
    )
    pairs = (one for gate in gates for one in gate.audit.pairs if one.drawn)
    drawn = {
        answer_digest(side, side.answer or ""): one
        for one in pairs
        for side in (one.pair.old, one.pair.new)
    }
    for place, one in enumerate(accepted):  # a pair that a gate drew keeps how
        if asked := drawn.get(one.digest):
            why, chance = asked.plan.why, asked.plan.probability
            accepted[place] = replace(
                one, picked=why, pair=asked.key, probability=chance
            )
    said |= (
        {human.OVERRULED: []} if gates else {}
    )  # there the judge only says where to look
    found, refused = keep_first([*old.values(), *accepted])
    save_adjudications({one.digest: one for one in found}, file)
    (agreed,) = files.agreement(reviews)
    lines = [
        *agreed.lines("answer"),
        f"{plural(len(found) - len(old), 'new verdict')}, {len(found)} in {file}",
        *(f"{what}: {line}" for what, some in said.items() for line in some),
        *(f"refused: {line}" for line in refused),
    ]
    say(
        sys.stdout, *map(clean.line, lines)
    )  # names and ids come from files others filled in
    return bool(said[human.CONFLICTING] or said[human.WAITING] or refused)


def _take_ratings(
    reviews: Sequence[files.Review], items: files.Asked, path: Path
) -> bool:
    old, today = human.load_ratings(path), datetime.now(UTC).date().isoformat()
    new, told = human.ratings_of(reviews, items, today)
    found, refused = keep_first(
        [*old, *new],
        lambda one: (
            one.item,
            one.digest,
            one.criterion,
            one.question,
            one.rater.casefold(),
        ),
        lambda one: (f"{one.item}, {one.criterion}", one.rater, one.rating),
    )
    if len(names := {one.run for one in found}) > 1:
        what = f"ratings of two runs, {listed(sorted(names))}, would have one mean"
        raise UsageError(f"{path}: {what}; name another file with --to")
    paths = human.save_ratings(found, path) if found else ()
    lines = [
        *told,
        f"{plural(len(found) - len(old), 'new rating')}, {len(found)} in {path}",
        *(f"refused: {line}" for line in refused),
    ]
    table = human.table_of(found, padded=True) if found else []
    said = "ratings by criteria change no grade and no gate"
    say(sys.stdout, *map(clean.line, lines), *table, said, *map(str, paths))
    return bool(refused)


def _until_decided(options: argparse.Namespace) -> int:
    """Accept verdicts, say how the gates stand, write the next form; return 0, 1 or 6."""
    run, file = options.paths[0], options.adjudications or Path(ADJUDICATIONS_FILE)
    report, folder = load_report(run), options.to or folder_of(run)
    baseline = runs.read_baseline(options.baseline, [report])
    anchor = runs.read_baseline(options.anchor, [report], "anchor")
    if not (earlier := [one for one in (baseline, anchor) if one]):
        raise UsageError(
            f"{run}: people compare it with a baseline; say which with --baseline=OLD"
        )
    plan = load_plan(file)

    def audits() -> list[AuditedGate]:
        people = load_adjudications(file) if file.exists() else {}
        return _audits_of(
            report, [replace(run, people=people, plan=plan) for run in earlier]
        )

    if not (gates := audits()):
        how = "declare `drop: {max: 0.05, evidence: audited}`"
        raise UsageError(f"{run}: people decide no gate of it; {how}")
    if changed := next((one.audit.changed for one in gates if one.audit.changed), ""):
        raise UsageError(f"{file}: {changed}")
    plan = {**{one.key: one.plan for gate in gates for one in gate.audit.pairs}, **plan}
    save_plan(plan, file)
    if options.accept:
        items, reviews = files.read_issued(
            options.sheet or folder / files.ISSUED, options.accept
        )
        # One reviewer is enough unless more are asked for: nobody sees which answer is whose.
        _take(reviews, items, file, options.min_reviewers or 1, gates)
        gates = audits()
    results = [gate.result() for gate in gates]
    said = [
        f"{one.state} {one.slice}, {one.name} {one.bar}: {one.reason}"
        for one in results
    ]
    said += _next_form(folder, gates, options)
    command = f"qagate review {quote(str(run))}"
    say(sys.stdout, *(clean.line(one.replace(REVIEW, command)) for one in said))
    states = [one.state for one in results]
    return next(code for state, code in GATE_CODES.items() if state in states)


def _audits_of(report: Report, earlier: Sequence[Baseline]) -> list[AuditedGate]:
    """Return the gates of a report that people decide, compared with these runs."""
    inputs = inputs_of(report, report.datasets)
    run = count_run(inputs, in_order(inputs.records), report.judge)
    compared = [paired_slices(run, report.judge, baseline) for baseline in earlier]
    return list(audited_gates_of(run, compared))


def _next_form(
    folder: Path, gates: Gates, options: argparse.Namespace
) -> Iterator[str]:
    """Write a form of the next pairs; a pair's answers by digest: nothing shows whose one is."""
    picks: dict[str, human.Pick] = {}
    for gate in gates:
        slices = {one.slice_.name: one.slice_ for one in gate.sides}
        for one in gate.next_pairs[: options.pairs]:
            part = slices[f"{one.pair.new.dataset}:{one.pair.new.language}"]
            sides = zip((one.pair.old, one.pair.new), one.passes, strict=True)
            unread = [record for record, passes in sides if passes is None]
            new = [
                human.Pick(record=record, part=part, pair=one.key) for record in unread
            ]
            for pick in sorted(new, key=lambda pick: pick.digest):
                picks.setdefault(pick.id, pick)
    (run,) = options.paths
    if picks:
        paths = human.issue_picks(
            folder, list(picks.values()), runs.transcripts_of(run)
        )
        yield f"{plural(len(picks), 'answer')} to judge next:"
        yield from map(str, paths)
    elif all(gate.state != "INCONCLUSIVE" for gate in gates):
        side, file = gates[0].sides[0], options.adjudications or ADJUDICATIONS_FILE
        old, people = (
            f"--{side.role}={quote(side.path)}",
            f"--adjudications={quote(str(file))}",
        )
        yield f"decided; `qagate gate {quote(str(run))} {old} {people} --to DIR` writes it down"


def _parser() -> runs.RecordedRunParser:
    parser = runs.RecordedRunParser(
        "review",
        "Write the answers of a run that deserve a person's time as a form and as CSV; accept "
        "what comes back.",
        "0 done, 3 could not be written, 4 wrong arguments or unreadable files, 6 reviewers "
        "disagree, are too few or contradict an earlier verdict (the rest is written)",
    )
    parser.add_argument(
        "paths", metavar="RUN", nargs="*", type=find_run, help=runs.RUN_HELP
    )
    ways = parser.add_mutually_exclusive_group()
    text = "what reviewers sent back (.json or .csv): put what they agree on into --to"
    ways.add_argument("--accept", metavar="FILE", type=Path, nargs="+", help=text)
    text = (
        "ask for ratings of answers drawn at random, by the criteria in this YAML file: each has "
        "name, question and scale (1..7), and is a column of the form; --accept takes them back"
    )
    ways.add_argument("--criteria", metavar="FILE", type=Path, help=text)
    text = f"the form's folder (default: the run's); with --accept the file ({ADJUDICATIONS_FILE})"
    parser.add_argument("--to", metavar="PATH", type=Path, help=text)
    text = "with --accept: the sheet.json that was written with the form (default: in reports/out)"
    parser.add_argument("--sheet", metavar="FILE", type=Path, help=text)
    parser.add_earlier()
    parser.add_argument("--until-decided", action="store_true", help=_UNTIL_DECIDED)
    number = partial(parser.add_argument, metavar="N", type=_whole_number)
    text = "how many must agree on a verdict (default: 2 if an answer passes that the judge failed"
    number(
        "--min-reviewers",
        help=f"with --accept: {text}, 1 otherwise and with --until-decided)",
    )
    text = (
        "with --until-decided: pairs in a form at most (default: as many as decide it)"
    )
    number("--pairs", help=text)
    text = "answers drawn in addition to those that stand out (default: %(default)s)"
    number("--sample", default=human.SAMPLE_SIZE, help=text)
    number(
        "--limit",
        help="answers in a form at most, the most important ones (default: all)",
    )
    number(
        "--seed",
        metavar="S",
        default=0,
        help="seed of what is drawn (default: %(default)s)",
    )
    return parser


def _whole_number(text: str) -> int:
    """Return a number of at least 0 from the command line."""
    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise argparse.ArgumentTypeError(
            f"a whole number of at least 0 is needed, got {text!r}"
        )
    return int(text)
