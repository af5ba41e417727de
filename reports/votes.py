"""What the votes of several judges show: a cascade's audit, a panel's agreement."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from evaluators.judge_spec import PanelSpec
from evaluators.statistics.estimate import UNDEFINED, Estimate
from evaluators.statistics.intervals import clustered_rate, wilson
from evaluators.statistics.rater_agreement import alpha_of, kappas
from reports.evidence import Audit, PanelAgreement
from reports.record import Record

_NAMED = 10  # items named in a note; run.json has all


def audit(records: Sequence[Record], judge: str) -> Audit | None:
    """Return what the audit of a cascade showed; None for any other judge, or without verdicts.

    The interval is Wilson's, over items (an item asked again counts as one cluster).
    """
    judges = PanelSpec.parse(judge)
    judged = [one for one in records if one.is_graded and one.votes]
    if not judges.is_cascade or not judged:
        return None
    rules = judges.members[0].rules
    settled = [record for record in judged if record.votes[0].judge == rules]
    drawn = [record for record in settled if len(record.votes) > 1]
    audited = [record for record in drawn if record.votes[1].label]
    return Audit(
        judged=len(judged),
        settled=len(settled),
        disagreement=_disagreement(audited),
        silent=len(drawn) - len(audited),
    )


def _disagreement(records: Sequence[Record]) -> Estimate:
    import numpy as np

    if not records:
        return UNDEFINED
    groups: dict[tuple[str, str, str], list[bool]] = defaultdict(list)
    for record in records:
        first, second = record.votes
        groups[record.dataset, record.language, record.id].append(first.label != second.label)
    hits = np.array([sum(group) for group in groups.values()], dtype=np.float64)
    sizes = np.array([len(group) for group in groups.values()], dtype=np.float64)
    differing, n = float(hits.sum()), len(records)
    once = len(groups) == n
    interval = wilson(differing, n) if once else clustered_rate(hits, sizes, np.ones_like(hits))
    return Estimate.of(differing / n, interval, n)


def panels(records: Mapping[str, Sequence[Record]], judge: str) -> tuple[PanelAgreement, ...]:
    """Return a panel's agreement on each slice; ``records`` are by the slice's name."""
    members = PanelSpec.parse(judge).names
    if len(members) < 2:
        return ()
    voted = {name: [one for one in some if one.votes] for name, some in records.items()}
    return tuple(_panel(name, some, members) for name, some in voted.items() if some)


def _panel(name: str, records: Sequence[Record], members: tuple[str, ...]) -> PanelAgreement:
    rows = [record.votes[: len(members)] for record in records]  # a tie-breaker comes after
    labels = [[vote.label for vote in row] for row in rows]
    given = [[label for label in row if label] for row in labels]
    split = [one for one, row in zip(records, given, strict=True) if len(set(row)) > 1]
    silent = Counter(vote.judge for row in rows for vote in row if not vote.label)
    return PanelAgreement(
        slice=name,
        judges=members,
        alpha=alpha_of(given),
        pairs=kappas(members, labels),
        split=tuple(record.key for record in split),
        undecided=sum(not record.is_graded for record in split),
        silent=dict(silent),
    )


def vote_notes(judge: str, found: Audit | None, panels: Sequence[PanelAgreement]) -> list[str]:
    """Return in one line each what the audit and the panels showed."""
    notes = [] if found is None else [_audit_note(judge, found)]
    return [*notes, *(_panel_note(panel) for panel in panels)]


def _audit_note(judge: str, found: Audit) -> str:
    share = found.settled / found.judged
    said = f"{judge}: rules settled {found.settled} of {found.judged} verdicts ({share:.0%})"
    checked = found.disagreement
    if checked.value is None:
        return f"{said}; none of them was audited"
    differs = round(checked.value * checked.n)
    silent = f", {found.silent} without a verdict" if found.silent else ""
    return (
        f"{said}; of {checked.n} audited{silent} the model differs on {differs}: {checked.text()}"
    )


def _panel_note(panel: PanelAgreement) -> str:
    kappas = ", ".join(f"{one.first} and {one.second} {one.kappa.text()}" for one in panel.pairs)
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
    return "; ".join(parts)
