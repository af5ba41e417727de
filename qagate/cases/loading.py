"""From a slice's data file to its cases, with stable ids and digests.

A row becomes a case in three steps: ``tables.py`` reads the file, ``rows.py`` finds the columns of
a row, and here the kind of the data set says what its gold and its label are. Then the file is
looked at as a whole: for ids and questions that stand twice, and for fields that no item has.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches

from qagate.cases.answer_files import with_recorded
from qagate.cases.dataset import Slice
from qagate.cases.label_columns import as_judged
from qagate.cases.labels import OWN_RATER, TIED, given_label, yes_or_no
from qagate.cases.options import refuse_hidden_options, shown_question, unnested
from qagate.cases.rows import (
    LAYOUTS,
    ItemRow,
    check_columns,
    golds_of,
    id_of,
    metadata_of,
    rows_of,
)
from qagate.cases.tables import TableRow, read_table, with_headings
from qagate.evaluators.core import Case, UsageError
from qagate.evaluators.kinds import (
    CHECKED,
    CHOICE,
    FACT,
    GRADED,
    JUDGED,
    RATED,
    YES_NO,
    Kind,
)
from qagate.evaluators.text import digest, listed, shown

IDENTIFIERS = ("_id", "_row", "idx")
"""Endings of columns that tell apart two rows with the same question."""
GOOD_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


def load_cases(slice_: Slice) -> list[Case]:
    """Return the cases of a slice's file. Raises UsageError naming file, row, line and column."""
    return [case for _, case in load_rows(slice_)]


def load_rows(slice_: Slice) -> list[tuple[ItemRow, Case]]:
    """Return the rows of a slice's file with the case that each becomes."""
    table = with_headings(read_table(slice_.path), slice_.headings)
    if not slice_.kind.answered:
        table = as_judged(table, slice_)
    if slice_.kind.closed:
        table = unnested(table)
    layout = LAYOUTS[slice_.kind]
    check_columns(table, layout)
    rows = list(rows_of(table, layout))
    cases = [_case(slice_, row) for row in rows]
    _check_ids(rows)
    if slice_.kind.answered:
        _check_golds(rows, cases)
    else:  # raters may well see other golds for the same question
        _check_labels(rows, cases)
    _check_fields(slice_, cases)
    loaded = []
    for row, case, id_ in zip(rows, cases, _ids(rows, cases), strict=True):
        named = case if case.id == id_ else replace(case, id=id_)
        loaded.append((row, named))
    if slice_.recorded is not None:
        return with_recorded(loaded, slice_.recorded)
    return loaded


def _ids(rows: Sequence[ItemRow], cases: Sequence[Case]) -> Iterator[str]:
    """Yield the id of each case, all different.

    It is the file's own id, else the fact where no other row has it, else the case's digest.
    """
    facts = [case.metadata.get(FACT) for case in cases]
    count = Counter(fact for fact in facts if isinstance(fact, str))
    ids = []
    for row, case, fact in zip(rows, cases, facts, strict=True):
        if id_of(row) is not None or not isinstance(fact, str):
            ids.append(case.id)
        elif count[fact] == 1 and GOOD_ID.fullmatch(fact):
            ids.append(fact)
        else:
            ids.append(case.id)
    return unique(ids)


def _case(slice_: Slice, row: ItemRow) -> Case:
    context = _context(row)
    question = row.text(row.required("question"))
    answer_key = _ANSWER_KEYS[slice_.kind](slice_, row)
    if answer_key.shown_question:
        question = answer_key.shown_question
    _, recorded = row.string("recorded")  # "" is an empty answer, None is none
    hashed = case_digest(
        question,
        context,
        answer_key.golds,
        answer_key.label,
        judged=None if slice_.kind.answered else recorded,
    )
    id_in_file = id_of(row)
    metadata = metadata_of(row)
    if not slice_.kind.answered:
        _read_raters(slice_, row, metadata)
    return Case(
        id=hashed[:12] if id_in_file is None else given_id(id_in_file),
        dataset=slice_.dataset,
        language=slice_.language,
        row=row.record.row,
        question=question,
        golds=answer_key.golds,
        context=context,
        recorded=recorded,
        label=answer_key.label,
        metadata=metadata,
        digest=hashed,
        options=answer_key.options,
    )


