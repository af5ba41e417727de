"""Old and new beside each other, a row a language: the evidence for the sentence.

The rows are those of the gates that the sentence is about: the change of a share against its
margin, or, without a baseline, a share against its bar. The band of a row is that of its gate, so
that no picture can say another thing than the verdict (``gates/bands.py``).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from qagate.cases.dataset import Threshold
from qagate.evaluators.statistics.intervals import Interval
from qagate.reports.gates.bands import limit_of
from qagate.reports.render import measure_words, worst_first
from qagate.reports.render.names import Names
from qagate.reports.run.evidence import SliceComparison
from qagate.reports.run.report import GateResult, GateState, Report

VERDICTS = {"FAIL": "fails", "INCONCLUSIVE": "undecided", "PASS": "holds"}


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageRow:
    """A gate on one language, or on one language of a pool that fails by it."""

    gate: GateResult
    slice: str
    name: str
    """What people call it."""
    state: GateState
    old: float | None
    new: float | None
    value: float | None
    """What the band is around: the change, or without a margin the share itself."""
    band: Interval | None
    limit: Interval
    """What may be: one end, or both, is the bar."""

    @property
    def verdict(self) -> str:
        """The verdict in a word: fails, undecided, holds."""
        return VERDICTS[self.state]


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageRows:
    """The rows of gates on one thing."""

    title: str
    is_change: bool
    """Whether changes are drawn, around 0; else shares."""
    threshold: Threshold
    rows: Sequence[LanguageRow]


def row_of(gate: GateResult, names: Names) -> LanguageRow:
    """Return the row of a gate."""
    return LanguageRow(
        gate=gate,
        slice=gate.slice,
        name=names.of_gate(gate),
        state=gate.state,
        old=gate.old,
        new=gate.new,
        value=gate.estimate.value,
        band=gate.band,
        limit=limit_of(gate.threshold, gate.state),
    )


def rows_of(report: Report, gate: GateResult, names: Names) -> list[LanguageRow]:
    """Return the rows of a gate: of a pool that fails by languages of it, one for each of these."""
    if not gate.bands:
        return [row_of(gate, names)]
    rows = []
    for language, band in gate.bands.items():
        name = f"{gate.dataset}:{language}"
        part = _compared_slice(report, gate, name)
        old, new = _shares(gate, part)
        rows.append(
            LanguageRow(
                gate=gate,
                slice=name,
                name=names.of_slice(name),
                state="FAIL",
                old=old,
                new=new,
                value=_change(gate, part),
                band=band,
                limit=limit_of(gate.threshold, "FAIL"),
            )
        )
    return rows


def _compared_slice(
    report: Report, gate: GateResult, name: str
) -> SliceComparison | None:
    compared = report.since_anchor if gate.anchored else report.comparison
    for part in compared.slices if compared else ():
        if part.name == name:
            return part
    return None


def _shares(
    gate: GateResult, part: SliceComparison | None
) -> tuple[float | None, float | None]:
    """Return the share of right answers then and now; of other metrics neither is known."""
    if part is None or gate.threshold.of or not part.difference.n:
        return None, None
    pairs = part.difference.n
    return (
        (part.both_right + part.broke) / pairs,
        (part.both_right + part.fixed) / pairs,
    )


def _change(gate: GateResult, part: SliceComparison | None) -> float | None:
    """Return new - old of what the gate is about in one language."""
    if part is None:
        return None
    if not gate.threshold.of:
        return part.difference.value
    change = part.differences.get(gate.threshold.of)
    return change.value if change else None


def language_rows(report: Report) -> LanguageRows | None:
    """Return the rows that are the evidence for the sentence; None where no gate has figures."""
    gates = [gate for gate in worst_first.gates(report) if _is_drawn(gate)]
    paired = [gate for gate in gates if gate.threshold.paired]
    about = _first_telling(paired) or _first_telling(gates)
    if about is None:
        return None
    names = Names.of(report)
    threshold = about.threshold
    alike = [gate for gate in gates if _is_alike(gate.threshold, threshold)]
    own = [gate for gate in alike if gate.language]
    shown = [gate for gate in alike if gate.language or not own or _adds(gate, own)]
    rows = [row for gate in shown for row in rows_of(report, gate, names)]
    measure = threshold.of if threshold.paired else threshold.measure
    title = measure_words.noun(measure)
    return LanguageRows(
        title=title[:1].upper() + title[1:],
        is_change=threshold.paired,
        threshold=threshold,
        rows=rows,
    )


def _is_drawn(gate: GateResult) -> bool:
    return measure_words.is_share(gate.threshold) and gate.estimate.value is not None


def _first_telling(gates: Sequence[GateResult]) -> GateResult | None:
    """Return the gate that the rows are about: the worst, of equals one on right answers."""
    if not gates:
        return None
    worst = [gate for gate in gates if gate.state == gates[0].state]
    for gate in worst:
        measure = gate.threshold.of if gate.threshold.paired else gate.threshold.measure
        if measure in measure_words.RIGHT:
            return gate
    return worst[0]


def _is_alike(threshold: Threshold, other: Threshold) -> bool:
    return (threshold.measure, threshold.of) == (other.measure, other.of)


def _adds(pool: GateResult, own: Sequence[GateResult]) -> bool:
    """Whether a pool does not hold, and no row of a language says why."""
    shown = {gate.language for gate in own if gate.state == "FAIL"}
    return pool.state != "PASS" and not shown.issuperset(pool.bands or ["*"])
