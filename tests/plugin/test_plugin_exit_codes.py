"""Every row of the exit-code table in one process, some with ``-n 2`` and one with ``-n 0``."""

from dataclasses import dataclass, field

import pytest

from tests.support.projects import RIGHT, WRONG, Project, graded
from tests.support.tables import kept

YAML, BAR_09 = (graded({"en": f"correct: {{min: {bar}}}"}) for bar in (0.5, 0.9))
UNGATED = "kind: graded\nlanguages:\n  en: {file: en.jsonl}\n"
HALF_GATED = f"{YAML}  bg: {{file: en.jsonl}}\n"
FAILING_TEST = "def test_other():\n    assert 1 == 2\n"
BROKEN_MODULE = "import nothing_of_that_name\n"
BAD_TEARDOWN: str = kept(__file__, "bad_teardown")
BAD_BODY: str = kept(__file__, "bad_body")
INTERNAL = "def pytest_sessionstart():\n    raise RuntimeError('inside')\n"


@dataclass(frozen=True)
class Row:
    """One row of the table: a project, a command line, and what must come of it."""

    name: str
    code: int
    last: str
    answers: tuple[str | None, ...] = (RIGHT, RIGHT, WRONG, RIGHT)
    yaml: str = YAML
    options: tuple[str, ...] = ()
    files: dict[str, str] = field(default_factory=dict)
    workers: str = ""
    """With how many it is run as well."""


TIPPING = (RIGHT, RIGHT, None, None, WRONG)
NARROW = graded({"en": "correct: {min: 0.992}"})
NOTHING = ("-k", "nothing_of_that_name")
LATE = (WRONG, *[RIGHT] * 249)
"""Undecided until all but one are graded, however late -x is heard."""
TABLE = [
    Row("every gate passes", 0, "GATES PASS (1 of 1): exit 0", answers=(RIGHT, RIGHT)),
    Row("misses that the gates count", 0, "GATES PASS (1 of 1): exit 0"),
    Row("a gate fails", 1, "GATES FAIL", yaml=BAR_09, workers="0"),
    Row("an ordinary failing test", 1, "exit 1", files={"qa/capital/test_x.py": FAILING_TEST}),
    Row(
        "a module that cannot be collected",
        1,
        "",
        files={"qa/test_x.py": BROKEN_MODULE},
        workers="2",
    ),
    Row("a teardown error", 1, "exit 1", files={"qa/conftest.py": BAD_TEARDOWN}, workers="2"),
    Row("an exception in a test body", 1, "", files={"qa/capital/test_capital.py": BAD_BODY}),
    Row("an internal error is pytest's own", 3, "", files={"conftest.py": INTERNAL}, workers="2"),
    Row("a wrong option", 4, "", options=("--limit", "many")),
    Row("nothing selected", 5, "exit 5; all items by name: pytest ", options=NOTHING, workers="2"),
    Row("ungraded items that could tip the gate", 6, "GATES INCONCLUSIVE", TIPPING, workers="2"),
    Row("ungraded items that cannot", 0, "GATES PASS", answers=(RIGHT, RIGHT, RIGHT, None)),
    Row("no gate declared", 6, "exit 6", yaml=UNGATED),
    Row("no gate for one slice", 6, "NO GATE for capital:bg: exit 6", (RIGHT,), yaml=HALF_GATED),
    Row("a hand-picked part", 6, "GATES INCONCLUSIVE", options=("-k", "q1")),
    Row("gates off: pytest's own, red", 1, "exit 1", options=("--gates", "off")),
    Row("gates off: pytest's own, green", 0, "exit 0", (RIGHT,), options=("--gates", "off")),
    Row("a dry run", 0, "", options=("--dry-run",), yaml=BAR_09),
    Row("stopped early, undecided", 6, "exit 6", LATE, NARROW, options=("-x",), workers="2"),
    Row("stopped early, beyond help", 1, "GATES FAIL", (WRONG,) * 4, BAR_09, options=("-x",)),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_exit_code(project: Project, row: Row) -> None:
    """The code is what gates and outcomes come to, and the last line says it (F3)."""
    assert_row(project, row)


@pytest.mark.parametrize("row", [row for row in TABLE if row.workers], ids=lambda row: row.name)
def test_exit_code_with_workers(project: Project, row: Row) -> None:
    """The code is the same however the tests are distributed (F3)."""
    assert_row(project, row, "-n", row.workers)


def test_a_slice_without_a_gate_is_named_in_every_report(project: Project) -> None:
    """The terminal, the summary, the page, what CI publishes, and run.json."""
    project.dataset("capital", {"en": [RIGHT]}, HALF_GATED)
    result = project.run_in_process("qa")
    result.stdout.fnmatch_lines(
        ["WARNING: capital:bg: no gate of its own; a run passes only over*"]
    )
    for name in ("summary.md", "report.html", "gates.xml", "run.json"):
        assert "NO GATE for capital:bg" in project.text(name), name


def assert_row(project: Project, row: Row, *words: str) -> None:
    project.dataset("capital", {"en": row.answers}, row.yaml)
    for name, text in row.files.items():
        project.write(name, text)
    result = project.run_in_process(*words, *row.options, "qa")
    assert result.ret == row.code, result.stdout.str() + result.stderr.str()
    assert row.last in result.outlines[-1] if row.last else True
