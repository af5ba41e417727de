"""From a slice's data file to its cases, with stable ids and digests.

A file of labelled answers may have its columns under many names: they are found first.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import partial

from qagate.cases.dataset import Slice
from qagate.cases.labels import (
    OWN_RATER,
    TIED,
    LabelReading,
    Scale,
    given_label,
    read_grade,
    yes_or_no,
)
from qagate.cases.rows import (
    LAYOUTS,
    ItemRow,
    check_columns,
    golds_of,
    id_of,
    metadata_of,
    rows_of,
)
from qagate.cases.tables import Table, TableRow, normal, read_table
from qagate.evaluators.core import Case, UsageError
from qagate.evaluators.kinds import FACT, NOT_CORRECT, TWO_WAY
from qagate.evaluators.reading import problem
from qagate.evaluators.text import digest, listed, shown

IDENTIFIERS = ("_id", "_row", "idx")
GOOD_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)
QUESTION = ("question", "problem", "input", "query")
ANSWER = ("predicted_answer", "predicted_answers", "predicted", "prediction", "submission",
          "student_answer", "model_answer", "response", "output", "answer")  # fmt: skip
GOLD = ("gold", "golds", "gold_answer", "golden_answer", "target", "expected", "reference",
        "reference_answer", "correct_answer", "desired_answer", "answer", "answers")  # fmt: skip
LABEL = ("label", "human", "human_label", "human_correct", "human_rating", "human_score",
         "grade", "rating", "score", "score_avg")  # fmt: skip
LANGUAGE_COLUMNS = ("language", "lang", "locale")
RATER = re.compile(
    r"((?:label|rater|annotator|human|rating|score)_?)(\d{1,3})", re.ASCII
)
MISREAD = ("problem", "answers", "predicted_answers")
"""Other names of the standard columns: they would count twice."""
STANDARD = frozenset({"question", "answer", "predicted_answer", "label"})
Columns = Mapping[str, str]


def load_cases(slice_: Slice) -> list[Case]:
    """Return the cases of a slice's file. Raises UsageError naming file, row, line and column."""
    return [case for _, case in load_rows(slice_)]


def load_rows(slice_: Slice) -> list[tuple[ItemRow, Case]]:
    """Return the rows of a slice's file with the case that each becomes."""
    table = read_table(slice_.path)
    if not slice_.kind.answered:
        table = as_judged(table, slice_)
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
    facts = [case.metadata.get(FACT) for case in cases]
    count = Counter(fact for fact in facts if isinstance(fact, str))
    ids = []  # the file's own, or the fact where no other row has it
    for row, case, fact in zip(rows, cases, facts, strict=True):
        named = isinstance(fact, str) and count[fact] == 1 and GOOD_ID.fullmatch(fact)
        ids.append(str(fact) if named and id_of(row) is None else case.id)
    every = zip(rows, cases, unique(ids), strict=True)
    return [
        (row, case if case.id == id_ else replace(case, id=id_))
        for row, case, id_ in every
    ]


def _case(slice_: Slice, row: ItemRow) -> Case:
    bare = "context" not in row.layout.required and row.find("context")[1] in (None, "")
    context = "" if bare else row.text(row.required("context"))
    golds, label = _golds_and_label(slice_, row)
    question = row.text(row.required("question"))
    recorded = row.string("recorded")[
        1
    ]  # as it stands: "" is an empty answer, None is none
    judged = None if slice_.kind.answered else recorded
    hashed = case_digest(question, context, golds, label, judged)
    given, metadata = id_of(row), metadata_of(row)
    for name in (
        () if slice_.kind.answered else sorted(filter(OWN_RATER.fullmatch, metadata))
    ):
        if row.record.values[name] in (None, ""):
            del metadata[name]  # this rater did not see the item
        else:
            metadata[name] = _label(row, name, slice_.labels)
    return Case(
        id=hashed[:12] if given is None else given_id(given),
        dataset=slice_.dataset,
        language=slice_.language,
        row=row.record.row,
        question=question,
        golds=golds,
        context=context,
        recorded=recorded,
        label=label,
        metadata=metadata,
        digest=hashed,
    )


