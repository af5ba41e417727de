"""The files in which tools keep rows are read by their content, whatever they are called."""

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from qagate.evaluators.bounded_reading import ReadingBudget
from qagate.evaluators.core import UsageError
from qagate.reports.extras.decide.containers import ResultFile, read_document

ROWS = [{"id": "a", "score": 1}, {"id": "b", "score": 0}]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)


def read(path: Path, content: str | bytes) -> ResultFile:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_document(path, ReadingBudget())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("list.json", json.dumps(ROWS)),
        ("lines.jsonl", LINES),
        ("lines.json", LINES),
        ("lines.jsonl.gz", gzip.compress(LINES.encode())),
        (
            "split.json",
            json.dumps({"columns": ["id", "score"], "data": [["a", 1], ["b", 0]]}),
        ),
        (
            "frame.json",
            json.dumps({"id": {"0": "a", "1": "b"}, "score": {"0": 1, "1": 0}}),
        ),
    ],
)
def test_rows_of_json_in_any_container(
    name: str, content: str | bytes, tmp_path: Path
) -> None:
    assert read(tmp_path / name, content).rows == ROWS


@pytest.mark.parametrize(
    "content",
    [
        "id,score\na,1\nb,0\n",
        "\ufeffid;score\r\na;1\r\nb;0\r\n",
        "id\tscore\na\t1\nb\t0\n",
        "sep=;\nid;score\na;1\nb;0\n",
        "id,score,score,\na,1,7,\nb,0,7,\n\n",
        'id,score\ra,"1"\rb,0\r',
    ],
)
def test_rows_of_text_with_any_separator(content: str, tmp_path: Path) -> None:
    """Of a name that stands twice the first column counts; nameless columns are left out."""
    assert read(tmp_path / "table.txt", content).rows == [
        {"id": "a", "score": "1"},
        {"id": "b", "score": "0"},
    ]


def test_a_cell_that_nobody_reads_has_no_limit(tmp_path: Path) -> None:
    """A trace of a call has any length."""
    rows = [{**ROWS[0], "trace": "x" * 2_000_000}]
    assert read(tmp_path / "long.json", json.dumps(rows)).rows == rows
    document = read(tmp_path / "long.csv", f"id,trace\na,{'x' * 2_000_000}\n")
    assert document.first_row["id"] == "a"


def test_an_object_with_lists_is_left_to_its_form(tmp_path: Path) -> None:
    document = read(tmp_path / "object.json", json.dumps({"cases": ROWS, "name": "x"}))
    assert document.rows is None
    assert document.head["cases"] == ROWS


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("list.json", "[1, 2]", "row 1: an object is needed, not"),
        ("lines.jsonl", '{"a": 1}\n7\n', "row 2: an object is needed, not"),
        ("cut.csv", "id,score\na,1\nb\n", "1 cells for 2 columns"),
        ("quote.csv", 'id,score\na,"1\n', "not valid CSV"),
        ("cut.gz", gzip.compress(LINES.encode())[:-12], "a .gz file that is cut"),
        ("bad.gz", b"\x1f\x8b" + b"no gzip at all", "a damaged .gz file"),
        ("cut.json", '{"a": [', "not JSON"),
    ],
)
def test_a_damaged_file_is_one_line(
    name: str, content: str | bytes, message: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=message):
        read(tmp_path / name, content)


def test_an_archive_that_is_no_log_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "table.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("table.csv", "id,score\n")
    with pytest.raises(UsageError, match="an archive that is no log of inspect_ai"):
        read_document(path, ReadingBudget())


def test_a_log_that_did_not_end_has_its_journal(tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_journal/start.json", json.dumps({"eval": {"task": "t"}}))
        archive.writestr("samples/a_epoch_1.json", json.dumps(ROWS[0]))
    document = read_document(path, ReadingBudget())
    assert document.head == {"eval": {"task": "t"}, "status": "cut short"}
    assert list(document.rows or ()) == ROWS[:1]


def test_parquet_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(UsageError, match="pip install 'pyarrow>="):
        read(tmp_path / "rows.parquet", b"PAR1 and more")


def test_parquet_has_rows(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    parquet.write_table(pyarrow.Table.from_pylist(ROWS), path)
    assert read_document(path, ReadingBudget()).rows == ROWS


def test_damaged_parquet_is_one_line(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    with pytest.raises(UsageError, match="a damaged parquet file"):
        read(tmp_path / "rows.parquet", b"PAR1 and more")
