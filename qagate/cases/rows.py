"""From a row of a table to the parts of a case: columns by name, texts, golds, metadata.

A ``Layout`` says which columns a kind of data set has, under which names. An ``ItemRow`` is one
record read by it; its methods return a value or raise an error that names file, line and column.
"""

import ast
import math
import re
import unicodedata
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import cast

from qagate.cases.tables import Number, Table, TableRow, normal
from qagate.evaluators.core import UsageError
from qagate.evaluators.kinds import (
    CHECKED,
    CHOICE,
    FALSE_PREMISE,
    GRADED,
    JUDGED,
    RATED,
    UNANSWERABLE,
    YES_NO,
    Kind,
)
from qagate.evaluators.languages.look_alikes import LOOK_ALIKES
from qagate.evaluators.languages.numbers import PERCENT, Quantity, find_quantities
from qagate.evaluators.languages.word_lists import read, tables
from qagate.evaluators.reading import problem
from qagate.evaluators.text import encodable, hint, listed, shown, without_invisible

MAX_LITERAL = 200_000
"""Characters of a ``metadata`` cell that is a Python literal."""
MAX_DEPTH = 20
"""Of mappings and lists within metadata."""
MAX_NUMBER = 18
"""Characters of a JSON number that is kept as a number, not as its text."""
ALIAS_MARK = " | "
_QUOTED_TEXT = r"""'(?:[^'\\]|\\.)*+'|"(?:[^"\\]|\\.)*+\""""
_LIST_OF_TEXTS = re.compile(
    rf"\[\s*(?:{_QUOTED_TEXT})(?:\s*,\s*(?:{_QUOTED_TEXT}))*+\s*,?\s*\]|\[\s*\]",
    re.DOTALL,
)
"""A list as Python or JSON writes it, with a comma between any two texts."""
_LIKE_A_LIST = re.compile(r"""\[\s*["'].*["']\s*\]""", re.DOTALL)
_FIGURE = re.compile(r"\d(?:[\d.,'\u00a0\u202f ]*\d)?")
_RANGE = re.compile(r"(?<=\d)\s*\.\.\s*(?=[-\u2212]?\d)")
_MARK = re.compile(r"\s*(?:(false\s+premise)|unanswerable)\s*:", re.IGNORECASE)
_WANTED = (
    "want a number, with the gold's unit or without: '5', '5 m'; or a share: '2 %'"
)


FIELDS: Mapping[str, tuple[str, ...]] = {
    "gold": ("answer", "answers"),
    "context": ("context", "paragraph", "passage"),
    "question": ("question", "problem"),
    "recorded": ("predicted_answer", "predicted_answers"),
    "aliases": ("aliases",),
    "tolerance": ("tolerance",),
    "label": (),
    "options": (),
    "id": ("id", "qid"),
    "metadata": ("metadata",),
}
"""The normal column names of each field of an item, the usual one first. All columns of golds that
a file has are accepted forms, the main one first."""


OPTION_LETTERS = "abcdefghij"
LONE_LETTERS = tuple(OPTION_LETTERS)
OPTION_COLUMNS: tuple[tuple[str, ...], ...] = (
    tuple(f"option_{letter}" for letter in OPTION_LETTERS),
    tuple(f"option_{number}" for number in range(1, 11)),
    tuple(f"option{number}" for number in range(1, 11)),
    tuple(f"choice_{letter}" for letter in OPTION_LETTERS),
    tuple(f"mc_answer{number}" for number in range(1, 11)),
    LONE_LETTERS,
)
"""The columns of options that stand in one each, by the ways to name them."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The columns of one kind's items."""

    required: tuple[str, ...]
    names: Mapping[str, tuple[str, ...]]
    """Those of each field."""
    used: frozenset[str]
    """Every name that is not metadata of an item; a second id is."""


def _layout(*required: str, **own: tuple[str, ...]) -> Layout:
    names = {**FIELDS, **own}
    used = frozenset(name for some in names.values() for name in some)
    return Layout(required, names, used.difference(FIELDS["id"][1:]))


