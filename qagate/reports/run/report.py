"""The whole of a run as one value: what every renderer is given.

``Report`` holds the records, what they come to for each slice (``SliceSummary``), the gates
(``GateResult``) and the ``Decision``. Nothing here is counted or decided: see ``metrics/``,
``gates/`` and ``verdict/assemble.py``. Its fields are the keys of ``run.json``.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Annotated, Literal

import msgspec

from qagate.cases.dataset import Dataset, Shards, SliceSample, Threshold
from qagate.evaluators.kinds import DatasetName, Kind, LanguageName, MetricName
from qagate.evaluators.statistics.intervals import Estimate, Interval
from qagate.evaluators.typed_data import Count
from qagate.reports.run.accepted import Accepted
from qagate.reports.run.candidates import ONE_CANDIDATE, Candidates
from qagate.reports.run.evidence import (
    AuditTrail,
    Comparison,
    ConfusionCell,
    Judging,
    LanguageGap,
    SliceHealth,
    TrendPoint,
)
from qagate.reports.run.readings import Reading
from qagate.reports.run.record import Record

GateState = Literal["PASS", "FAIL", "INCONCLUSIVE"]
Role = Literal["baseline", "anchor"]
"""What an earlier run is for: compared item by item, or a fixed mark against slow erosion."""

_VERDICTS = {0: "PASS", 1: "FAIL", 2: "INCOMPLETE", 6: "INCONCLUSIVE"}
WARNING = "WARNING: "
"""The beginning of a note that touches the verdict."""
ASK_ANEW = "--fresh NAME"
"""The option that a sentence names where earlier replies mislead."""
LABEL = "qagate label RUN"
REVIEW = "qagate review RUN"
"""How a sentence begins a command for people; RUN stands for the run's own folder."""


class Obstacle(StrEnum):
    """The words by which a sentence says what keeps a gate open; the remedy is found by them."""

    FEW_LABELS = "measured too little"
    UNMEASURED = "not measured"
    DISTRUSTED = "not trusted"
    PARTIAL = "run all"
    LACKING = "this run lacks"
    OTHER_ITEMS = "compare with"
    CHANGED = "changed"


class Cause(StrEnum):
    """What a verdict ended in: the rule of ``gates/decide.py`` that answered."""

    BROKEN_OFF = "broken off"
    """An internal error, or pytest was used in a wrong way."""
    INTERRUPTED = "interrupted"
    GATES_OFF = "gates off"
    NOTHING_SELECTED = "nothing selected"
    PLUGIN = "plugin"
    """Another plugin, or pytest itself, asked for an exit code of its own."""
    GATE_FAILED = "gate failed"
    OWN_TESTS = "own tests"
    """Failures that no item accounts for: the user's own tests and asserts."""
    NOTHING_GRADED = "nothing graded"
    SHARD = "shard"
    DOUBT = "doubt"
    """Something keeps the whole run from passing: slices that it lacks, two versions."""
    GATE_OPEN = "gate open"
    NO_GATES = "no gates"
    SLICE_WITHOUT_GATE = "slice without gate"
    NO_BASELINE = "no baseline"
    NO_CHANGE_GATE = "no change gate"
    BLIND = "blind"
    """The gates would pass although right answers were lost."""
    OUTVOTED = "outvoted"
    """A language lost more than its pool may, and the pool holds."""
    UNHEALTHY = "unhealthy"
    PASSED = "passed"
    READ_ANEW = "read anew"
    """``rejudge`` read a run by today's judge, and decided nothing."""


