"""``python -m reports review RUN --until-decided``: people decide a gate, a few pairs at a time."""

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from cases.tools.review.adjudications import load_adjudications, merged, save_adjudications
from cases.tools.review.reviews import read_sheets
from cases.tools.review.sheet_files import write_sheet
from evaluators.core import UsageError
from evaluators.judges.adjudicated import FILE, Adjudication, Adjudications, answer_digest
from evaluators.output import plural, say
from reports.commands.recorded_runs import read_baseline
from reports.compare.audit import AuditedPair
from reports.gates.audited import AuditedGate
from reports.gates.decide import FAILED, INCONCLUSIVE, OK
from reports.human_review import Pick, accept, sheet_of
from reports.recount import audits_of
from reports.render import clean
from reports.run_reader import load_report

FORM = "audit"
_CODES = {"FAIL": FAILED, "INCONCLUSIVE": INCONCLUSIVE, "PASS": OK}  # the worst first


def until_decided(run: Path, options: argparse.Namespace) -> int:
    """Accept verdicts where there are any, say how the gates stand, and write the next form.

    Returns 0 where every audited gate passed, 1 where one failed, 6 where one is not decided.
    """
    report = load_report(run)
    file = options.adjudications or Path(FILE)
    people: Adjudications = load_adjudications(file) if file.exists() else {}
    earlier = [
        read_baseline(options.baseline, [report]),
        read_baseline(options.anchor, [report], "anchor"),
    ]
    beside = [one for one in earlier if one]
    if not beside:
        msg = f"{run}: people compare it with a baseline; say which with --baseline=OLD"
        raise UsageError(msg)
    gates = audits_of(report, *(replace(one, people=people) for one in beside))
    if not gates:
        how = "declare `drop: {max: 0.05, evidence: audited}`"
        msg = f"{run}: no gate of this run is decided by people; {how} and run it again"
        raise UsageError(msg)
    said: list[str] = []
    if options.accept:
        people, said = _accept(options.accept, people, gates)
        save_adjudications(people, file)
        said.insert(0, f"{plural(len(people), 'verdict')} in {file}")
        gates = audits_of(report, *(replace(one, people=people) for one in beside))
    results = [gate.result() for gate in gates]
    said += (f"{one.state} {one.slice}, {one.name} {one.bar}: {one.reason}" for one in results)
    said += _next_form(gates, options.to or (run if run.is_dir() else run.parent))
    say(sys.stdout, *map(clean.line, said))
    states = {one.state for one in results}
    return next(code for state, code in _CODES.items() if state in states)


def _accept(
    paths: Sequence[Path], people: Adjudications, gates: Sequence[AuditedGate]
) -> tuple[Adjudications, list[str]]:
    """Return the verdicts with those in the files, and lines on what could not be taken."""
    accepted = accept(read_sheets(paths), datetime.now(UTC).date().isoformat())
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
        *(f"conflict, for a third person: {line}" for line in accepted.conflicts),
        *(f"undecided: {line}" for line in accepted.undecided),
        *(f"refused: {line}" for line in refused),
    ]


def _planned(one: Adjudication, asked: AuditedPair | None) -> Adjudication:
    """Return a verdict with the pair that it was asked for, why, and with what probability."""
    if asked is None:
        return one
    return replace(one, picked=asked.why, probability=asked.probability, pair=asked.key)


def _next_form(gates: Sequence[AuditedGate], folder: Path) -> list[str]:
    """Write the form of the answers to judge next, if any; return lines that name it."""
    picks = list(_picks(gates))
    if not picks:
        return []
    paths = write_sheet(sheet_of(picks, FORM), folder)
    return [f"{plural(len(picks), 'answer')} to judge next:", *map(str, paths)]


def _picks(gates: Sequence[AuditedGate]) -> Iterator[Pick]:
    """Yield the answers to judge next: each once, and those of a pair in an order of hashes.

    Nothing shows which run an answer is of, or what the judge said of it.
    """
    seen: set[str] = set()
    for gate in gates:
        kinds = {one.slice_.name: one.slice_.kind for one in gate.sides}
        for pair in gate.next_pairs:
            sides = [(pair.pair.old, pair.old), (pair.pair.new, pair.new)]
            known = [(answer_digest(one, one.answer or ""), one, said) for one, said in sides]
            for digest, record, said in sorted(known, key=lambda one: one[0]):
                if said is None and digest not in seen:
                    seen.add(digest)
                    name = f"{record.dataset}-{record.language}-{record.id}"
                    kind = kinds[f"{record.dataset}:{record.language}"]
                    yield Pick(id=f"{name}@{digest}", record=record, kind=kind, reasons=())
