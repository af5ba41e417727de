"""The nouns of cases: what a data set declares, and what a run asks of it.

A ``Dataset`` is one ``dataset.yaml``. It has a ``Slice`` for each language, with the data file,
prompt, rubric and gates (``Threshold``) of that language. A ``Selection`` is what the user chose;
from both comes the ``Plan``, a ``PlannedItem`` for each pytest case. ``config.py`` reads data sets,
``plan.py`` makes the plan. Workers load this module too, so nothing here reads a file.
"""

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from qagate.cases.labels import LabelReading
from qagate.evaluators.core import CORRECT, GRADES, Case, ItemView, UsageError
from qagate.evaluators.kinds import Cluster, Kind, LanguageName, MetricName
from qagate.evaluators.metric_specs import CheckSpec, MetricSpec
from qagate.evaluators.rubric import Prompt, Rubric
from qagate.evaluators.statistics.metrics import DROP, RISE, USAGE, counts_every_item
from qagate.evaluators.text import digest, shown

DATASET_FILE = "dataset.yaml"

EvidenceRule = Literal["estimate", "confident", "corrected", "audited", "sequential"]
SEQUENTIAL: EvidenceRule = "sequential"
"""Gates that may be decided at any look: see ``extras/sequential``."""
Fail = Literal["", "margin", "zero"]

GUARANTEES: Mapping[EvidenceRule, int] = {
    "estimate": 0,
    "confident": 1,
    "sequential": 1,
    "audited": 2,
}
"""How much each evidence guarantees: 1 is a wrong PASS in at most 2.5 % of runs by a measured
judge, 2 the same by people. ``corrected`` has no place among them: it may pass where the estimate
does not, and the other way round."""
AUDIT_SHARE = 0.25
"""The probability that people look at a pair, unless a gate says otherwise."""
MAX_SHARDS = 100_000

