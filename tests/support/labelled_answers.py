"""Labelled answers as a judge graded them, made of counts by label and grade."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from qagate.cases.dataset import Dataset, Slice
from qagate.evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED
from qagate.evaluators.kinds import JUDGED
from qagate.evaluators.rubric import Rubric
from qagate.reports.judge.labels import LabelSet
from qagate.reports.run.record import Record
from tests.support.made_records import make_record
from tests.support.made_runs import RUBRIC

Cell = tuple[str, str]
"""A label, and the grade that the judge gave; no grade where it is empty."""

C, W, N = CORRECT, INCORRECT, NOT_ATTEMPTED


def right(correct: int, incorrect: int, not_attempted: int) -> dict[Cell, int]:
    """Return so many labels of each class, all of which the judge grades right."""
    return {(C, C): correct, (W, W): incorrect, (N, N): not_attempted}


def label_slice(
    name: str = "labels",
    language: str = "en",
    rubric: Rubric = RUBRIC,
    **fields: object,
) -> Slice:
    made = Slice(
        dataset=name,
        language=language,
        kind=JUDGED,
        path=Path(f"{language}.csv"),
        rubric=rubric,
        floor={"agreement": 0.9},
        floor_limit={"agreement": 0.85},
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def answers(slice_: Slice, counts: Mapping[Cell, int]) -> tuple[Record, ...]:
    """Return so many labelled answers of each cell, each to a question of its own."""
    records: list[Record] = []
    for (label, grade), count in counts.items():
        for _ in range(count):
            number = len(records)
            records.append(_answer(slice_, number, label, grade))
    return tuple(records)


def _answer(slice_: Slice, number: int, label: str, grade: str) -> Record:
    record = make_record(
        number,
        key=f"calibration:{slice_.dataset}-{slice_.language}-l{number}",
        id=f"l{number}",
        dataset=slice_.dataset,
        language=slice_.language,
        question=f"Label {number}?",
        label=label,
        judge="judge-2026",
        outcome="passed" if label == grade else "failed",
    )
    if not grade:
        return replace(record, outcome="error", error="judge: no reply", grade=None)
    if grade.isdigit():
        return replace(record, grade=None, rating=int(grade))
    return replace(record, grade=grade)


def label_set(counts: Mapping[Cell, int], **fields: object) -> LabelSet:
    slice_ = label_slice(**fields)  # type: ignore[arg-type]
    return LabelSet(slice_=slice_, records=answers(slice_, counts))


def label_dataset(*sets: LabelSet) -> Dataset:
    first = sets[0].slice_
    return Dataset(
        name=first.dataset,
        folder=Path(first.dataset),
        kind=JUDGED,
        slices={labels.slice_.language: labels.slice_ for labels in sets},
    )
