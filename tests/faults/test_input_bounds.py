"""Giant files are refused soon; giant answers travel cut."""

import csv
import hashlib
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from cases.check.item_checks import LOOKED_AT, read_subject
from cases.tables import MAX_BYTES, MAX_YAML_BYTES, read_table
from evaluators.core import Ask, Case, UsageError, Verdict
from evaluators.runtime.engine import Task
from evaluators.text import MAX_ANSWER_BYTES, travelling
from tests.support.declaring import made
from tests.support.engine_bench import Bench
from tests.support.scripted import make_case
from tests.support.tables import kept

MB = 1024 * 1024
SECONDS = 5.0
MEMORY = 400 * MB
SPLIT = "; split the file, or leave out what is not asked"
LONG = "a value may have 1,048,576 characters; shorten it or drop the row"
MEASURED: str = kept(__file__, "measured")


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


@pytest.mark.parametrize(("name", "most"), [("a.csv", MAX_BYTES), ("a.yaml", MAX_YAML_BYTES)])
def test_a_file_of_too_many_bytes_is_not_opened(tmp_path: Path, name: str, most: int) -> None:
    """The line says how large it is, how large it may be, and what to do."""
    path = tmp_path / name
    with path.open("wb") as file:
        file.truncate(most + 1)
    with pytest.raises(UsageError, match=f"{most + 1:,} bytes; at most {most:,} are read{SPLIT}"):
        read_table(path)


def test_the_csv_limit_of_the_process_is_put_back(tmp_path: Path) -> None:
    """Another library of the process may have set its own."""
    path = tmp_path / "a.csv"
    path.write_text(cell(MB + 2), encoding="utf-8")
    before = csv.field_size_limit(100 * MB)
    try:
        with pytest.raises(UsageError, match="a value may have"):
            read_table(path)
        assert csv.field_size_limit() == 100 * MB
    finally:
        csv.field_size_limit(before)


def test_checks_look_at_the_beginning_of_a_text(tmp_path: Path) -> None:
    """A check is given 10,000 characters of each text."""
    path = tmp_path / "a.csv"
    path.write_text(cell(3 * LOOKED_AT), encoding="utf-8")
    subject = read_subject(made(path))
    assert {len(gold) for case in subject.cases for gold in case.golds} == {LOOKED_AT}


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
    assert SPLIT in said or LONG in said
    assert "more than 200,000 rows" in said or "rows" not in name
    assert float(seconds) < SECONDS
    assert int(memory) < MEMORY


class Giant:
    spec = "recorded"

    async def answer(self, case: Case, repeat: int, ask: Ask) -> str:
        return "x" * 5_000_000 + "😀"


class Measuring:
    spec = "rule:length"

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        return Verdict(grade="CORRECT", reason=str(len(answer)))


def test_a_giant_travels_cut(tmp_path: Path) -> None:
    """Judge and outcome have the same cut text, with the length and the hash of all (S14)."""
    task = Task(
        key="k", case=make_case(1), repeat=1, answerer=Giant(), judge=Measuring(),
        passes=lambda case, verdict: True,
    )  # fmt: skip
    outcome = Bench(tmp_path, [task]).run()["k"]
    assert outcome.answer is not None
    assert outcome.verdict is not None
    assert len(outcome.answer) < MAX_ANSWER_BYTES // 4 + 200
    assert outcome.verdict.reason == str(len(outcome.answer))
    whole = ("x" * 5_000_000 + "😀").encode()
    assert outcome.answer.endswith(
        f"[cut: 5,000,001 characters, SHA-256 {hashlib.sha256(whole).hexdigest()}]"
    )


@pytest.mark.parametrize("unit", ["x", "я", "😀", "\ud800"])
def test_the_bound_counts_bytes(unit: str) -> None:
    """256 kB travel whole in any script, a byte more does not."""
    size = len(unit.encode("utf-8", "surrogatepass"))
    fits = unit * (MAX_ANSWER_BYTES // size)
    assert travelling(fits) == fits
    assert travelling(fits + unit) != fits + unit
