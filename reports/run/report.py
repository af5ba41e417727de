"""The whole of a run as one value: what every renderer is given."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from cases.dataset import Dataset, Shards, SliceSample, Threshold
from evaluators.kinds import Kind
from evaluators.statistics.intervals import Estimate
from reports.run.clean import masked
from reports.run.evidence import AuditTrail, Comparison, ConfusionCell, Judging, LanguageGap
from reports.run.record import Record

GateState = Literal["PASS", "FAIL", "INCONCLUSIVE"]
Role = Literal["baseline", "anchor"]
"""What an earlier run is for: compared item by item, or a fixed mark against slow erosion."""


_VERDICTS = {0: "PASS", 1: "FAIL", 2: "INCOMPLETE", 6: "INCONCLUSIVE"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Counts:
    """Items by end state; ``planned`` is the sum of the other five."""

    planned: int
    passed: int
    failed: int
    error: int
    missing: int
    stopped: int = 0

    @property
    def ungraded(self) -> int:
        """How many items have no grade."""
        return self.error + self.missing + self.stopped


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceSummary:
    """The counts and metrics of one slice.

    ``measures`` holds every metric of its kind over the graded items, in the order to show them.
    ``labels`` counts grades or ratings; ``confusion`` counts (given label, grade) pairs for yes/no
    and judged slices. ``breakdowns`` maps a metadata field to its values to their metrics.
    ``whole`` counts the items that the slice has when nothing is left out by hand; ``partial`` says
    that something was. ``sample`` is what ``--limit`` drew, None where all of the slice was asked.
    ``note`` is shown beside it.
    """

    dataset: str
    language: str
    kind: Kind
    counts: Counts
    measures: Mapping[str, Estimate]
    labels: Mapping[str, int]
    confusion: tuple[ConfusionCell, ...] = ()
    breakdowns: Mapping[str, Mapping[str, Mapping[str, Estimate]]] = field(default_factory=dict)
    partial: bool = False
    note: str = ""
    whole: int = 0
    sample: SliceSample | None = None

    @property
    def name(self) -> str:
        """Dataset and language, as reports show them."""
        return f"{self.dataset}:{self.language}"

    @property
    def obstacle(self) -> str:
        """Why nothing can be decided on this part of the slice; empty where it can."""
        if self.partial:
            return (
                "only a part of the slice was run, picked by hand or a shard; run all of it, or "
                "merge all shards, to decide"
            )
        drawn = self.sample
        if drawn is None or drawn.pinned:
            return ""
        pin = f"`sample: {{limit: {drawn.items}, seed: {drawn.seed}}}`"
        return (
            f"{drawn.share} items, seed {drawn.seed}; pin {pin} in the data set or gates file to "
            "let them decide, or run all"
        )

    @property
    def part(self) -> str:
        """Which part of the slice was run, for instance ``10 of 60, seed 363``; empty for all."""
        if self.partial:
            return "partial"
        drawn = [self.sample.text] if self.sample else []
        asked = f"{self.counts.planned - self.counts.stopped:,} of {self.counts.planned:,}"
        settled = [f"settled after {asked}"] if self.counts.stopped else []
        return "; ".join(drawn + settled)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """One gate's verdict and why.

    ``worst`` and ``best`` are the metric with every ungraded item counted against and for it.
    ``reason`` is one sentence; it says what would decide an INCONCLUSIVE gate.
    ``language`` is empty for a gate pooled over languages; ``anchored`` says that a paired gate is
    decided beside the anchor, not beside the baseline; ``audit`` is what people's verdicts showed
    where they decide it.
    """

    dataset: str
    language: str
    threshold: Threshold
    state: GateState
    estimate: Estimate
    worst: float | None
    best: float | None
    reason: str
    anchored: bool = False
    audit: AuditTrail | None = None

    @property
    def name(self) -> str:
        """What it is about, for instance ``correct`` or ``drop (anchor)``."""
        return f"{self.threshold.name} (anchor)" if self.anchored else self.threshold.name

    @property
    def slice(self) -> str:
        """The slice or the pooled dataset, as reports show it."""
        return f"{self.dataset}:{self.language or '*'}"

    @property
    def bar(self) -> str:
        """The threshold in words, for instance ``>= 0.35``."""
        return self.threshold.bar


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The end of a run: the gates, the process's exit code and one line that says both."""

    gates: tuple[GateResult, ...]
    code: int
    line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """How the session ended besides its items: what it takes to decide on the gates again.

    ``failures`` are those that no item accounts for, ``pytest_code`` what pytest would return,
    ``cause`` why no call could be made any more, ``left`` how many calls providers still had in
    batches, and ``notes`` what the session itself had to say.
    """

    pytest_code: int = 0
    failures: int = 0
    interrupted: bool = False
    cause: str = ""
    left: str = ""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendFigure:
    """A slice's headline metric in an earlier run; ``changed`` names what else was not as now."""

    measure: str
    estimate: Estimate
    changed: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TrendPoint:
    """A promoted run: its name, when it began (ISO), its model, and the slices it shares."""

    name: str
    started: str
    model: str
    slices: Mapping[str, TrendFigure]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that the report files show.

    ``run`` holds what may differ between two runs over the same replies; ``provenance`` every
    version, hash and parameter. ``complete`` is False after an interrupt or a full disk.
    ``datasets`` are as declared, so that gates can be decided again. ``comparison`` is None without
    a baseline; ``since_anchor`` is None without an anchor, and lists no ``changes``. ``parity`` has
    a gap for each language that shares facts with its dataset's first. ``shards`` are those that
    the records come from, None where none is missing. ``trend`` holds promoted runs, oldest first.
    """

    model: str
    judge: str
    counts: Counts
    slices: tuple[SliceSummary, ...]
    decision: Decision
    records: tuple[Record, ...]
    provenance: Mapping[str, object]
    run: Mapping[str, object]
    cost: float | None
    tokens: int
    baseline: str = ""
    anchor: str = ""
    complete: bool = True
    notes: tuple[str, ...] = ()
    datasets: tuple[Dataset, ...] = ()
    session: SessionStatus = field(default_factory=SessionStatus)
    comparison: Comparison | None = None
    since_anchor: Comparison | None = None
    parity: tuple[LanguageGap, ...] = ()
    trend: tuple[TrendPoint, ...] = ()
    judging: Judging = field(default_factory=Judging)
    shards: Shards | None = None

    @property
    def verdict(self) -> str:
        """Return PASS, FAIL, INCONCLUSIVE or INCOMPLETE; NO GATES or ERROR where none of them fits.

        A run that was cut short is INCOMPLETE, regardless of its gates.
        """
        if not self.complete:
            return "INCOMPLETE"
        if self.shards and self.decision.code == 0:
            return "INCONCLUSIVE"
        word = _VERDICTS.get(self.decision.code, "ERROR")
        return "NO GATES" if word == "PASS" and not self.decision.gates else word


def safe_report(report: Report) -> Report:
    """Return the report with keys masked in all its texts; its records are safe already."""
    return replace(masked(replace(report, records=())), records=report.records)