def _context(row: ItemRow) -> str:
    """Return what is read before the question; empty where a row need not have it."""
    is_required = "context" in row.layout.required
    _, value = row.find("context")
    if not is_required and value in (None, ""):
        return ""
    return row.text(row.required("context"))


def _read_raters(slice_: Slice, row: ItemRow, metadata: dict[str, object]) -> None:
    """Put each rater's label into the metadata; take out those who did not see the item."""
    for name in sorted(filter(OWN_RATER.fullmatch, metadata)):
        if row.record.values[name] in (None, ""):
            del metadata[name]
        else:
            metadata[name] = _label(row, name, slice_.labels)


# What is right, by kind


@dataclass(frozen=True, slots=True)
class AnswerKey:
    """What a row says about right answers."""

    golds: tuple[str, ...]
    label: str | None = None
    """What the verdict must be; None where the golds decide, or raters were tied."""
    shown_question: str = ""
    """The question with its options; empty for one without any."""
    options: tuple[str, ...] = ()
    """In the order shown."""


def _yes_no_key(slice_: Slice, row: ItemRow) -> AnswerKey:
    column = row.required("gold")
    value = row.record.values[column]
    word = str(value).lower() if isinstance(value, bool) else row.text(column)
    try:
        label = yes_or_no(word, slice_.yes, slice_.no)
    except ValueError as error:
        raise row.problem(column, str(error)) from None
    return AnswerKey((word,), label)


def _choice_key(slice_: Slice, row: ItemRow) -> AnswerKey:
    shown = shown_question(
        row,
        row.text(row.required("question")),
        slice_.language,
        slice_.shuffle,
        slice_.index_from,
    )
    return AnswerKey(
        (shown.gold,), shown.label, shown_question=shown.text, options=shown.options
    )


def _judged_key(slice_: Slice, row: ItemRow) -> AnswerKey:
    golds = golds_of(row, slice_.language)
    column = row.required("label")
    _, recorded = row.string("recorded")
    if recorded is None:
        raise row.problem(
            row.required("recorded"), "null; give the answer that was judged"
        )
    if row.record.values[column] == TIED:
        return AnswerKey(golds)
    return AnswerKey(golds, _label(row, column, slice_.labels))


def _rated_key(slice_: Slice, row: ItemRow) -> AnswerKey:
    """Return the one expert answer that a rater is shown, or nothing."""
    column, value = row.find("gold")
    if value in (None, ""):
        return AnswerKey(("",))
    return AnswerKey((row.text(column),))


def _checked_key(slice_: Slice, row: ItemRow) -> AnswerKey:
    _, value = row.find("gold")
    if value is None:
        return AnswerKey(("",))
    return AnswerKey(golds_of(row, slice_.language))


def _graded_key(slice_: Slice, row: ItemRow) -> AnswerKey:
    refuse_hidden_options(row)
    return AnswerKey(golds_of(row, slice_.language))


_ANSWER_KEYS: Mapping[Kind, Callable[[Slice, ItemRow], AnswerKey]] = {
    GRADED: _graded_key,
    RATED: _rated_key,
    YES_NO: _yes_no_key,
    CHOICE: _choice_key,
    CHECKED: _checked_key,
    JUDGED: _judged_key,
}


def _label(row: ItemRow, column: str, labels: Sequence[str]) -> str:
    value = row.record.values[column]
    if not isinstance(value, str):
        raise row.problem(column, f"text is needed, not {shown(value)}")
    try:
        return given_label(row.checked(column, str(value)), labels)
    except ValueError as error:
        raise row.problem(column, str(error)) from None


# What must hold in a whole file


def _check_ids(rows: Iterable[ItemRow]) -> None:
    """Raise UsageError for an id that two rows have."""
    first_with: dict[str, TableRow] = {}
    for row in rows:
        id_ = id_of(row)
        if id_ is None:
            continue
        first = first_with.setdefault(id_, row.record)
        if first is not row.record:
            raise row.problem(
                row.required("id"),
                f"{shown(id_)} is also the id of {_where(first)}; ids must differ",
            )


