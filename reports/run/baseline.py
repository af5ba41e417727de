"""The run to compare with: what its ``run.json`` says, and why a difference to it may not count."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cases.dataset import Slice
from evaluators.judge_spec import known_names
from evaluators.judges.adjudicated import Adjudications
from reports.run.evidence import AuditPlan
from reports.run.record import Record
from reports.run.report import Role, SliceSummary
from reports.run.run_json import load_run, sample_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Baseline:
    """An earlier run to compare with."""

    path: str
    run: Mapping[str, object]
    """Its ``run.json``."""
    records: tuple[Record, ...]
    role: Role = "baseline"
    people: Adjudications = field(default_factory=dict)
    """People's verdicts on answers of this run, or of the one that is compared with it."""
    plan: AuditPlan = field(default_factory=dict)
    """The pairs that people were to look at, as the first form had them."""

    @property
    def sha256(self) -> str:
        """The checksum of its records, empty where ``run.json`` has none."""
        block = self.run.get("records")
        return str(block.get("sha256", "")) if isinstance(block, Mapping) else ""

    def obstacle(self, now: SliceSummary) -> str:
        """Return why its part of a slice cannot stand for all of it, or nothing.

        What ``run.json`` does not say counts against it.
        """
        if self.run.get("complete") is not True:
            return f"the {self.role} was cut short; compare with a complete run"
        part = self._slice(now.name)
        if part is None:
            return f"the {self.role} knows no {now.name}; compare with a run of the same slices"
        if part.get("partial") is not False:
            return (
                f"only a part of the {self.role}'s slice was run, picked by hand; compare with a "
                "run of all of it"
            )
        origin = self.run.get("provenance")
        try:
            then = sample_of(part, origin if isinstance(origin, Mapping) else {})
        except (KeyError, ValueError):
            return f"the {self.role} does not say whether it asked all items; run it again"
        drawn = now.sample
        same = then and drawn and (then.items, then.seed) == (drawn.items, drawn.seed)
        if then and not same:
            return f"the {self.role} asked {then.text}; compare with a run of all, or of the same"
        return ""

    def _slice(self, name: str) -> Mapping[str, object] | None:
        slices = self.run.get("slices")
        parts = slices if isinstance(slices, (list, tuple)) else ()
        known = (one for one in parts if isinstance(one, Mapping))
        return next((one for one in known if one.get("name") == name), None)


def load_baseline(path: Path, role: Role = "baseline") -> Baseline:
    """Return the run of a report folder or its ``run.json``. Raises UsageError as ``load_run``."""
    run, records = load_run(path)
    return Baseline(path=str(path), run=run, records=records, role=role)


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
        return f"the judge changed from {', '.join(sorted(was))} to {', '.join(sorted(is_))}"
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
