"""A file of answers with people's labels, read for ``calibrate``: columns by name, in any order."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from cases.gold_notation import check_gold, with_tolerance
from cases.labels import NOT_CORRECT, WORDS, Label, Scale, is_number, read_grade, read_number
from cases.tables import Table, TableRow, read_csv, read_jsonl
from evaluators.core import CORRECT, GRADES, Case, UsageError
from evaluators.kinds import FACT, JUDGED, Cluster
from evaluators.reading import file_hash, problem, read_text
from evaluators.rubric import Style
from evaluators.text import digest, shown

QUESTION = ("question", "problem", "input", "query")
ANSWER = ("predicted_answer", "predicted_answers", "predicted", "prediction", "submission",
          "student_answer", "model_answer", "response", "output", "answer")  # fmt: skip
GOLD = ("gold", "golds", "gold_answer", "golden_answer", "target", "expected", "reference",
        "reference_answer", "correct_answer", "desired_answer", "answer", "answers")  # fmt: skip
LABEL = ("label", "human", "human_label", "human_correct", "human_rating", "human_score",
         "grade", "rating", "score", "score_avg")  # fmt: skip
RATER = re.compile(r"((?:label|rater|annotator|human|rating|score)_?)(\d{1,3})", re.ASCII)
LANGUAGE = ("language", "lang", "locale")
CONTEXT = ("context", "passage", "paragraph")
SOURCE = ("label_source", "source_of_label")
ALIASES, TOLERANCE = "aliases", "tolerance"
SUFFIXES = (".csv", ".jsonl", ".ndjson")


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledAnswer:
    """One labelled answer. ``label`` is what the judge is held against, None where raters tie.

    ``raters`` maps each rater's column to its label; a rater that did not see the item is not in
    it. Labels are grades, or numbers of the judge's scale, 1 to 10.
    """

    case: Case
    label: Label | None
    raters: Mapping[str, Label]

    @property
    def answer(self) -> str:
        """The answer under judgement."""
        return self.case.recorded or ""

    @property
    def cluster(self) -> Cluster:
        """What answers to the same question share: they are not independent.

        The same as in a data set of such answers that does not say otherwise.
        """
        return JUDGED.cluster_of(self.case)


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelledFile:
    """A labelled file. ``two_way`` says that its labels tell only right from not right.

    ``sha256`` is that of the file, ``source`` what it says of where its labels come from.
    ``own_label`` says that a column of its own holds the label; otherwise it is the raters'.
    """

    path: Path
    sha256: str
    style: Style
    items: tuple[LabelledAnswer, ...]
    raters: tuple[str, ...]
    two_way: bool
    own_label: bool
    source: str

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of the items, in the order in which they come."""
        return tuple(dict.fromkeys(item.case.language for item in self.items))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels to show in a table of counts; none for ratings."""
        if self.style == "rated":
            return ()
        return (CORRECT, NOT_CORRECT) if self.two_way else GRADES

    def collapse(self, grade: Label | None) -> Label | None:
        """Return a grade as this file's labels can tell it from others."""
        return NOT_CORRECT if self.two_way and grade not in (CORRECT, None) else grade


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """How a file is to be read; ``style`` None leaves it to the labels.

    ``language`` is that of rows that name none. ``label`` and ``raters`` are the columns to take
    for the label and for each rater, where they are not called as usual.
    """

    language: str = "en"
    style: Style | None = None
    scale: Scale = field(default_factory=Scale)
    two_way: bool = False
    label: str = ""
    raters: tuple[str, ...] = ()


def read_labelled(path: Path, reading: Reading) -> LabelledFile:
    """Return the labelled answers of a CSV or JSONL file.

    Raises UsageError naming file, row and column where a column is missing or a value is no
    label, and where the labels leave open whether they are grades or ratings.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(f"{path}: want a labelled file that ends in {', '.join(SUFFIXES)}")
    rows = _Rows((read_csv if suffix == ".csv" else read_jsonl)(path, read_text(path)))
    columns = _Columns.of(rows, reading)
    style = reading.style or _style(rows, columns)
    items = tuple(_item(rows, row, columns, style, reading) for row in rows.records)
    said = {label for item in items for label in (*item.raters.values(), item.label)}
    source = rows.first(SOURCE)
    sources = Counter(text for row in rows.records if (text := rows.text(row, source).strip()))
    return LabelledFile(
        path=path,
        sha256=file_hash(path),
        style=style,
        items=items,
        raters=columns.raters,
        two_way=style == "graded" and (reading.two_way or NOT_CORRECT in said),
        own_label=bool(columns.label),
        source=", ".join(f"{name} ({count})" for name, count in sources.most_common(4)),
    )


def agreed(labels: Sequence[Label]) -> Label | None:
    """Return what several raters say together: the mean of numbers, the most frequent grade.

    None where two grades are equally frequent, or there is no label.
    """
    numbers = [label for label in labels if not isinstance(label, str)]
    if numbers:
        return sum(numbers) / len(numbers)
    top = Counter(labels).most_common(2)
    tied = len(top) == 2 and top[0][1] == top[1][1]
    return top[0][0] if top and not tied else None


def _normal(name: str) -> str:
    """Return a column's name as it is compared: any case, ``_`` for spaces and hyphens."""
    return "_".join(name.casefold().replace("-", " ").replace("_", " ").split())


