"""A result of another tool as a run of ours: data sets, slices and records."""

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from qagate.cases.config import GatesFile
from qagate.cases.dataset import Dataset, Slice, Threshold
from qagate.evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, State, UsageError
from qagate.evaluators.kinds import GRADED
from qagate.evaluators.metric_specs import MetricSpec
from qagate.evaluators.output import plural
from qagate.evaluators.rubric import Rubric
from qagate.evaluators.statistics.metrics import DROP, RISE
from qagate.evaluators.text import digest, hint, one_line
from qagate.reports.extras.decide.decisive import Decisive, placed
from qagate.reports.extras.decide.foreign_run import Choice, ForeignRun, ScoredSample
from qagate.reports.extras.decide.labelled import labelled_records, measuring_dataset
from qagate.reports.extras.decide.scores import text_of
from qagate.reports.gates.decide import SessionFacts
from qagate.reports.run.accepted import NOTHING_ACCEPTED, Accepted
from qagate.reports.run.measured import DOUBTS, MEASURED
from qagate.reports.run.record import Record, safe
from qagate.reports.verdict.assemble import Facts, ReportInputs

MAX_DROP = 0.05
"""Of the deciding score, where neither ``--margin`` nor a gates file says otherwise."""
PASSES_AT = 0.5
"""The lowest score of a sample that counts as right, where scores are not all 0 or 1."""
ITEM = "item"
"""The metadata field with an item's own id, where its question says nothing of which it is."""
_NAME = re.compile(r"[A-Za-z0-9._-]{1,60}", re.ASCII)