class Counts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Items by end state."""

    planned: Count = msgspec.field(name="plan")
    """The sum of the other five."""
    passed: Count
    failed: Count
    error: Count
    missing: Count
    stopped: Count = 0

    @property
    def ungraded(self) -> int:
        """How many items have no grade."""
        return self.error + self.missing + self.stopped


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceSummary:
    """The counts and metrics of one slice."""

    dataset: DatasetName
    language: LanguageName
    kind: Kind
    counts: Counts
    measures: Mapping[MetricName, Estimate]
    """Every metric of its kind over the graded items, in the order to show them."""
    labels: Mapping[str, int]
    """How often each grade or rating was given."""
    confusion: tuple[ConfusionCell, ...] = ()
    """Given labels and grades; only of yes/no and judged slices."""
    breakdowns: Mapping[str, Mapping[str, Mapping[str, Estimate]]] = field(
        default_factory=dict
    )
    """Metrics by metadata field and by its values."""
    partial: bool = False
    """Whether something was left out by hand."""
    note: str = ""
    """Shown with the slice."""
    whole: int = 0
    """Items of the slice when nothing is left out by hand."""
    sample: SliceSample | None = None
    """What ``--limit`` drew; None where all of the slice was asked."""

    @property
    def name(self) -> str:
        """Dataset and language, as reports show them."""
        return f"{self.dataset}:{self.language}"

    @property
    def obstacle(self) -> str:
        """Why nothing can be decided on this part of the slice; empty where it can."""
        if self.partial:
            return (
                "only a part of the slice was run, picked by hand or a shard; "
                f"{Obstacle.PARTIAL} of it, or merge all shards, to decide"
            )
        sample = self.sample
        if sample is None or sample.pinned:
            return ""
        pin = f"`sample: {{limit: {sample.items}, seed: {sample.seed}}}`"
        return (
            f"{sample.share} items, seed {sample.seed}; "
            f"pin {pin} in the data set or gates file to let them decide, "
            f"or {Obstacle.PARTIAL}"
        )

    @property
    def part(self) -> str:
        """Which part of the slice was run, for instance ``10 of 60, seed 363``; empty for all."""
        if self.partial:
            return "partial"
        parts = []
        if self.sample:
            parts.append(self.sample.text)
        if self.counts.stopped:
            asked = self.counts.planned - self.counts.stopped
            parts.append(f"settled after {asked:,} of {self.counts.planned:,}")
        return "; ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateResult:
    """One gate's verdict and why."""

    dataset: DatasetName
    language: LanguageName
    """Empty for a gate pooled over languages."""
    threshold: Threshold
    state: GateState
    estimate: Estimate
    worst: float | None = None
    """The metric with every ungraded item counted against it."""
    best: float | None = None
    """The metric with every ungraded item counted for it."""
    reason: str
    """One sentence; of an INCONCLUSIVE gate it says what would decide it."""
    anchored: bool = False
    """Whether a paired gate compares with the anchor, not with the baseline."""
    pairs: str = ""
    """How many pairs a paired gate has, where data that changed leave some out."""
    audit: AuditTrail | None = None
    """What people's verdicts showed, where they decide the gate."""
    needs: str = ""
    """The end that decides where a judge's errors shrink the margin, and their J."""
    remedy: str = ""
    """What would decide an INCONCLUSIVE gate, such as ``120 more pairs``; empty if not known."""
    band: Interval | None = None
    """What the verdict rests on, drawn: inside the bar where the gate passes, beyond it where it
    fails, else on both sides. None where nothing was measured."""
    bands: Mapping[LanguageName, Interval] = field(default_factory=dict)
    """Of a pool, the bands of the languages that fail by themselves."""
    old: float | None = None
    """The metric in the baseline, as today's judge reads it; None where that is not known."""
    new: float | None = None
    """The metric in this run, over the same items where the gate compares two runs."""

    @property
    def name(self) -> str:
        """What it is about, for instance ``correct`` or ``drop (anchor)``."""
        if self.anchored:
            return f"{self.threshold.name} (anchor)"
        return self.threshold.name

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
    cause: Cause
    line: str
    about: tuple[str, ...] = ()
    """The slices, or the reasons, that the cause names."""
    cautions: tuple[str, ...] = ()
    """What else a reader of the verdict has to know: what was waived, accepted or made laxer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceAnswers:
    """What names the answers of a slice: see ``decisions.py``."""

    prompt: str
    """The version of the answer prompt."""
    asked: Mapping[str, int] = field(default_factory=dict)
    """How many of those that can be compared each run asked, by its id."""
    recorded: tuple[str, ...] = ()
    """Hashes of recorded ones, each of item and text: the smallest, as many as are kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EarlierBaseline:
    """A baseline as later runs have to know it: see ``lineage.py``."""

    name: str
    """That of its folder."""
    sha256: str
    """The checksum of its records."""
    model: str
    """The SPEC of its model, as ``sent_spec`` gives it."""
    retired: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The ids of the items that it had retired, by the name of their slice."""
    anyway: str = ""
    """Why it was promoted although it may be no baseline by itself; empty where it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decided:
    """A decision as later runs have to know it."""

    run: str
    """The id of the run."""
    at: float
    """When the run began, in seconds since 1970."""
    code: Annotated[int, msgspec.Meta(ge=0, lt=256)]
    model: str
    """The SPEC of the model that answered, as ``sent_spec`` gives it."""
    baseline: str = ""
    """The checksum of the baseline's records; empty without one."""
    answers: Mapping[str, SliceAnswers] = field(default_factory=dict)
    """By the name of the slice."""
    monitor: bool = False
    """Whether it was a nightly run of the baseline's own model."""
    gates_off: bool = False
    chain: tuple[EarlierBaseline, ...] = ()
    """The baselines before it, the last one first."""
    named: str = ""
    """A hash of the name that the user or a CI system gave the run; empty where nobody did."""
    fresh: str = ""
    """The NAME of ``--fresh``, with which it asked everything anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionStatus:
    """How the session ended, apart from its items: what it takes to decide the gates again."""

    pytest_code: Annotated[int, msgspec.Meta(ge=0, lt=256)] = 0
    """The exit code that pytest would return."""
    failures: int = 0
    """Failures that are no item's outcome: ordinary tests, fixtures, test bodies, collection."""
    interrupted: bool = False
    """By a person or the system, not by ``-x``."""
    replies_kept: Count = 0
    """Replies that the session paid for, and that its ledger has."""
    cause: str = ""
    """Why no call could be made any more."""
    left: str = ""
    """How many calls providers still have in batches."""
    expected: tuple[str, ...] = ()
    """The slices that were to decide: those under the given paths, in the given languages."""
    notes: tuple[str, ...] = ()
    """What the session itself had to say."""
    superseded: str = ""
    """A command that came after the run and wrote no report over this one."""
    accepted: Accepted = field(default_factory=Accepted)
    """What the user accepted on the command line."""
    needs_baseline: str = ""
    """Why the run needs a baseline, and which; empty where it does not."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """Everything that the report files show."""

    model: str
    judge: str
    cost: float | None
    """In USD; None where a price is not known."""
    tokens: int
    baseline: str = ""
    """The path of the run to compare with, empty without one; so is ``anchor``."""
    anchor: str = ""
    complete: bool = True
    """False after an interrupt or on a full disk."""
    notes: tuple[str, ...] = ()
    """What is odd about the run; those that touch the verdict begin with ``WARNING``."""
    session: SessionStatus = field(default_factory=SessionStatus)
    comparison: Comparison | None = None
    """None without a baseline."""
    since_anchor: Comparison | None = None
    """None without an anchor; it lists no ``changes``."""
    health: tuple[SliceHealth, ...] = ()
    """One for each slice that a model answered."""
    parity: tuple[LanguageGap, ...] = ()
    """One for each language that shares facts with its dataset's first."""
    trend: tuple[TrendPoint, ...] = ()
    """Promoted runs, oldest first."""
    judging: Judging = field(default_factory=Judging)
    decided: Decided | None = None
    """The decision as later runs have to know it; None where none was made."""
    tries: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """How the earlier sets of answers of each slice ended that were held against its gates."""
    unsettled: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """The ids of the items that were retired after this model's first try, by their slice."""
    candidates: Candidates = ONE_CANDIDATE
    """The models that were decided together with this one, beside the same baseline."""
    shards: Shards | None = None
    """Those that the records come from; None where none is missing."""
    counts: Counts
    slices: tuple[SliceSummary, ...]
    decision: Decision
    datasets: tuple[Dataset, ...] = ()
    """As declared, so that gates can be decided again."""
    records: tuple[Record, ...]
    labels: tuple[Record, ...] = ()
    """The labelled answers that were judged beside the records, with label and grade."""
    label_datasets: tuple[Dataset, ...] = ()
    """The data sets of these labelled answers, as declared."""
    reading: Reading | None = None
    """How this run reads the baseline's answers; None without a baseline."""
    anchor_reading: Reading | None = None
    """How this run reads the anchor's answers; None without an anchor."""
    provenance: Mapping[str, object]
    """Every version, hash and parameter."""
    run: Mapping[str, object]
    """What may differ between two runs over the same replies."""

    @property
    def verdict(self) -> str:
        """Return PASS, FAIL, INCONCLUSIVE or INCOMPLETE (cut short); else NO GATES or ERROR."""
        if not self.complete:
            return "INCOMPLETE"
        if self.shards and self.decision.code == 0:
            return "INCONCLUSIVE"
        verdict = _VERDICTS.get(self.decision.code, "ERROR")
        if verdict == "PASS" and not self.decision.gates:
            return "NO GATES"
        return verdict
