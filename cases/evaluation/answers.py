"""What each model answered to the items of a dataset: from a run's records, or a predictions file.

Both are read strictly: an id that the data does not have, one that stands twice, or one that is
missing is an error that names its row.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cases.dataset import load_cases
from cases.identity import given_id
from cases.problems import shown
from cases.readers import read_table
from cases.slices import Slice
from cases.tables import Record, Table, problem
from evaluators import strict_json
from evaluators.core import NO, UNANSWERED, YES, Case, UsageError
from evaluators.files import read_text
from evaluators.replies import Invalid, read_yes_no

RUN, RECORDS = "run.json", "records.jsonl"
GRADED = ("passed", "failed")
UNGRADED = ("error", "missing")

Answers = Mapping[str, str | None]
"""YES, NO or UNANSWERED by item; None where a call failed, which is neither right nor wrong."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Data:
    """The items to be answered, by id, in their order, and the language's two words."""

    path: Path
    language: str
    cases: Mapping[str, Case]
    words: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entrant:
    """One model with what it answered."""

    name: str
    answers: Answers


def read_data(path: Path, language: str, words: Mapping[str, str]) -> Data:
    """Return a dataset's items. ``words`` maps YES and NO to the language's.

    Raises UsageError naming file, row and column for anything that is not as it must be.
    """
    slice_ = Slice(
        dataset="boolq",
        language=language,
        kind="yes_no",
        path=path,
        yes=words[YES],
        no=words[NO],
    )
    cases = {case.id: case for case in load_cases(slice_)}
    return Data(path=path, language=language, cases=cases, words=words)


def read_run(name: str, path: Path, data: Data, *, allow_missing: bool) -> Entrant:
    """Return the answers of a run, given its report folder, or a file in it.

    Records of other languages and datasets are passed over. Raises UsageError naming file and
    line for a record that is not of this data, and where items have no record: with
    ``allow_missing`` they count as unanswered.
    """
    folder = path.parent if path.name == RUN else path
    file = folder / RECORDS if folder.is_dir() else path
    rows = [(line, row) for line, row in _rows(file) if row.get("language") == data.language]
    ours = {row.get("dataset") for _, row in rows if row.get("id") in data.cases}
    answers: dict[str, str | None] = {}
    for line, row in rows:
        if row.get("dataset") in ours:
            case = _case(file, line, row, data)
            if case.id in answers:
                what = f"{shown(case.id)} has a record before; give a run without --repeats"
                raise problem(file, line, what)
            answers[case.id] = _grade(file, line, row)
    return Entrant(name=name, answers=_whole(file, answers, data, allow_missing=allow_missing))


def _rows(file: Path) -> list[tuple[int, dict[str, object]]]:
    rows = []
    for line, text in enumerate(read_text(file).split("\n"), 1):
        if not text.strip():
            continue
        try:
            row = strict_json.loads(text)
        except ValueError as error:
            raise problem(file, line, f"{error}; give the records of a whole run") from None
        needed = ("id", "grade", "label", "outcome")
        if not isinstance(row, dict) or not _is_record(row, needed):
            what = f"not a record ({', '.join(needed)}); give a report folder or its {RECORDS}"
            raise problem(file, line, what)
        rows.append((line, row))
    return rows


def _is_record(row: Mapping[str, object], needed: Sequence[str]) -> bool:
    names = (row.get("id"), row.get("dataset", ""), row.get("language", ""))
    return all(key in row for key in needed) and all(isinstance(name, str) for name in names)


def _case(file: Path, line: int, row: Mapping[str, object], data: Data) -> Case:
    """Return the item of a record. Raises UsageError where it is another one under its id."""
    case = data.cases.get(str(row["id"]))
    if case is None:
        raise problem(file, line, f"{shown(str(row['id']))} is no id of {data.path}")
    if row["label"] != case.label or row.get("digest", case.digest) != case.digest:
        what = f"{shown(case.id)} was another item in that run; give a run over {data.path}"
        raise problem(file, line, what)
    return case


def _grade(file: Path, line: int, row: Mapping[str, object]) -> str | None:
    outcome, grade = row["outcome"], row["grade"]
    if outcome in UNGRADED:
        return None
    if outcome not in GRADED or grade not in (YES, NO, UNANSWERED):
        what = f"outcome {outcome!r:.40} with grade {grade!r:.40} is none of a yes/no run"
        raise problem(file, line, what)
    return str(grade)


def read_predictions(name: str, path: Path, data: Data, *, allow_missing: bool) -> Entrant:
    """Return the answers of a CSV, JSON or JSONL file with the columns ``id`` and ``answer``.

    An answer is read by the rule that reads a model's; null and an empty one are unanswered.
    Raises UsageError naming file and row for an id that is unknown or stands twice, for missing
    ones (with ``allow_missing`` they are unanswered), and where no answer at all can be read.
    """
    table = read_table(path)
    answers: dict[str, str | None] = {}
    for record in table.records:
        id_ = given_id(_text(table, record, "id"))
        if id_ not in data.cases:
            raise table.problem(record, "id", f"{shown(id_)} is no id of {data.path}")
        if id_ in answers:
            raise table.problem(record, "id", f"{shown(id_)} stands twice; keep one")
        answers[id_] = _answer(table, record, data.words)
    if answers and set(answers.values()) == {UNANSWERED}:
        first = table.records[0]
        what = f"no answer is read as {data.words[YES]} or {data.words[NO]}; write these words"
        raise table.problem(first, "answer", what)
    return Entrant(name=name, answers=_whole(path, answers, data, allow_missing=allow_missing))


def _text(table: Table, record: Record, column: str) -> str:
    value = record.values.get(column)
    if not isinstance(value, str) or not value.strip():
        raise table.problem(record, column, f"text is needed, not {shown(value)}")
    return value.strip()


def _answer(table: Table, record: Record, words: Mapping[str, str]) -> str:
    if "answer" not in record.values:
        raise table.problem(record, "answer", "missing; give id and answer")
    value = record.values["answer"]
    if isinstance(value, bool):
        return YES if value else NO
    if value is None or value == "":
        return UNANSWERED
    found = read_yes_no(_text(table, record, "answer"), "stop", (words[YES],), (words[NO],))
    return UNANSWERED if isinstance(found, Invalid) else found


def _whole(path: Path, answers: Answers, data: Data, *, allow_missing: bool) -> Answers:
    """Return the answers in the order of the data, each item with one."""
    missing = [id_ for id_ in data.cases if id_ not in answers]
    if missing and (not allow_missing or not answers):
        msg = (
            f"{path}: {len(missing)} of {len(data.cases)} items of {data.path} have no answer, "
            f"the first is {shown(missing[0])}; give --allow-missing to count them as unanswered"
        )
        raise UsageError(msg)
    return {id_: answers.get(id_, UNANSWERED) for id_ in data.cases}


def entrants(
    data: Data,
    runs: Sequence[tuple[str, Path]],
    predictions: Sequence[tuple[str, Path]],
    *,
    allow_missing: bool,
) -> list[Entrant]:
    """Return all models in the order given. Raises UsageError where two have one name."""
    names = [name for name, _ in (*runs, *predictions)]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        msg = f"build: two models are named {shown(twice)}; give each a name of its own"
        raise UsageError(msg)
    return [
        *(read_run(name, path, data, allow_missing=allow_missing) for name, path in runs),
        *(
            read_predictions(name, path, data, allow_missing=allow_missing)
            for name, path in predictions
        ),
    ]
