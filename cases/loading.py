"""From a slice's file to its cases."""

import hashlib
import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from cases.dataset import Slice
from cases.kinds import LAYOUTS
from cases.labels import grade_or_rating, yes_or_no
from cases.rows import (
    Row,
    check_columns,
    golds_of,
    id_of,
    metadata_of,
    recorded_of,
    rows_of,
)
from cases.tables import Record, read_table
from evaluators.core import Case
from evaluators.text import digest, shown

RATERS = "label_"
IDENTIFIERS = ("_id", "_row", "idx")


def load_cases(slice_: Slice) -> list[Case]:
    """Return the cases of a slice's file in its order.

    Raises UsageError naming file, row, line and column for anything that is not as it must be.
    """
    table = read_table(slice_.path)
    layout = LAYOUTS[slice_.kind]
    check_columns(table, layout)
    rows = list(rows_of(table, layout))
    cases = [_case(slice_, row) for row in rows]
    _check_ids(rows)
    if slice_.kind == "judged":
        _check_labels(rows, cases)
    else:  # raters may well be shown other golds for the same question
        _check_golds(rows, cases)
    return _with_unique_ids(cases)


def _case(slice_: Slice, row: Row) -> Case:
    context = _context(row)
    golds, label = _gold_and_label(slice_, row)
    question = row.text(row.required("question"))
    recorded = recorded_of(row)
    judged = recorded if slice_.kind == "judged" else None
    digest = case_digest(question, context, golds, label, judged)
    given = id_of(row)
    return Case(
        id=own_id(digest) if given is None else given_id(given),
        dataset=slice_.dataset,
        language=slice_.language,
        row=row.record.row,
        question=question,
        golds=golds,
        context=context,
        recorded=recorded,
        label=label,
        metadata=_metadata(slice_, row),
        digest=digest,
    )


def _context(row: Row) -> str:
    optional = "context" not in row.layout.required
    column = row.columns.get("context") if optional else row.required("context")
    if column is None or (optional and row.record.values[column] in (None, "")):
        return ""
    return row.text(column)


def _gold_and_label(slice_: Slice, row: Row) -> tuple[tuple[str, ...], str | None]:
    if slice_.kind == "yes_no":
        return _yes_no_gold(slice_, row)
    if slice_.kind == "judged":
        return golds_of(row), _judged_label(row, slice_.labels)
    if slice_.kind == "rated":  # a rater is shown one expert answer
        return (row.text(row.required("gold")),), None
    return golds_of(row), None


def _yes_no_gold(slice_: Slice, row: Row) -> tuple[tuple[str, ...], str]:
    column = row.required("gold")
    value = row.record.values[column]
    word = str(value).lower() if isinstance(value, bool) else row.text(column)
    try:
        return (word,), yes_or_no(word, slice_.yes, slice_.no)
    except ValueError as error:
        raise row.problem(column, str(error)) from None


def _judged_label(row: Row, labels: Sequence[str]) -> str:
    column = row.required("label")
    if recorded_of(row) is None:
        raise row.problem(row.required("recorded"), "null; give the answer that was judged")
    return _label(row, column, labels)


def _label(row: Row, column: str, labels: Sequence[str]) -> str:
    value = row.record.values[column]
    if not isinstance(value, str):
        raise row.problem(column, f"text is needed, not {shown(value)}")
    try:
        return grade_or_rating(row.checked(column, str(value)), labels)
    except ValueError as error:
        raise row.problem(column, str(error)) from None


def _metadata(slice_: Slice, row: Row) -> dict[str, object]:
    found = metadata_of(row)
    if slice_.kind == "judged":
        for name in [name for name in found if name.startswith(RATERS) and name[6:].isdigit()]:
            if row.record.values[name] in (None, ""):
                del found[name]  # this rater did not see the item
            else:
                found[name] = _label(row, name, slice_.labels)
    return found


