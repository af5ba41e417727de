"""From the options of a row and its key to a question as it is shown.

Options stand in one list, or in a column each (``option_a`` …). The key names the right one by its
letter, its text, or its number; or all of them, in order. The order in which options are shown is
drawn from their texts, so that it is the same in every run, in whatever order the file has them.
"""

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from qagate.cases.rows import LONE_LETTERS, MAX_LITERAL, OPTION_COLUMNS, ItemRow
from qagate.cases.tables import Number, Table
from qagate.evaluators.core import UsageError
from qagate.evaluators.option_letters import MOST_OPTIONS, letters_of, place_of
from qagate.evaluators.replies.choices import (
    AnswerOption,
    bare,
    flat,
    lettered,
    read_order,
)
from qagate.evaluators.replies.readers import Invalid
from qagate.evaluators.text import digest, shown

FILE_ORDER = 0
"""The seed that keeps options in the order of the file."""

FIRST_NUMBER: Mapping[str, int] = {
    "correct_answer_num": 1,
    "answer_index": 0,
    "answer_idx": 0,
}
"""Columns of public sets that say by their name from where they count."""

LISTS_OF_OPTIONS = ("options", "choices")
_OPTION_NAME = re.compile(r"[A-JА-Я]|\d")
_LETTER = re.compile(r"[(\[]?([^\W\d_])[)\].:]?")


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownQuestion:
    """A question as a model is asked it."""

    text: str
    """The question with its options below, a letter before each."""
    options: tuple[str, ...]
    """In the order shown."""
    label: str
    """The letter of the right option; for an order all letters."""
    gold: str
    """The text of the right option; for an order all texts, with commas between."""


def shown_question(
    row: ItemRow, question: str, language: str, seed: int, index_from: int | None
) -> ShownQuestion:
    """Return a row's question with its options in the order that ``seed`` draws.

    ``index_from`` is the number of the first option, where keys may be numbers. Raises UsageError
    for fewer than two different options or more than ten, and for a key that names none.
    """
    column, options, labels = _read_options(row)
    shown_as = _places_shown(row, column, options)
    right = _right_places(row, options, labels, language, index_from)
    right = [shown_as[place] for place in right]
    order = _drawn_order(question, options, set(shown_as), seed)
    letters = letters_of(language)
    letter_of = {place: letters[rank] for rank, place in enumerate(order)}
    lines = [f"{letter_of[place]}) {options[place]}" for place in order]
    return ShownQuestion(
        text="\n".join([f"{question}\n", *lines]),
        options=tuple(options[place] for place in order),
        label="".join(letter_of[place] for place in right),
        gold=", ".join(options[place] for place in right),
    )


def unnested(table: Table) -> Table:
    """Return a table whose questions are texts, with the options beside them.

    Some public sets have a mapping in the place of a question: ``{stem: …, choices: […]}``.
    """
    records = []
    for record in table.records:
        values = record.values
        question = values.get("question")
        if isinstance(question, Mapping) and "stem" in question:
            choices = question.get("choices")
            values = {**values, "question": question["stem"], "choices": choices}
        records.append(replace(record, values=values))
    return replace(table, records=records)


def has_options(values: Mapping[str, object]) -> bool:
    """Return whether a row has options, in a list or a column each."""
    for name in LISTS_OF_OPTIONS:
        if values.get(name):
            return True
    for columns in OPTION_COLUMNS:
        if columns != LONE_LETTERS and sum(name in values for name in columns) > 1:
            return True
    return False


def _texts_of_options(values: Mapping[str, object]) -> set[str]:
    """Return the texts of a row's options, as far as they can be told without reading them."""
    options: list[object] = []
    for name in LISTS_OF_OPTIONS:
        listed = values.get(name)
        if isinstance(listed, list):
            options += listed
    for columns in OPTION_COLUMNS:
        options += [values[name] for name in columns if name in values]
    return {str(option).strip() for option in options}


