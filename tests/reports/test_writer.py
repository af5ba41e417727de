"""Reports written as a whole, and read in a notebook as tables."""

import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pandas as pd
import pytest

import reports
from evaluators.core import QAError, UsageError
from reports.render.writer import WriteError, append_summary, write
from reports.run.notebook import Run
from tests.support.hostile import HOSTILE, needs_kit
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of, written
from tests.support.samples import full, hostile, part, record, report

NAMES = {
    "records.jsonl", "results.csv", "report.html", "summary.md", "gates.xml", "run.json",
    "simpleqa-en-graded.csv",
}  # fmt: skip


@contextmanager
def small_files(limit: int) -> Iterator[None]:
    """Let no file of this process grow beyond a number of bytes, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def content(folder: Path) -> dict[str, bytes]:
    """Return every file of a folder with its bytes."""
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_every_file_is_written_and_nothing_else(tmp_path: Path) -> None:
    """Records first, run.json last, no temporary file; equal reports give equal files."""
    folder = tmp_path / "a" / "b"
    paths = write(report(), folder)
    assert paths[0] == folder / "records.jsonl"
    assert paths[-1] == folder / "run.json"
    assert set(content(folder)) == {path.name for path in paths} == NAMES
    write(full(3), tmp_path / "one")
    write(full(3), tmp_path / "two")
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_files_of_an_earlier_run_are_replaced(tmp_path: Path) -> None:
    """Letters of a slice that did not run this time go; files that are not ours stay."""
    write(full(3), tmp_path)
    own = tmp_path / "mine-graded.csv"
    own.write_text("Question,Answer\n", encoding="utf-8")
    odd = tmp_path / "моя-graded.csv"
    odd.write_text("Question number,Classification\n", encoding="utf-8")
    link = tmp_path / "link-graded.csv"
    link.symlink_to(tmp_path / "simpleqa-en-graded.csv")
    write(report(), tmp_path)
    assert set(content(tmp_path)) == NAMES | {own.name, odd.name, link.name}


def test_links_in_the_folder_are_not_followed(tmp_path: Path) -> None:
    """A link under the final or the temporary name is replaced, its target untouched."""
    target = tmp_path / "target"
    target.write_text("kept", encoding="utf-8")
    folder = tmp_path / "out"
    folder.mkdir()
    for name in ("run.json", ".records.jsonl.part"):
        (folder / name).symlink_to(target)
    write(report(), folder)
    assert target.read_text(encoding="utf-8") == "kept"
    assert not any(path.is_symlink() for path in folder.iterdir())
    assert stat.S_ISREG((folder / "run.json").stat().st_mode)


def test_a_full_disk_leaves_the_earlier_report_whole(tmp_path: Path) -> None:
    """The error names the folder and the bytes needed; nothing half-written stays."""
    write(report(), tmp_path)
    before = content(tmp_path)
    with small_files(20_000), pytest.raises(WriteError, match=r"it needs [\d,]+ bytes") as caught:
        write(full(20), tmp_path)
    assert content(tmp_path) == before
    assert str(tmp_path) in str(caught.value)
    assert caught.value.needed > 100_000
    assert isinstance(caught.value, QAError)
    assert not isinstance(caught.value, UsageError)


def test_a_folder_that_is_a_file_is_a_write_error(tmp_path: Path) -> None:
    """So is any other place that cannot be written."""
    place = tmp_path / "file"
    place.write_text("", encoding="utf-8")
    for folder in (place, place / "below"):
        with pytest.raises(WriteError, match="--report-dir"):
            write(report(), folder)


def test_the_summary_is_appended_where_the_caller_says(tmp_path: Path) -> None:
    """A CI page may hold what others wrote; one that takes nothing is a warning, no error."""
    page = tmp_path / "step.md"
    page.write_text("before\n", encoding="utf-8")
    write(report(), tmp_path / "out")
    assert append_summary(report(), page) == ""
    summary = (tmp_path / "out" / "summary.md").read_text(encoding="utf-8")
    assert page.read_text(encoding="utf-8") == f"before\n{summary}\n"
    warning = append_summary(report(), tmp_path / "no" / "step.md")
    assert "step.md: the summary cannot be appended" in warning


def test_names_from_the_user_stay_in_the_folder(tmp_path: Path) -> None:
    """A dataset or language is no path."""
    items = tuple(record(i, dataset=text, language=text) for i, text in enumerate(HOSTILE))
    slices = tuple(part("graded", (item,), {"correct": 1.0}) for item in items)
    folder = tmp_path / "a" / "b" / "out"
    write(report(items, slices=slices), folder)
    assert [path for path in tmp_path.rglob("*") if path.is_file() and path.parent != folder] == []


def test_keys_reach_no_file(tmp_path: Path) -> None:
    """Whatever field of the report they stand in."""
    key = "sk-test-0a1b2c3d4e5f6071"
    items = tuple(
        record(i, **{name: key}) for i, name in enumerate(("question", "answer", "reason", "error"))
    )
    run = {"command": key, key: 1}
    made = report(items, notes=(key,), run=run, model=f"openai:{key}", baseline=key)
    write(made, tmp_path)
    assert not any(key.encode() in raw for raw in content(tmp_path).values())


def test_hostile_records_pass_the_scanner(tmp_path: Path) -> None:
    """The robustness examples find nothing live in any file."""
    kit = needs_kit()
    write(report(hostile()), tmp_path)
    command = [sys.executable, str(kit / "kit.py"), "scan", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


BOTH = facts_dataset(graded_slice("en"), graded_slice("bg"))


def frame_of(new: str = "ccie", old: str = "") -> pd.DataFrame:
    """Return the frame of a run in two languages, beside a baseline where one is given."""
    baseline = run_of([*answered(old), *answered(old, "bg")], BOTH) if old else None
    records = [*answered(new), *answered("i" * len(new), "bg")]
    return Run(report=run_of(records, BOTH, baseline=baseline)).frame()


def test_a_run_is_loaded_from_its_folder(tmp_path: Path) -> None:
    """From the report folder or run.json, by ``reports.load``."""
    folder = written(run_of(answered("cci")), tmp_path)
    assert len(reports.load(str(folder)).frame()) == 3
    assert reports.load(folder / "run.json").report.model == "openai:new"
    with pytest.raises(UsageError, match="nowhere"):
        reports.load(tmp_path / "nowhere")


def test_the_questions_of_a_notebook_are_one_line_each() -> None:
    """Accuracy by language in declared order, ungraded items apart; worst topics; cost."""
    frame = frame_of()
    grouped = frame.groupby("language", observed=True)
    assert [*grouped["passed"].mean().items()] == [("en", pytest.approx(2 / 3)), ("bg", 0.0)]
    cost = pytest.approx(0.004)
    assert grouped["cost"].sum().to_dict() == {"en": cost, "bg": cost}
    assert grouped["tokens"].sum().to_dict() == {"en": 40, "bg": 40}
    frame = frame_of("cicicici")
    shares = frame[frame["language"] == "en"].groupby("topic")["passed"].mean().sort_values()
    assert shares.to_dict() == {"Art": 0.0, "Sport": 1.0}


def test_flips_against_a_baseline() -> None:
    """Every item has a flip beside its old grade and answer; a new one, or alone, has none."""
    frame = frame_of("cinc", "ccii")
    english = frame[frame["language"] == "en"]
    assert english["flip"].tolist() == ["same", "broke", "same", "fixed"]
    assert english["old_grade"].tolist() == ["CORRECT", "CORRECT", "INCORRECT", "INCORRECT"]
    assert english["old_answer"].isna().tolist() == [True, False, False, False]
    assert list(frame["flip"].cat.categories[:3]) == ["fixed", "broke", "same"]
    frame = frame_of("cc", "c")
    english = frame[frame["language"] == "en"]
    assert english["flip"].tolist() == ["same", "new"]
    assert english["old_grade"].isna().tolist() == [False, True]
    assert frame_of()["flip"].isna().all()


def test_rows_are_tidy() -> None:
    """One an item by its key; grades and outcomes in order; errors by kind."""
    frame = frame_of()
    assert frame.index.name == "key"
    assert frame.index.is_unique
    assert frame["outcome"].cat.ordered
    assert frame.loc["facts-en-i3", "error_kind"] == "timeout"
    assert frame["passed"].isna().sum() == 1
    assert frame["grade"].cat.categories.tolist() == ["CORRECT", "INCORRECT"]
    assert str(frame["rating"].dtype) == "Int64"


def test_metadata_never_hides_a_column() -> None:
    """A field named like one of ours is set apart; whatever was written can be shown."""
    records = [*answered("c", metadata={"kind": "x", "key": "y"}), *answered("cc")[1:]]
    frame = Run(report=run_of(records)).frame()
    assert frame["kind"].tolist() == ["graded", "graded"]
    assert frame["meta_kind"].tolist()[0] == "x"
    assert frame["meta_key"].isna().tolist() == [False, True]
    frame = Run(report=run_of(answered("c", answer="a\ud83d"))).frame()
    assert frame["answer"].tolist() == ["a\\ud83d"]
    str(frame).encode()
