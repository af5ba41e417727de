"""Fields that some rows have and others lack, empty aliases, and ids that will not last."""

from collections.abc import Iterator, Mapping

from cases.dataset import Dataset
from cases.loading import GOOD_ID
from cases.rows import ALIAS_MARK, id_of
from cases.tools.check.findings import Note, Subject, error, rows_listed, warning
from evaluators.core import Case
from evaluators.text import listed, shown

FIELDS = ("topic", "answer_type", "fact_id", "source")


def missing_fields(subject: Subject) -> Iterator[Note]:
    """Yield the fields that some rows have and others lack: an error for those of ``by:``."""
    by = subject.slice_.by
    for field in dict.fromkeys((*by, *FIELDS)):
        bare = [case.row for case in subject.cases if not has_field(case, field)]
        if 0 < len(bare) < len(subject.cases):
            message = (
                f"{field!r} is missing in {len(bare)} of {len(subject.cases)} rows "
                f"({rows_listed(bare)}); fill it in"
            )
            yield (error if field in by else warning)(bare[0], message)


def has_field(case: Case, field: str) -> bool:
    """Return whether an item has a value in this metadata field."""
    return str(case.metadata.get(field) or "").strip() != ""


def unused_breakdowns(dataset: Dataset, subjects: Mapping[str, Subject]) -> Iterator[Note]:
    """Yield the fields of ``by:`` that no row has: an error where none of any language has it."""
    by = dict.fromkeys(field for slice_ in dataset.slices.values() for field in slice_.by)
    for field in by:
        bare = [own for own in subjects.values() if not _any_has(own, field)]
        if bare and len(bare) == len(subjects):
            message = f"'by' names {field!r}, which no row has; correct the name or take it out"
            yield error(0, message)
        else:
            for own in bare:
                message = f"no row has {field!r}, which 'by' names; add it to this file too"
                yield warning(0, message, own.slice_.path)


def _any_has(subject: Subject, field: str) -> bool:
    return any(has_field(case, field) for case in subject.cases)


def aliases(subject: Subject) -> Iterator[Note]:
    """Yield the cells of aliases with an empty entry, or with a bar that separates nothing."""
    for row in subject.rows:
        column = row.columns.get("aliases")
        cell = row.record.values[column] if column else None
        if not isinstance(cell, str) or not cell.strip():
            continue
        forms = cell.split(ALIAS_MARK)
        if not all(form.strip(" |") for form in forms):
            yield warning(row.record.row, f"an empty entry in aliases {shown(cell)}; take it out")
        elif any("|" in form for form in forms):
            message = f"aliases {shown(cell)} have a bar without spaces; separate them with ' | '"
            yield warning(row.record.row, message)


def ids(subject: Subject) -> Iterator[Note]:
    """Yield the ids that change when a text is corrected, or that reports will not show."""
    given = {row.record.row: id_of(row) for row in subject.rows}
    bare = [number for number, id_ in given.items() if id_ is None]
    if 0 < len(bare) < len(given):
        message = (
            f"{len(bare)} of {len(given)} rows have no id ({rows_listed(bare)}): theirs comes from "
            "the content and changes with it; give every row one"
        )
        yield warning(bare[0], message)
    odd = {row: id_ for row, id_ in given.items() if id_ and not GOOD_ID.fullmatch(id_)}
    if odd:
        message = (
            f"{len(odd)} of {len(given)} ids are replaced by hashes, such as "
            f"{listed(list(odd.values())[:3])}; use at most 64 of A-Z, a-z, 0-9, '.', '_' and '-'"
        )
        yield warning(min(odd), message)