def refuse_hidden_options(row: ItemRow) -> None:
    """Raise UsageError for a gold that names an option which the model would not be shown."""
    values = row.record.values
    if not has_options(values):
        return
    texts = _texts_of_options(values)
    for column in row.layout.names["gold"]:
        gold = values.get(column)
        if not isinstance(gold, str) or gold.strip() in texts:
            continue
        if _OPTION_NAME.fullmatch(gold.strip()):
            raise row.problem(
                column,
                f"{shown(gold)} names an option, and options are shown only by 'kind: "
                "choice'; say so in dataset.yaml, or give the text as gold",
            )


def _drawn_order(
    question: str, options: Sequence[str], places: Collection[int], seed: int
) -> list[int]:
    """Return these places of options in the file, in the order in which they are shown."""
    if seed == FILE_ORDER:
        return sorted(places)
    return sorted(places, key=lambda place: digest([seed, question, options[place]]))


def _read_options(row: ItemRow) -> tuple[str, list[str], list[str]]:
    """Return the column of a row's options, their texts, and the labels that the file gives them.

    Only lists of mappings, and mappings of lists, have labels.
    """
    column, value = row.find("options")
    if value is None:
        return _options_by_column(row)
    if isinstance(value, str) and not isinstance(value, Number):
        value = _list_in_text(row, column, value)
    texts: object = value
    labels: object = []
    if isinstance(value, Mapping):  # {text: [...], label: [...]}
        texts, labels = value.get("text"), value.get("label", [])
    elif isinstance(value, list) and all(isinstance(part, Mapping) for part in value):
        texts = [part.get("text") for part in value]
        labels = [part.get("label", "") for part in value]
    if not isinstance(texts, list) or not isinstance(labels, list):
        raise row.problem(column, f"a list of options is needed, not {shown(value)}")
    options = [_option_text(row, column, text) for text in texts]
    return column, options, [str(label) for label in labels]


def _list_in_text(row: ItemRow, column: str, text: str) -> object:
    """Return the list that a cell of a CSV file writes: ``["a", "b"]``, or ``a | b``."""
    if " | " in text and not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(" | ")]
    if len(text) > MAX_LITERAL:
        raise row.problem(column, f"{len(text):,} characters; shorten it")
    try:
        literal: object = ast.literal_eval(text.strip())
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise row.problem(
            column,
            f'no list of options: {shown(text)}; write ["one", "two"] or one | two',
        ) from None
    return literal


def _options_by_column(row: ItemRow) -> tuple[str, list[str], list[str]]:
    for columns in OPTION_COLUMNS:
        names = [name for name in columns if name in row.record.values]
        if len(names) < 2:
            continue
        values = [row.record.values[name] for name in names]
        while values and values[-1] in (None, ""):  # this item has fewer
            values.pop()
        options = []
        for name, value in zip(names, values, strict=False):
            options.append(_option_text(row, name, value))
        return names[0], options, []
    raise row.problem(
        "options",
        "missing; give a list in 'options' or 'choices', or columns option_a, option_b …",
    )


def _option_text(row: ItemRow, column: str, value: object) -> str:
    if not isinstance(value, (str, int, float)) or isinstance(value, bool):
        raise row.problem(column, f"an option must be text, not {shown(value)}")
    return " ".join(row.checked(column, str(value)).split())


def _places_shown(row: ItemRow, column: str, options: Sequence[str]) -> list[int]:
    """Return for each option the place of the one that is shown for it.

    It is itself, or the first one with the same text: public exams have such slips, and an answer
    by the text could mean either.
    """
    first_with: dict[str, int] = {}
    for place, option in enumerate(options):
        first_with.setdefault(bare(option), place)
    if not 2 <= len(first_with) <= MOST_OPTIONS:
        raise row.problem(
            column,
            f"{len(first_with)} different options; give 2 to {MOST_OPTIONS} of them",
        )
    return [first_with[bare(option)] for option in options]


# The key


def _right_places(
    row: ItemRow,
    options: Sequence[str],
    labels: Sequence[str],
    language: str,
    index_from: int | None,
) -> list[int]:
    """Return the places of right options in the file: one, or all of them in order.

    Where a row has several columns of keys they must agree.
    """
    row.required("gold")
    columns = [name for name in row.layout.names["gold"] if name in row.record.values]
    first: list[int] = []
    for column in columns:
        key = _Key(row, column, options, labels, language, index_from)
        places = key.places()
        if first and places != first:
            raise row.problem(
                column, f"names another option than {columns[0]!r}; correct one"
            )
        first = places
    return first


