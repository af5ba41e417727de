"""Any CSV or JSONL with an id and a score or label a row: what every other result can become."""

from collections.abc import Mapping, Sequence

from cases.tables import Table, TableRow, normal, read_table
from evaluators.text import shown
from reports.imports import foreign

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
_SCORES = ("score", "label", "grade", "verdict", "passed")


def read(found: Sequence[foreign.ResultFile], choice: foreign.Choice) -> foreign.ForeignRun:
    """Return the run of one table. Raises UsageError naming file, row and column."""
    table = read_table(found[0].path)
    columns = {
        **{role: role for role in ROLES},
        "score": next((one for one in _SCORES if one in table.names), "score"),
        **{role: normal(name) for role, name in choice.columns.items()},
    }
    for role in ("id", "score"):
        if columns[role] not in table.names:
            what = f"no column {role!r}; say --column {role}=NAME"
            raise foreign.problem(table.path, f"{what}, of {', '.join(table.names.values())}")
    samples = [_sample(table, row, columns) for row in table.records]
    scorers = {sample.task: [foreign.Scorer(name="score")] for sample in samples}
    return foreign.ForeignRun(tool="table", model="", samples=samples, scorers=scorers)


def _sample(table: Table, row: TableRow, columns: Mapping[str, str]) -> foreign.ScoredSample:
    cell = {role: foreign.text_of(row.values.get(name)).strip() for role, name in columns.items()}
    score = foreign.number(row.values.get(columns["score"]))
    if score is None and not cell["error"]:
        what = f"{shown(cell['score'])} is no score; give a number, or fill the column 'error'"
        raise table.problem(row, columns["score"], what)
    return foreign.ScoredSample(
        task=cell["task"] or "table",
        id=cell["id"],
        repeat=int(cell["repeat"]) if cell["repeat"].isdigit() else 1,
        scores={} if cell["error"] else {"score": score},
        question=cell["question"],
        expected=cell["expected"],
        answer=cell["answer"] or None,
        declined=cell["score"].casefold() in foreign.DECLINED,
        error=cell["error"],
        reason=cell["reason"],
        metadata={key: one for key, one in row.values.items() if key not in columns.values()},
    )
