"""A result of another tool: what every form of it is read into, and that as a run of this one."""

import json
import math
import re
import zipfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from qagate.cases.config import GatesFile
from qagate.cases.dataset import Dataset, Slice, Threshold
from qagate.cases.labels import BITS, WORDS, Scale
from qagate.cases.tables import read_table
from qagate.evaluators.bounded_reading import (
    Archive,
    ReadingBudget,
    check_regular,
    read_json_file,
)
from qagate.evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED, State, UsageError
from qagate.evaluators.kinds import GRADED, JUDGED, NOT_CORRECT
from qagate.evaluators.metric_specs import MetricSpec
from qagate.evaluators.output import plural
from qagate.evaluators.rubric import Rubric
from qagate.evaluators.statistics.metrics import DROP, RISE
from qagate.evaluators.text import digest, first_of, hint, one_line, shown
from qagate.reports.gates.decide import SessionFacts
from qagate.reports.run.record import Record, safe
from qagate.reports.verdict.assemble import Facts, ReportInputs

Json = Mapping[str, Any]
DECLINED = frozenset({"n", "noanswer", "not_attempted"})
LABELS: Mapping[str, float] = {
    **dict.fromkeys(("c", "correct", "pass", "passed", "true", "yes"), 1.0),
    **dict.fromkeys(("i", "incorrect", "fail", "failed", "false", "no"), 0.0),
    **dict.fromkeys(DECLINED, 0.0),
    "p": 0.5,
}
"""The words that tools write in place of a score; of inspect_ai C, I, P (partial) and N."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """What the command line says about how to read a result."""

    metric: str = ""
    """The scorer that decides; empty for the tool's own first."""
    slice: str = ""
    """The metadata field whose values are slices."""
    cluster: str = ""
    """The metadata field that dependent samples share."""
    scale: Scale | None = None
    """The scale of a score outside 0 to 1."""
    provider: str = ""
    """The provider or model to read, where a file holds several."""
    columns: Mapping[str, str] = field(default_factory=dict)
    """The columns of a table, by what they hold."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """One way in which a tool scored a task."""

    name: str
    version: str = ""
    """Everything that may change its scores: options, threshold, the version of the task."""
    lower_is_better: bool | None = False
    """None where the result does not say."""
    unclear: str = ""
    """Why nobody may guess which, and what to do."""
    two_way: bool = False
    """Whether every score in both runs is 0 or 1: then gates are on the share of right answers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredSample:
    """One answer. Where ``error`` says why, it has no score."""

    task: str
    id: str
    scores: Mapping[str, float | None]
    """By the name of the scorer."""
    repeat: int = 1
    """Which time the item was asked, from 1."""
    question: str = ""
    expected: str = ""
    answer: str | None = None
    content: str = ""
    """A hash by the tool of what was asked and expected; empty where the texts themselves count."""
    declined: bool = False
    """Whether the tool says that it holds no answer: a score of 0 all the same."""
    error: str = ""
    reason: str = ""
    metadata: Mapping[str, object] = field(default_factory=dict)
    seconds: float = 0.0
    cost: float | None = None
    """In USD."""
    tokens: tuple[int, int] | None = None
    """Sent and received."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignRun:
    """A result of another tool."""

    tool: str
    model: str
    samples: Sequence[ScoredSample]
    scorers: Mapping[str, Sequence[Scorer]]
    """By task; the tool's main one first."""
    planned: Mapping[str, int] = field(default_factory=dict)
    """How many answers of a task were to be scored, where the tool says so."""
    notes: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    """What ``--column`` names and the table does not have."""

    def __post_init__(self) -> None:
        """Raise TypeError where a name is no text; a damaged result may hold anything."""
        self._check_text("model", [self.model])
        self._check_text("task", self.scorers)
        for task, scorers in self.scorers.items():
            self._check_text(f"scorer of {task}", [scorer.name for scorer in scorers])

    def _check_text(self, what: str, names: Iterable[object]) -> None:
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"the name of a {what} is no text: {name!r:.40}")