def slug(text: str, joint: str = "_") -> str:
    """Return a text as a name in reports: small letters and digits, a letter first."""
    name = joint.join(re.findall(r"[a-z0-9]+", text.casefold()))[:40].strip(joint)
    return name if name[:1].isalpha() else f"n{joint}{name or digest(text)[:6]}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRun:
    """One of the two runs."""

    run: ForeignRun
    tasks: Mapping[str, Decisive]
    """The scores that decide, by the tool's name of the task."""
    choice: Choice
    margin: float = MAX_DROP
    doubt: str = ""
    """Why nothing can be decided over it at all."""
    doubts: Mapping[str, str] = field(default_factory=dict)
    """Why nothing can be decided over a task, by its name."""
    accepted: Accepted = NOTHING_ACCEPTED

    @property
    def path(self) -> Path:
        """Where the result stands."""
        return self.run.path

    @property
    def judge(self) -> str:
        """What stands for the judge in reports: the tool."""
        return slug(self.run.tool)

    def missing_samples(self, task: str) -> int:
        """Return how many samples of a task the tool planned and did not write."""
        written = sum(sample.task == task for sample in self.run.samples)
        return max(0, self.run.tasks[task].planned - written)

    def metrics(self, task: str) -> list[str]:
        """Return a task's scores by their names in reports, without one that the grades say."""
        main = self.tasks[task]
        spelled: dict[str, str] = {}
        names = []
        for name, score in self.run.tasks[task].scores.items():
            if not score.has_numbers and name != main.name:
                continue
            _check_alone(spelled, slug(name), name)
            names.append(slug(name))
        if main.name and slug(main.name) not in names:
            names.append(
                slug(main.name)
            )  # the other result has it, so it is one of each row
        if not self.threshold(task).of:
            names = [name for name in names if name != slug(main.name)]
        return names

    def threshold(self, task: str) -> Threshold:
        """Return the gate of a task where no gates file gives one."""
        main = self.tasks[task]
        change = RISE if main.less_is_better else DROP
        of = "" if main.two_way and change == DROP else slug(main.name)
        return Threshold(
            measure=change, of=of, max=self.margin, evidence="confident", fail="margin"
        )

    # Inputs of a report

    def inputs(
        self, gates: GatesFile | None, labels: Path | None = None
    ) -> ReportInputs:
        """Return data sets and records; ``gates`` replace the default ones. Raises UsageError."""
        records = list(self._records())
        planned = Counter(f"{record.dataset}:{record.language}" for record in records)
        missing = {slug(task): self.missing_samples(task) for task in self.tasks}
        whole = {
            name: count + missing[name.partition(":")[0]]
            for name, count in planned.items()
        }
        datasets = [
            self._dataset(task, records, with_gate=gates is None) for task in self.tasks
        ]
        if gates is not None:
            datasets = list(gates.put_into(datasets, "--gates"))
        if labels is not None:
            datasets = [
                replace(dataset, judge_unmeasured=False) for dataset in datasets
            ]
            extra = list(labelled_records(labels, records))
            records += extra
            whole |= Counter(f"{record.dataset}:{record.language}" for record in extra)
            measuring = [measuring_dataset(dataset, extra) for dataset in datasets]
            datasets += [dataset for dataset in measuring if dataset.slices]
        return ReportInputs(
            datasets=tuple(datasets), records=tuple(records), whole=whole
        )

    def _records(self) -> Iterator[Record]:
        spelled: dict[str, dict[str, str]] = defaultdict(dict)
        of_tasks = [sample for sample in self.run.samples if sample.task in self.tasks]
        self._check_clusters(of_tasks)
        constant = _tasks_of_one_question(of_tasks)
        for row, sample in enumerate(of_tasks, 1):
            spelling = self._slice_of(sample)
            part = slug(spelling, "-")
            _check_alone(spelled["_"], slug(sample.task), sample.task)
            _check_alone(spelled["-"], part, spelling)
            record = self._record(sample, part, row)
            if sample.task in constant:
                record = replace(record, metadata={**record.metadata, ITEM: sample.id})
            yield safe(record)

    def _slice_of(self, sample: ScoredSample) -> str:
        if not self.choice.slice:
            return "all"
        if sample.slice is None:
            raise UsageError(
                f"--slice {self.choice.slice}: {sample.task} {sample.id} has no such field; "
                f"{hint(self.choice.slice, sorted(sample.metadata))}"
            )
        return text_of(sample.slice)

    def _check_clusters(self, samples: Sequence[ScoredSample]) -> None:
        cluster = self.choice.cluster
        if not cluster or any(sample.cluster is not None for sample in samples):
            return
        fields = {name for sample in samples for name in sample.metadata}
        raise UsageError(
            f"--cluster {cluster}: no sample of {self.path} has such a field; "
            f"{hint(cluster, sorted(fields))}"
        )

    def _record(self, sample: ScoredSample, part: str, row: int) -> Record:
        main = self.tasks[sample.task]
        score = placed(sample, main.name, self.choice)
        error = sample.error
        if not error and score is None:
            error = f"no score by {main.name or 'NEW'}"
            fault = sample.faults.get(main.name)
            if fault:
                error += f": {fault}"
        state, grade = _state_and_grade(sample, main, score)
        tokens_sent, tokens_received = sample.tokens or (None, None)
        metadata = dict(sample.metadata)
        if self.choice.cluster and sample.cluster is not None:
            metadata[self.choice.cluster] = text_of(sample.cluster)
        return Record(
            key=_key(sample, part),
            id=sample.id,
            repeat=sample.repeat,
            row=row,
            dataset=slug(sample.task),
            language=part,
            question=sample.question,
            context="",
            expected=sample.expected,
            answer=sample.answer,
            outcome="error" if error else state,
            grade=None if error else grade,
            rating=None,
            score=None,
            reason=sample.reason,
            error=one_line(f"tool: {error}") if error else "",
            label=None,
            model=self.run.model,
            judge=self.judge,
            tokens=sum(sample.tokens or ()),
            cost=sample.cost,
            seconds=round(sample.seconds, 3),
            digest=sample.content or digest([sample.question, sample.expected]),
            metadata=metadata,
            measures=self._measures(sample, main, score),
            answer_seconds=sample.seconds or None,
            answer_tokens_in=tokens_sent,
            answer_tokens_out=tokens_received,
            answer_cost=sample.cost,
        )

    def _measures(
        self, sample: ScoredSample, main: Decisive, score: float | None
    ) -> dict[str, float | None]:
        """Return a sample's scores by metric, None for one that is not between 0 and 1."""
        scores = {slug(name): value for name, value in sample.scores.items()}
        scores[slug(main.name)] = score
        measures: dict[str, float | None] = {}
        for name in self.metrics(sample.task):
            value = None if sample.error else scores.get(name)
            is_share = value is not None and 0 <= value <= 1
            measures[name] = value if is_share else None
        return measures

    def _dataset(
        self, task: str, records: Sequence[Record], *, with_gate: bool
    ) -> Dataset:
        name = slug(task)
        gate = self.threshold(task)
        of_task = [record for record in records if record.dataset == name]
        has_items = any(ITEM in record.metadata for record in of_task)
        cluster = self.choice.cluster or (ITEM if has_items else "")
        metrics = tuple(
            self._metric_spec(task, metric) for metric in self.metrics(task)
        )
        slices = {}
        for part in sorted({record.language for record in of_task}):
            slices[part] = Slice(
                dataset=name,
                language=part,
                kind=GRADED,
                path=self.path,
                rubric=self._rubric(task, part),
                metrics=metrics,
                thresholds=(gate,) if with_gate else (),
                cluster=cluster,
            )
        pooled: tuple[Threshold, ...] = ()
        if with_gate and len(slices) > 1:
            pooled = (replace(gate, pool=True),)
        return Dataset(
            name=name,
            folder=self.path.parent,
            kind=GRADED,
            slices=slices,
            pooled=pooled,
            judge_unmeasured=True,
        )

    def _rubric(self, task: str, part: str) -> Rubric:
        name = self.tasks[task].name
        return Rubric(
            name=name,
            language=part,
            version=name,
            protocol="letter",
            system="",
            user="",
        )

    def _metric_spec(self, task: str, metric: str) -> MetricSpec:
        """Return an extra metric of a task; its deciding score says which answers are right."""
        main = self.tasks[task]
        worst = None
        if metric == slug(main.name):
            worst = 1.0 if main.less_is_better else 0.0
        return MetricSpec(name=metric, unmeasured=True, worst=worst)

    # What else the report says

    def facts(self, inputs: ReportInputs) -> Facts:
        """Return what the report says of where the run came from."""
        versions = {}
        measured = {}
        doubts = {}
        tasks = {slug(name): of_run for name, of_run in self.run.tasks.items()}
        for dataset in inputs.datasets:
            for slice_ in dataset.slices.values():
                if slice_.rubric is not None:
                    versions[slice_.name] = {"rubric": slice_.rubric.version}
                if dataset.name in tasks:
                    task = tasks[dataset.name]
                    measured[slice_.name] = dict(task.measured)
                    doubts[slice_.name] = self.doubt or self.doubts.get(task.name, "")
        tool = f"{self.run.tool} {self.run.version}".strip()
        return Facts(
            model=self.run.model or self.path.stem,
            judge=self.judge,
            session=SessionFacts(notes=tuple(self._notes())),
            provenance={
                "tool": tool,
                "file": str(self.path),
                "slices": versions,
                MEASURED: measured,
                DOUBTS: doubts,
            },
            run={},
            accepted=replace(self.accepted, read_as=self.choice.said_of_scores),
        )

    def _notes(self) -> Iterator[str]:
        yield from self.run.notes
        scale = self.choice.scale
        ends = f", {scale.worst:g} (worst) to {scale.best:g} (best)," if scale else ""
        for task, main in self.tasks.items():
            if task not in self.run.tasks:
                continue
            if not main.two_way:
                right = "below 0.5" if main.less_is_better else "0.5"
                yield (
                    f"{task}: gates take the mean of {main.name}{ends} as 0 to 1; "
                    f"{right} is right"
                )
            missing = self.missing_samples(task)
            if missing:
                yield (
                    f"{task}: {plural(missing, 'sample')} that the tool planned have no result"
                )


