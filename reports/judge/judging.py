"""The judge's part of a report: who graded, how the judge was measured, how several agree."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from cases.dataset import Dataset, Slice
from evaluators.core import LEXICAL, JudgeSpec, PanelSpec, parse_judges
from evaluators.judges.lexical.tables import has_tables
from evaluators.kinds import Cluster
from evaluators.statistics.intervals import UNDEFINED, Estimate, clustered_rate, wilson
from reports.judge.errors import correct_rates, corrected_notes
from reports.judge.measured import agreement_of, calibration_notes, is_measured
from reports.run.evidence import Calibration, Judging, PanelAgreement, RulesAudit
from reports.run.record import Record

_NAMED = 10  # items named in a note; run.json has all


def judging(
    datasets: Sequence[Dataset],
    records: Mapping[str, Sequence[Record]],
    judge: str,
    calibrations: Sequence[Calibration] = (),
) -> Judging:
    """Return the judge's part of a report over ``records`` by slice; ``judge`` is the SPEC."""
    every_slice = (one for dataset in datasets for one in dataset.slices.values())
    slices = [one for one in every_slice if one.name in records]
    graded_slices = [one for one in slices if one.kind.by_rubric]
    judged_slices = [one for one in slices if not one.kind.answered]
    every = [(one, records[one.name]) for one in (*graded_slices, *judged_slices)]
    decided = [record for _, some in every for record in some if record.is_graded]
    split = tuple(
        one.key for one in decided if len({vote.label for vote in one.votes if vote.label}) > 1
    )
    deciders = Counter("people" if one.adjudicated_by else one.judge for one in decided)
    cascade = parse_judges(judge.split(" ")).is_cascade
    measured = {name for one in calibrations if is_measured(one) for name in one.graders}
    return Judging(
        graded=len(decided),
        settled=sum(_settled(record, judge, cascade=cascade) for record in decided),
        by_judge=dict(sorted(deciders.items())),
        calibrations=tuple(calibrations),
        unmeasured=tuple(one.name for one in graded_slices if one.name not in measured),
        disagreements=() if cascade else split,
        audited=sum(len(record.votes) > 1 for record in decided) if cascade else 0,
        audit_disagreements=split if cascade else (),
        audit=audit([(part, one) for part in graded_slices for one in records[part.name]], judge),
        panels=panels(every, judge),
        corrected=correct_rates(graded_slices, records, calibrations),
    )


def judging_notes(
    found: Judging, judge: str, slices: Collection[Slice], datasets: Sequence[Dataset]
) -> list[str]:
    """Return what votes and labelled items say of the judge of the slices run, a line each."""
    judges = parse_judges(judge.split(" "))
    waived = {one.name for one in datasets if one.judge_unmeasured and not judges.is_offline}
    why = "no labelled items measure its judge, and its dataset.yaml says that the gates decide"
    waivers = {
        name: f"judge: unmeasured for {name}: {why}"
        for name in found.unmeasured
        if name.partition(":")[0] in waived
    }
    notes = [*waivers.values(), *_lexicon_notes(judges, slices)]
    if any(one.is_cascade for one in judges.members) and any(one.kind.rated for one in slices):
        notes.append(f"{judge}: ratings are the model's alone, no rule settles one")
    noted = {name for one in found.calibrations for name in one.graders} | waivers.keys()
    unknown = [name for name in found.unmeasured if name not in noted]
    if unknown:
        rules = "; rules decide without" if judges.is_offline else ""
        why = f"no labelled items were judged{rules}"
        notes.append(f"judge not measured for {', '.join(unknown)}: {why}")
    return [
        *notes,
        *calibration_notes(found.calibrations),
        *vote_notes(judge, found.audit, found.panels),
        *corrected_notes(found.corrected),
    ]


def _settled(record: Record, judge: str, *, cascade: bool) -> bool:
    if record.adjudicated_by or (record.votes and not cascade):
        return False
    who = record.votes[0].judge if record.votes else record.judge
    return JudgeSpec.parse(who).is_offline or (not record.votes and who == judge)


