"""Small slices of the tests' own, to be looked at by the linter's checks."""

from collections.abc import Callable, Iterable
from pathlib import Path

from cases.check.item_checks import Finding, Subject, read_subject
from cases.dataset import Dataset, Slice, Threshold
from evaluators.core import Case
from evaluators.kinds import kind_of

Check = Callable[[Subject], Iterable[Finding]]


def slice_of(language: str = "en", kind: str = "graded", **more: object) -> Slice:
    fields: dict[str, object] = {"dataset": "d", "path": Path(f"{language}.csv"), **more}
    return Slice(language=language, kind=kind_of(kind), **fields)  # type: ignore[arg-type]


def item(row: int, question: str, *golds: str, **more: object) -> Case:
    fields: dict[str, object] = {"id": f"q{row}", "dataset": "d", "language": "en", **more}
    return Case(row=row, question=question, golds=golds or ("x",), **fields)  # type: ignore[arg-type]


def subject(*cases: Case, language: str = "en", kind: str = "graded") -> Subject:
    return Subject(slice_=slice_of(language, kind), cases=cases)


def from_file(folder: Path, text: str, suffix: str = "csv", kind: str = "graded") -> Subject:
    path = folder / f"data.{suffix}"
    path.write_text(text, encoding="utf-8")
    return read_subject(slice_of(kind=kind, path=path))


def found(check: Check, looked_at: Subject) -> list[tuple[str, int]]:
    return [(note.severity, note.row) for note in check(looked_at)]


def said(check: Check, looked_at: Subject) -> str:
    (note,) = check(looked_at)
    return note.message


def dataset_of(
    *subjects: Subject, pooled: tuple[Threshold, ...] = ()
) -> tuple[Dataset, dict[str, Subject]]:
    by_language = {own.slice_.language: own for own in subjects}
    made = Dataset(
        name="d",
        folder=Path("d"),
        kind=subjects[0].slice_.kind,
        slices={language: own.slice_ for language, own in by_language.items()},
        pooled=pooled,
    )
    return made, by_language
