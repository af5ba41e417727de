"""Files of labelled answers, whose columns may have many names, in the one form of kind ``judged``.

Everyone who has had answers labelled calls the columns otherwise, writes grades and ratings in
their own way, and may have a column for each rater. Here the columns are found, labels are read,
and raters are brought to one label: the mean of their ratings, or their most frequent grade.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from qagate.cases.dataset import Slice
from qagate.cases.labels import OWN_RATER, TIED, LabelReading, Scale, read_grade
from qagate.cases.tables import Table, TableRow, normal
from qagate.evaluators.kinds import NOT_CORRECT, TWO_WAY
from qagate.evaluators.reading import problem
from qagate.evaluators.text import listed, shown

QUESTION = ("question", "problem", "input", "query")
ANSWER = (
    "predicted_answer",
    "predicted_answers",
    "predicted",
    "prediction",
    "submission",
    "student_answer",
    "model_answer",
    "response",
    "output",
    "answer",
)
GOLD = (
    "gold",
    "golds",
    "gold_answer",
    "golden_answer",
    "target",
    "expected",
    "reference",
    "reference_answer",
    "correct_answer",
    "desired_answer",
    "answer",
    "answers",
)
LABEL = (
    "label",
    "human",
    "human_label",
    "human_correct",
    "human_rating",
    "human_score",
    "grade",
    "rating",
    "score",
    "score_avg",
)
LANGUAGE = ("language", "lang", "locale")
RATER = re.compile(
    r"((?:label|rater|annotator|human|rating|score)_?)(\d{1,3})", re.ASCII
)
MISREAD = ("problem", "answers", "predicted_answers")
"""Other names of the standard columns: they would count twice."""
STANDARD = frozenset({"question", "answer", "predicted_answer", "label"})
Reader = Callable[[str], str | float]
"""Turns the text of a label into a grade, or into a rating on our scale. Raises ValueError."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelColumns:
    """The columns of a file of labelled answers, by what they hold."""

    question: str
    gold: str
    answer: str
    label: str
    """Empty where the raters' labels are all there is."""
    raters: tuple[str, ...]
    """Columns with one person's labels each."""
    language: str
    """Empty where rows name no language."""

    @property
    def standard(self) -> dict[str, str]:
        """The columns by the names that they have in a data set of kind ``judged``."""
        names = {
            "question": self.question,
            "answer": self.gold,
            "predicted_answer": self.answer,
            "label": self.label,
        }
        for number, column in enumerate(self.raters, start=1):
            names[f"label_{number}"] = column
        return names


def find_columns(table: Table, reading: LabelReading) -> LabelColumns:
    """Return which columns of a file hold what. Raises UsageError for a missing one."""
    columns = {_spelling(name): name for name in table.names}

    def first(names: Iterable[str]) -> str:
        for name in names:
            if name in columns:
                return columns[name]
        return ""

    def needed(names: Sequence[str]) -> str:
        column = first(_spelling(name) for name in names)
        if column:
            return column
        others = f" (or {', '.join(names[1:])})" if len(names) > 1 else ""
        raise problem(
            table.path,
            table.records[0].line,
            f"no column {names[0]!r}{others}; found {listed(table.names.values())}",
        )

    raters = [needed([name]) for name in reading.raters]
    if not raters:
        raters = [columns[name] for name in _rater_names(columns)]
    if reading.column:
        label = needed([reading.column])
    elif raters:
        label = first(LABEL)
    else:
        label = needed(LABEL)
    gold = needed(GOLD)
    question = needed(QUESTION)
    answer = needed([name for name in ANSWER if name != gold])
    return LabelColumns(
        question=question,
        gold=gold,
        answer=answer,
        label=label,
        raters=tuple(column for column in raters if column != label),
        language=first(LANGUAGE),
    )


def _spelling(name: str) -> str:
    return normal(name).replace("-", "_")


def _rater_names(names: Iterable[str]) -> list[str]:
    """Return the names that end with a rater's number, such as ``label_2``, by number."""
    numbered = []
    for name in names:
        match = RATER.fullmatch(name)
        if match is not None:
            numbered.append((match[1], int(match[2]), name))
    numbered.sort(key=lambda rater: rater[:2])
    return [name for _, _, name in numbered]


