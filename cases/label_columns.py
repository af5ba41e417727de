"""The columns of a file of labelled answers, found by name, as kind ``judged`` has them."""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from cases.dataset import Slice
from cases.labels import TIED, LabelReading, Scale, read_grade
from cases.tables import Table, TableRow, normal
from evaluators.kinds import NOT_CORRECT, TWO_WAY
from evaluators.reading import problem
from evaluators.text import listed, shown

QUESTION = ("question", "problem", "input", "query")
ANSWER = ("predicted_answer", "predicted_answers", "predicted", "prediction", "submission",
          "student_answer", "model_answer", "response", "output", "answer")  # fmt: skip
GOLD = ("gold", "golds", "gold_answer", "golden_answer", "target", "expected", "reference",
        "reference_answer", "correct_answer", "desired_answer", "answer", "answers")  # fmt: skip
LABEL = ("label", "human", "human_label", "human_correct", "human_rating", "human_score",
         "grade", "rating", "score", "score_avg")  # fmt: skip
LANGUAGE = ("language", "lang", "locale")
RATER = re.compile(r"((?:label|rater|annotator|human|rating|score)_?)(\d{1,3})", re.ASCII)
OWN_RATER = re.compile(r"label_\d+", re.ASCII)
MISREAD = ("problem", "answers", "predicted_answers")
"""Other names of the standard columns: they would count twice."""
STANDARD = frozenset({"question", "answer", "predicted_answer", "label"})


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelColumns:
    """Which columns of a file hold what; ``label`` is empty where the raters' are the labels."""

    question: str
    gold: str
    answer: str
    label: str
    raters: tuple[str, ...]
    language: str


def find_columns(table: Table, reading: LabelReading) -> LabelColumns:
    """Return the columns of a file. Raises UsageError for one that is missing."""
    plain = {normal(name).replace("-", "_"): name for name in table.names}

    def first(names: Sequence[str]) -> str:
        return next((plain[name] for name in names if name in plain), "")

    def needed(names: Sequence[str]) -> str:
        if found := first([normal(name).replace("-", "_") for name in names]):
            return found
        others = f" (or {', '.join(names[1:])})" if names[1:] else ""
        what = f"no column {names[0]!r}{others}; found {listed(table.names.values())}"
        raise problem(table.path, table.records[0].line, what)

    matches = sorted(filter(None, map(RATER.fullmatch, plain)), key=lambda m: (m[1], int(m[2])))
    raters = [needed([name]) for name in reading.raters] or [plain[m[0]] for m in matches]
    if reading.column:
        label = needed([reading.column])
    else:
        label = first(LABEL) if raters else needed(LABEL)
    gold = needed(GOLD)
    return LabelColumns(
        question=needed(QUESTION),
        gold=gold,
        answer=needed([name for name in ANSWER if name != gold]),
        label=label,
        raters=tuple(name for name in raters if name != label),
        language=first(LANGUAGE),
    )


def as_judged(table: Table, slice_: Slice) -> Table:
    """Return labelled answers with the columns of kind ``judged``. Raises UsageError."""
    reading, language = slice_.label_reading, slice_.language
    if reading == LabelReading() and table.names.keys() >= STANDARD:
        return table
    columns = find_columns(table, reading)
    rows = [
        row for row in table.records if language_of(row, columns, reading, language) == language
    ]
    if not rows:
        raise problem(table.path, 1, f"no row is in language {language!r}")
    names = {
        "question": columns.question,
        "answer": columns.gold,
        "predicted_answer": columns.answer,
        "label": columns.label,
        **{f"label_{number}": name for number, name in enumerate(columns.raters, 1)},
    }
    # An id that several answers have is that of their question.
    shared = (one for one in ("id", "qid")
              if len({str(row.values.get(one)) for row in rows}) < len(rows))  # fmt: skip
    gone = {*names, *names.values(), *MISREAD, *shared, columns.language}
    kept = [one for one in table.names if one not in gone and not OWN_RATER.fullmatch(one)]
    given = ["label", *(f"label_{number}" for number in range(1, len(columns.raters) + 1))]
    reader: Callable[[str], str | float] = partial(read_grade, labels=slice_.labels)
    if slice_.rates:
        reader = (reading.scale or Scale()).place
    found = [_labels(table, row, columns, reader) for row in rows]
    if reading.two_way or any(NOT_CORRECT in some for some in found):
        two_way = ("", TIED, *TWO_WAY)
        found = [[one if one in two_way else NOT_CORRECT for one in some] for some in found]
    records = []
    for row, labels in zip(rows, found, strict=True):
        values = {name: row.values[name] for name in kept if name in row.values}
        values |= {name: row.values.get(column) for name, column in names.items()}
        records.append(replace(row, values=values | dict(zip(given, labels, strict=True))))
    spelt = {name: table.names.get(column, column) for name, column in names.items()}
    return replace(table, names={one: table.names[one] for one in kept} | spelt, records=records)


def language_of(row: TableRow, columns: LabelColumns, reading: LabelReading, usual: str) -> str:
    """Return the code of a row's language."""
    said = str(row.values.get(columns.language) or "") if columns.language else ""
    return (normal(said) or reading.language or usual).replace("_", "-")


def label_texts(table: Table, columns: LabelColumns) -> set[str]:
    """Return the different labels in a file, as they stand there."""
    names = [name for name in (columns.label, *columns.raters) if name]
    return {_text(table, row, name) for row in table.records for name in names} - {""}


def _labels(
    table: Table, row: TableRow, columns: LabelColumns, reader: Callable[[str], str | float]
) -> list[str]:
    """Return the label of a row, and then what each rater said, empty for nothing."""

    def read(column: str) -> str | float:
        try:
            return reader(_text(table, row, column))
        except ValueError as error:
            raise table.problem(row, column, str(error)) from None

    raters = [read(name) if _text(table, row, name) else "" for name in columns.raters]
    given = [one for one in raters if one != ""]
    if not columns.label and not given:
        raise table.problem(row, columns.raters[0], "no rater has a label in this row")
    label = read(columns.label) if columns.label else agreed(given)
    return [str(round(one)) if isinstance(one, float) else one for one in (label, *raters)]


def agreed(labels: Sequence[str | float]) -> str | float:
    """Return the mean of raters' numbers, or their most frequent grade; TIED where two are."""
    numbers = [label for label in labels if isinstance(label, float)]
    if numbers:
        return sum(numbers) / len(numbers)
    (label, count), *others = Counter(labels).most_common(2)
    return TIED if others and others[0][1] == count else label


def _text(table: Table, row: TableRow, column: str) -> str:
    value = row.values.get(column)
    if isinstance(value, dict | list):
        raise table.problem(row, column, f"want text, got {shown(value)}")
    return "" if value is None else str(value).strip()