class _Rows:
    """The records of a labelled file, their columns by normal name."""

    def __init__(self, table: Table) -> None:
        self.path = table.path
        self.names = {_normal(name): None for name in table.names}
        if len(self.names) < len(table.names):
            twice = next(n for n, k in Counter(map(_normal, table.names)).items() if k > 1)
            raise problem(table.path, 1, f"column {shown(twice)} stands twice; keep one")
        self.records = [
            TableRow(
                one.row, one.line, {_normal(name): value for name, value in one.values.items()}
            )
            for one in table.records
        ]

    def first(self, names: Sequence[str]) -> str:
        """Return the first of these columns that some record has, or nothing."""
        return next((name for name in names if name in self.names), "")

    def needed(self, names: Sequence[str]) -> str:
        """Return the first of these columns. Raises UsageError where there is none."""
        if name := self.first(names):
            return name
        first = self.records[0]
        found = ", ".join(shown(name) for name in list(first.values)[:20])
        others = f" (or {', '.join(names[1:])})" if names[1:] else ""
        raise problem(self.path, first.line, f"no column {names[0]!r}{others}; found {found}")

    def text(self, row: TableRow, name: str) -> str:
        """Return a value as text, exactly; empty where the row has none. Raises UsageError."""
        value = row.values.get(name)
        if isinstance(value, dict | list):
            raise self.problem(row, f"column {name!r}: want text, got {shown(value)}")
        return "" if value is None else str(value)

    def problem(self, row: TableRow, what: str) -> UsageError:
        """Return the error about one row, to be raised."""
        return problem(self.path, row.line, f"row {row.row}: {what}")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    question: str
    gold: str
    answer: str
    label: str
    raters: tuple[str, ...]
    language: str
    context: str

    @classmethod
    def of(cls, rows: _Rows, reading: Reading) -> "_Columns":
        """Return which columns hold what. Raises UsageError for one that is missing."""
        found = sorted(
            filter(None, map(RATER.fullmatch, rows.names)),
            key=lambda match: (match[1], int(match[2])),
        )
        raters = [rows.needed((_normal(name),)) for name in reading.raters]
        raters = raters or [match[0] for match in found]
        if reading.label:
            label = rows.needed((_normal(reading.label),))
        else:
            label = rows.first(LABEL) if raters else rows.needed(LABEL)
        gold = rows.needed(GOLD)
        return cls(
            question=rows.needed(QUESTION),
            gold=gold,
            answer=rows.needed(tuple(name for name in ANSWER if name != gold)),
            label=label,
            raters=tuple(name for name in raters if name != label),
            language=rows.first(LANGUAGE),
            context=rows.first(CONTEXT),
        )


def _style(rows: _Rows, columns: _Columns) -> Style:
    names = [name for name in (columns.label, *columns.raters) if name]
    found = {rows.text(row, name).strip() for row in rows.records for name in names} - {""}
    numbers = bool(found) and all(map(is_number, found))
    if numbers and all(word in WORDS for word in found):
        raise UsageError(
            f"{rows.path}: labels 0 and 1 may be grades or ratings; give --kind graded or rated"
        )
    return "rated" if numbers else "graded"


def _item(
    rows: _Rows, row: TableRow, columns: _Columns, style: Style, reading: Reading
) -> LabelledAnswer:
    def read(column: str) -> Label:
        text = rows.text(row, column).strip()
        try:
            return read_grade(text) if style == "graded" else read_number(text, reading.scale)
        except ValueError as error:
            raise rows.problem(row, f"column {column!r}: {error}") from None

    raters = {name: read(name) for name in columns.raters if rows.text(row, name).strip()}
    label = read(columns.label) if columns.label else agreed(list(raters.values()))
    if not columns.label and not raters:
        msg = f"no rater has a label; columns {', '.join(columns.raters)}"
        raise rows.problem(row, msg)
    language = _normal(rows.text(row, columns.language) or reading.language).replace("_", "-")
    golds = _golds(rows, row, columns.gold, language)
    answer = rows.text(row, columns.answer)
    question = rows.text(row, columns.question)
    if not question.strip():
        raise rows.problem(row, f"column {columns.question!r} is empty")
    case = Case(
        id=str(row.row),
        dataset="calibration",
        language=language,
        row=row.row,
        question=question,
        golds=golds,
        context=rows.text(row, columns.context),
        recorded=answer,
        metadata={FACT: rows.text(row, FACT)} if FACT in rows.names else {},
        digest=digest([question, golds, answer]),
    )
    return LabelledAnswer(case=case, label=label, raters=raters)


def _golds(rows: _Rows, row: TableRow, column: str, language: str) -> tuple[str, ...]:
    """Return the accepted forms as the loader does: golds, aliases, the range of a tolerance."""
    value, aliases = row.values.get(column), row.values.get(ALIASES)
    forms = value if isinstance(value, list) else [value]
    more = aliases if isinstance(aliases, list) else str(aliases or "").split(" | ")
    texts = [str(form) for form in (*forms, *more) if isinstance(form, str) and form.strip()]
    if not texts:
        what = f"column {column!r}: want text or a list of texts, got {shown(value)}"
        raise rows.problem(row, what)
    tolerance = rows.text(row, TOLERANCE).strip()
    try:
        for text in texts:
            check_gold(text, language)
        texts += [with_tolerance(texts[0], tolerance, language)] if tolerance else []
    except ValueError as error:
        raise rows.problem(row, f"column {column!r}: {error}") from None
    return tuple(dict.fromkeys(texts))