def _choice_layout() -> Layout:
    layout = _layout(
        "question",
        "gold",
        gold=(
            "answer",
            "answers",
            "answer_key",
            "answerkey",
            "correct_answer",
            "correct_answer_num",
            "answer_index",
            "answer_idx",
        ),
        context=("context", "passage", "paragraph", "flores_passage"),
        options=("options", "choices"),
        aliases=(),
        tolerance=(),
    )
    single = frozenset(name for columns in OPTION_COLUMNS for name in columns)
    return replace(layout, used=layout.used | single)


LAYOUTS: Mapping[Kind, Layout] = {
    GRADED: _layout("question", "gold"),
    RATED: _layout("question", gold=("expected",), context=("context",), tolerance=()),
    YES_NO: _layout(
        *("context", "question", "gold"),
        gold=("answer",),
        context=("paragraph", "passage", "context"),
        aliases=(),
        tolerance=(),
    ),
    CHOICE: _choice_layout(),
    CHECKED: _layout("question"),
    JUDGED: _layout("question", "gold", "recorded", "label", label=("label",)),
}

SPELLINGS = {
    "question": "Question",
    "answer": "Answer",
    "answers": "Answers",
    "predicted_answers": "Predicted answers",
}
"""Other spellings that messages name."""


def check_columns(table: Table, layout: Layout) -> None:
    """Raise UsageError for a missing column, and for a name that only looks like a known one."""
    for column, name in table.names.items():
        if not encodable(name):
            what = f"column name {name!a} holds a lone surrogate, half a character; retype it"
            raise problem(table.path, 1, what)
        if column not in layout.used:
            _check_script(table, column, name, layout)
    if not table.has_header:
        return
    for field in layout.required:
        names = layout.names[field]
        if set(names).isdisjoint(table.names):
            columns = table.names.values()
            raise problem(
                table.path,
                1,
                f"no column {names[0]!r}{spellings(names)}; found {listed(columns)}; "
                f"{_advice(names, columns)}",
            )


def _advice(names: Iterable[str], columns: Collection[str]) -> str:
    """Return which of the columns may be meant by one of these names, or what else to do."""
    for name in names:
        guess = hint(name, columns)
        if guess.startswith("did you mean"):
            return guess.replace("did you mean", "is it", 1)
    return "rename the column, add it, or name yours under 'columns:' in dataset.yaml"


def spellings(names: tuple[str, ...]) -> str:
    """Return the other names that a column may have, for a message; empty without any."""
    others = [SPELLINGS.get(name, name) for name in names[1:]]
    if names[0] in SPELLINGS:
        others.insert(0, SPELLINGS[names[0]])
    if not others:
        return ""
    return f" (or {', '.join(repr(name) for name in others)})"


def _check_script(table: Table, column: str, name: str, layout: Layout) -> None:
    """Raise UsageError for a name that is a known one but for letters of another script."""
    visible = "".join(char for char in name if unicodedata.category(char) != "Cf")
    latin = unicodedata.normalize("NFKC", visible).translate(LOOK_ALIKES)
    meant = normal(latin)
    if meant not in layout.used:
        return
    odd = next(char for char in name if not char.isascii())
    letter = f"U+{ord(odd):04X} ({unicodedata.name(odd, 'no name')})"
    message = (
        f"column {shown(name)} is not {SPELLINGS.get(meant, meant)!r}: "
        f"it holds {letter}; retype the name in Latin letters"
    )
    if table.has_header:
        raise problem(table.path, 1, message)
    record = next(record for record in table.records if column in record.values)
    raise table.problem(record, column, message)


