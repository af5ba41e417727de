"""``python -m reports review RUN --until-decided``: people decide a gate, a few pairs at a time."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from cases.review.adjudications import load_adjudications, merged, save_adjudications
from cases.review.issued import FILE as SHEET
from cases.review.issued import load_issued
from cases.review.reviews import Review, agreement, read_sheets
from evaluators.core import UsageError
from evaluators.judges.adjudicated import FILE, Adjudication, Adjudications, answer_digest
from evaluators.output import plural, say
from reports.commands.recorded_runs import home, read_baseline, transcripts_of, whole_number
from reports.compare.audit import AuditedPair
from reports.gates.audited import AuditedGate
from reports.gates.decide import FAILED, INCONCLUSIVE, OK
from reports.review.human_review import Pick, accept
from reports.review.review_sheet import issue_to
from reports.run import clean
from reports.run.run_reader import load_report
from reports.run.transcripts import Source
from reports.verdict.recount import audits_of

FORM = "audit"
_CODES = {"FAIL": FAILED, "INCONCLUSIVE": INCONCLUSIVE, "PASS": OK}  # the worst first


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options that only this way of reviewing has."""
    text = (
        "take the pairs of answers, RUN's and the baseline's, that decide its gates with "
        "`evidence: audited`; with --accept put verdicts into --adjudications and say what is next"
    )
    parser.add_argument("--until-decided", action="store_true", help=text)
    text = "with --until-decided: at most so many pairs in a form (default: as many as decide it)"
    parser.add_argument("--pairs", metavar="N", type=whole_number, help=text)


def until_decided(run: Path, options: argparse.Namespace) -> int:
    """Accept verdicts where there are any, say how the gates stand, and write the next form.

    Returns 0 where every audited gate passed, 1 where one failed, 6 where one is not decided.
    """
    report, file = load_report(run), options.adjudications or Path(FILE)
    people: Adjudications = load_adjudications(file) if file.exists() else {}
    earlier = (
        read_baseline(options.baseline, [report]),
        read_baseline(options.anchor, [report], "anchor"),
    )
    beside = [one for one in earlier if one]
    if not beside:
        raise UsageError(f"{run}: people compare it with a baseline; say which with --baseline=OLD")
    gates = audits_of(report, *(replace(one, people=people) for one in beside))
    if not gates:
        how = "declare `drop: {max: 0.05, evidence: audited}`"
        raise UsageError(f"{run}: people decide no gate of it; {how}")
    said: list[str] = []
    folder = options.to or home(run)
    if options.accept:
        people, said = _accept(options, folder, people, gates)
        save_adjudications(people, file)
        said.insert(0, f"{plural(len(people), 'verdict')} in {file}")
        gates = audits_of(report, *(replace(one, people=people) for one in beside))
    results = [gate.result() for gate in gates]
    said += (f"{one.state} {one.slice}, {one.name} {one.bar}: {one.reason}" for one in results)
    said += _next_form(gates, folder, options.pairs, transcripts_of(run))
    say(sys.stdout, *map(clean.line, said))
    states = [one.state for one in results]
    return next(code for state, code in _CODES.items() if state in states)


def _accept(
    options: argparse.Namespace, home: Path, people: Adjudications, gates: Sequence[AuditedGate]
) -> tuple[Adjudications, list[str]]:
    """Return the verdicts with those in the files, and lines on what could not be taken.

    One reviewer a pair is enough unless more are asked for: nobody sees which answer is whose.
    """
    issued = load_issued(options.sheet or home / SHEET)
    reviews = read_sheets(options.accept)
    issued.check(reviews)
    today = datetime.now(UTC).date().isoformat()
    accepted = accept(reviews, today, issued.items, options.min_reviewers or 1)
    plan = {
        answer_digest(side, side.answer or ""): one
        for gate in gates
        for one in gate.audit.pairs
        if one.drawn
        for side in (one.pair.old, one.pair.new)
    }
    new = [_planned(one, plan.get(one.digest)) for one in accepted.adjudications]
    found, refused = merged(people, new)
    return found, [
        *agreement_lines(reviews),
        *(f"waits for another reviewer: {line}" for line in accepted.waiting),
        *(f"conflict, for a third person: {line}" for line in accepted.conflicts),
        *(f"undecided: {line}" for line in accepted.undecided),
        *(f"refused: {line}" for line in refused),
    ]


def agreement_lines(reviews: Sequence[Review]) -> Iterator[str]:
    """Yield how far reviewers agree on the answers that several of them saw."""
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


def _planned(one: Adjudication, asked: AuditedPair | None) -> Adjudication:
    """Return a verdict with the pair that it was asked for, why, and with what probability."""
    if asked is None:
        return one
    return replace(one, picked=asked.why, probability=asked.probability, pair=asked.key)


def _next_form(
    gates: Sequence[AuditedGate], folder: Path, most: int | None, transcripts: Source | None
) -> list[str]:
    """Write the form of the answers to judge next, if any; return lines that say so.

    It has at most so many pairs of each gate.
    """
    picks = list(_picks(gates, most))
    if not picks:
        is_open = any(gate.state == "INCONCLUSIVE" for gate in gates)
        shown = "decided; `python -m reports gate RUN --adjudications=FILE --to DIR` writes it down"
        return [] if is_open else [shown]
    paths = issue_to(folder, picks, FORM, transcripts)
    return [f"{plural(len(picks), 'answer')} to judge next:", *map(str, paths)]


def _picks(gates: Sequence[AuditedGate], most: int | None) -> Iterator[Pick]:
    """Yield the answers to judge next: each once, and those of a pair in an order of hashes.

    Nothing shows which run an answer is of, or what the judge said of it.
    """
    seen: set[str] = set()
    for gate in gates:
        slices = {one.slice_.name: one.slice_ for one in gate.sides}
        for pair in gate.next_pairs[:most]:
            sides = [(pair.pair.old, pair.old), (pair.pair.new, pair.new)]
            known = [(answer_digest(one, one.answer or ""), one, said) for one, said in sides]
            for digest, record, said in sorted(known, key=lambda one: one[0]):
                if said is None and digest not in seen:
                    seen.add(digest)
                    name = f"{record.dataset}-{record.language}-{record.id}"
                    part = slices[f"{record.dataset}:{record.language}"]
                    yield Pick(id=f"{name}@{digest}", record=record, part=part, reasons=())
