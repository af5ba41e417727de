"""``qagate review``: answers for people to judge, and what they say taken back."""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote

from cases.review.adjudications import load_adjudications, merged, save_adjudications
from cases.review.reviews import ISSUED, Issued, IssuedItem, Review, agreement, issue, load_issued
from cases.review.sheet import FALLBACK, Sheet, load_criteria, texts_in
from evaluators.core import UsageError
from evaluators.judges.ensemble import FILE, Adjudications, answer_digest
from evaluators.output import plural, say, write_texts
from evaluators.text import listed
from reports.commands import recorded_runs
from reports.commands.recorded_runs import RUN_HELP, Parser, home, read_baseline, transcripts_of
from reports.compare.audit import load_plan, save_plan
from reports.gates.decide import FAILED, INCONCLUSIVE, OK
from reports.gates.sequential import REVIEW, AuditedGate
from reports.review import human_review as human
from reports.review import ratings
from reports.run import clean
from reports.run.report import Report
from reports.run.run_json import load_report
from reports.verdict.recount import audits_of, rebuilt

GATE_CODES = {"FAIL": FAILED, "INCONCLUSIVE": INCONCLUSIVE, "PASS": OK}  # the worst first


def main(argv: Sequence[str]) -> int:
    """Write the form, accept what reviewers sent back, or export labels; return the exit code."""
    options = _parser().parse_args(argv)
    if options.until_decided and options.criteria:
        raise UsageError("review: --criteria decides no gate; leave out --until-decided")
    if not options.until_decided and (options.accept or options.export_judges):
        return _accept(options) if options.accept else _export(options)
    (run,) = _paths(options, "RUN")
    if options.until_decided:
        return _until_decided(run, options)
    return _ask_ratings(run, options) if options.criteria else _ask_verdicts(run, options)


def _read(options: argparse.Namespace, path: Path) -> tuple[Report, tuple[human.Pick, ...]]:
    report = load_report(path)
    if options.baseline is not None:
        report = rebuilt(report, read_baseline(options.baseline, [report]))
    picks = human.pick(report, options.sample, options.seed)
    return report, human.at_most(picks, options.limit, options.seed)


def _ask_verdicts(run: Path, options: argparse.Namespace) -> int:
    _, picks = _read(options, run)
    if not picks:
        raise UsageError(f"{run}: nothing to review: no answer that a person has not judged yet")
    paths = human.issue_verdicts(options.to or home(run), picks, transcripts=transcripts_of(run))
    words, why = texts_in(FALLBACK)["reasons"], [one for pick in picks for one in pick.reasons]
    counts = [f"{why.count(one):>6}  {words[one]}" for one in human.REASONS if one in why]
    say(sys.stdout, f"{plural(len(picks), 'answer')} to review", *counts, *map(str, paths))
    return 0


def _ask_ratings(run: Path, options: argparse.Namespace) -> int:
    criteria, report = load_criteria(options.criteria), load_report(run)
    drawn = human.pick_at_random(report, options.sample, options.seed)
    picks = human.at_most(drawn, options.limit, options.seed)
    if not picks:
        raise UsageError(f"{run}: no answer to rate; ask for some with --sample")
    name = f"{report.run.get('id', '')} of {report.model}"
    items = tuple(human.sheet_item(one, criteria) for one in picks)
    asked = {
        id_: IssuedItem(
            choices=question.values,
            judged="",
            upgrades=(),
            criterion=question.name,
            question=question.text,
            part=one.part.name,
            run=name,
        )
        for one, item in zip(picks, items, strict=True)
        for id_, question in item.asked
    }
    paths = issue(Sheet(name="criteria", items=items), asked, options.to or home(run))
    count = plural(len(picks), "answer")
    first = f"{count} drawn at random, to be rated by {len(criteria)} criteria:"
    names = (f"  {one.values[0]}-{one.values[-1]}  {one.name}" for one in criteria)
    say(sys.stdout, *map(clean.line, [first, *names, *map(str, paths)]))
    return 0


