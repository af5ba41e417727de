"""One verdict over many tasks (``--pool``): the tasks of a result become slices of one data set.

The harness's own groups are pools of their own; all other tasks are one pool together. A pool has
one gate. It fails as well if one of its tasks is shown to be beyond the margin, adjusted for
their number (Holm): many tasks that hold do not hide one that is lost.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from qagate.cases.dataset import Dataset, Slice, Threshold
from qagate.evaluators.core import UsageError
from qagate.evaluators.metric_specs import MetricSpec
from qagate.evaluators.statistics.metrics import DROP
from qagate.reports.run.measured import DOUBTS, MEASURED
from qagate.reports.run.record import Record
from qagate.reports.verdict.assemble import Facts, ReportInputs

TASKS = "tasks"
"""The pool of the tasks that are in no group."""
SCORE = "score"
"""The deciding score of each task of a pool, where these have names of their own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """Which data sets of a run are put together."""

    pool_of: Mapping[str, str]
    """The name of the pool, by the name of the data set of a task."""

    def inputs(self, inputs: ReportInputs) -> ReportInputs:
        """Return the inputs with a data set for each pool. Raises UsageError."""
        members: dict[str, list[Dataset]] = {}
        for dataset in inputs.datasets:
            members.setdefault(self.pool_of[dataset.name], []).append(dataset)
        gates = {name: _common_gate(datasets) for name, datasets in members.items()}
        records = [
            self._record(record, gates[self.pool_of[record.dataset]], inputs.datasets)
            for record in inputs.records
        ]
        whole = {self._renamed(name): count for name, count in inputs.whole.items()}
        datasets = [_pooled(name, gates[name], members[name]) for name in members]
        return replace(
            inputs, datasets=tuple(datasets), records=tuple(records), whole=whole
        )

    def facts(self, facts: Facts) -> Facts:
        """Return the facts with what they say of slices under the names in the pools."""
        provenance = dict(facts.provenance)
        for part in ("slices", MEASURED, DOUBTS):
            by_slice = provenance.get(part)
            if isinstance(by_slice, Mapping):
                provenance[part] = {
                    self._renamed(name): value for name, value in by_slice.items()
                }
        return replace(facts, provenance=provenance)

    def _renamed(self, slice_name: str) -> str:
        dataset, _, language = slice_name.partition(":")
        return f"{self.pool_of[dataset]}:{_language(dataset, language)}"

    def _record(
        self, record: Record, gate: Threshold, datasets: Sequence[Dataset]
    ) -> Record:
        measures = dict(record.measures)
        if gate.of:
            (own,) = (dataset for dataset in datasets if dataset.name == record.dataset)
            name = _gate_of(own).of
            correct = 1.0 if record.outcome == "passed" else 0.0
            own_score = measures.get(name) if name else correct
            measures[SCORE] = own_score if record.is_graded else None
        return replace(
            record,
            dataset=self.pool_of[record.dataset],
            language=_language(record.dataset, record.language),
            measures=measures,
        )


def _language(dataset: str, language: str) -> str:
    """Return what a slice of a task is called in its pool."""
    task = dataset.replace("_", "-")
    return task if language == "all" else f"{task}-{language}"


def _gate_of(dataset: Dataset) -> Threshold:
    """Return the gate that each slice of a task has."""
    return next(iter(dataset.slices.values())).thresholds[0]


def _common_gate(datasets: Sequence[Dataset]) -> Threshold:
    """Return the gate over all of these tasks."""
    gates = [_gate_of(dataset) for dataset in datasets]
    for dataset, gate in zip(datasets, gates, strict=True):
        if gate.measure != DROP:
            raise UsageError(
                f"--pool: less is better in {dataset.name}; say --scale, or decide it alone"
            )
    of = SCORE if any(gate.of for gate in gates) else ""
    return replace(gates[0], of=of, pool=True)


def _pooled(name: str, gate: Threshold, members: Sequence[Dataset]) -> Dataset:
    slices: dict[str, Slice] = {}
    for dataset in members:
        for part, slice_ in dataset.slices.items():
            metrics = slice_.metrics
            if gate.of:
                score = MetricSpec(name=SCORE, unmeasured=True, worst=0.0)
                others = [metric for metric in metrics if metric.name != SCORE]
                metrics = (*others, score)
            language = _language(dataset.name, part)
            slices[language] = replace(
                slice_, dataset=name, language=language, metrics=metrics, thresholds=()
            )
    return replace(
        members[0],
        name=name,
        slices=slices,
        pooled=(gate,),
        decided_together=True,
    )
