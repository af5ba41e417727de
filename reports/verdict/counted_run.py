"""A run's records counted slice by slice, and beside an earlier run: what its gates look at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from cases.dataset import Dataset, Sampling, Shards, Slice, SliceSample
from reports.compare.pairs import PairedSlice, pair_records
from reports.judge.judge_errors import measuring
from reports.judge.trust import distrust, measured_among
from reports.metrics.summary import summarise
from reports.run.baseline import Baseline, changed_judge
from reports.run.evidence import Calibration
from reports.run.record import Record, by_slice
from reports.run.report import Report, SliceSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportInputs:
    """What was declared and how its items ended, from this session or read back from files.

    ``whole`` counts, by the name of a slice, the items that it has when none is left out by hand;
    ``samples`` says of which slices ``--limit`` drew a part. ``outside`` is what labelled items
    that are not among the records say of the judge. ``shards`` are those that the records come
    from, None where none is missing.
    """

    datasets: tuple[Dataset, ...]
    records: tuple[Record, ...]
    whole: Mapping[str, int]
    samples: Mapping[str, SliceSample] = field(default_factory=dict)
    outside: tuple[Calibration, ...] = ()
    shards: Shards | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedRun:
    """The slices that were run, in the declared order; the mappings are by a slice's name.

    ``calibrations`` are all that measure the judge, in and outside of the records; ``distrusted``
    says why a slice's judge is not trusted, empty where it is. ``shards`` are the inputs's.
    """

    datasets: tuple[Dataset, ...]
    slices: Mapping[str, Slice]
    records: Mapping[str, tuple[Record, ...]]
    summaries: Mapping[str, SliceSummary]
    calibrations: tuple[Calibration, ...]
    distrusted: Mapping[str, str]
    shards: Shards | None = None

    def of(self, dataset: Dataset) -> list[Slice]:
        """Return the slices of a dataset that were run."""
        return [one for one in dataset.slices.values() if one.name in self.slices]


def count_run(
    inputs: ReportInputs,
    records: Sequence[Record],
    judge: str,
    *,
    for_gates: bool = False,
    known: Report | None = None,
) -> CountedRun:
    """Count the records, or only what gates need of them."""
    grouped = by_slice(records)
    every = (one for dataset in inputs.datasets for one in dataset.slices.values())
    slices = {one.name: one for one in every if one.name in grouped}
    judged = {one.name: one for one in known.slices if not one.kind.answered} if known else {}
    summaries = {}
    for name, slice_ in slices.items():
        whole = inputs.whole[name]
        note = "" if slice_.declared else "not declared: languages.default serves it"
        partial = len(grouped[name]) < whole or inputs.shards is not None
        summary = judged.get(name) or summarise(
            grouped[name], slice_, partial=partial, note=note, for_gates=for_gates
        )
        summaries[name] = replace(summary, whole=whole, sample=_sample(inputs, slice_))
    datasets, own = inputs.datasets, {name: grouped[name] for name in slices}
    inside = () if known else measured_among(datasets, own, summaries, judge, inputs.outside)
    calibrations = known.judging.calibrations if known else (*inside, *inputs.outside)
    return CountedRun(
        datasets=datasets,
        slices=slices,
        records=own,
        summaries=summaries,
        calibrations=calibrations,
        distrusted={
            name: distrust(datasets, slice_, calibrations, judge) for name, slice_ in slices.items()
        },
        shards=inputs.shards,
    )


def _sample(inputs: ReportInputs, slice_: Slice) -> SliceSample | None:
    """Return what ``--limit`` drew of a slice, and whether its data set pins just that."""
    drawn = inputs.samples.get(slice_.name)
    if drawn is None:
        return None
    pinned = next(one.sampling for one in inputs.datasets if one.name == slice_.dataset)
    return replace(drawn, pinned=pinned == Sampling(limit=drawn.items, seed=drawn.seed))


def paired_slices(run: CountedRun, judge: str, baseline: Baseline | None) -> dict[str, PairedSlice]:
    """Return every slice of the run beside the baseline's, by name, in the declared order."""
    if baseline is None:
        return {}
    before = by_slice(baseline.records)
    found = {}
    for name, slice_ in run.slices.items():
        new, old = run.records[name], before.get(name, ())
        changed = changed_judge(slice_, new, old, baseline, judge)
        summary = run.summaries[name]
        pairing = pair_records(new, old, sampled=summary.sample is not None)
        narrow = summary.obstacle or baseline.obstacle(summary) or pairing.obstacle(baseline.role)
        elsewhere = (one[0] for other, one in before.items() if other not in run.slices)
        found[name] = PairedSlice(
            slice_=slice_,
            pairing=pairing,
            role=baseline.role,
            blocked=summary.obstacle or run.distrusted[name] or changed or narrow,
            changed=changed,
            narrow=narrow,
            calibrations=measuring(slice_, run.calibrations),
            people=baseline.people,
            elsewhere=tuple(one.language for one in elsewhere if one.dataset == slice_.dataset),
        )
    return found