def _golds_and_label(slice_: Slice, row: ItemRow) -> tuple[tuple[str, ...], str | None]:
    kind = slice_.kind
    if kind.words:
        column = row.required("gold")
        value = row.record.values[column]
        word = str(value).lower() if isinstance(value, bool) else row.text(column)
        try:
            return (word,), yes_or_no(word, slice_.yes, slice_.no)
        except ValueError as error:
            raise row.problem(column, str(error)) from None
    if not kind.answered:
        golds, column = golds_of(row, slice_.language), row.required("label")
        if row.string("recorded")[1] is None:
            raise row.problem(
                row.required("recorded"), "null; give the answer that was judged"
            )
        tied = row.record.values[column] == TIED
        return golds, None if tied else _label(row, column, slice_.labels)
    if kind.rated:  # a rater is shown one expert answer
        column, value = row.find("gold")
        return ("" if value in (None, "") else row.text(column),), None
    if kind.by_checks and row.find("gold")[1] is None:
        return ("",), None
    return golds_of(row, slice_.language), None


def _label(row: ItemRow, column: str, labels: Sequence[str]) -> str:
    value = row.record.values[column]
    if not isinstance(value, str):
        raise row.problem(column, f"text is needed, not {shown(value)}")
    try:
        return given_label(row.checked(column, str(value)), labels)
    except ValueError as error:
        raise row.problem(column, str(error)) from None


def _check_ids(rows: Iterable[ItemRow]) -> None:
    first: dict[str, TableRow] = {}
    for row in rows:
        given = id_of(row)
        before = row.record if given is None else first.setdefault(given, row.record)
        if before is not row.record:
            what = f"{shown(given)} is also the id of {_where(before)}; ids must differ"
            raise row.problem(row.required("id"), what)


def _check_labels(rows: Sequence[ItemRow], cases: Sequence[Case]) -> None:
    """Raise UsageError for a file that mixes grades and ratings: no judge gives both."""
    found = [
        (row, case.label) for row, case in zip(rows, cases, strict=True) if case.label
    ]
    for row, label in found:
        if label.isdigit() != (rated := found[0][1].isdigit()):
            other = "a rating" if rated else "a grade"
            what = f"got {shown(label)}, but row 1 has {other}; one file holds one of the two"
            raise row.problem(row.required("label"), what)


def _check_fields(slice_: Slice, cases: Sequence[Case]) -> None:
    """Raise UsageError if the cluster's field lacks or one of ``by`` is misspelt."""
    there = dict.fromkeys(name for case in cases for name in case.metadata)
    others = there.keys() - {*slice_.by}
    lacking = {
        name: "by" for name in slice_.by if get_close_matches(name, others, 1, 0.8)
    }
    if slice_.cluster and not all(slice_.kind.shared(case) for case in cases):
        lacking[slice_.cluster] = "cluster"
    for name in (one for one in lacking if one not in there):
        what = f"no item has a field {name!r}, which '{lacking[name]}:' of {slice_.dataset} names"
        advice = (
            f"add the column, or name one of the file's ({listed(there) or 'none'})"
        )
        raise UsageError(f"{slice_.path}: {what}; {advice}")


def _check_golds(rows: Sequence[ItemRow], cases: Sequence[Case]) -> None:
    first: dict[tuple[str, str], int] = {}
    for index, case in enumerate(cases):
        before = first.setdefault((case.question, case.context), index)
        if before == index:
            continue
        one, two = rows[before], rows[index]
        golds = ({" ".join(gold.casefold().split()) for gold in own.golds}
                 for own in (cases[before], case))  # fmt: skip
        told_apart = any(
            one.record.values.get(name) != value
            for name, value in two.record.values.items()
            if name in two.layout.names["id"] or name.endswith(IDENTIFIERS)
        )
        if not told_apart and not set.intersection(*golds):
            other = f"{_where(one.record)} answers it {shown(cases[before].expected)}"
            what = f"the same question as before: {other}; keep one, or give each an id"
            raise two.problem(two.required("gold"), what)


def _where(record: TableRow) -> str:
    return f"row {record.row} (line {record.line})"


def given_id(given: str) -> str:
    """Return an id from the file as ASCII: the id itself, or 12 digits of its hash."""
    return given if GOOD_ID.fullmatch(given) else digest(["id", given])[:12]


def unique(ids: Iterable[str]) -> Iterator[str]:
    """Yield the ids in order, the second and later of equal ones with ``-2``, ``-3`` added."""
    ids = list(ids)
    taken = set(ids)
    count = dict.fromkeys(ids, 0)
    for id_ in ids:
        count[id_] += 1
        name = id_
        while count[id_] > 1 and (name := f"{id_[:56]}-{count[id_]}") in taken:
            count[id_] += 1
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
    return digest(parts if judged is None else [*parts, judged])


