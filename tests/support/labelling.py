"""A run over a data set on disk, and people who label its answers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from qagate.cases.config import load_dataset
from qagate.cases.extras.review.sheet import Sheet
from qagate.command import main
from qagate.evaluators.core import CORRECT, INCORRECT, NOT_ATTEMPTED
from qagate.evaluators.kinds import kind_of
from qagate.reports.extras.label.command import Labelling
from qagate.reports.extras.label.drawing import answers_of
from qagate.reports.run.record import Record
from qagate.reports.run.report import Report
from tests.support.made_runs import (
    RUBRIC,
    answered,
    facts_dataset,
    graded_slice,
    run_of,
    written,
)
from tests.support.reviewing import saved

DECLARATIONS: Mapping[str, str] = {
    "graded": "kind: graded\nrubric: simpleqa\nlanguages:\n  en: {file: en.csv}\n",
    "rated": "kind: rated\nrubric: eba\nlanguages:\n  en: {file: en.yaml, pass_bar: 7}\n",
}
MEANT = {"c": CORRECT, "i": INCORRECT, "n": NOT_ATTEMPTED}
"""What an answer of ``answered`` is, by its first letter, whatever the judge said."""
Person = Callable[[Record], str]
"""Says what an answer is."""


def by_its_letter(record: Record) -> str:
    """Label an answer as it begins."""
    return MEANT[(record.answer or "")[0]]


class LabelProject:
    """The folder ``facts`` with a data set, and a run over it in ``run``."""

    def __init__(self, root: Path, kind: str = "graded") -> None:
        self.root = root
        self.kind = kind
        self.rubric = RUBRIC
        self.declare(DECLARATIONS[kind])

    def declare(self, text: str) -> None:
        folder = self.root / "facts"
        folder.mkdir(exist_ok=True)
        (folder / "dataset.yaml").write_text(text, encoding="utf-8")

    def report(self, records: Sequence[Record], run: str = "r1") -> Report:
        part = graded_slice(kind=kind_of(self.kind), pass_bar=7, rubric=self.rubric)
        dataset = facts_dataset(part, kind=kind_of(self.kind))
        return run_of(
            records, dataset, run={"id": run, "command": "qagate run facts --judge j"}
        )

    def write(self, records: Sequence[Record], run: str = "r1") -> Path:
        return written(self.report(records, run), self.root / run)

    def graded(self, letters: str, run: str = "r1") -> Path:
        """Write a run with these grades."""
        return self.write(answered(letters), run)

    def rated(self, ratings: Sequence[int]) -> Path:
        """Write a run with these ratings."""
        return self.write(rated_records(ratings))

    def labelling(self, records: Sequence[Record]) -> Labelling:
        """Return the answers of a run as the command opens them, without a file."""
        dataset = load_dataset(self.root / "facts" / "dataset.yaml")
        slices = {slice_.name: slice_ for slice_ in dataset.slices.values()}
        return Labelling(
            report=self.report(records),
            run=self.root / "r1",
            answers=answers_of(records, slices, "r1"),
            datasets={"facts": dataset},
            slices=slices,
            to=None,
            seed=0,
            command="qagate label r1",
        )

    def sheet(self, records: Sequence[Record]) -> Sheet:
        return self.labelling(records).sheet()

    def back(
        self,
        records: Sequence[Record],
        name: str = "Anna",
        says: Person = by_its_letter,
    ) -> Path:
        """Write what a person's page saves who labels all first answers of a sheet."""
        labelling = self.labelling(records)
        sheet = labelling.sheet()
        verdicts = {
            item.id: says(labelling.by_id[item.id].record)
            for item in sheet.items
            if item.drawn and not item.drawn.is_spare
        }
        return saved(self.root / f"{name}.json", name, verdicts)

    def accept(self, *files: Path, words: Sequence[str] = ()) -> int:
        given = [str(file) for file in files]
        return main(["label", str(self.root / "r1"), "--accept", *given, *words])

    @property
    def labels(self) -> Path:
        return self.root / "facts" / "facts_labels" / "en.jsonl"


def rated_records(ratings: Sequence[int]) -> list[Record]:
    """Return a record for each rating."""
    records = []
    for record, rating in zip(answered("c" * len(ratings)), ratings, strict=True):
        records.append(replace(record, grade=None, rating=rating))
    return records