def _tasks_of_one_question(samples: Sequence[ScoredSample]) -> set[str]:
    """Return the tasks that ask each item the same: there a question is no sign of a copy."""
    questions: dict[str, set[str]] = defaultdict(set)
    ids: dict[str, set[str]] = defaultdict(set)
    for sample in samples:
        questions[sample.task].add(sample.question.strip())
        ids[sample.task].add(sample.id)
    return {
        task
        for task, asked in questions.items()
        if len(asked) == 1 and asked != {""} and len(ids[task]) > 1
    }


def _key(sample: ScoredSample, part: str) -> str:
    """Return the key of a sample's record; no two slices and ids make the same one."""
    place = part.replace("-", "_")
    item = sample.id if _NAME.fullmatch(sample.id) else digest(sample.id)[:16]
    key = f"{slug(sample.task)}-{place}-{item}"
    return f"{key}~r{sample.repeat}" if sample.repeat > 1 else key


def _state_and_grade(
    sample: ScoredSample, main: Decisive, score: float | None
) -> tuple[State, str]:
    """Return how a sample ended, and its grade, by its deciding score."""
    is_right = score is not None and (score >= PASSES_AT) != main.less_is_better
    if is_right:
        return "passed", CORRECT
    return "failed", NOT_ATTEMPTED if sample.declined else INCORRECT


def _check_alone(spelled: dict[str, str], name: str, text: str) -> None:
    other = spelled.setdefault(name, text)
    if other != text:
        raise UsageError(
            f"{other!r} and {text!r} would both be {name!r} in the report; rename one"
        )
