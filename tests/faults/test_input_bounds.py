"""Files beyond what a machine reads in seconds are refused: one line, soon, little memory."""

import csv
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cases.bounds import LARGE, Bounds
from cases.check.findings import LOOKED_AT, read_subject
from cases.tables import read_table
from evaluators.core import UsageError
from tests.conftest import Project
from tests.support.loading import made

MB = 1024 * 1024
SECONDS = 5.0
MEMORY = 400 * MB
SMALL = Bounds(file=400, yaml=200, cell=50, rows=3)
MEASURED = """
import re, sys, time
from pathlib import Path
from cases.tables import read_table
from evaluators.core import UsageError

before = time.process_time()
try:
    read_table(Path(sys.argv[1]))
except UsageError as problem:
    print(str(problem).replace(sys.argv[1], "FILE"))
print(time.process_time() - before)
# Of this program alone: what getrusage says begins with the process that it was forked from.
print(1024 * int(re.search(r"VmHWM:\\s+([0-9]+) kB", Path("/proc/self/status").read_text())[1]))
"""


def cell(size: int) -> str:
    return "Question,Answers\nq?," + "x" * size + "\n"


def rows(count: int) -> str:
    return "Question,Answers\n" + "q?,a\n" * count


def items(count: int) -> str:
    return "[" + ",".join(['{"question": "q", "answer": "a"}'] * count) + "]"


def lines(count: int) -> str:
    return '{"question": "q", "answer": "a"}\n' * count


def yaml(size: int) -> str:
    return "- {question: q, context: c, expected: e}\n" * (size // 41)


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "x" * 401, "401 bytes; at most 400 are read; --large reads more"),
        ("a.yaml", yaml(246), "at most 200 are read; --large reads more"),
        ("a.csv", rows(4), "a.csv:5: more than 3 rows; --large reads more"),
        ("a.json", items(4), "row 4: more than 3 rows; --large reads more"),
        ("a.jsonl", lines(4), "a.jsonl:4: row 4: more than 3 rows"),
        (
            "a.json",
            '[{"question": "' + "x" * 51 + '"}]',
            "row 1: 51 characters; a cell may have 50",
        ),
        ("a.jsonl", '{"answers": ["' + "x" * 30 + '", "' + "y" * 30 + '"]}', "60 characters"),
    ],
)
def test_each_bound_is_one_line(tmp_path: Path, name: str, text: str, said: str) -> None:
    """Bytes, rows and cells of every format are bounded; the line says what to do (S13, F20)."""
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    with pytest.raises(UsageError) as caught:
        read_table(path, SMALL)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_large_files_are_read_where_that_is_said(tmp_path: Path) -> None:
    """``--large`` reads a cell of more than a megabyte, which is refused without it."""
    path = tmp_path / "a.csv"
    path.write_text(cell(MB + 2), encoding="utf-8")
    before = csv.field_size_limit(100 * MB)  # as some other library of the process may have it
    try:
        with pytest.raises(UsageError, match="a cell may have 1,048,576; --large reads more"):
            read_table(path)
        assert csv.field_size_limit() == 100 * MB
    finally:
        csv.field_size_limit(before)
    assert len(read_table(path, LARGE).records) == 1


def test_the_option_reaches_the_files(project: Project) -> None:
    """A run refuses a cell of more than a megabyte, and takes it with ``--large``."""
    project.dataset("capital", {"en": ["Sofia " + "x" * MB]})
    refused = project.run_in_process("--gates", "off", "--collect-only", "qa")
    assert refused.ret == 4
    assert "--large reads more" in refused.stderr.str()
    taken = project.run_in_process("--gates", "off", "--collect-only", "--large", "qa")
    assert taken.ret == 0


def test_checks_look_at_the_beginning_of_a_text(tmp_path: Path) -> None:
    """A check is given 10,000 characters of each text, in its row and in its case."""
    path = tmp_path / "a.csv"
    path.write_text(cell(3 * LOOKED_AT), encoding="utf-8")
    subject = read_subject(made(path))
    assert {len(gold) for case in subject.cases for gold in case.golds} == {LOOKED_AT}
    values = [str(value) for row in subject.rows for value in row.record.values.values()]
    assert max(map(len, values)) == LOOKED_AT


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "make"),
    [
        ("cell.csv", lambda: cell(60 * MB)),
        ("file.csv", lambda: cell(100 * MB)),
        ("rows.csv", lambda: rows(2_000_000)),
        ("items.json", lambda: items(400_000)),
        ("lines.jsonl", lambda: lines(400_000)),
        ("items.yaml", lambda: yaml(6 * MB)),
    ],
    ids=["cell", "file", "rows", "json", "jsonl", "yaml"],  # workers must agree on them
)
@pytest.mark.skipif(
    not Path("/proc/self/status").exists(), reason="memory is read from Linux's /proc"
)
def test_a_bound_is_reached_soon(tmp_path: Path, name: str, make: Callable[[], str]) -> None:
    """One line within 5 CPU seconds and 400 MB, however large the file is (S13, F20)."""
    path = tmp_path / name
    path.write_text(make(), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(path)], capture_output=True, text=True, check=True
    )
    said, seconds, memory = done.stdout.splitlines()
    assert "--large reads more" in said
    assert float(seconds) < SECONDS
    assert int(memory) < MEMORY