def _accept(options: argparse.Namespace) -> int:
    _paths(options)
    issued = load_issued(options.sheet or Path("reports", "out", ISSUED))
    reviews = issued.read(options.accept)
    rated = [one for one in reviews if issued.items[one.item].criterion]
    verdicts = [one for one in reviews if not issued.items[one.item].criterion]
    if rated and verdicts and options.to:
        what = "verdicts and ratings by criteria go into two files; accept the two apart"
        raise UsageError(f"--to {options.to}: {what}")
    codes = [_accept_ratings(rated, issued, options)] if rated else []
    codes += [_accept_verdicts(verdicts, issued, options)] if verdicts or not rated else []
    return max(codes)


def _accept_verdicts(reviews: Sequence[Review], issued: Issued, options: argparse.Namespace) -> int:
    path = options.to or Path(FILE)
    old = load_adjudications(path) if path.exists() else {}
    today = datetime.now(UTC).date().isoformat()
    accepted = human.accept(reviews, today, issued.items, options.min_reviewers)
    adjudications, refused = merged(old, accepted.adjudications)
    save_adjudications(adjudications, path)
    added = plural(len(adjudications) - len(old), "new verdict")
    lines = [
        *_agreement_lines(reviews),
        f"{added}, {len(adjudications)} in {path}",
        *accepted.lines,
        *(f"refused: {line}" for line in refused),
    ]
    say(sys.stdout, *map(clean.line, lines))  # names and ids come from files others filled in
    open_ = accepted.said[human.CONFLICTING] or accepted.said[human.WAITING] or refused
    return INCONCLUSIVE if open_ else 0


def _accept_ratings(reviews: Sequence[Review], issued: Issued, options: argparse.Namespace) -> int:
    path = options.to or issued.path.parent / ratings.FILE
    old = ratings.load_ratings(path)
    new, unrated = ratings.ratings_of(reviews, issued.items, datetime.now(UTC).date().isoformat())
    found, refused = ratings.merged_ratings(old, new)
    if len(runs := {one.run for one in found}) > 1:
        what = f"ratings of two runs, {listed(sorted(runs))}, would have one mean"
        raise UsageError(f"{path}: {what}; name another file with --to")
    paths = ratings.save_ratings(found, path) if found else ()
    lines = [
        *ratings.completeness(reviews, issued),
        f"{plural(len(found) - len(old), 'new rating')}, {len(found)} in {path}",
        *(f"refused: {line}" for line in refused),
        *(f"comment without a rating: {line}" for line in unrated),
    ]
    table = ratings.table_of(ratings.summaries(found), padded=True) if found else []
    said = "ratings by criteria change no grade and no gate"
    say(sys.stdout, *map(clean.line, lines), *table, said, *map(str, paths))
    return INCONCLUSIVE if refused else 0


def _until_decided(run: Path, options: argparse.Namespace) -> int:
    """Accept verdicts, say how the gates stand, write the next form; return 0, 1 or 6."""
    report, file = load_report(run), options.adjudications or Path(FILE)
    people: Adjudications = load_adjudications(file) if file.exists() else {}
    baseline = read_baseline(options.baseline, [report])
    earlier = [one for one in (baseline, read_baseline(options.anchor, [report], "anchor")) if one]
    if not earlier:
        raise UsageError(f"{run}: people compare it with a baseline; say which with --baseline=OLD")

    plan = load_plan(file)

    def audits() -> Sequence[AuditedGate]:
        return audits_of(report, *(replace(one, people=people, plan=plan) for one in earlier))

    gates = audits()
    if not gates:
        how = "declare `drop: {max: 0.05, evidence: audited}`"
        raise UsageError(f"{run}: people decide no gate of it; {how}")
    if changed := next((one.audit.changed for one in gates if one.audit.changed), ""):
        raise UsageError(f"{file}: {changed}")
    plan = {**{one.key: one.plan for gate in gates for one in gate.audit.pairs}, **plan}
    save_plan(plan, file)
    said: list[str] = []
    folder = options.to or home(run)
    if options.accept:
        people, said = _accept_pairs(options, folder, people, gates)
        save_adjudications(people, file)
        gates = audits()
    results = [gate.result() for gate in gates]
    said += (f"{one.state} {one.slice}, {one.name} {one.bar}: {one.reason}" for one in results)
    said += _next_form(run, folder, gates, options)
    command = f"qagate review {quote(str(run))}"
    say(sys.stdout, *(clean.line(one.replace(REVIEW, command)) for one in said))
    states = [one.state for one in results]
    return next(code for state, code in GATE_CODES.items() if state in states)


