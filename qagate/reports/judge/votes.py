"""What several judges said of the same answers: a panel's votes, and the audit of a cascade."""

from collections import Counter, defaultdict
from collections.abc import Collection, Sequence
from dataclasses import replace

from qagate.cases.dataset import Slice
from qagate.evaluators.core import parse_judges
from qagate.evaluators.kinds import Cluster
from qagate.evaluators.statistics import intervals
from qagate.evaluators.statistics.agreement import kappas, krippendorff_alpha
from qagate.evaluators.statistics.intervals import UNDEFINED, Estimate
from qagate.evaluators.text import first_of
from qagate.reports.run.evidence import PanelAgreement, RulesAudit
from qagate.reports.run.record import Record
from qagate.reports.run.report import Obstacle

MOST_DIFFERING = 0.1
"""The share of answers on which rules and a model may differ: what a judge's floor leaves."""


def audit(records: Sequence[tuple[Slice, Record]], judge: str) -> RulesAudit | None:
    """Return what a cascade's audit showed, with Wilson's interval over clusters; else None."""
    judges = parse_judges(judge.split(" "))
    judged = [
        (slice_, record)
        for slice_, record in records
        if record.is_graded and record.votes
    ]
    if not judges.is_cascade or not judged:
        return None
    rules = judges.members[0].rules
    settled_count = 0
    silent_count = 0
    disagreements: dict[tuple[str, Cluster], list[bool]] = defaultdict(list)
    for slice_, record in judged:
        if record.votes[0].judge != rules:
            continue
        settled_count += 1
        if len(record.votes) == 1:
            continue
        of_rules, of_model = record.votes
        if not of_model.label:
            silent_count += 1
            continue
        cluster = slice_.dataset, slice_.cluster_of(record)
        disagreements[cluster].append(of_rules.label != of_model.label)
    return RulesAudit(
        judged=len(judged),
        settled=settled_count,
        disagreement=_disagreement(list(disagreements.values())),
        silent=silent_count,
    )


def rules_obstacle(slice_: Slice, records: Sequence[Record], judge: str) -> str:
    """Return why the rules before a model are not believed in a slice; empty where they are.

    Labels may all be of the kind that the rules leave to the model. So the rules are held to the
    model on answers of the slice itself: the share on which both differ may be shown to be above
    ``MOST_DIFFERING`` in none.
    """
    found = audit([(slice_, record) for record in records], judge)
    if found is None or (found.disagreement.low or 0.0) <= MOST_DIFFERING:
        return ""
    share = found.disagreement.text("{value}, 95 % interval {low} to {high}")
    return (
        f"judge {Obstacle.DISTRUSTED} in {slice_.language}: of {found.disagreement.n} answers that "
        f"rules settled and the model checked, both differ on a share of {share}; name the model "
        "alone (--judge)"
    )


def _disagreement(clusters: Sequence[Sequence[bool]]) -> Estimate:
    """Return the share of disagreements over items, given by cluster."""
    if not clusters:
        return UNDEFINED
    import numpy as np

    rows = [(sum(cluster), len(cluster), 1) for cluster in clusters]
    table = np.array(rows, dtype=np.float64).T
    n = sum(len(cluster) for cluster in clusters)
    differing = float(table[0].sum())
    if len(clusters) == n:
        span = intervals.wilson(differing, n)
    else:
        span = intervals.clustered_rate(*table)
    return Estimate.of(differing / n, span, n)


def panels(
    records: Sequence[tuple[Slice, Sequence[Record]]], judge: str
) -> tuple[PanelAgreement, ...]:
    """Return a panel's agreement on each slice, of which ``records`` has the records."""
    members = tuple(judge.split(" "))
    if len(members) < 2:
        return ()
    found = []
    for slice_, some in records:
        voted = [(one, one.votes[: len(members)]) for one in some if one.votes]
        if voted:
            rows = [(one, [vote.label for vote in votes]) for one, votes in voted]
            ungraded = {one.key for one, _ in voted if not one.is_graded}
            silent = Counter(
                v.judge for _, votes in voted for v in votes if not v.label
            )
            agreed = agreement_of(slice_, members, rows, ungraded)
            found.append(replace(agreed, silent=dict(silent)))
    return tuple(found)


def vote_notes(
    judge: str, found: RulesAudit | None, panels: Sequence[PanelAgreement]
) -> list[str]:
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
        kappas = [
            f"{one.first} and {one.second} {one.kappa.text()}" for one in panel.pairs
        ]
        alpha = f"alpha of {len(panel.judges)} judges {panel.alpha.text()}"
        parts = [f"{panel.slice}: {alpha}; kappa of {', '.join(kappas)}"]
        if panel.split:
            named = first_of(panel.split, 10)  # run.json has all
            parts.append(
                f"they differ on {len(panel.split)} ({panel.undecided} without a verdict), "
                f"to be reviewed: {named}"
            )
        parts += [
            f"{name} gave no vote on {count}" for name, count in panel.silent.items()
        ]
        notes.append("; ".join(parts))
    return notes


def agreement_of(
    slice_: Slice,
    names: tuple[str, ...],
    rows: Sequence[tuple[Record, Sequence[str]]],
    undecided: Collection[str],
) -> PanelAgreement:
    """Return how far those called ``names`` agree; ``rows`` have what each said of a record."""
    given = [[label for label in said if label] for _, said in rows]
    clusters = [slice_.cluster_of(record) for record, _ in rows]
    differ = [len(set(said)) > 1 for said in given]
    split = tuple(
        one.key for (one, _), apart in zip(rows, differ, strict=True) if apart
    )
    return PanelAgreement(
        slice=slice_.name,
        judges=names,
        alpha=krippendorff_alpha(given, clusters),
        pairs=kappas(names, [said for _, said in rows], clusters),
        split=split,
        undecided=sum(key in undecided for key in split),
    )