def as_judged(table: Table, slice_: Slice) -> Table:
    """Return labelled answers in a slice's language with the columns of kind ``judged``.

    Raises UsageError for a missing column, a label that cannot be read, or a file without any
    row in the language.
    """
    reading = slice_.label_reading
    language = slice_.language
    if reading == LabelReading() and table.names.keys() >= STANDARD:
        return table
    columns = find_columns(table, reading)
    rows = []
    for row in table.records:
        if language_of(row, columns, reading, language) == language:
            rows.append(row)
    if not rows:
        raise problem(table.path, 1, f"no row is in language {language!r}")

    reader: Reader = partial(read_grade, labels=slice_.labels)
    if slice_.rates:
        scale = reading.scale or Scale()
        reader = scale.to_judges_scale
    labels_of_rows = [_labels(table, row, columns, reader) for row in rows]
    if reading.two_way or any(NOT_CORRECT in labels for labels in labels_of_rows):
        labels_of_rows = [_two_way(labels) for labels in labels_of_rows]

    standard = columns.standard
    label_names = [name for name in standard if _is_label(name)]
    kept = _other_columns(table, rows, columns)
    records = []
    for row, labels in zip(rows, labels_of_rows, strict=True):
        values = {name: row.values[name] for name in kept if name in row.values}
        for name, column in standard.items():
            values[name] = row.values.get(column)
        values.update(zip(label_names, labels, strict=True))
        records.append(replace(row, values=values))
    names = {name: table.names[name] for name in kept}
    for name, column in standard.items():
        names[name] = table.names.get(column, column)
    return replace(table, names=names, records=records)


def _is_label(name: str) -> bool:
    """Return whether a standard column holds the label or one rater's."""
    return name == "label" or OWN_RATER.fullmatch(name) is not None


def _two_way(labels: Iterable[str]) -> list[str]:
    """Return the labels, each grade that is not CORRECT as NOT_CORRECT."""
    side_or_none = ("", TIED, *TWO_WAY)
    return [label if label in side_or_none else NOT_CORRECT for label in labels]


def _other_columns(
    table: Table, rows: Sequence[TableRow], columns: LabelColumns
) -> list[str]:
    """Return the columns that stay as they are.

    An id that several answers have is that of their question, and goes.
    """
    standard = columns.standard
    gone = {*standard, *standard.values(), *MISREAD, columns.language}
    for name in ("id", "qid"):
        ids = {str(row.values.get(name)) for row in rows}
        if len(ids) < len(rows):
            gone.add(name)
    return [
        name
        for name in table.names
        if name not in gone and not OWN_RATER.fullmatch(name)
    ]


def language_of(
    row: TableRow, columns: LabelColumns, reading: LabelReading, usual: str
) -> str:
    """Return the code of a row's language."""
    named = normal(str(row.values.get(columns.language) or ""))
    return (named or reading.language or usual).replace("_", "-")


def label_texts(table: Table, columns: LabelColumns) -> set[str]:
    """Return the different labels in a file, as they stand there."""
    texts = set[str]()
    for column in (columns.label, *columns.raters):
        if column:
            texts.update(_text(table, row, column) for row in table.records)
    return texts - {""}


def _labels(
    table: Table, row: TableRow, columns: LabelColumns, reader: Reader
) -> list[str]:
    """Return the label of a row, and then what each rater said, empty for nothing."""

    def read(column: str) -> str | float:
        try:
            return reader(_text(table, row, column))
        except ValueError as error:
            raise table.problem(row, column, str(error)) from None

    by_rater: list[str | float] = []
    for column in columns.raters:
        by_rater.append(read(column) if _text(table, row, column) else "")
    if columns.label:
        label = read(columns.label)
    else:
        given = [rating for rating in by_rater if rating != ""]
        if not given:
            raise table.problem(
                row, columns.raters[0], "no rater has a label in this row"
            )
        label = agreed(given)
    return [_as_text(given) for given in (label, *by_rater)]


def _as_text(label: str | float) -> str:
    """Return a grade as it is, and a rating as a whole number."""
    if isinstance(label, float):
        return str(round(label))
    return label


def agreed(labels: Sequence[str | float]) -> str | float:
    """Return the mean of raters' numbers, or their most frequent grade; TIED where two are."""
    numbers = [label for label in labels if isinstance(label, float)]
    if numbers:
        return sum(numbers) / len(numbers)
    most_frequent = Counter(labels).most_common(2)
    label, count = most_frequent[0]
    if len(most_frequent) > 1 and most_frequent[1][1] == count:
        return TIED
    return label


def _text(table: Table, row: TableRow, column: str) -> str:
    value = row.values.get(column)
    if isinstance(value, dict | list):
        raise table.problem(row, column, f"want text, got {shown(value)}")
    return "" if value is None else str(value).strip()
