"""From a row of a table to the parts of a case: columns by name, texts, golds, metadata."""

import ast
import math
import re
import unicodedata
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal

from qagate.cases.tables import Number, Table, TableRow
from qagate.evaluators.core import UsageError
from qagate.evaluators.kinds import CHECKED, GRADED, JUDGED, MARKS, RATED, YES_NO, Kind
from qagate.evaluators.languages.look_alikes import LOOK_ALIKES
from qagate.evaluators.languages.numbers import PERCENT, Quantity, find_quantities
from qagate.evaluators.languages.word_lists import read, tables
from qagate.evaluators.reading import problem
from qagate.evaluators.text import encodable, hint, listed, shown, without_invisible

MAX_LITERAL = 200_000
"""Characters of a ``metadata`` cell that is a Python literal."""
MAX_DEPTH = 20
ALIAS_MARK = " | "
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
    "id": ("id", "qid"),
    "metadata": ("metadata",),
}
"""The normal column names of each field of an item, the usual one first. All columns of golds that
a file has are accepted forms, the main one first."""


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
    CHECKED: _layout("question"),
    JUDGED: _layout("question", "gold", "recorded", "label", label=("label",)),
}

SPELLINGS = {
    **{name: name.capitalize() for name in ("question", "answer", "answers")},
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
    if table.has_header:
        for field in layout.required:
            names, found = layout.names[field], table.names.values()
            if set(names).isdisjoint(table.names):
                guesses = (hint(name, found) for name in names)
                close = next(
                    (guess for guess in guesses if guess.startswith("did you mean")), ""
                )
                advice = (
                    close.replace("did you mean", "is it", 1)
                    or "rename the column or add it"
                )
                what = f"no column {names[0]!r}{spellings(names)}; found {listed(found)}; {advice}"
                raise problem(table.path, 1, what)


def spellings(names: tuple[str, ...]) -> str:
    """Return the other names that a column may have, for a message; empty without any."""
    others = [
        SPELLINGS.get(names[0], ""),
        *(SPELLINGS.get(name, name) for name in names[1:]),
    ]
    quoted = ", ".join(repr(name) for name in others if name)
    return f" (or {quoted})" if quoted else ""


def _check_script(table: Table, column: str, name: str, layout: Layout) -> None:
    visible = "".join(char for char in name if unicodedata.category(char) != "Cf")
    latin = unicodedata.normalize("NFKC", visible).translate(LOOK_ALIKES)
    meant = "_".join(latin.casefold().split())
    if meant not in layout.used:
        return
    odd = next(char for char in name if not char.isascii())
    letter = f"U+{ord(odd):04X} ({unicodedata.name(odd, 'no name')})"
    what = f"column {shown(name)} is not {SPELLINGS.get(meant, meant)!r}: it holds {letter}"
    what += "; retype the name in Latin letters"
    if table.has_header:
        raise problem(table.path, 1, what)
    raise table.problem(
        next(r for r in table.records if column in r.values), column, what
    )


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
        column = self.columns.get(field, "")
        return column, self.record.values[column] if column else None

    def string(self, field: str, wanted: str = "text") -> tuple[str, str | None]:
        """Return a field's column and text, None for null or no column. Raises UsageError."""
        column, value = self.find(field)
        if value is None or isinstance(value, str):
            return column, None if value is None else str(value)
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
    found: dict[tuple[str, ...], dict[str, str]] = {}
    for record in table.records:
        names = tuple(record.values)
        for field in () if names in found else FIELDS:
            known = [name for name in layout.names[field] if name in record.values]
            if len(known) > 1 and field not in ("id", "gold"):
                what = f"says the same as column {known[0]!r}; keep one"
                raise table.problem(record, known[1], what)
            found.setdefault(names, {}).update({field: known[0]} if known else {})
        yield ItemRow(table, layout, record, found[names])


def golds_of(row: ItemRow, language: str) -> tuple[str, ...]:
    """Return the gold forms, the main one first, with the tolerance's range. Raises UsageError."""
    main = row.required("gold")
    columns = (one for one in row.layout.names["gold"] if one in row.record.values)
    found = [form for column in columns for form in _forms(row, column)]
    column, value = row.find("aliases")
    if isinstance(value, list):
        found += _forms(row, column) if value else []
    elif text := row.string("aliases", "text or a list of texts")[1]:
        found += [
            row.checked(column, one) for one in text.split(ALIAS_MARK) if one.strip()
        ]
    column = main
    try:
        for gold in found:
            check_gold(gold, language)
        column, reach = row.string("tolerance", "text or a number")
        if reach is not None and reach.strip():
            found.append(with_tolerance(found[0], reach, language))
    except ValueError as error:
        raise row.problem(column, str(error)) from None
    return tuple(dict.fromkeys(found))


def _forms(row: ItemRow, column: str) -> list[str]:
    value = row.record.values[column]
    if isinstance(value, str):
        return [row.checked(column, str(value))]
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


def id_of(row: ItemRow) -> str | None:
    """Return the given id as text, None where the file gives none."""
    column, value = row.string("id", "text or a number")
    return row.checked(column, value).strip() if value else None


def metadata_of(row: ItemRow) -> dict[str, object]:
    """Return the columns that are no field of an item, and the entries of ``metadata``."""
    column, value = row.find("metadata")
    if isinstance(value, str):
        if len(value) > MAX_LITERAL:
            what = f"{len(value):,} characters; at most {MAX_LITERAL:,} are read"
            raise row.problem(column, what)
        try:  # ``ast.literal_eval`` runs nothing; deep nesting can exhaust it
            with (
                warnings.catch_warnings()
            ):  # an odd escape such as \d is the file's affair
                warnings.simplefilter("ignore")
                value = ast.literal_eval(value.strip() or "None")
        except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
            what = f"not a Python literal (nothing is run): {shown(value)}"
            raise row.problem(column, what) from None
    if value is not None and not isinstance(value, dict):
        what = f"a mapping such as {{'topic': 'Art'}} is needed, not {shown(value)}"
        raise row.problem(column, what)
    _plain(row, column, [f"{name}" for name in value or {}])
    found = {
        f"{name}": _plain(row, column, one, 1) for name, one in (value or {}).items()
    }
    others = row.record.values.items()
    used = row.layout.used
    return found | {
        name: _plain(row, name, one) for name, one in others if name not in used
    }


def _plain(row: ItemRow, column: str, value: object, depth: int = 0) -> object:
    """Return a metadata value as strict JSON can hold it. Raises UsageError where it cannot."""
    if depth > MAX_DEPTH:
        raise row.problem(column, f"nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, Mapping):
        _plain(row, column, [f"{name}" for name in value])
        return {
            f"{name}": _plain(row, column, one, depth + 1)
            for name, one in value.items()
        }
    if isinstance(value, (list, tuple)):
        return [_plain(row, column, item, depth + 1) for item in value]
    if isinstance(
        value, Number
    ):  # as its text where Python would not hold it exactly enough
        number = float(value) if len(value) <= 18 else math.inf
        if not math.isfinite(number):
            return str(value)
        return int(value) if value.lstrip("-").isdigit() else number
    if isinstance(value, str) and not encodable(value):
        raise row.problem(column, "holds a lone surrogate, half a character; drop it")
    if isinstance(value, float) and not math.isfinite(value):
        raise row.problem(column, "a finite number is needed")
    if value is None or isinstance(value, (str, int, float)):
        return value
    raise row.problem(column, f"{type(value).__name__} values are not kept; write text")


def check_gold(gold: str, language: str) -> None:
    """Raise ValueError for a malformed mark, or a range unlike ``1637..1642 m``."""
    if marked := _MARK.match(gold):
        mark = MARKS[not marked[1]]
        if not gold.startswith(mark):
            what = (
                f"{shown(gold)}: the mark is {mark!r}, exactly so and at the beginning"
            )
            raise ValueError(what)
        if not gold.removeprefix(mark).strip():
            raise ValueError(f"only the mark {mark!r}; say after it what is true")
    elif _RANGE.search(gold):
        parts = _RANGE.split(gold)
        ends = [_quantities(part, language) for part in parts]
        if [len(end) for end in ends] != [1, 1] or "..".join(parts) != gold:
            what = "is no range; write two numbers and their unit: '1637..1642 m'"
            raise ValueError(f"{shown(gold)} {what}")
        if _value(ends[0][0]) > _value(ends[1][0]):
            what = "the low end is the higher one; write the smaller number first"
            raise ValueError(f"{shown(gold)}: {what}")


def with_tolerance(gold: str, tolerance: str, language: str) -> str:
    """Return the range of what is accepted, ``2920..2930 m`` for ``2,925 m`` and ``5 m``.

    The range is exact in decimals, without thousands separators, and has the decimal mark of the
    language and the text around the gold's number. Raises ValueError for a gold that is not one
    number in digits, and for a tolerance that is neither a number above 0, in the gold's unit or
    without one, nor a percentage of the gold.
    """
    figures, found = list(_FIGURE.finditer(gold)), _quantities(gold, language)
    if len(figures) != 1 or len(found) != 1:
        raise ValueError(
            f"a tolerance needs a gold with one number, in digits; got {shown(gold)}"
        )
    figure, quantity = figures[0], found[0]
    value = _value(quantity)
    if abs(value) != _value(_quantities(figure[0], language)[0]):
        raise ValueError(
            f"a tolerance needs a gold in digits alone, as 2500000; got {shown(gold)}"
        )
    reach = _reach(tolerance, quantity, language)
    before = gold[: figure.start()][: -1 if value < 0 else None]
    mark = tables(language).decimal
    ends = (
        f"{end.normalize():f}".replace(".", mark)
        for end in (value - reach, value + reach)
    )
    return f"{before}{'..'.join(ends)}{gold[figure.end() :]}"


def _reach(tolerance: str, gold: Quantity, language: str) -> Decimal:
    """Return how far from the gold an answer may be, in the gold's unit."""
    found, words = _quantities(tolerance, language), read(tolerance).words
    if [(one.start, one.end) for one in found] != [(0, len(words))]:
        raise ValueError(f"got {shown(tolerance)}; {_WANTED}")
    one = found[0]
    if _value(one) <= 0:
        raise ValueError(f"got {shown(tolerance)}; it must be above 0: {_WANTED}")
    if one.unit == PERCENT and gold.unit != PERCENT:
        return abs(_value(gold)) * _value(one) / 100
    if one.unit == PERCENT:
        what = f"{shown(tolerance)} of a percentage may be points or a share; write a bare number"
        raise ValueError(what)
    if not one.shares_unit(gold):
        raise ValueError(f"{shown(tolerance)} is not in the gold's unit; {_WANTED}")
    return _value(one)


def _quantities(text: str, language: str) -> list[Quantity]:
    return find_quantities(read(text), tables(language))


def _value(quantity: Quantity) -> Decimal:
    """Return the first reading as written; a float keeps 15 digits of it."""
    return Decimal(str(quantity.values[0]))