def find_columns(table: Table, reading: LabelReading) -> dict[str, str]:
    """Return a file's columns by the standard ones, by ``label_1`` and so on, and ``language``.

    ``label`` is empty where the raters' are the labels. Raises UsageError for a missing column.
    """
    plain = {normal(name).replace("-", "_"): name for name in table.names}

    def first(names: Sequence[str]) -> str:
        return next((plain[name] for name in names if name in plain), "")

    def needed(names: Sequence[str]) -> str:
        if found := first([normal(name).replace("-", "_") for name in names]):
            return found
        others = f" (or {', '.join(names[1:])})" if names[1:] else ""
        what = f"no column {names[0]!r}{others}; found {listed(table.names.values())}"
        raise problem(table.path, table.records[0].line, what)

    matches = sorted(
        filter(None, map(RATER.fullmatch, plain)), key=lambda m: (m[1], int(m[2]))
    )
    raters = [needed([name]) for name in reading.raters] or [
        plain[m[0]] for m in matches
    ]
    if reading.column:
        label = needed([reading.column])
    else:
        label = first(LABEL) if raters else needed(LABEL)
    gold, others = needed(GOLD), (name for name in raters if name != label)
    return {
        "question": needed(QUESTION),
        "answer": gold,
        "predicted_answer": needed([name for name in ANSWER if name != gold]),
        "label": label,
        **{f"label_{number}": name for number, name in enumerate(others, 1)},
        "language": first(LANGUAGE_COLUMNS),
    }


def as_judged(table: Table, slice_: Slice) -> Table:
    """Return labelled answers with the columns of kind ``judged``. Raises UsageError."""
    reading, language = slice_.label_reading, slice_.language
    if reading == LabelReading() and table.names.keys() >= STANDARD:
        return table
    names = find_columns(table, reading)
    rows = [
        row
        for row in table.records
        if language_of(row, names, reading, language) == language
    ]
    if not rows:
        raise problem(table.path, 1, f"no row is in language {language!r}")
    spoken = names.pop("language")
    # An id that several answers have is that of their question.
    shared = (one for one in ("id", "qid")
              if len({str(row.values.get(one)) for row in rows}) < len(rows))  # fmt: skip
    gone = {*names, *names.values(), *MISREAD, *shared, spoken}
    kept = [
        one for one in table.names if one not in gone and not OWN_RATER.fullmatch(one)
    ]
    reader: Callable[[str], str | float] = partial(read_grade, labels=slice_.labels)
    if slice_.rates:
        reader = (reading.scale or Scale()).place
    found = [_labels(table, row, names, reader) for row in rows]
    if reading.two_way or any(NOT_CORRECT in some for some in found):
        kept_labels = ("", TIED, *TWO_WAY)
        found = [
            [one if one in kept_labels else NOT_CORRECT for one in labels]
            for labels in found
        ]
    records = []
    for row, labels in zip(rows, found, strict=True):
        values = {name: row.values[name] for name in kept if name in row.values}
        values |= {name: row.values.get(column) for name, column in names.items()}
        values |= dict(zip(_label_names(names), labels, strict=True))
        records.append(replace(row, values=values))
    spelt = {name: table.names.get(column, column) for name, column in names.items()}
    return replace(
        table, names={one: table.names[one] for one in kept} | spelt, records=records
    )


def language_of(
    row: TableRow, names: Columns, reading: LabelReading, usual: str
) -> str:
    """Return the code of a row's language."""
    said = str(row.values.get(names["language"]) or "")
    return (normal(said) or reading.language or usual).replace("_", "-")


def _label_names(names: Columns) -> list[str]:
    return [one for one in names if one == "label" or OWN_RATER.fullmatch(one)]


def label_texts(table: Table, names: Columns) -> set[str]:
    """Return the different labels in a file, as they stand there."""
    columns = filter(None, map(names.get, _label_names(names)))
    return {_text(table, row, name) for name in columns for row in table.records} - {""}


def _labels(
    table: Table, row: TableRow, names: Columns, reader: Callable[[str], str | float]
) -> list[str]:
    """Return the label of a row, and then what each rater said, empty for nothing."""

    def read(column: str) -> str | float:
        try:
            return reader(_text(table, row, column))
        except ValueError as error:
            raise table.problem(row, column, str(error)) from None

    column, *others = (names[one] for one in _label_names(names))
    raters = [read(name) if _text(table, row, name) else "" for name in others]
    given = [one for one in raters if one != ""]
    if not column and not given:
        raise table.problem(row, others[0], "no rater has a label in this row")
    label = read(column) if column else agreed(given)
    return [
        str(round(one)) if isinstance(one, float) else one for one in (label, *raters)
    ]


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