def _next_form(
    run: Path, folder: Path, gates: Sequence[AuditedGate], options: argparse.Namespace
) -> Iterator[str]:
    picks = list(_picks(gates, options.pairs))
    if picks:
        paths = human.issue_verdicts(folder, picks, "audit", transcripts_of(run))
        yield f"{plural(len(picks), 'answer')} to judge next:"
        yield from map(str, paths)
    elif all(gate.state != "INCONCLUSIVE" for gate in gates):
        side, file = gates[0].sides[0], options.adjudications or FILE
        old, people = f"--{side.role}={quote(side.path)}", f"--adjudications={quote(str(file))}"
        yield f"decided; `qagate gate {quote(str(run))} {old} {people} --to DIR` writes it down"


def _accept_pairs(
    options: argparse.Namespace, folder: Path, people: Adjudications, gates: Sequence[AuditedGate]
) -> tuple[Adjudications, list[str]]:
    """Return all verdicts, with how their pairs were drawn, and lines about what is not taken.

    One reviewer is enough unless more are asked for: nobody sees which answer is whose.
    """
    issued = load_issued(options.sheet or folder / ISSUED)
    reviews = issued.read(options.accept)
    today = datetime.now(UTC).date().isoformat()
    accepted = human.accept(reviews, today, issued.items, options.min_reviewers or 1)
    drawn = {
        answer_digest(side, side.answer or ""): one
        for gate in gates
        for one in gate.audit.pairs
        if one.drawn
        for side in (one.pair.old, one.pair.new)
    }
    new = [
        replace(one, picked=asked.plan.why, probability=asked.plan.probability, pair=asked.key)
        if (asked := drawn.get(one.digest))
        else one
        for one in accepted.adjudications
    ]
    found, refused = merged(people, new)
    accepted.said[human.OVERRULED].clear()  # the judge only says where to look
    file = options.adjudications or FILE
    lines = [f"{plural(len(found), 'verdict')} in {file}", *_agreement_lines(reviews)]
    return found, [*lines, *accepted.lines, *(f"refused: {line}" for line in refused)]


def _agreement_lines(reviews: Sequence[Review]) -> Iterator[str]:
    (found,) = agreement(reviews)
    raw, alpha, *kappas = (
        one.text("{value} [{low}, {high}] (n={n})", "{value} [interval undefined] (n={n})")
        for one in (found.raw, found.alpha, *(pair.kappa for pair in found.pairs))
    )
    if found.items:
        seen = f"{plural(found.items, 'answer')} seen by more than one"
        yield f"{seen}: agreement {raw}, alpha {alpha}"
    for pair, kappa in zip(found.pairs, kappas, strict=True):
        yield f"  {pair.first} and {pair.second}: kappa {kappa}"


def _picks(gates: Sequence[AuditedGate], most: int | None) -> Iterator[human.Pick]:
    """Yield the answers of ``most`` pairs a gate, by digest, so that nothing shows whose one is."""
    seen: set[str] = set()
    for gate in gates:
        slices = {one.slice_.name: one.slice_ for one in gate.sides}
        for pair in gate.next_pairs[:most]:
            sides = [(human.pick_id(one), one) for one in (pair.pair.old, pair.pair.new)]
            known = dict(zip((id_ for id_, _ in sides), (pair.old, pair.new), strict=True))
            for id_, record in sorted(sides, key=lambda one: one[0].rpartition("@")[2]):
                if known[id_] is None and id_ not in seen:
                    seen.add(id_)
                    part = slices[f"{record.dataset}:{record.language}"]
                    yield human.Pick(id=id_, record=record, part=part, reasons=(), pair=pair.key)