MAX_AGE_SECONDS = 3 * 86_400.0
"""Kept answers are that old at most unless a data set says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """A bar for a metric, or a margin for its change since the baseline."""

    measure: MetricName
    """The metric; ``drop`` or ``rise`` for a margin, which has only ``max``."""
    min: float | None = None
    max: float | None = None
    evidence: EvidenceRule = "estimate"
    """What must show it: the estimate, its whole 95 % interval (``confident``), that interval freed
    of the judge's errors (``corrected``, for a bar on ``correct``), verdicts of people
    (``audited``, for a ``drop`` of the passing share), or verdicts one by one (``sequential``)."""
    pool: bool = False
    """Whether all languages of the data set are put together."""
    of: MetricName = ""
    """The metric whose change is meant; empty for the share of items that pass."""
    fail: Fail = ""
    """A change is a FAIL with its whole interval beyond the ``margin``, or beyond ``zero``. Empty
    for bars."""
    share: float = AUDIT_SHARE
    """The share of pairs without a sign of trouble that people look at (``audited``)."""
    relative: bool = False
    """Whether the margin is a share of the old value."""

    @property
    def of_usage(self) -> bool:
        """Whether it is about what answers took, in which no judge has a part."""
        metric = self.of if self.paired else self.measure
        return metric in USAGE

    @property
    def paired(self) -> bool:
        """Whether it is about the change since the baseline, item by item."""
        return self.measure in (DROP, RISE)

    def is_laxer(self, before: "Threshold") -> bool:
        """Return whether it guarantees less against a wrong PASS than the gate that it replaces."""
        if before.min is not None and (self.min is None or self.min < before.min):
            return True
        if before.max is not None and (self.max is None or self.max > before.max):
            return True
        if before.fail == "zero" and self.fail != "zero":
            return True
        if self.relative != before.relative:
            return True
        return self._has_weaker_evidence(before)

    def _has_weaker_evidence(self, before: "Threshold") -> bool:
        if self.evidence == before.evidence:
            return self.share < before.share
        guarantee = GUARANTEES.get(self.evidence)
        guarantee_before = GUARANTEES.get(before.evidence)
        if guarantee is None or guarantee_before is None:
            return True  # the two cannot be compared
        return guarantee < guarantee_before

    @property
    def text(self) -> str:
        """The gate in words, for instance ``correct >= 0.35, confident``."""
        words = [f"{self.name} {self.bar}"]
        usual_evidence = "confident" if self.paired else "estimate"
        if self.evidence != usual_evidence:
            words.append(self.evidence)
        if self.fail == "zero":
            words.append("fail: zero")
        return ", ".join(words)

    @property
    def of_share(self) -> bool:
        """Whether it is about the change of a share of all items: pair by pair by 1, 0 or -1."""
        return self.paired and (not self.of or counts_every_item(self.of))

    @property
    def name(self) -> str:
        """What it is about, for instance ``correct``, ``drop`` or ``rise of incorrect``."""
        return f"{self.measure} of {self.of}" if self.of else self.measure

    @property
    def bar(self) -> str:
        """The bar in words, for instance ``<= 0.35 and >= 0.1``."""
        bounds = []
        if self.max is not None:
            bounds.append(f"<= {self.amount(self.max)}")
        if self.min is not None:
            bounds.append(f">= {self.amount(self.min)}")
        return " and ".join(bounds)

    def amount(self, value: float) -> str:
        """Return a number of its unit in words, such as ``0.35`` or ``20%``."""
        if self.relative:
            return f"{100 * value:g}%"
        return f"{value:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """A part of each slice: ``limit`` items, picked by a hash of item and ``seed``."""

    limit: int
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceSample:
    """The items of a slice that ``--limit`` drew."""

    items: int
    of: int
    """How many the file has."""
    seed: int
    pinned: bool = False
    """Whether the data set or the gates file names just this sample: only then may it decide."""

    @property
    def text(self) -> str:
        """The sample in words, for instance ``10 of 60, seed 363``."""
        return f"{self.share}, seed {self.seed}"

    @property
    def share(self) -> str:
        """How much it drew, for instance ``10 of 60``."""
        return f"{self.items:,} of {self.of:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Retired:
    """Items that are to count no more, for instance because their question is wrong.

    Leave them in the file until a baseline has them retired too. Up to then they are asked, and
    every gate has to hold with them and without them.
    """

    ids: tuple[str, ...] = ()
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One language of one data set."""

    dataset: str
    language: LanguageName
    kind: Kind
    path: Path
    prompt: Prompt | None = None
    rubric: Rubric | None = None
    thresholds: tuple[Threshold, ...] = ()
    pass_bar: int = 6
    """The lowest rating that passes, 1 to 10."""
    penalty: float = 1.0
    """The p of the metric ``penalised``."""
    by: tuple[str, ...] = ()
    """Metadata fields whose values get metrics of their own."""
    yes: str = ""
    no: str = ""
    floor: Mapping[str, float] = field(default_factory=dict)
    """The lowest metrics of a judge that may decide (kind ``judged``): agreement, kappa, or the
    largest distance from 0 of a two-sided metric."""
    floor_limit: Mapping[str, float] = field(default_factory=dict)
    """The same for the end of the 95 % interval."""
    offline_floor: Mapping[str, float] = field(default_factory=dict)
    """What is asked of an offline judge in place of both, where it is only a placeholder."""
    recorded: Path | None = None
    """The file of recorded answers; None where they stand with the items."""
    shuffle: int = 1
    """The seed of the order in which options are shown; 0 keeps that of the file."""
    index_from: int | None = None
    """The number of the first option, where keys are numbers; None if they may not be."""
    metrics: tuple[MetricSpec, ...] = ()
    """Extra metrics, taken by the model of a judge."""
    checks: tuple[CheckSpec, ...] = ()
    """Extra metrics, taken by code."""
    declared: bool = True
    """False where the file does not list the language: ``languages.default`` serves it."""
    cluster: str = ""
    """The metadata field that dependent items share; empty for the one of the kind."""
    headings: Mapping[str, str] = field(default_factory=dict)
    """The headings of its file in place of our names of columns, by our name."""
    label_reading: LabelReading = field(default_factory=LabelReading)
    attacks: bool = False
    """Whether its answers try to fool the judge (kind ``judged`` only)."""
    measures: str = ""
    """The one data set whose judge its labels measure; empty for all that judge alike."""
    order: str = ""
    """What stands for another order of the items, where gates are decided one by one."""
    retired: Retired = field(default_factory=Retired)
    bundled: bool = False
    """Whether its labelled answers come with this package."""
    max_age_seconds: float = MAX_AGE_SECONDS
    """How old a kept answer of a model may be, before the run began, to stand for a new one."""

    @property
    def name(self) -> str:
        """Dataset and language, as reports show them."""
        return f"{self.dataset}:{self.language}"

    @property
    def labels(self) -> tuple[str, ...]:
        """The grades that a verdict may have here: the rubric's own, or the usual three."""
        if self.rubric is None:
            return GRADES
        return self.rubric.labels

    @property
    def rates(self) -> bool:
        """Whether its judge gives ratings."""
        if self.rubric is not None and self.rubric.protocol == "rate":
            return True
        return self.kind.rated

    @property
    def passing(self) -> tuple[str, ...]:
        """The grades of a right answer."""
        if self.rubric is None:
            return (CORRECT,)
        return self.rubric.passing

    def cluster_of(self, item: ItemView) -> Cluster:
        """Return what is equal for this item and all those that it is not independent of."""
        return self.kind.cluster_of(item, self.cluster)

    def place_of(self, item: ItemView) -> str:
        """Return its place in the order: a hash of its cluster, so that no other item moves it."""
        return digest([self.order, self.dataset, *self.cluster_of(item)])


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One ``dataset.yaml``: its slices by language, and the thresholds that pool them."""

    name: str
    folder: Path
    kind: Kind
    slices: Mapping[str, Slice]
    pooled: tuple[Threshold, ...] = ()
    holm: bool = False
    sampling: Sampling | None = None
    """The only ``--limit`` and ``--seed`` with which a part of a slice decides."""
    judge_unmeasured: bool = False
    """Whether its gates decide although no labels measure its judge."""
    health_off: bool = False
    """Whether its gates decide although its answers look ill: cut, echoed, declined …"""
    left_out: tuple[str, ...] = ()
    """The gates that a gates file took away, or has for a data set of a similar name."""
    laxer: tuple[str, ...] = ()
    """The gates that a gates file made easier to pass."""
    baseline_required: bool = False
    """Whether a run without a baseline decides nothing."""
    decided_together: bool = False
    """Whether its pooled gates decide for each slice: they are tasks of another tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shards:
    """Parts of a run, by a hash of data set, language and id: repeats of an item are in one part.

    Raises ValueError for parts that cannot be: a report folder may say anything.
    """

    of: int
    """How many parts there are, 1 to 100,000."""
    held: tuple[int, ...]
    """The numbers of these parts, from 1."""

    def __post_init__(self) -> None:
        is_possible = 1 <= self.of <= MAX_SHARDS
        if not is_possible or not all(1 <= part <= self.of for part in self.held):
            raise ValueError(f"shards {self.held[:3]} of {self.of} cannot be")

    def holds(self, case: Case) -> bool:
        """Return whether an item is in one of these parts."""
        name = f"{case.dataset}:{case.language}:{case.id}"
        hashed = hashlib.sha256(name.encode("utf-8", "surrogatepass")).digest()
        part = int.from_bytes(hashed[:8]) % self.of + 1
        return part in self.held

    def share(self, limit: int, at_once: int) -> int:
        """Return this part's share of a limit on calls, at least 1.

        All shares together are the limit. Where only some parts run ``at_once``, those of them
        have the limit that do, whichever they are.
        """
        if at_once < self.of:
            return max(1, limit // at_once)
        share, rest = divmod(limit, self.of)
        if self.held[0] <= rest:  # the first parts take what cannot be divided
            share += 1
        return max(1, share)

    @property
    def missing(self) -> tuple[int, ...]:
        """The parts that are not held."""
        parts = range(1, self.of + 1)
        return tuple(sorted(set(parts).difference(self.held)))


def parse_shard(text: str) -> Shards | None:
    """Return the part that ``--shard`` names, such as ``2/8``; None for ``1/1``, the whole run.

    Parts are counted from 1. Raises UsageError for anything else.
    """
    part, _, parts = text.partition("/")
    try:
        shards = Shards(of=int(parts), held=(int(part),))
    except ValueError:
        raise UsageError(
            f"--shard: K/N is needed, part K of N (such as 2/8), got {shown(text)}"
        ) from None
    is_whole_run = not shards.missing
    return None if is_whole_run else shards


SliceFiles = Mapping[tuple[str, str], Path]
"""What ``DATASET:LANG=FILE`` options say: files by data set and language."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which items the user wants to run; the defaults ask everything once."""

    items: SliceFiles = field(default_factory=dict)
    prompts: SliceFiles = field(default_factory=dict)
    recorded: SliceFiles = field(default_factory=dict)
    """Recorded answers in files of their own."""
    languages: tuple[str, ...] = ()
    limit: int | None = None
    """The most items of each slice, 1 or more, picked by a hash of id and ``seed``."""
    tests_per_slice: int | None = None
    """The most items of each slice that become tests, in the order of the file; None: all."""
    shard: Shards | None = None
    """The only part of all this that becomes tests."""
    seed: int = 0
    repeats: int = 1
    gates_file: Path | None = None
    """The user's file of gates (``--gates``), over those of the data sets."""
    baseline_required: bool = False
    """Whether no data set decides anything without a baseline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedItem:
    """One planned pytest case."""

    key: str
    """Its pytest id: ASCII, unique in the run."""
    slice: Slice
    case: Case
    repeat: int
    """Which time the item is asked, from 1."""


def clusters_in(items: Iterable[tuple[Slice, ItemView]]) -> dict[str, set[Cluster]]:
    """Return the different clusters of a data set's items, by language."""
    clusters: dict[str, set[Cluster]] = defaultdict(set)
    for slice_, item in items:
        clusters[slice_.language].add(slice_.cluster_of(item))
    return clusters


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """All items that are selected, by key, in the order of the files."""

    datasets: tuple[Dataset, ...]
    items: Mapping[str, PlannedItem]
    hashes: Mapping[str, str] = field(default_factory=dict)
    """SHA-256 of each slice's data file as it was read, by the name of the slice."""
    samples: Mapping[str, SliceSample] = field(default_factory=dict)
    """The slices of which ``--limit`` leaves items out."""
    tests_per_slice: int | None = None
    """As in ``Selection``."""
    shard: Shards | None = None

    def tests(self, dataset: Dataset) -> Iterator[PlannedItem]:
        """Yield the items of a data set that become tests, each with all its repeats.

        They are the first ones of each slice, and of these the ones of the shard.
        """
        first_ids: dict[str, set[str]] = defaultdict(set)
        for item in self.items.values():
            if item.slice.dataset != dataset.name:
                continue
            ids = first_ids[item.slice.name]
            is_repeat = item.case.id in ids
            if self.tests_per_slice is not None:
                is_full = len(ids) >= self.tests_per_slice
                if is_full and not is_repeat:
                    continue
            ids.add(item.case.id)
            if self.shard is None or self.shard.holds(item.case):
                yield item