def audit(records: Sequence[tuple[Slice, Record]], judge: str) -> RulesAudit | None:
    """Return what a cascade's audit showed, with Wilson's interval over clusters; else None."""
    judges = parse_judges(judge.split(" "))
    judged = [(part, one) for part, one in records if one.is_graded and one.votes]
    if not judges.is_cascade or not judged:
        return None
    rules = judges.members[0].rules
    settled = [(part, one) for part, one in judged if one.votes[0].judge == rules]
    drawn = [(part, one) for part, one in settled if len(one.votes) > 1]
    audited = [(part, one) for part, one in drawn if one.votes[1].label]
    groups: dict[tuple[str, Cluster], list[bool]] = defaultdict(list)
    for part, record in audited:
        first, second = record.votes
        groups[part.dataset, part.cluster_of(record)].append(first.label != second.label)
    differs, n = UNDEFINED, len(audited)
    if groups:
        import numpy as np

        rows = [(sum(group), len(group), 1) for group in groups.values()]
        table = np.array(rows, dtype=np.float64).T
        hits, once = float(table[0].sum()), len(groups) == n
        differs = Estimate.of(hits / n, (wilson(hits, n) if once else clustered_rate(*table)), n)
    silent = len(drawn) - n
    return RulesAudit(judged=len(judged), settled=len(settled), disagreement=differs, silent=silent)


def _lexicon_notes(judges: PanelSpec, slices: Iterable[Slice]) -> Iterator[str]:
    if not any(one.rules == LEXICAL for one in judges.members):
        return
    graded = {one.language for one in slices if one.kind.by_rubric and not one.kind.rated}
    if bare := sorted(language for language in graded if not has_tables(language)):
        yield (
            f"lexical has no words of {', '.join(bare)}: it may take a refusal for a wrong answer; "
            f'write `refusals: [...]` into words/{bare[0]}.yaml and `words = "words"` under '
            "[tool.qagate] in pyproject.toml, or let a model judge"
        )


def panels(
    records: Sequence[tuple[Slice, Sequence[Record]]], judge: str
) -> tuple[PanelAgreement, ...]:
    """Return a panel's agreement on each slice, of which ``records`` has the records."""
    members = parse_judges(judge.split(" ")).names
    if len(members) < 2:
        return ()
    found = []
    for slice_, some in records:
        voted = [(one, one.votes[: len(members)]) for one in some if one.votes]
        if voted:
            rows = [(one, [vote.label for vote in votes]) for one, votes in voted]
            ungraded = {one.key for one, _ in voted if not one.is_graded}
            silent = Counter(v.judge for _, votes in voted for v in votes if not v.label)
            agreed = agreement_of(slice_, members, rows, ungraded)
            found.append(replace(agreed, silent=dict(silent)))
    return tuple(found)


def vote_notes(judge: str, found: RulesAudit | None, panels: Sequence[PanelAgreement]) -> list[str]:
    """Return a line for the audit, and one for each panel."""
    notes = []
    if found:
        share = found.settled / found.judged
        note = f"{judge}: rules settled {found.settled} of {found.judged} verdicts ({share:.0%})"
        checked = found.disagreement
        silent = f", {found.silent} without a verdict" if found.silent else ""
        differs = round((checked.value or 0.0) * checked.n)
        audited = f"of {checked.n} audited{silent} the model differs on {differs}: {checked.text()}"
        notes.append(f"{note}; {audited if checked.n else 'none of them was audited'}")
    for panel in panels:
        kappas = ", ".join(
            f"{one.first} and {one.second} {one.kappa.text()}" for one in panel.pairs
        )
        alpha = f"alpha of {len(panel.judges)} judges {panel.alpha.text()}"
        parts = [f"{panel.slice}: {alpha}; kappa of {kappas}"]
        if panel.split:
            more = len(panel.split) - _NAMED
            named = ", ".join(panel.split[:_NAMED]) + (f" and {more} more" if more > 0 else "")
            parts.append(
                f"they differ on {len(panel.split)} ({panel.undecided} without a verdict), "
                f"to be reviewed: {named}"
            )
        parts += [f"{name} gave no vote on {count}" for name, count in panel.silent.items()]
        notes.append("; ".join(parts))
    return notes