def _check_ids(rows: Iterable[Row]) -> None:
    first: dict[str, Record] = {}
    for row in rows:
        given = id_of(row)
        before = row.record if given is None else first.setdefault(given, row.record)
        if before is not row.record:
            what = f"{shown(given)} is also the id of {_where(before)}; ids must differ"
            raise row.problem(row.required("id"), what)


def _check_labels(rows: Sequence[Row], cases: Sequence[Case]) -> None:
    """Refuse a file that mixes grades and ratings: no judge gives both."""
    rated = (cases[0].label or "").isdigit()
    for row, case in zip(rows, cases, strict=True):
        if (case.label or "").isdigit() != rated:
            other = "a rating" if rated else "a grade"
            what = f"got {shown(case.label)}, but row 1 has {other}; one file holds one of the two"
            raise row.problem(row.required("label"), what)


def _check_golds(rows: Sequence[Row], cases: Sequence[Case]) -> None:
    """Refuse one question with golds that contradict each other, where nothing tells them apart."""
    first: dict[tuple[str, str], int] = {}
    for index, case in enumerate(cases):
        before = first.setdefault((case.question, case.context), index)
        if before != index and _contradict(rows[before], rows[index], cases[before], case):
            other = f"{_where(rows[before].record)} answers it {shown(cases[before].expected)}"
            what = f"the same question as before: {other}; keep one, or give each an id"
            raise rows[index].problem(rows[index].required("gold"), what)


def _contradict(one: Row, two: Row, first: Case, second: Case) -> bool:
    if {_folded(gold) for gold in first.golds} & {_folded(gold) for gold in second.golds}:
        return False
    return not any(
        one.record.values.get(name) != value
        for name, value in two.record.values.items()
        if name in two.layout.id or name.endswith(IDENTIFIERS)
    )


def _folded(gold: str) -> str:
    return " ".join(gold.casefold().split())


def _where(record: Record) -> str:
    return f"row {record.row} (line {record.line})"


def _with_unique_ids(cases: Sequence[Case]) -> list[Case]:
    ids = unique(case.id for case in cases)
    return [
        case if case.id == id_ else replace(case, id=id_)
        for case, id_ in zip(cases, ids, strict=True)
    ]


GOOD_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


def given_id(given: str) -> str:
    """Return an id from the file as ASCII: itself where it fits, else 12 digits of its hash."""
    return given if GOOD_ID.fullmatch(given) else digest(["id", given])[:12]


def own_id(digest_: str) -> str:
    """Return the id of an item that has none in the file: 12 digits of its digest."""
    return digest_[:12]


def unique(ids: Iterable[str]) -> list[str]:
    """Return the ids in order, the second and later of equal ones with ``-2``, ``-3`` added."""
    ids = list(ids)
    taken = set(ids)
    count = dict.fromkeys(ids, 0)
    found = []
    for id_ in ids:
        count[id_] += 1
        found.append(id_ if count[id_] == 1 else _free(id_, count, taken))
    return found


def _free(id_: str, count: dict[str, int], taken: set[str]) -> str:
    while (name := f"{id_[:56]}-{count[id_]}") in taken:
        count[id_] += 1
    taken.add(name)
    return name


def case_digest(
    question: str,
    context: str,
    golds: Sequence[str],
    label: str | None = None,
    judged: str | None = None,
) -> str:
    """Return the hash of everything in an item that may change its result.

    ``judged`` is the recorded answer where that is what is judged; elsewhere it stays out, for two
    runs with different answers must still pair.
    """
    parts: list[object] = [question, context, list(golds), label]
    return digest(parts if judged is None else [*parts, judged])


def sample(cases: Sequence[Case], limit: int | None, seed: int) -> list[Case]:
    """Return at most ``limit`` cases in their order, chosen by a hash of seed and id."""
    if limit is None or limit >= len(cases):
        return list(cases)
    chosen = {case.id for case in sorted(cases, key=lambda case: _rank(seed, case.id))[:limit]}
    return [case for case in cases if case.id in chosen]


def _rank(seed: int, id_: str) -> bytes:
    return hashlib.sha256(f"{seed}:{id_}".encode()).digest()