@dataclass(frozen=True, slots=True)
class ItemRow:
    """One record of a table, read as an item."""

    table: Table
    layout: Layout
    record: TableRow
    columns: Mapping[str, str]
    """The name of the column that holds each field; only the fields that it has."""

    def problem(self, column: str, what: str) -> UsageError:
        """Return the error about one of its values, to be raised."""
        return self.table.problem(self.record, column, what)

    def required(self, field: str) -> str:
        """Return the column of a field. Raises UsageError where there is none."""
        if field not in self.columns:
            names = self.layout.names[field]
            there = listed(self.table.names.values())
            raise self.problem(
                names[0], f"missing{spellings(names)}; the file has {there}"
            )
        return self.columns[field]

    def find(self, field: str) -> tuple[str, object]:
        """Return a field's column and value; None where the row has no such column."""
        column = self.columns.get(field)
        if column is None:
            return "", None
        return column, self.record.values[column]

    def string(self, field: str, wanted: str = "text") -> tuple[str, str | None]:
        """Return a field's column and text, None for null or no column. Raises UsageError."""
        column, value = self.find(field)
        if value is None:
            return column, None
        if isinstance(value, str):
            return column, str(value)
        raise self.problem(column, f"{wanted} is needed, not {shown(value)}")

    def text(self, column: str) -> str:
        """Return the text of a column as it stands. Raises UsageError for a blank or broken one."""
        value = self.record.values[column]
        if not isinstance(value, str) or isinstance(value, Number):
            raise self.problem(column, f"text is needed, not {shown(value)}")
        return self.checked(column, value)

    def checked(self, column: str, value: str) -> str:
        """Return a text from this column. Raises UsageError for a blank or broken one."""
        if not without_invisible(value).strip():
            raise self.problem(column, "empty; fill it in or drop the row")
        if "\0" in value:
            raise self.problem(column, "holds a NUL character; is the file damaged?")
        if not encodable(value):
            raise self.problem(
                column, "holds a lone surrogate, half a character; drop it"
            )
        return value


def rows_of(table: Table, layout: Layout) -> Iterator[ItemRow]:
    """Yield the records with their columns, found once for all that have the same ones."""
    columns_of: dict[tuple[str, ...], Mapping[str, str]] = {}
    for record in table.records:
        names = tuple(record.values)
        if names not in columns_of:
            columns_of[names] = _columns(table, layout, record)
        yield ItemRow(table, layout, record, columns_of[names])


def _columns(table: Table, layout: Layout, record: TableRow) -> Mapping[str, str]:
    """Return the name of a record's column for each field; nothing for a field without one.

    Raises UsageError for a second column of one field. But a second id is metadata, and all
    columns of golds are accepted forms.
    """
    columns = {}
    for field in FIELDS:
        names = [name for name in layout.names[field] if name in record.values]
        if not names:
            continue
        if len(names) > 1 and field not in ("id", "gold"):
            raise table.problem(
                record, names[1], f"says the same as column {names[0]!r}; keep one"
            )
        columns[field] = names[0]
    return columns


def golds_of(row: ItemRow, language: str) -> tuple[str, ...]:
    """Return the gold forms, the main one first, with the tolerance's range. Raises UsageError."""
    main_column = row.required("gold")
    golds = []
    for column in row.layout.names["gold"]:
        if column in row.record.values:
            golds += _forms(row, column)
    golds += _aliases(row)
    try:
        for gold in golds:
            check_gold(gold, language)
    except ValueError as error:
        raise row.problem(main_column, str(error)) from None
    column, tolerance = row.string("tolerance", "text or a number")
    if tolerance is not None and tolerance.strip():
        try:
            golds.append(with_tolerance(golds[0], tolerance, language))
        except ValueError as error:
            raise row.problem(column, str(error)) from None
    return tuple(dict.fromkeys(golds))


def _aliases(row: ItemRow) -> list[str]:
    """Return the other accepted forms: a list, or a text with `` | `` between them."""
    column, value = row.find("aliases")
    if isinstance(value, list):
        return _forms(row, column) if value else []
    _, text = row.string("aliases", "text or a list of texts")
    if not text:
        return []
    listed_texts = _list_in_text(row, column, text)
    if listed_texts is not None:
        return [row.checked(column, form) for form in listed_texts]
    parts = text.split(ALIAS_MARK)
    return [row.checked(column, part) for part in parts if part.strip()]


def _forms(row: ItemRow, column: str) -> list[str]:
    """Return the accepted forms of a column: its text, or those of a list."""
    value = row.record.values[column]
    if isinstance(value, str):
        listed_texts = _list_in_text(row, column, value)
        if listed_texts is None:
            return [row.checked(column, str(value))]
        value = listed_texts
    if not isinstance(value, list):
        raise row.problem(
            column, f"text or a list of texts is needed, not {shown(value)}"
        )
    if not value:
        raise row.problem(
            column, "the list is empty; give the gold answer or drop the row"
        )
    for form in value:
        if not isinstance(form, str) or isinstance(form, Number):
            raise row.problem(
                column, f"a list of texts is needed; it holds {shown(form)}"
            )
    return [row.checked(column, form) for form in value]