def _check_labels(rows: Sequence[ItemRow], cases: Sequence[Case]) -> None:
    """Raise UsageError for a file that mixes grades and ratings: no judge gives both."""
    first_is_rating: bool | None = None
    for row, case in zip(rows, cases, strict=True):
        if not case.label:
            continue
        is_rating = case.label.isdigit()
        if first_is_rating is None:
            first_is_rating = is_rating
        if is_rating != first_is_rating:
            other = "a rating" if first_is_rating else "a grade"
            raise row.problem(
                row.required("label"),
                f"got {shown(case.label)}, but row 1 has {other}; "
                "one file holds one of the two",
            )


def _check_fields(slice_: Slice, cases: Sequence[Case]) -> None:
    """Raise UsageError if no item has the field of ``cluster``, or one of ``by`` is misspelt.

    The items of some kinds form clusters without a field. A field of ``by`` that no item has is
    taken for misspelt only if the file has one like it.
    """
    fields = dict.fromkeys(name for case in cases for name in case.metadata)
    other_fields = fields.keys() - {*slice_.by}
    key_of_missing_field: dict[str, str] = {}
    for name in slice_.by:
        if name in fields:
            continue
        if get_close_matches(name, other_fields, n=1, cutoff=0.8):
            key_of_missing_field[name] = "by"
    if slice_.cluster and slice_.cluster not in fields:
        form_clusters_anyway = all(slice_.kind.shared(case) for case in cases)
        if not form_clusters_anyway:
            key_of_missing_field[slice_.cluster] = "cluster"
    if not key_of_missing_field:
        return
    name, key = next(iter(key_of_missing_field.items()))
    raise UsageError(
        f"{slice_.path}: no item has a field {name!r}, which '{key}:' of "
        f"{slice_.dataset} names; add the column, or name one of the file's "
        f"({listed(fields) or 'none'})"
    )


def _check_golds(rows: Sequence[ItemRow], cases: Sequence[Case]) -> None:
    """Raise UsageError for a question that stands twice with golds that share no form."""
    first_with: dict[tuple[str, str], int] = {}
    for place, case in enumerate(cases):
        first_place = first_with.setdefault((case.question, case.context), place)
        if first_place == place:
            continue
        first_row, first_case = rows[first_place], cases[first_place]
        row = rows[place]
        if _compared(first_case) & _compared(case) or _are_told_apart(first_row, row):
            continue
        raise row.problem(
            row.required("gold"),
            f"the same question as before: {_where(first_row.record)} answers it "
            f"{shown(first_case.expected)}; keep one, or give each an id",
        )


def _compared(case: Case) -> set[str]:
    """Return a case's golds without letter case and outer or double spaces."""
    return {" ".join(gold.casefold().split()) for gold in case.golds}


def _are_told_apart(first: ItemRow, second: ItemRow) -> bool:
    """Return whether a column of ids has another value in the second row."""
    for name, value in second.record.values.items():
        is_id = name in second.layout.names["id"] or name.endswith(IDENTIFIERS)
        if is_id and first.record.values.get(name) != value:
            return True
    return False


def _where(record: TableRow) -> str:
    return f"row {record.row} (line {record.line})"


# Ids and digests


def given_id(id_: str) -> str:
    """Return an id from the file as ASCII: the id itself, or 12 digits of its hash."""
    if GOOD_ID.fullmatch(id_):
        return id_
    return digest(["id", id_])[:12]


def unique(ids: Iterable[str]) -> Iterator[str]:
    """Yield the ids in order, the second and later of equal ones with ``-2``, ``-3`` added."""
    ids = list(ids)
    taken = set(ids)
    count = dict.fromkeys(ids, 0)
    for id_ in ids:
        count[id_] += 1
        name = id_
        if count[id_] > 1:
            name = f"{id_[:56]}-{count[id_]}"
            while name in taken:
                count[id_] += 1
                name = f"{id_[:56]}-{count[id_]}"
        taken.add(name)
        yield name


def case_digest(
    question: str,
    context: str,
    golds: Sequence[str],
    label: str | None = None,
    judged: str | None = None,
) -> str:
    """Return the hash of all that may change an item's result; ``judged``: its recorded answer."""
    parts: list[object] = [question, context, list(golds), label]
    if judged is not None:
        parts.append(judged)
    return digest(parts)
