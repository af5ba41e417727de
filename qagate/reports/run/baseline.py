"""The earlier run that a run is compared with: its baseline, or its anchor."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from qagate.evaluators.adjudications import Adjudications
from qagate.reports.run.baselines import read_promotion
from qagate.reports.run.evidence import AuditPlan
from qagate.reports.run.json_data import inner
from qagate.reports.run.readings import Reading
from qagate.reports.run.record import Record, by_slice
from qagate.reports.run.report import Obstacle, Report, Role, SliceSummary
from qagate.reports.run.run_json import checked_report, load_run


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """An earlier run to compare with."""

    path: str
    report: Report
    sha256: str
    """The checksum of its records."""
    role: Role = "baseline"
    anyway: str = ""
    """Why it is a baseline although it did not pass; empty for a run that passed."""
    people: Adjudications = field(default_factory=dict)
    """People's verdicts on answers of this run, or of the one that is compared with it."""
    plan: AuditPlan = field(default_factory=dict)
    """The pairs that people were to look at, as the first form had them."""
    reading: Reading | None = None
    """How the run that is compared with it reads its answers.

    None where nothing is decided: then its own grades are shown.
    """

    @property
    def records(self) -> tuple[Record, ...]:
        """The records of all its slices."""
        return self.report.records

    @cached_property
    def slices(self) -> Mapping[str, tuple[Record, ...]]:
        """The records of each slice by its name."""
        return by_slice(self.records)

    @property
    def answered(self) -> Sequence[str]:
        """The names of the slices that its model answered."""
        labelled: set[str] = set()
        for dataset in self.report.datasets:
            if not dataset.kind.answered:
                labelled.update(slice_.name for slice_ in dataset.slices.values())
        return [name for name in self.slices if name not in labelled]

    def obstacle(self, slice_name: str) -> str:
        """Return why its part of a slice may not stand for all of it, or nothing.

        A sample may: items that only one of the runs drew are absent, or added.
        """
        if not self.report.complete:
            return (
                f"the {self.role} was cut short; {Obstacle.OTHER_ITEMS} a complete run"
            )
        earlier = self._summary_of(slice_name)
        if earlier is None:
            return (
                f"the {self.role} knows no {slice_name}; "
                f"{Obstacle.OTHER_ITEMS} a run of the same slices"
            )
        if earlier.partial:
            return (
                f"only a part of the {self.role}'s slice was run, picked by hand; "
                f"{Obstacle.OTHER_ITEMS} a run of all of it"
            )
        return ""

    def _summary_of(self, slice_name: str) -> SliceSummary | None:
        for summary in self.report.slices:
            if summary.name == slice_name:
                return summary
        return None


def load_baseline(path: Path, role: Role = "baseline") -> Baseline:
    """Return the run of a report folder or its ``run.json``. Raises UsageError if altered."""
    run, items = load_run(path)
    promotion = read_promotion(path if path.is_dir() else path.parent)
    return Baseline(
        path=str(path),
        report=checked_report(path, run, items),
        sha256=inner(run, "records")["sha256"],
        role=role,
        anyway=promotion.anyway if promotion else "",
    )
