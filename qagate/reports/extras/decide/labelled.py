"""What people say of a tool's answers (``--labels``): it measures the tool's scorer."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from qagate.cases.dataset import Dataset
from qagate.cases.labels import BITS, WORDS
from qagate.cases.tables import read_table
from qagate.evaluators.core import CORRECT, State, UsageError
from qagate.evaluators.kinds import JUDGED, NOT_CORRECT
from qagate.evaluators.text import first_of, hint, shown
from qagate.reports.extras.decide.scores import text_of
from qagate.reports.run.record import Record

LABELLED = "labels__"
"""Before a task: its answers that a person labelled. No task's own name begins so."""
FLOOR = 0.9
"""The lowest agreement with the labels of a scorer that may decide."""


def measuring_dataset(task: Dataset, labelled: Sequence[Record]) -> Dataset:
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


def labelled_records(path: Path, records: Sequence[Record]) -> Iterator[Record]:
    """Yield records that a person labelled, to measure the scorer. Raises UsageError."""
    table = read_table(path)
    column = next((name for name in ("verdict", "label") if name in table.names), "")
    if "id" not in table.names or not column:
        raise UsageError(f"{path}: columns 'id' and 'verdict' are needed; add them")
    by_name: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        for name in {record.id, record.key}:
            by_name[name].append(record)
    seen = set[str]()
    for row in table.records:
        name = text_of(row.values.get("id")).strip()
        verdict = text_of(row.values.get(column)).strip()
        label = WORDS.get(verdict.upper()) or BITS.get(verdict)
        if label is None:
            raise table.problem(
                row, column, f"{shown(verdict)}: say CORRECT or INCORRECT"
            )
        candidates = by_name.get(name, [])
        if not candidates:
            raise table.problem(
                row, "id", f"no sample {shown(name)} in this run; {hint(name, by_name)}"
            )
        if len(candidates) > 1:
            keys = first_of([record.key for record in candidates])
            raise table.problem(
                row,
                "id",
                f"{len(candidates)} answers have this id; give the key of one, of {keys}",
            )
        record = candidates[0]
        if record.key in seen:
            raise table.problem(
                row, "id", f"{shown(name)} stands twice; keep one verdict"
            )
        seen.add(record.key)
        yield _labelled(record, is_right=label == CORRECT)


def _labelled(record: Record, *, is_right: bool) -> Record:
    agrees: State = "failed"
    if is_right == (record.grade == CORRECT):
        agrees = "passed"
    return replace(
        record,
        key=LABELLED + record.key,
        id=f"{record.dataset}-{record.id}",
        dataset=LABELLED + record.dataset,
        question=record.question or record.id,  # one cluster for one question
        label=CORRECT if is_right else NOT_CORRECT,
        outcome=agrees if record.is_graded else record.outcome,
        measures={},
    )
