"""What a data set declares and what a run asks of it: slices, thresholds, items and the plan.

A worker of xdist gets the plan from the controller, so nothing that reads files is loaded here.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from cases.shards import Shards
from evaluators.core import CORRECT, GRADES, Case
from evaluators.extra_metrics import CheckSpec, MetricSpec
from evaluators.kinds import Cluster, ItemView, Kind
from evaluators.rubric import Prompt, Rubric
from evaluators.statistics.metrics import DROP, RISE, USAGE, counts_every_item

Evidence = Literal["estimate", "confident", "audited", "sequential"]
Fail = Literal["", "margin", "zero"]


AUDIT_SHARE = 0.25
"""The probability of being looked at by people, unless a gate says otherwise."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Threshold:
    """One threshold: a bar for a measure, or a margin for its change since the baseline.

    With a ``measure`` of ``drop`` or ``rise`` it has only ``max``, the margin: how far the measure
    ``of`` may fall or rise, which is a share of its old value where it is ``relative``; an empty
    ``of`` is the share of items that pass. ``fail`` says when
    that is a FAIL: with the whole interval beyond the ``margin``, or with all of it beyond
    ``zero``; it is empty for bars, and in old runs, which meant zero. ``evidence: confident`` asks
    that the 95 % interval clear the bar, ``audited`` that people's verdicts show it (only for a
    ``drop`` of the passing share), who look at a ``share`` of the pairs that nothing speaks for,
    ``sequential`` that verdicts in a fixed order show it, looked at after every item (for shares of
    all items); ``pool`` puts all languages of a data set together.
    """

    measure: str
    min: float | None = None
    max: float | None = None
    evidence: Evidence = "estimate"
    pool: bool = False
    of: str = ""
    fail: Fail = ""
    share: float = AUDIT_SHARE
    relative: bool = False

    @property
    def of_usage(self) -> bool:
        """Whether it is about what answers took, in which no judge has a part."""
        return (self.of if self.paired else self.measure) in USAGE

    @property
    def paired(self) -> bool:
        """Whether it is about the change since the baseline, item by item."""
        return self.measure in (DROP, RISE)

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
        parts = [("<=", self.max), (">=", self.min)]
        texts = ((sign, self.amount(value)) for sign, value in parts if value is not None)
        return " and ".join(f"{sign} {text}" for sign, text in texts)

    def amount(self, value: float) -> str:
        """Return a number of its unit in words, such as ``0.35`` or ``20%``."""
        return f"{100 * value:g}%" if self.relative else f"{value:g}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """A part of each slice: ``limit`` items, picked by a hash of item and ``seed``."""

    limit: int
    seed: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceSample:
    """What ``--limit`` drew: ``items`` of the ``of`` items that a slice's file has, by ``seed``.

    ``of`` is None in old runs, which did not note it. ``pinned`` says that the data set or the
    gates file names just this sample: only then may it decide.
    """

    items: int
    of: int | None
    seed: int
    pinned: bool = False

    @property
    def text(self) -> str:
        """The sample in words, for instance ``10 of 60, seed 363``."""
        return f"{self.share}, seed {self.seed}"

    @property
    def share(self) -> str:
        """How much it drew, for instance ``10 of 60``."""
        return f"{self.items:,} of {'?' if self.of is None else format(self.of, ',')}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One language of one dataset.

    ``pass_bar`` is the lowest rating that passes (1 to 10); ``penalty`` the p of ``penalised``;
    ``floor`` (kind ``judged`` only) the lowest trustworthy agreement or kappa of a judge, of a
    two-sided measure how far from 0 it may lie, ``floor_limit`` the same of the end of its 95 %
    interval, and ``offline_floor`` what is asked of an offline judge in place of both, where that
    is only to stand in for a model;
    ``cluster`` the metadata field that dependent items share, empty for ``Kind.cluster_of``'s own.
    ``metrics`` are extra measures that a judge's model takes, ``checks`` those that code takes.
    ``declared`` is False where ``languages.default`` stood in for a missing line.
    """

    dataset: str
    language: str
    kind: Kind
    path: Path
    prompt: Prompt | None = None
    rubric: Rubric | None = None
    thresholds: tuple[Threshold, ...] = ()
    pass_bar: int = 6
    penalty: float = 1.0
    by: tuple[str, ...] = ()
    yes: str = ""
    no: str = ""
    floor: Mapping[str, float] = field(default_factory=dict)
    floor_limit: Mapping[str, float] = field(default_factory=dict)
    offline_floor: Mapping[str, float] = field(default_factory=dict)
    metrics: tuple[MetricSpec, ...] = ()
    checks: tuple[CheckSpec, ...] = ()
    declared: bool = True
    cluster: str = ""

    @property
    def name(self) -> str:
        """Dataset and language, as reports show them."""
        return f"{self.dataset}:{self.language}"

    @property
    def labels(self) -> tuple[str, ...]:
        """The grades that a verdict may have here: the rubric's own, or the usual three."""
        return self.rubric.labels if self.rubric else GRADES

    @property
    def passing(self) -> tuple[str, ...]:
        """The grades of a right answer."""
        return self.rubric.passing if self.rubric else (CORRECT,)

    def cluster_of(self, item: ItemView) -> Cluster:
        """Return what is equal for this item and all those that it is not independent of.

        A record that leaves its texts on disk has noted it.
        """
        noted: Cluster | None = getattr(item, "cluster", None)
        return noted or self.kind.cluster_of(item, self.cluster)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """One ``dataset.yaml``: its slices by language, and the thresholds that pool them.

    ``sampling`` is the only ``--limit`` and ``--seed`` with which a part of a slice decides.
    ``judge_unmeasured`` lets its gates decide although no labels measure its judge. ``left_out``
    names the gates that a gates file took away.
    """

    name: str
    folder: Path
    kind: Kind
    slices: Mapping[str, Slice]
    pooled: tuple[Threshold, ...] = ()
    holm: bool = False
    require_calibration: bool = False
    sampling: Sampling | None = None
    judge_unmeasured: bool = False
    left_out: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceFile:
    """The parts of a ``DATASET:LANG=FILE`` option."""

    dataset: str
    language: str
    path: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which items the user wants to run; the defaults ask everything once.

    ``limit`` (at least 1) bounds the items of each slice, picked by a hash of id and ``seed``.
    ``first`` (at least 1) runs that many of them as they come, a part picked by hand; ``shard`` is
    the only part of all this that becomes tests.
    """

    items: tuple[SliceFile, ...] = ()
    prompts: tuple[SliceFile, ...] = ()
    languages: tuple[str, ...] = ()
    limit: int | None = None
    first: int | None = None
    shard: Shards | None = None
    seed: int = 0
    repeats: int = 1
    gates: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedItem:
    """One planned pytest case. ``key`` is its pytest id: ASCII, unique in the run."""

    key: str
    slice: Slice
    case: Case
    repeat: int


def clusters_in(items: Iterable[tuple[Slice, ItemView]]) -> dict[str, set[Cluster]]:
    """Return the different clusters of a dataset's items, by language."""
    found: dict[str, set[Cluster]] = defaultdict(set)
    for slice_, item in items:
        found[slice_.language].add(slice_.cluster_of(item))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Every item that the choice allows, by key, in the order of the files.

    ``hashes`` holds the SHA-256 of each slice's data file, by the slice's name, as it was read;
    ``samples`` the slices of which ``--limit`` leaves items out. ``first`` is how many cases of a
    slice become tests, ``shard`` the part of these that do; None for all.
    """

    datasets: tuple[Dataset, ...]
    items: Mapping[str, PlannedItem]
    hashes: Mapping[str, str] = field(default_factory=dict)
    samples: Mapping[str, SliceSample] = field(default_factory=dict)
    first: int | None = None
    shard: Shards | None = None

    def of(self, dataset: Dataset) -> list[PlannedItem]:
        """Return the items of one dataset."""
        slices = set(map(id, dataset.slices.values()))
        return [item for item in self.items.values() if id(item.slice) in slices]

    def tests(self, dataset: Dataset) -> Iterator[PlannedItem]:
        """Yield the items of a dataset that become tests, each with all its repeats."""
        seen: dict[str, set[str]] = defaultdict(set)
        for item in self.of(dataset):
            known = seen[item.slice.name]
            if self.first is None or len(known) < self.first or item.case.id in known:
                known.add(item.case.id)
                if self.shard is None or self.shard.holds(item.case):
                    yield item
