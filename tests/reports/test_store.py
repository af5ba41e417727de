"""Reading a run back: exactly what was written, or an error that says what is wrong."""

import hashlib
import json
from pathlib import Path

import pytest

from evaluators.core import UsageError, Vote
from reports.render.writer import write
from reports.run.report import Report
from reports.run.run_json import load_run
from tests.support.samples import full, record, rendered, report


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A report folder with one record."""
    write(report(), tmp_path)
    return tmp_path


def rewrite(folder: Path, records: str) -> None:
    """Put other records beside run.json, with the checksum that goes with them."""
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    (folder / "records.jsonl").write_text(records, encoding="utf-8")
    run["records"]["sha256"] = hashlib.sha256(records.encode()).hexdigest()
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")


@pytest.mark.parametrize("name", ["", "run.json"])
def test_a_run_comes_back_from_the_folder_or_the_file(folder: Path, name: str) -> None:
    """Both ways of naming it read the same."""
    run, records = load_run(folder / name)
    assert run["model"] == "openai:new"
    assert records == (record(),)


def test_records_come_back_exactly(tmp_path: Path) -> None:
    """Hidden characters, line separators and lone surrogates included, in the file's order."""
    odd = "a\x00\u2028\u2029\x85\u202e\ud83d \r\n\t\U000e0041"
    made: Report = report((record(2, answer=odd, metadata={"n": [1, None, odd]}), record(1)))
    write(made, tmp_path)
    assert load_run(tmp_path)[1] == (made.records[1], made.records[0])


def test_votes_come_back_exactly(tmp_path: Path) -> None:
    """Every judge's verdict is kept, that of one who said nothing too."""
    votes = (Vote(judge="a", grade="CORRECT", reason="x"), Vote(judge="b", error="gone: \u2028"))
    write(report((record(votes=votes),)), tmp_path)
    assert load_run(tmp_path)[1][0].votes == votes


def test_a_large_report_comes_back_whole(tmp_path: Path) -> None:
    """As many records as the plan."""
    made = full(10)
    write(made, tmp_path)
    run, records = load_run(tmp_path)
    assert len(records) == len(made.records)
    assert run["counts"] == json.loads(rendered(made)["run.json"])["counts"]


@pytest.mark.parametrize("name", ["run.json", "records.jsonl"])
def test_a_missing_file_is_named(folder: Path, name: str) -> None:
    """Half a report is no baseline."""
    (folder / name).unlink()
    with pytest.raises(UsageError, match=name):
        load_run(folder)


def test_altered_records_are_refused(folder: Path) -> None:
    """One byte is enough."""
    path = folder / "records.jsonl"
    path.write_bytes(path.read_bytes().replace(b"CORRECT", b"CORRECt"))
    with pytest.raises(UsageError, match=r"records.jsonl: altered since run.json was written"):
        load_run(folder)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        ("[]", "a JSON list, not an object"),
        ("{}", "'schema_version' is None"),
        ('{"schema_version": 99}', "'schema_version' is 99"),
        ('{"schema_version": 2}', "'records.sha256' is None"),
        ('{"schema_version": 2, "records": {"sha256": 5}}', "'records.sha256' is 5"),
    ],
)
def test_what_is_no_run_is_refused(folder: Path, text: str, message: str) -> None:
    """The error names the file and what was found in it."""
    (folder / "run.json").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match=message):
        load_run(folder)


@pytest.mark.parametrize(
    ("line", "message"),
    [("{}", r"records.jsonl:2: fields \["), ("nonsense", r"records.jsonl:2: not valid JSON")],
)
def test_a_line_of_another_version_is_named(folder: Path, line: str, message: str) -> None:
    """File and line stand in the error."""
    rewrite(folder, (folder / "records.jsonl").read_text(encoding="utf-8") + line + "\n")
    with pytest.raises(UsageError, match=message):
        load_run(folder)