def _export(options: argparse.Namespace) -> int:
    file, run = _paths(options, FILE, "RUN")
    report, picks = _read(options, run)
    found = human.labelled(report, load_adjudications(file), picks)
    if not found:
        raise UsageError(f"{file}: no grade or rating of an answer in {run}; nothing to export")
    for (language, rated), rows in sorted(found.items()):
        path: Path = options.export_judges
        if len(found) > 1:  # a labelled data set has one language and one scale
            marks = f".{language}" + (".rated" if rated else "")
            path = path.with_name(f"{path.stem}{marks}{path.suffix or '.jsonl'}")
        write_texts([(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows))])
        say(
            sys.stdout,
            f"{path}: {plural(len(rows), 'labelled answer')} in {language}; measure a judge: "
            f"pytest cases/judges --items judges:{language}={path}",
        )
    return 0


def _paths(options: argparse.Namespace, *names: str) -> list[Path]:
    """Return the words without an option. Raises UsageError for another number of them."""
    found: list[Path] = options.paths
    if len(found) != len(names):
        wanted = " ".join(names) or "no path"
        advice = "see `qagate review --help`"
        raise UsageError(f"review: {wanted} is needed here, got {len(found)}; {advice}")
    return found


def _parser() -> Parser:
    parser = Parser(
        "review",
        "Write the answers of a run that deserve a person's time as a form and as CSV; accept "
        "what comes back; make labelled items for cases/judges of it.",
        "0 done, 1 could not be written, 4 wrong arguments or unreadable files, 6 reviewers "
        "disagree, are too few or contradict an earlier verdict (the rest is written)",
    )
    parser.add_argument("paths", metavar="RUN", nargs="*", type=Path, help=RUN_HELP)
    _add_ways(parser)
    text = f"the form's folder (default: the run's), or with --accept the file ({FILE})"
    parser.add_argument("--to", metavar="PATH", type=Path, help=text)
    text = "with --accept: the sheet.json that was written with the form (default: in reports/out)"
    parser.add_argument("--sheet", metavar="FILE", type=Path, help=text)
    text = (
        "with --accept: how many must agree on a verdict (default: 2 if an answer passes that the "
        "judge failed, 1 otherwise and with --until-decided)"
    )
    whole = recorded_runs.whole_number
    parser.add_argument("--min-reviewers", metavar="N", type=whole, help=text)
    parser.add_baseline()
    parser.add_anchor()
    text = (
        "let people decide: take the pairs of answers, RUN's and the baseline's, that decide its "
        "gates with `evidence: audited`; with --accept put verdicts into --adjudications first "
        "(not the option of a run that stops asking early)"
    )
    parser.add_argument("--until-decided", action="store_true", help=text)
    numbers = {
        "--pairs": ("N", "with --until-decided: pairs in a form at most", "as many as decide it"),
        "--sample": ("N", "answers drawn in addition to those that stand out", human.SAMPLE),
        "--limit": ("N", "answers in a form at most, the most important ones", "all"),
        "--seed": ("S", "seed of what is drawn", 0),
    }
    for option, (name, text, default) in numbers.items():
        value = default if isinstance(default, int) else None
        shown = f"{text} (default: {default})"
        parser.add_argument(option, metavar=name, type=whole, default=value, help=shown)
    return parser


def _add_ways(parser: argparse.ArgumentParser) -> None:
    add = parser.add_mutually_exclusive_group().add_argument
    text = "what reviewers sent back (.json or .csv): put what they agree on into --to"
    add("--accept", metavar="FILE", nargs="+", type=Path, help=text)
    text = (
        "write labelled items from two paths, adjudications.yaml and RUN, as JSONL; with the "
        "form's --sample, --seed and --baseline they keep why each was picked"
    )
    add("--export-judges", metavar="FILE", type=Path, help=text)
    text = (
        "ask for ratings of answers drawn at random, by the criteria in this YAML file: each has "
        "name, question and scale (1..7), and is a column of the form; --accept takes them back"
    )
    add("--criteria", metavar="FILE", type=Path, help=text)