@dataclass(frozen=True, slots=True)
class ResultFile:
    """One file: a JSON value, a list of rows, or an open archive."""

    path: Path
    data: Any
    budget: ReadingBudget
    """What may still be read by this command."""

    @property
    def keys(self) -> frozenset[str]:
        """The top-level keys of a JSON object, or of the first row."""
        first = self.data[0] if isinstance(self.data, list) and self.data else self.data
        return frozenset(first) if isinstance(first, Mapping) else frozenset()


def problem(path: Path, what: str) -> UsageError:
    """Return the error about a file, to be raised."""
    return UsageError(f"{path}: {what}")


def document(path: Path, budget: ReadingBudget) -> ResultFile:
    """Return the content of a file by what it is. Raises UsageError."""
    check_regular(path)
    if zipfile.is_zipfile(path):
        return ResultFile(path, Archive(path, budget), budget)
    return ResultFile(path, read_json_file(path, budget), budget)


def number(value: object) -> float | None:
    """Return a score as a number; None for what is none."""
    word = str(value).strip().casefold()
    try:
        found = LABELS[word] if word in LABELS else float(word)
    except ValueError:
        return None
    return found if math.isfinite(found) else None


def text_of(value: object) -> str:
    """Return a question or answer as text: a text itself, the last message of a chat, or JSON."""
    if value is None or isinstance(value, str):
        return value or ""
    last = value[-1] if isinstance(value, list) and value else None
    if isinstance(last, Mapping) and isinstance(last.get("content"), str):
        return str(last["content"])
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def part(row: Json, key: str) -> Json:
    """Return the mapping under a key; an empty one where there is none."""
    found = row.get(key)
    return found if isinstance(found, Mapping) else {}


def only(path: Path, found: Iterable[str], what: str, choice: Choice) -> str:
    """Return the one value, or the chosen one. Raises UsageError where it must be said which."""
    known, given = sorted(set(found)), choice.provider
    if given and given not in known:
        raise problem(path, f"no {what} {given!r}; {hint(given, known)}")
    if not given and len(known) > 1:
        several = f"results of several {what}s, {', '.join(known)}"
        raise problem(path, f"{several}; say which with --new or --old {what.upper()}")
    return given or "".join(known)


LABELLED = (
    "labels__"  # before a task: its answers that a person labelled; no task's own name
)
MAX_DROP = 0.05  # of the main score, where no gates file says otherwise
FLOOR = 0.9  # the lowest agreement with the labels of a scorer that may decide
PASSES_AT = 0.5
"""The lowest score of a sample that counts as right, where scores are not all 0 or 1."""
_NAME = re.compile(r"[A-Za-z0-9._-]{1,60}", re.ASCII)


def slug(text: str, joint: str = "_") -> str:
    """Return a text as a name in reports: small letters and digits, a letter first."""
    name = joint.join(re.findall(r"[a-z0-9]+", text.casefold()))[:40].strip(joint)
    return name if name[:1].isalpha() else f"n{joint}{name or digest(text)[:6]}"


def _threshold(scorer: Scorer) -> Threshold:
    change = RISE if scorer.lower_is_better else DROP
    of = "" if scorer.two_way and change == DROP else slug(scorer.name)
    return Threshold(
        measure=change, of=of, max=MAX_DROP, evidence="confident", fail="margin"
    )


def tasks_of(runs: Sequence[ForeignRun], choice: Choice) -> dict[str, Scorer]:
    """Return the scorers that decide, by task of the first run, alike in all. Raises UsageError."""
    found = {}
    for task, scorers in runs[0].scorers.items():
        scorer = _scorer(task, scorers, choice.metric)
        former = (other.scorers.get(task, [scorer]) for other in runs[1:])
        others = [
            _scorer(f"{task} of the baseline", one, scorer.name) for one in former
        ]
        less = _is_less_better(task, [scorer, *others], choice.scale)
        samples = (one for run in runs for one in run.samples if one.task == task)
        values = {_placed(one, scorer, choice) for one in samples} - {None}
        if not values:
            raise UsageError(
                f"{task}: {scorer.name} is a number in no sample; say --metric NAME"
            )
        found[task] = replace(
            scorer, two_way=values <= {0.0, 1.0}, lower_is_better=less
        )
    return found


