"""Any CSV or JSONL with an id and a score or label a row: what every other result can become."""

from collections.abc import Mapping, Sequence

from cases.tables import TableRow, normal, read_table
from evaluators.text import shown
from reports.imports.samples import (
    Choice,
    ForeignRun,
    ResultFile,
    ScoredSample,
    Scorer,
    declines,
    number,
    problem,
    text_of,
)

ROLES: Mapping[str, str] = {
    "id": "which item it is, the same in both files",
    "score": "a number, or a word: correct, incorrect, not_attempted, pass, fail, true, false",
    "task": "a data set of its own (default: the whole file is one)",
    "repeat": "which time the item was asked, from 1",
    "question": "what was asked; where it changed, the pair is left out",
    "expected": "the expected answer, likewise",
    "answer": "what the model said",
    "error": "why there is no score; a row with one is ungraded, never 0",
    "reason": "why it has this score",
}
"""What a column may hold; ``--column ROLE=NAME`` says which one does."""
_SPELLINGS = {"score": ("score", "label", "grade", "verdict", "passed")}


def recognises(found: ResultFile) -> bool:
    """Return whether a file is a table: any other text of rows."""
    return found.data is None or isinstance(found.data, list)


def read(found: Sequence[ResultFile], choice: Choice) -> ForeignRun:
    """Return the run of one table. Raises UsageError naming file, row and column."""
    if len(found) > 1:
        raise problem(found[0].path.parent, "holds several tables; name one file")
    table = read_table(found[0].path)
    columns = {role: _column(role, table.names, choice) for role in ROLES}
    for role in ("id", "score"):
        if columns[role] not in table.names:
            there = ", ".join(table.names.values())
            what = f"no column {role!r}; say --column {role}=NAME, of {there}"
            raise problem(table.path, what)
    samples = [_sample(row, columns) for row in table.records]
    for row, sample in zip(table.records, samples, strict=True):
        if not sample.error and sample.scores["score"] is None:
            said = shown(text_of(row.values.get(columns["score"])))
            what = f"{said} is no score; give a number, or fill the column 'error'"
            raise table.problem(row, columns["score"], what)
    return ForeignRun(
        tool="table",
        model="",
        samples=samples,
        scorers={sample.task: [Scorer(name="score")] for sample in samples},
    )


def _column(role: str, names: Mapping[str, str], choice: Choice) -> str:
    given = choice.columns.get(role)
    if given is not None:
        return normal(given)
    return next((one for one in _SPELLINGS.get(role, (role,)) if one in names), role)


def _sample(row: TableRow, columns: Mapping[str, str]) -> ScoredSample:
    cell = {role: text_of(row.values.get(column)).strip() for role, column in columns.items()}
    used = set(columns.values())
    return ScoredSample(
        task=cell["task"] or "table",
        id=cell["id"],
        repeat=int(cell["repeat"]) if cell["repeat"].isdigit() else 1,
        scores={} if cell["error"] else {"score": number(row.values.get(columns["score"]))},
        question=cell["question"],
        expected=cell["expected"],
        answer=cell["answer"] or None,
        declined=declines(cell["score"]),
        error=cell["error"],
        reason=cell["reason"],
        metadata={key: value for key, value in row.values.items() if key not in used},
    )
