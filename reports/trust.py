"""Whether a judge can be believed: against given labels, and beside the baseline's judge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cases.slices import Dataset, Slice
from evaluators.judges.naming import known_names
from reports.gates.gate import distrust_in
from reports.record import Record
from reports.report import SliceSummary


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """An earlier run: where it is, its ``run.json`` and its records."""

    path: str
    run: Mapping[str, object]
    records: tuple[Record, ...]

    @property
    def sha256(self) -> str:
        """The checksum of its records, empty where ``run.json`` has none."""
        block = self.run.get("records")
        return str(block.get("sha256", "")) if isinstance(block, Mapping) else ""


def calibrator(datasets: Sequence[Dataset], slice_: Slice) -> Dataset | None:
    """Return the labelled dataset that measures this slice's judge, None where there is none.

    Rules need no trust, and labelled slices are the test itself.
    """
    if slice_.kind not in ("graded", "rated"):
        return None
    judged = (dataset for dataset in datasets if dataset.kind == "judged")
    return next((dataset for dataset in judged if _calibrates(dataset, slice_)), None)


def _calibrates(dataset: Dataset, slice_: Slice) -> bool:
    """Say whether a judged dataset's labels are of the kind that judges this slice."""
    protocols = {one.rubric.protocol == "rate" for one in dataset.slices.values() if one.rubric}
    return protocols in (set(), {slice_.kind == "rated"})


def measured(
    dataset: Dataset, language: str, summaries: Mapping[str, SliceSummary]
) -> SliceSummary | None:
    """Return the summary that measures the judge in a language, None where it was not run whole."""
    judged = summaries.get(f"{dataset.name}:{language}")
    return judged if judged and is_whole(judged) else None


def is_whole(judged: SliceSummary) -> bool:
    """Say whether every labelled item came to a grade."""
    return not judged.partial and not judged.counts.error + judged.counts.missing


def distrust(
    datasets: Sequence[Dataset], slice_: Slice, summaries: Mapping[str, SliceSummary]
) -> str:
    """Return why the judge of a slice is not trusted, empty where it is."""
    dataset = calibrator(datasets, slice_)
    if dataset is None:
        return ""
    language = slice_.language
    floor = dataset.slices[language].floor if language in dataset.slices else {}
    judged = measured(dataset, language, summaries)
    return distrust_in(language, judged, floor, required=dataset.require_calibration)


def changed_judge(
    slice_: Slice, new: Sequence[Record], old: Sequence[Record], baseline: Baseline, judge: str
) -> str:
    """Return why a difference to the baseline may be the judge's own, or nothing."""
    former = str(baseline.run.get("judge", ""))
    before, now = _judges(old, former), _judges(new, judge)
    # Where a side was spared every call its SPEC is all that is known of its judge.
    was, is_ = before or {former}, now or {judge}
    differs = was != is_ and (bool(before and now) or former != judge)
    graded = any(map(_is_judged, old)) and any(map(_is_judged, new))
    if graded and differs:
        return f"the judge changed from {_list(was)} to {_list(is_)}"
    rubric = _known_rubric(baseline.run, slice_.name)
    version = slice_.rubric.version if slice_.rubric else ""
    if graded and rubric is not None and rubric != version:
        return f"the rubric changed from {rubric} to {version}"
    return ""


def _judges(records: Sequence[Record], spec: str) -> set[str]:
    """Return who graded, as providers name them; nobody where no model was asked."""
    names = {record.judge for record in records if _is_judged(record)}
    return {one for name in names for one in known_names(name, spec)}


def _is_judged(record: Record) -> bool:
    return bool(record.grade or record.rating)


def _known_rubric(run: Mapping[str, object], name: str) -> str | None:
    provenance = run.get("provenance")
    slices = provenance.get("slices") if isinstance(provenance, Mapping) else None
    known = slices.get(name) if isinstance(slices, Mapping) else None
    return str(known.get("rubric", "")) if isinstance(known, Mapping) else None


def _list(names: set[str]) -> str:
    return ", ".join(sorted(names))