@dataclass(frozen=True, slots=True)
class _Key:
    """What a cell says about the right option."""

    row: ItemRow
    column: str
    options: Sequence[str]
    labels: Sequence[str]
    language: str
    index_from: int | None

    def places(self) -> list[int]:
        value = self.row.record.values[self.column]
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if isinstance(value, list):
            return self._order([self._place(self._text(part)) for part in value])
        text = self._text(value)
        place = self._place_if_any(text)
        if place is not None:
            return [place]
        return self._order(self._written_order(text))

    def _text(self, value: object) -> str:
        if not isinstance(value, (str, int)) or isinstance(value, bool):
            raise self.row.problem(
                self.column,
                f"the letter, text or number of an option is needed, not {shown(value)}",
            )
        return self.row.checked(self.column, str(value)).strip()

    def _place(self, text: str) -> int:
        place = self._place_if_any(text)
        if place is None:
            raise self._no_option(text)
        return place

    def _place_if_any(self, text: str) -> int | None:
        """Return the place of the option that a text names. Raises UsageError if it may be two."""
        readings = {
            self._by_text(text),
            self._by_letter(text),
            self._by_number(text),
        }
        readings.discard(None)
        if len(readings) > 1:
            raise self.row.problem(
                self.column,
                f"{shown(text)} is the text of one option, and the letter or number of "
                "another; name the option otherwise",
            )
        return readings.pop() if readings else None

    def _by_text(self, text: str) -> int | None:
        texts = [bare(option) for option in self.options]
        if bare(text) in texts:
            return texts.index(bare(text))
        folded = [flat(option) for option in self.options]
        if folded.count(flat(text)) == 1:  # only case may tell two options apart
            return folded.index(flat(text))
        return None

    def _by_letter(self, text: str) -> int | None:
        if text in self.labels:
            return self.labels.index(text)
        letter = _LETTER.fullmatch(text)
        if not letter:
            return None
        capital = letter[1].upper()
        alphabet = letters_of(self.language)
        place = place_of(capital)
        if capital in alphabet:
            place = alphabet.index(capital)
        if place is None or place >= len(self.options):
            return None
        return place

    def _by_number(self, text: str) -> int | None:
        if not re.fullmatch(r"\d{1,2}", text, re.ASCII) or text in self.labels:
            return None
        first = FIRST_NUMBER.get(self.column, self.index_from)
        if first is None:
            if self._by_text(text) is not None:
                return None
            raise self.row.problem(
                self.column,
                f"{text} is a number; say 'index_from: 0' or 'index_from: 1' in "
                "dataset.yaml: the number of the first option",
            )
        place = int(text) - first
        if 0 <= place < len(self.options):
            return place
        return None

    def _written_order(self, text: str) -> list[int]:
        """Return the places in an order such as ``C, A, D, B`` or ``3142``."""
        by_letter = lettered(self.options, self.language)
        latin = lettered(self.options, "")
        by_number = tuple(
            AnswerOption(
                label=letters_of("")[place], text=option, letter=str(place + 1)
            )
            for place, option in enumerate(self.options)
        )
        menus = [by_letter, latin]
        if len(self.options) < MOST_OPTIONS:  # each number is one sign
            menus.append(by_number)
        for options in menus:
            order = read_order(text, options)
            if not isinstance(order, Invalid):
                labels = [option.label for option in options]
                return [labels.index(label) for label in order]
        raise self._no_option(text)

    def _order(self, places: list[int]) -> list[int]:
        texts = {bare(self.options[place]) for place in places}
        if not len(places) == len(texts) == len(self.options):
            raise self.row.problem(
                self.column,
                "an order names every option once, and any other key one option",
            )
        return places

    def _no_option(self, text: str) -> UsageError:
        return self.row.problem(
            self.column,
            f"{shown(text)} is no letter, text or number of its {len(self.options)} options",
        )