def _is_less_better(task: str, alike: Sequence[Scorer], scale: Scale | None) -> bool:
    """Return whether less is better; not on a scale, where the best is 1. Raises UsageError."""
    said, name = (
        {one.lower_is_better for one in alike} - {None},
        f"{alike[0].name} of {task}",
    )
    if len(said) > 1:
        raise UsageError(
            f"{name}: less is better in one result alone; give two of one metric"
        )
    unsaid = (
        "" if said else "no sample shows whether less is better; say --scale WORST:BEST"
    )
    if scale is None and (
        why := next((one.unclear for one in alike if one.unclear), unsaid)
    ):
        raise UsageError(f"{name}: {why}")
    if scale and True in said and scale.worst < scale.best:
        what = f"the tool says that less is better in {name}"
        advice = f"want WORST:BEST, {scale.best:g}:{scale.worst:g}"
        raise UsageError(f"--scale {scale.worst:g}:{scale.best:g}: {what}; {advice}")
    return True in said and not scale


def _scorer(task: str, known: Sequence[Scorer], name: str) -> Scorer:
    if not known:
        raise UsageError(f"{task}: no sample was scored; score the log first")
    names = [one.name for one in known]
    if name and name not in names:
        raise UsageError(
            f"{task}: its samples have no score {shown(name)}; {hint(name, names)}"
        )
    return known[names.index(name)] if name else known[0]


