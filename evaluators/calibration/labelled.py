"""Labelled answers from a file: by name of column, whatever their order."""

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from evaluators.calibration.rows import Row, normal, read_rows, shown
from evaluators.calibration.scales import (
    NOT_CORRECT,
    WORDS,
    Scale,
    is_number,
    read_grade,
    read_number,
)
from evaluators.canonical import digest
from evaluators.core import Case, UsageError
from evaluators.files import file_hash

Style = Literal["graded", "rated"]
Label = str | float

QUESTION = ("question", "problem", "input", "query")
ANSWER = ("predicted_answer", "predicted_answers", "predicted", "prediction", "submission",
          "student_answer", "model_answer", "response", "output", "answer")  # fmt: skip
GOLD = ("gold", "golds", "gold_answer", "golden_answer", "target", "expected", "reference",
        "reference_answer", "correct_answer", "desired_answer", "answer", "answers")  # fmt: skip
LABEL = ("label", "human", "human_label", "human_correct", "human_rating", "human_score",
         "grade", "rating", "score", "score_avg")  # fmt: skip
RATER = re.compile(r"(?:label|rater|annotator|human|rating|score)_?\d{1,3}", re.ASCII)
LANGUAGE = ("language", "lang", "locale")
CONTEXT = ("context", "passage", "paragraph")
SOURCE = ("label_source", "source_of_label")
ALIASES = ("aliases",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One labelled answer. ``label`` is what the judge is held against, None where raters tie.

    ``raters`` maps each rater's column to what it says; a rater that did not see the item is not
    in it. Labels are grades, or numbers of the judge's scale, 1 to 10.
    """

    case: Case
    label: Label | None
    raters: Mapping[str, Label]

    @property
    def answer(self) -> str:
        """The answer under judgement."""
        return self.case.recorded or ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Labelled:
    """A labelled file. ``two_way`` says that its labels tell only right from not right.

    ``sha256`` is that of the file, ``source`` what it says of where its labels come from.
    ``own_label`` says that a column of its own holds the label; otherwise it is the raters'.
    """

    path: Path
    sha256: str
    style: Style
    items: tuple[Item, ...]
    raters: tuple[str, ...]
    two_way: bool
    own_label: bool
    source: str

    @property
    def languages(self) -> tuple[str, ...]:
        """The languages of the items, in the order in which they come."""
        return tuple(dict.fromkeys(item.case.language for item in self.items))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Columns:
    question: str
    gold: str
    answer: str
    label: str
    raters: tuple[str, ...]
    language: str
    context: str


def read_labelled(path: Path, reading: Reading) -> Labelled:
    """Return the labelled answers of a CSV or JSONL file.

    Raises UsageError naming file, row and column where a column is missing or a value is no
    label, and where the labels leave open whether they are grades or ratings.
    """
    rows = read_rows(path)
    columns = _columns(path, rows, reading)
    style = reading.style or _style(path, rows, columns)
    read = read_grade if style == "graded" else _number_reader(reading.scale)
    items = [_item(row, columns, read, reading) for row in rows]
    two_way = reading.two_way or any(NOT_CORRECT in _labels(item) for item in items)
    sources = Counter(text for row in rows if (text := _text(row, _first(rows, SOURCE))))
    return Labelled(
        path=path,
        sha256=file_hash(path),
        style=style,
        items=tuple(items),
        raters=columns.raters,
        two_way=two_way and style == "graded",
        own_label=bool(columns.label),
        source=", ".join(f"{name} ({count})" for name, count in sources.most_common(4)),
    )


def _columns(path: Path, rows: Sequence[Row], reading: Reading) -> _Columns:
    named = [normal(name) for name in reading.raters]
    found = dict.fromkeys(name for row in rows for name in row.values if RATER.fullmatch(name))
    raters = [_needed(path, rows, (name,)) for name in named] or sorted(found, key=_rank)
    if reading.label:
        label = _needed(path, rows, (normal(reading.label),))
    else:
        label = _first(rows, LABEL) if raters else _needed(path, rows, LABEL)
    gold = _needed(path, rows, GOLD)
    return _Columns(
        question=_needed(path, rows, QUESTION),
        gold=gold,
        answer=_needed(path, rows, tuple(name for name in ANSWER if name != gold)),
        label=label,
        raters=tuple(name for name in raters if name != label),
        language=_first(rows, LANGUAGE),
        context=_first(rows, CONTEXT),
    )


def _rank(name: str) -> tuple[str, int]:
    stem = name.rstrip("0123456789")
    return stem, int(name[len(stem) :])


def _first(rows: Sequence[Row], names: Sequence[str]) -> str:
    present = {name for row in rows for name in row.values}
    return next((name for name in names if name in present), "")


def _needed(path: Path, rows: Sequence[Row], names: Sequence[str]) -> str:
    name = _first(rows, names)
    if not name:
        found = ", ".join(shown(name) for name in list(rows[0].values)[:20])
        others = f" (or {', '.join(names[1:])})" if names[1:] else ""
        msg = f"{path}:{rows[0].line}: no column {names[0]!r}{others}; found {found}"
        raise UsageError(msg)
    return name


def _style(path: Path, rows: Sequence[Row], columns: _Columns) -> Style:
    names = [name for name in (columns.label, *columns.raters) if name]
    found = {_text(row, name) for row in rows for name in names} - {""}
    if found and all(word.strip().upper() in WORDS for word in found):
        if all(is_number(word) for word in found):
            msg = f"{path}: labels 0 and 1 may be grades or ratings; give --kind graded or rated"
            raise UsageError(msg)
        return "graded"
    return "rated" if found and all(is_number(word) for word in found) else "graded"


def _number_reader(scale: Scale) -> Callable[[str], Label]:
    return lambda text: read_number(text, scale)


def _item(row: Row, columns: _Columns, read: Callable[[str], Label], reading: Reading) -> Item:
    raters = {}
    for name in columns.raters:
        if _text(row, name):
            raters[name] = _label(row, name, read)
    label = _label(row, columns.label, read) if columns.label else agreed(list(raters.values()))
    if not columns.label and not raters:
        msg = f"no rater has a label; columns {', '.join(columns.raters)}"
        raise row.problem(msg)
    return Item(case=_case(row, columns, reading.language), label=label, raters=raters)


def _case(row: Row, columns: _Columns, language: str) -> Case:
    golds = _golds(row, columns.gold)
    answer = _text(row, columns.answer, strip=False)
    question = _text(row, columns.question, strip=False)
    if not question.strip():
        msg = f"column {columns.question!r} is empty"
        raise row.problem(msg)
    named = _text(row, columns.language) if columns.language else ""
    return Case(
        id=str(row.number),
        dataset="calibration",
        language=normal(named or language).replace("_", "-"),
        row=row.number,
        question=question,
        golds=golds,
        context=_text(row, columns.context, strip=False) if columns.context else "",
        recorded=answer,
        digest=digest([question, golds, answer]),
    )


def _golds(row: Row, column: str) -> tuple[str, ...]:
    value = row.values.get(column)
    forms = value if isinstance(value, list) else [value]
    extra = row.values.get(ALIASES[0])
    more = extra if isinstance(extra, list) else str(extra or "").split(" | ")
    texts = [form for form in (*forms, *more) if isinstance(form, str) and form.strip()]
    if isinstance(value, int | float) and not isinstance(value, bool):
        texts.insert(0, str(value))
    if not texts:
        msg = f"column {column!r}: want text or a list of texts, got {shown(value)}"
        raise row.problem(msg)
    return tuple(dict.fromkeys(texts))


def _text(row: Row, name: str, *, strip: bool = True) -> str:
    value = row.values.get(name)
    if value is None:
        return ""
    if isinstance(value, dict | list):
        msg = f"column {name!r}: want text, got {shown(value)}"
        raise row.problem(msg)
    text = str(value)
    return text.strip() if strip else text


def _label(row: Row, name: str, read: Callable[[str], Label]) -> Label:
    try:
        return read(_text(row, name))
    except ValueError as error:
        msg = f"column {name!r}: {error}"
        raise row.problem(msg) from None


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


def _labels(item: Item) -> tuple[Label, ...]:
    return (*item.raters.values(), *(() if item.label is None else (item.label,)))
