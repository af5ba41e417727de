"""``qagate review RUN --until-decided``: people decide a gate, a few pairs at a time."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from cases.review.adjudications import load_adjudications, merged, save_adjudications
from cases.review.reviews import ISSUED, Review, agreement, load_issued
from evaluators.core import UsageError
from evaluators.judges.adjudicated import FILE, Adjudication, Adjudications, answer_digest
from evaluators.output import plural, say
from reports.commands.recorded_runs import home, read_baseline, transcripts_of
from reports.compare.audit import AuditedPair
from reports.gates.audited import AuditedGate
from reports.gates.decide import FAILED, INCONCLUSIVE, OK
from reports.review.human_review import Pick, accept, issue_verdicts, pick_id
from reports.run import clean
from reports.run.run_json import load_report
from reports.verdict.recount import audits_of

FORM = "audit"
_CODES = {"FAIL": FAILED, "INCONCLUSIVE": INCONCLUSIVE, "PASS": OK}  # the worst first


def until_decided(run: Path, options: argparse.Namespace) -> int:
    """Accept verdicts if there are any, say how the gates stand, and write the next form.

    Returns 0 if every audited gate passed, 1 if one failed, 6 if one is not decided.
    """
    report, file = load_report(run), options.adjudications or Path(FILE)
    people: Adjudications = load_adjudications(file) if file.exists() else {}
    earlier = (
        read_baseline(options.baseline, [report]),
        read_baseline(options.anchor, [report], "anchor"),
    )
    if not any(earlier):
        raise UsageError(f"{run}: people compare it with a baseline; say which with --baseline=OLD")

    def audits() -> Sequence[AuditedGate]:
        return audits_of(report, *(replace(one, people=people) for one in earlier if one))

    gates = audits()
    if not gates:
        how = "declare `drop: {max: 0.05, evidence: audited}`"
        raise UsageError(f"{run}: people decide no gate of it; {how}")
    said: list[str] = []
    folder = options.to or home(run)
    if options.accept:
        people, said = _accept(options, folder, people, gates)
        save_adjudications(people, file)
        said.insert(0, f"{plural(len(people), 'verdict')} in {file}")
        gates = audits()
    results = [gate.result() for gate in gates]
    said += (f"{one.state} {one.slice}, {one.name} {one.bar}: {one.reason}" for one in results)
    picks = list(_picks(gates, options.pairs))
    if picks:
        paths = issue_verdicts(folder, picks, FORM, transcripts_of(run))
        said += [f"{plural(len(picks), 'answer')} to judge next:", *map(str, paths)]
    elif all(gate.state != "INCONCLUSIVE" for gate in gates):
        how = "`qagate gate RUN --adjudications=FILE --to DIR` writes it down"
        said.append(f"decided; {how}")
    say(sys.stdout, *map(clean.line, said))
    states = [one.state for one in results]
    return next(code for state, code in _CODES.items() if state in states)


def _accept(
    options: argparse.Namespace, folder: Path, people: Adjudications, gates: Sequence[AuditedGate]
) -> tuple[Adjudications, list[str]]:
    """Return all verdicts with those in the files, and lines about what could not be taken.

    One reviewer is enough for a pair unless more are asked for: nobody sees which answer is whose.
    """
    issued = load_issued(options.sheet or folder / ISSUED)
    reviews = issued.read(options.accept)
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
    accepted.overruled.clear()  # the judge only says where to look
    lines = [*agreement_lines(reviews), *accepted.lines]
    return found, [*lines, *(f"refused: {line}" for line in refused)]


def _planned(one: Adjudication, asked: AuditedPair | None) -> Adjudication:
    """Return a verdict with the pair that it was asked for, why, and with what probability."""
    if asked is None:
        return one
    return replace(one, picked=asked.why, probability=asked.probability, pair=asked.key)


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


def _picks(gates: Sequence[AuditedGate], most: int | None) -> Iterator[Pick]:
    """Yield the answers to judge next, each once, of at most so many pairs of each gate.

    The two answers of a pair stand in the order of their digests, so that nothing shows which run
    an answer is of.
    """
    seen: set[str] = set()
    for gate in gates:
        slices = {one.slice_.name: one.slice_ for one in gate.sides}
        for pair in gate.next_pairs[:most]:
            sides = [(pick_id(one), one) for one in (pair.pair.old, pair.pair.new)]
            known = dict(zip((id_ for id_, _ in sides), (pair.old, pair.new), strict=True))
            for id_, record in sorted(sides, key=lambda one: one[0].rpartition("@")[2]):
                if known[id_] is None and id_ not in seen:
                    seen.add(id_)
                    part = slices[f"{record.dataset}:{record.language}"]
                    yield Pick(id=id_, record=record, part=part, reasons=())
