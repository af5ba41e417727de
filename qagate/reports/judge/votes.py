"""What several judges said of the same answers: a panel's votes, and checks of rules."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from qagate.cases.dataset import Slice
from qagate.evaluators.statistics.agreement import kappas, krippendorff_alpha
from qagate.evaluators.text import first_of
from qagate.reports.run.evidence import PanelAgreement, RulesCheck
from qagate.reports.run.record import Record


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
    judge: str, rules: RulesCheck | None, panels: Sequence[PanelAgreement]
) -> list[str]:
    """Return a line for the rules before a model, and one for each panel."""
    notes = []
    if rules is not None:
        notes.append(f"{judge}: {_rules_note(rules)}")
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


def _rules_note(rules: RulesCheck) -> str:
    share = rules.settled / rules.judged
    note = f"rules settled {rules.settled} of {rules.judged} verdicts ({share:.0%})"
    checked = rules.difference
    silent = f"; it gave no grade on {rules.silent}" if rules.silent else ""
    if not checked.n:
        return f"{note}, and the model checked none of them{silent}"
    differs = (
        f"the model checked {checked.n} of them and differs on {len(rules.differing)}"
    )
    return f"{note}; {differs}: {checked.text()}{silent}"


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