def _list_in_text(row: ItemRow, column: str, text: str) -> list[str] | None:
    """Return the texts of a list that was written into a cell, as pandas and others write one.

    None for other texts. Raises UsageError for a list that cannot be read for sure: without
    commas, as numpy prints it, two texts would become one.
    """
    stripped = text.strip()
    if _LIST_OF_TEXTS.fullmatch(stripped):
        return cast("list[str]", _literal(row, column, stripped))
    if _LIKE_A_LIST.fullmatch(stripped):
        raise row.problem(
            column,
            f"looks like a list, but is none that is read: {shown(stripped)}; "
            "write ['one', 'another'], or one form alone",
        )
    return None


def id_of(row: ItemRow) -> str | None:
    """Return the given id as text, None where the file gives none."""
    column, value = row.string("id", "text or a number")
    if not value:
        return None
    return row.checked(column, value).strip()


def metadata_of(row: ItemRow) -> dict[str, object]:
    """Return the columns that are no field of an item, and the entries of ``metadata``."""
    column, value = row.find("metadata")
    if isinstance(value, str):
        value = _literal(row, column, value)
    if value is not None and not isinstance(value, dict):
        raise row.problem(
            column,
            f"a mapping such as {{'topic': 'Art'}} is needed, not {shown(value)}",
        )
    entries = value or {}
    _plain(row, column, [f"{name}" for name in entries])  # names are texts as well
    metadata = {}
    for name, entry in entries.items():
        metadata[f"{name}"] = _plain(row, column, entry, depth=1)
    for name, entry in row.record.values.items():
        if name not in row.layout.used:
            metadata[name] = _plain(row, name, entry)
    return metadata


def _literal(row: ItemRow, column: str, text: str) -> object:
    """Return the value of a Python literal, as SimpleQA's file has it; None for a blank text.

    ``ast.literal_eval`` runs nothing, but deep nesting can exhaust it.
    """
    if len(text) > MAX_LITERAL:
        raise row.problem(
            column, f"{len(text):,} characters; at most {MAX_LITERAL:,} are read"
        )
    try:
        with warnings.catch_warnings():
            # An odd escape such as \d is the file's affair.
            warnings.simplefilter("ignore")
            literal: object = ast.literal_eval(text.strip() or "None")
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise row.problem(
            column, f"not a Python literal (nothing is run): {shown(text)}"
        ) from None
    return literal