def _placed(sample: ScoredSample, scorer: Scorer, choice: Choice) -> float | None:
    """Return a sample's main score from 0 to 1. Raises UsageError for one that is not there."""
    value = given = sample.scores.get(scorer.name)
    if value is not None and choice.scale:
        value = (value - choice.scale.worst) / (choice.scale.best - choice.scale.worst)
    if value is not None and not 0 <= value <= 1:
        said = f"{sample.task} {sample.id}: {scorer.name} is {given:g}"
        raise UsageError(f"{said}; say the scale of this score: --scale WORST:BEST")
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedRun:
    """One of the two runs."""

    path: Path
    run: ForeignRun
    tasks: Mapping[str, Scorer]
    """The scorers that decide, by the tool's name of the task."""
    choice: Choice

    def short(self, task: str) -> int:
        """Return how many samples of a task the tool planned and did not score."""
        found = sum(one.task == task for one in self.run.samples)
        return max(0, self.run.planned.get(task, 0) - found)

    def metrics(self, name: str) -> list[str]:
        """Return a task's scores by their names in reports, without one that the grades say."""
        scorer = self.tasks[name]
        every = dict[str, str]()
        for own in (one.name for one in self.run.scorers[name]):
            _check_alone(every, slug(own), own)
        return [
            one for one in every if one != slug(scorer.name) or _threshold(scorer).of
        ]

    def inputs(
        self, gates: GatesFile | None, labels: Path | None = None
    ) -> ReportInputs:
        """Return data sets and records; ``gates`` replace the default ones. Raises UsageError."""
        records = list(self._records())
        fields = {name for one in records for name in one.metadata}
        if (cluster := self.choice.cluster) and cluster not in fields:
            what = f"no sample of {self.path} has such a field"
            raise UsageError(
                f"--cluster {cluster}: {what}; {hint(cluster, sorted(fields))}"
            )
        planned = Counter(f"{one.dataset}:{one.language}" for one in records)
        short = {slug(task): self.short(task) for task in self.tasks}
        whole = {name: n + short[name.partition(":")[0]] for name, n in planned.items()}
        datasets = [
            self._dataset(task, records, bare=gates is not None) for task in self.tasks
        ]
        if gates is not None:
            datasets = [*gates.put_into(datasets, "--gates")]
        if labels is not None:
            datasets = [replace(one, judge_unmeasured=False) for one in datasets]
            extra = list(_labelled(labels, records))
            records += extra
            whole |= Counter(f"{one.dataset}:{one.language}" for one in extra)
            datasets += [
                part for one in datasets if (part := _measuring(one, extra)).slices
            ]
        return ReportInputs(
            datasets=tuple(datasets), records=tuple(records), whole=whole
        )

    def _records(self) -> Iterator[Record]:
        seen, by = dict[object, int](), self.choice.slice
        spelled = defaultdict[str, dict[str, str]](dict)
        own = (one for one in self.run.samples if one.task in self.tasks)
        for row, sample in enumerate(own, 1):
            if by and by not in sample.metadata:
                what = f"{sample.task} {sample.id} has no such field"
                raise UsageError(
                    f"--slice {by}: {what}; {hint(by, sorted(sample.metadata))}"
                )
            spelling = text_of(sample.metadata[by]) if by else "all"
            part = slug(spelling, "-")
            for joint, text in (("_", sample.task), ("-", spelling)):
                _check_alone(spelled[joint], slug(text, joint), text)
            first = seen.setdefault((sample.task, part, sample.id, sample.repeat), row)
            if first != row:
                what = f"samples {first:,} and {row:,} of {sample.task} are both {shown(sample.id)}"
                raise UsageError(
                    f"{self.path}: {what}; give each item an id of its own"
                )
            yield safe(self._record(sample, part, row))

    def _record(self, sample: ScoredSample, part: str, row: int) -> Record:
        scorer = self.tasks[sample.task]
        score = _placed(sample, scorer, self.choice)
        error = sample.error
        if not error and score is None:
            error = f"no score by {scorer.name or 'NEW'}"
        state, grade = _state_and_grade(sample, scorer, score)
        tokens_sent, tokens_received = sample.tokens or (None, None)
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
            judge=slug(self.run.tool.partition(" ")[0]),
            tokens=sum(sample.tokens or ()),
            cost=sample.cost,
            seconds=round(sample.seconds, 3),
            digest=sample.content or digest([sample.question, sample.expected]),
            metadata=sample.metadata,
            measures=self._measures(sample, scorer, score),
            answer_seconds=sample.seconds or None,
            answer_tokens_in=tokens_sent,
            answer_tokens_out=tokens_received,
            answer_cost=sample.cost,
        )

    def _measures(
        self, sample: ScoredSample, scorer: Scorer, score: float | None
    ) -> dict[str, float | None]:
        """Return a sample's scores by metric, None for one that is not between 0 and 1."""
        scores = {slug(name): value for name, value in sample.scores.items()}
        scores[slug(scorer.name)] = score
        measures: dict[str, float | None] = {}
        for name in self.metrics(sample.task):
            value = scores.get(name)
            is_share = value is not None and 0 <= value <= 1
            measures[name] = value if is_share else None
        return measures

    def _dataset(self, name: str, records: Sequence[Record], *, bare: bool) -> Dataset:
        gate = _threshold(self.tasks[name])
        own = _scorer(name, self.run.scorers[name], self.tasks[name].name)
        rubric = partial(Rubric, name=own.name, protocol="letter", system="", user="")
        slices = {
            part: Slice(
                dataset=slug(name),
                language=part,
                kind=GRADED,
                path=self.path,
                rubric=rubric(
                    language=part, version=f"{own.name} {own.version}".strip()
                ),
                metrics=tuple(
                    _metric_spec(metric, self.tasks[name])
                    for metric in self.metrics(name)
                ),
                thresholds=() if bare else (gate,),
                cluster=self.choice.cluster,
            )
            for part in sorted(
                {one.language for one in records if one.dataset == slug(name)}
            )
        }
        pooled = () if bare or len(slices) < 2 else (replace(gate, pool=True),)
        whole = Dataset(
            name=slug(name), folder=self.path.parent, kind=GRADED, slices=slices
        )
        return replace(whole, pooled=pooled, judge_unmeasured=True)

    def facts(self, inputs: ReportInputs) -> Facts:
        """Return what the report says of where the run came from."""
        slices = (one for data in inputs.datasets for one in data.slices.values())
        versions = {
            one.name: {"rubric": one.rubric.version} for one in slices if one.rubric
        }
        source = {"tool": self.run.tool, "file": str(self.path), "slices": versions}
        model, judge = (
            self.run.model or self.path.stem,
            slug(self.run.tool.partition(" ")[0]),
        )
        notes, scale = list(self.run.notes), self.choice.scale
        how = f", {scale.worst:g} (worst) to {scale.best:g} (best)," if scale else ""
        for name, scorer in self.tasks.items():
            if not scorer.two_way:
                right = "below 0.5" if scorer.lower_is_better else "0.5"
                said = f"gates take the mean of {scorer.name}{how} as 0 to 1; {right} is right"
                notes.append(f"{name}: {said}")
            if short := self.short(name):
                said = f"{plural(short, 'sample')} that the tool planned have no result"
                notes.append(f"{name}: {said}")
        session = SessionFacts(notes=tuple(notes))
        return Facts(
            model=model, judge=judge, session=session, provenance=source, run={}
        )


