"""Recorded answers in a file of their own, joined to the items by id or by question."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from qagate.cases.dataset import Slice
from qagate.cases.rows import FIELDS, ItemRow
from qagate.cases.tables import Table, TableRow, read_table
from qagate.evaluators.core import Case, UsageError
from qagate.evaluators.reading import problem
from qagate.evaluators.text import listed, shown

ANSWER_COLUMNS = (
    *FIELDS["recorded"],
    "model_answer",
    "model_answers",
    "prediction",
    "response",
    "output",
)


def with_recorded(
    rows: Sequence[tuple[ItemRow, Case]], path: Path
) -> list[tuple[ItemRow, Case]]:
    """Return the items with the answers of a file, and with no others.

    The file names an item by its id where it has such a column, else by its question. An item
    without an answer has none: it is an error of the run, not an empty answer. Raises UsageError
    for a file that answers none of the items, or one of them twice.
    """
    table = read_table(path)
    answer_column = _column(table, ANSWER_COLUMNS, "answer")
    key_column = _column(table, (*FIELDS["id"], *FIELDS["question"]), "id or question")
    by_id = key_column in FIELDS["id"]
    answers = _answers(table, key_column, answer_column)
    joined = []
    matched = 0
    for row, case in rows:
        key = case.id if by_id else row.text(row.required("question"))
        answer = answers.get(_plain(key))
        if answer is not None:
            matched += 1
        joined.append((row, replace(case, recorded=answer)))
    if not matched:
        kind = "id" if by_id else "question"
        raise UsageError(
            f"{path}: none of its {len(answers):,} answers has the {kind} of an item of "
            f"{rows[0][0].table.path}; is it the answer file of these items?"
        )
    return joined


def check_shared_files(slices: Iterable[tuple[Slice, Sequence[Case]]]) -> None:
    """Raise UsageError where one answer of a file is given for two questions.

    Translated items share their ids. A file that names items by them, given for two languages,
    would answer one of the two with the answers to the other.
    """
    by_file: dict[Path, list[tuple[Slice, Sequence[Case]]]] = {}
    for slice_, cases in slices:
        if slice_.recorded is not None:
            by_file.setdefault(slice_.recorded.resolve(), []).append((slice_, cases))
    for path, sharing in by_file.items():
        if len(sharing) > 1 and _names_ids(path):
            _check_one_question_an_answer(path, sharing)


def _check_one_question_an_answer(
    path: Path, slices: Sequence[tuple[Slice, Sequence[Case]]]
) -> None:
    answered: dict[str, tuple[Slice, Case]] = {}
    for slice_, cases in slices:
        for case in cases:
            if case.recorded is None:
                continue
            other_slice, other_case = answered.setdefault(case.id, (slice_, case))
            if other_case.question != case.question:
                raise UsageError(
                    f"{path}: its answer to {shown(case.id)} is given for {other_slice.name} and "
                    f"for {slice_.name}, which ask two questions; give each a file of its own, or "
                    "items ids of their own"
                )


def _names_ids(path: Path) -> bool:
    """Return whether a file of answers names its items by id, and not by question."""
    return any(name in read_table(path).names for name in FIELDS["id"])


def _column(table: Table, names: Sequence[str], what: str) -> str:
    for name in names:
        if name in table.names:
            return name
    message = (
        f"no column of {what} ({listed(names)}); found {listed(table.names.values())}"
    )
    raise problem(table.path, 1, message)


def _answers(table: Table, key_column: str, answer_column: str) -> dict[str, str]:
    """Return the answers by the id or question of their items. Raises UsageError."""
    answers: dict[str, str] = {}
    for record in table.records:
        key = _plain(_text(table, record, key_column))
        answer = _text(table, record, answer_column)
        if answers.setdefault(key, answer) != answer:
            raise table.problem(
                record, key_column, f"{shown(key)} has another answer before; keep one"
            )
    return answers


def _text(table: Table, record: TableRow, column: str) -> str:
    value = record.values.get(column)
    if not isinstance(value, str):
        raise table.problem(record, column, f"text is needed, not {shown(value)}")
    return str(value)


def _plain(key: str) -> str:
    """Return an id or question as it is compared: blanks at its ends and double ones are none."""
    return " ".join(key.split())