def _plain(row: ItemRow, column: str, value: object, depth: int = 0) -> object:
    """Return a metadata value as strict JSON can hold it. Raises UsageError where it cannot."""
    if depth > MAX_DEPTH:
        raise row.problem(column, f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        _plain(row, column, [f"{name}" for name in value])
        entries = {}
        for name, entry in value.items():
            entries[f"{name}"] = _plain(row, column, entry, depth + 1)
        return entries
    if isinstance(value, (list, tuple)):
        return [_plain(row, column, item, depth + 1) for item in value]
    if isinstance(value, Number):
        return _exact_number(value)
    if isinstance(value, str) and not encodable(value):
        raise row.problem(column, "holds a lone surrogate, half a character; drop it")
    if isinstance(value, float) and not math.isfinite(value):
        raise row.problem(column, "a finite number is needed")
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise row.problem(column, f"{type(value).__name__} values are not kept; write text")


def _exact_number(text: Number) -> int | float | str:
    """Return a number, or its text where Python would not hold it exactly enough."""
    if len(text) > MAX_NUMBER:
        return str(text)
    number = float(text)
    if not math.isfinite(number):
        return str(text)
    if text.lstrip("-").isdigit():
        return int(text)
    return number


def check_gold(gold: str, language: str) -> None:
    """Raise ValueError for a malformed mark, or a range unlike ``1637..1642 m``."""
    mark = _MARK.match(gold)
    if mark is not None:
        says_false_premise = bool(mark[1])
        _check_mark(gold, FALSE_PREMISE if says_false_premise else UNANSWERABLE)
    elif _RANGE.search(gold):
        _check_range(gold, language)


def _check_mark(gold: str, mark: str) -> None:
    if not gold.startswith(mark):
        raise ValueError(
            f"{shown(gold)}: the mark is {mark!r}, exactly so and at the beginning"
        )
    if not gold.removeprefix(mark).strip():
        raise ValueError(f"only the mark {mark!r}; say after it what is true")


def _check_range(gold: str, language: str) -> None:
    """Raise ValueError unless a gold is two quantities, the lower one first, with ``..`` between.

    There may be no space beside the dots.
    """
    ends = _RANGE.split(gold)
    has_spaces_beside_dots = "..".join(ends) != gold
    quantities_of_ends = [_quantities(end, language) for end in ends]
    are_two_quantities = [len(found) for found in quantities_of_ends] == [1, 1]
    if has_spaces_beside_dots or not are_two_quantities:
        raise ValueError(
            f"{shown(gold)} is no range; write two numbers and their unit: '1637..1642 m'"
        )
    [low], [high] = quantities_of_ends
    if _value(low) > _value(high):
        raise ValueError(
            f"{shown(gold)}: the low end is the higher one; write the smaller number first"
        )


def with_tolerance(gold: str, tolerance: str, language: str) -> str:
    """Return the range of what is accepted, ``2920..2930 m`` for ``2,925 m`` and ``5 m``.

    The range is exact in decimals, without thousands separators, and has the decimal mark of the
    language and the text around the gold's number. Raises ValueError for a gold that is not one
    number in digits, and for a tolerance that is neither a number above 0, in the gold's unit or
    without one, nor a percentage of the gold.
    """
    figures = list(_FIGURE.finditer(gold))
    quantities = _quantities(gold, language)
    if len(figures) != 1 or len(quantities) != 1:
        raise ValueError(
            f"a tolerance needs a gold with one number, in digits; got {shown(gold)}"
        )
    figure, quantity = figures[0], quantities[0]
    value = _value(quantity)
    in_digits = _quantities(figure[0], language)[0]
    if abs(value) != _value(in_digits):
        raise ValueError(
            f"a tolerance needs a gold in digits alone, as 2500000; got {shown(gold)}"
        )
    reach = _reach(tolerance, quantity, language)
    text_before = gold[: figure.start()]
    if value < 0:  # each end has a sign of its own
        text_before = text_before[:-1]
    low = _in_digits(value - reach, language)
    high = _in_digits(value + reach, language)
    return f"{text_before}{low}..{high}{gold[figure.end() :]}"


def _in_digits(number: Decimal, language: str) -> str:
    return f"{number.normalize():f}".replace(".", tables(language).decimal)


def _reach(tolerance: str, gold: Quantity, language: str) -> Decimal:
    """Return how far from the gold an answer may be, in the gold's unit."""
    quantities = _quantities(tolerance, language)
    words = read(tolerance).words
    places = [(quantity.start, quantity.end) for quantity in quantities]
    if places != [(0, len(words))]:  # one number, and nothing besides
        raise ValueError(f"got {shown(tolerance)}; {_WANTED}")
    reach = quantities[0]
    if _value(reach) <= 0:
        raise ValueError(f"got {shown(tolerance)}; it must be above 0: {_WANTED}")
    if reach.unit == PERCENT and gold.unit == PERCENT:
        raise ValueError(
            f"{shown(tolerance)} of a percentage may be points or a share; "
            "write a bare number"
        )
    if reach.unit == PERCENT:
        return abs(_value(gold)) * _value(reach) / 100
    if not reach.shares_unit(gold):
        raise ValueError(f"{shown(tolerance)} is not in the gold's unit; {_WANTED}")
    return _value(reach)


def _quantities(text: str, language: str) -> list[Quantity]:
    return find_quantities(read(text), tables(language))


def _value(quantity: Quantity) -> Decimal:
    """Return the first reading as written; a float keeps 15 digits of it."""
    return Decimal(str(quantity.values[0]))