def _metric_spec(metric: str, main: Scorer) -> MetricSpec:
    """Return an extra metric of a task; its main score says which answers are right."""
    worst = None
    if metric == slug(main.name):
        worst = 1.0 if main.lower_is_better else 0.0
    return MetricSpec(name=metric, unmeasured=True, worst=worst)


def _key(sample: ScoredSample, part: str) -> str:
    """Return the key of a sample's record; no two slices and ids make the same one."""
    place = part.replace("-", "_")
    item = sample.id if _NAME.fullmatch(sample.id) else digest(sample.id)[:16]
    key = f"{slug(sample.task)}-{place}-{item}"
    return f"{key}~r{sample.repeat}" if sample.repeat > 1 else key


def _state_and_grade(
    sample: ScoredSample, scorer: Scorer, score: float | None
) -> tuple[State, str]:
    """Return how a sample ended, and its grade, by its main score."""
    is_right = score is not None and (score >= PASSES_AT) != scorer.lower_is_better
    if is_right:
        return "passed", CORRECT
    return "failed", NOT_ATTEMPTED if sample.declined else INCORRECT


def _check_alone(spelled: dict[str, str], name: str, text: str) -> None:
    if (other := spelled.setdefault(name, text)) != text:
        what = f"{other!r} and {text!r} would both be {name!r} in the report"
        raise UsageError(f"{what}; rename one")


def _measuring(task: Dataset, labelled: Sequence[Record]) -> Dataset:
    """Return the data set of a task's labelled answers, which measure the scorer of it alone."""
    name = LABELLED + task.name
    languages = {record.language for record in labelled if record.dataset == name}
    slices = {}
    for language, slice_ in task.slices.items():
        if language not in languages:
            continue
        slices[language] = replace(
            slice_,
            dataset=name,
            kind=JUDGED,
            measures=task.name,
            metrics=(),
            thresholds=(),
            floor={"agreement": FLOOR},
        )
    return Dataset(name=name, folder=Path(), kind=JUDGED, slices=slices)


def _labelled(path: Path, records: Sequence[Record]) -> Iterator[Record]:
    """Yield records that a person labelled, to measure the scorer. Raises UsageError."""
    table = read_table(path)
    column = next((one for one in ("verdict", "label") if one in table.names), "")
    if "id" not in table.names or not column:
        raise UsageError(f"{path}: columns 'id' and 'verdict' are needed; add them")
    known: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        for name in {record.id, record.key}:
            known[name].append(record)
    seen = set[str]()
    for row in table.records:
        name, said = (text_of(row.values.get(key)).strip() for key in ("id", column))
        label = WORDS.get(said.upper()) or BITS.get(said)
        if label is None:
            raise table.problem(row, column, f"{shown(said)}: say CORRECT or INCORRECT")
        found = known.get(name, [])
        if len(found) != 1:
            keys = first_of([one.key for one in found])
            several = (
                f"{len(found)} answers have this id; give the key of one, of {keys}"
            )
            none = f"no sample {shown(name)} in this run; {hint(name, known)}"
            raise table.problem(row, "id", several if found else none)
        record, right = found[0], label == CORRECT
        if record.key in seen:
            raise table.problem(
                row, "id", f"{shown(name)} stands twice; keep one verdict"
            )
        seen.add(record.key)
        agrees: State = "passed" if right == (record.grade == CORRECT) else "failed"
        yield replace(
            record,
            key=LABELLED + record.key,
            id=f"{record.dataset}-{record.id}",
            dataset=LABELLED + record.dataset,
            question=record.question or record.id,  # one cluster for one question
            label=CORRECT if right else NOT_CORRECT,
            outcome=agrees if record.is_graded else record.outcome,
            measures={},
        )
