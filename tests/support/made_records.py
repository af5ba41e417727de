"""Slices and records for tests of the numbers: only the fields that matter need be named."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from qagate.cases.dataset import Dataset, Slice, Threshold
from qagate.evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED
from qagate.evaluators.kinds import kind_of
from qagate.evaluators.typed_data import decode
from qagate.reports.metrics.gate import GateInputs, gate_inputs
from qagate.reports.metrics.summary import summarise
from qagate.reports.run.record import Record
from tests.support.tables import kept

BLANK: Record = decode(Record, kept(__file__, "blank"))


def make_slice(kind: str = "graded", *rules: Threshold, **fields: object) -> Slice:
    blank = Slice(
        dataset="d",
        language="bg",
        kind=kind_of(kind),
        path=Path("bg.csv"),
        thresholds=rules,
    )
    return replace(blank, **fields)  # type: ignore[arg-type]


def make_dataset(
    *slices: Slice, pooled: Sequence[Threshold] = (), holm: bool = False
) -> Dataset:
    return Dataset(
        name="d",
        folder=Path(),
        kind=slices[0].kind,
        slices={one.language: one for one in slices},
        pooled=tuple(pooled),
        holm=holm,
    )


def make_record(number: int, **fields: object) -> Record:
    """Return item ``i<number>``, passed unless said otherwise."""
    named = replace(
        BLANK,
        id=f"i{number}",
        key=f"d-bg-i{number}",
        row=number + 1,
        question=f"{number}?",
    )
    return replace(named, **fields)  # type: ignore[arg-type]


def numbered(rows: Sequence[Mapping[str, object]]) -> list[Record]:
    return [make_record(number, **row) for number, row in enumerate(rows)]


def graded(
    correct: int = 0, incorrect: int = 0, not_attempted: int = 0, error: int = 0
) -> list[Record]:
    rows = [{"grade": CORRECT}] * correct
    rows += [{"grade": INCORRECT, "outcome": "failed"}] * incorrect
    rows += [{"grade": NOT_ATTEMPTED, "outcome": "failed"}] * not_attempted
    return numbered([*rows, *[{"outcome": "error", "answer": None}] * error])


def inputs_of(
    slice_: Slice, records: Sequence[Record], distrust: str = ""
) -> GateInputs:
    return gate_inputs(slice_, records, summarise(records, slice_), distrust)
