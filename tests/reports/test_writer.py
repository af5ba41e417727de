"""Reports written as a whole, strict and exact, and read in a notebook as tables."""

import hashlib
import json
import math
import re
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path, PurePosixPath
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import qagate
from qagate.evaluators.core import QAError, UsageError
from qagate.reports.extras.notebook.notebook import Run
from qagate.reports.render.writer import WriteError, append_summary, write
from qagate.reports.run import run_json
from qagate.reports.run.item_files import lines_of
from qagate.reports.run.json_data import dump
from qagate.reports.run.record import Record
from qagate.reports.run.report import Counts
from tests.support.hostile import HOSTILE, needs_kit
from tests.support.made_runs import (
    answered,
    facts_dataset,
    graded_slice,
    run_of,
    written,
)
from tests.support.samples import (
    estimate,
    full,
    hostile,
    part,
    record,
    rendered,
    report,
)

NAMES = {
    "records.jsonl", "labels.jsonl", "readings.jsonl",
    "results.csv", "report.html", "summary.md", "gates.xml", "run.json",
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
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_every_file_is_written_and_nothing_else(tmp_path: Path) -> None:
    """Records first, run.json last, no temporary file; equal reports give equal files."""
    folder = tmp_path / "a" / "b"
    paths = write(report(), folder)
    assert (paths[0], paths[-1]) == (folder / "records.jsonl", folder / "run.json")
    assert set(content(folder)) == {path.name for path in paths} == NAMES
    write(full(3), tmp_path / "one")
    write(full(3), tmp_path / "two")
    assert content(tmp_path / "one") == content(tmp_path / "two")


def test_files_of_an_earlier_run_are_replaced(tmp_path: Path) -> None:
    """What is not ours stays, and the target of a link is untouched."""
    write(full(3), tmp_path)
    own = tmp_path / "mine-graded.csv"
    own.write_text("Question,Answer\n", encoding="utf-8")
    odd = tmp_path / "моя-graded.csv"
    odd.write_text("Question number,Classification\n", encoding="utf-8")
    link = tmp_path / "link-graded.csv"
    link.symlink_to(tmp_path / "simpleqa-en-graded.csv")
    write(report(), tmp_path)
    assert set(content(tmp_path)) == NAMES | {own.name, odd.name, link.name}
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
    """Folder and bytes needed are named; nothing half-written stays, wherever it fails."""
    write(report(), tmp_path)
    before = content(tmp_path)
    with (
        small_files(20_000),
        pytest.raises(WriteError, match=r"it needs \d{3},\d{3} b") as caught,
    ):
        write(full(20), tmp_path)
    assert content(tmp_path) == before
    assert str(tmp_path) in str(caught.value)
    assert isinstance(caught.value, QAError)
    assert not isinstance(caught.value, UsageError)
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
    """A dataset or language is no path; a key in any field reaches no file."""
    items = tuple(
        record(i, dataset=text, language=text) for i, text in enumerate(HOSTILE)
    )
    slices = tuple(part("graded", (item,), {"correct": 1.0}) for item in items)
    folder = tmp_path / "a" / "b" / "out"
    write(report(items, slices=slices), folder)
    assert [
        path for path in tmp_path.rglob("*") if path.is_file() and path.parent != folder
    ] == []
    key = "sk-test-0a1b2c3d4e5f6071"
    items = tuple(
        record(i, **{name: key})
        for i, name in enumerate(("question", "answer", "reason", "error"))
    )
    run = {"command": key, key: 1}
    made = report(items, notes=(key,), run=run, model=f"openai:{key}", baseline=key)
    write(made, tmp_path / "keys")
    assert not any(key.encode() in raw for raw in content(tmp_path / "keys").values())


def test_hostile_records_pass_the_scanner(tmp_path: Path) -> None:
    """The robustness examples find nothing live in any file."""
    kit = needs_kit()
    write(report(hostile()), tmp_path)
    command = [sys.executable, str(kit / "kit.py"), "scan", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


BOTH = facts_dataset(graded_slice("en"), graded_slice("bg"))


def frame_of(new: str = "ccie", old: str = "") -> pd.DataFrame:
    """Return the frame of a run in two languages, against a baseline where one is given."""
    baseline = run_of([*answered(old), *answered(old, "bg")], BOTH) if old else None
    records = [*answered(new), *answered("i" * len(new), "bg")]
    return Run(report=run_of(records, BOTH, baseline=baseline)).frame()


def test_a_run_is_loaded_from_its_folder(tmp_path: Path) -> None:
    """From folder or run.json; one row an item by key, grades and outcomes in order."""
    folder = written(run_of(answered("cci")), tmp_path)
    assert len(qagate.load(str(folder)).frame()) == 3
    assert qagate.load(folder / "run.json").report.model == "openai:new"
    with pytest.raises(UsageError, match="nowhere"):
        qagate.load(tmp_path / "nowhere")
    frame = frame_of()
    assert frame.index.name == "key"
    assert frame.index.is_unique
    assert frame["outcome"].cat.ordered
    assert frame.loc["facts-en-i3", "error_kind"] == "timeout"
    assert frame["passed"].isna().sum() == 1
    assert frame["grade"].cat.categories.tolist() == ["CORRECT", "INCORRECT"]
    assert str(frame["rating"].dtype) == "Int64"


def test_the_questions_of_a_notebook_are_one_line_each() -> None:
    """Accuracy, topics, cost and flips next to old grades; what is new or alone has none."""
    frame = frame_of()
    grouped = frame.groupby("language", observed=True)
    assert [*grouped["passed"].mean().items()] == [
        ("en", pytest.approx(2 / 3)),
        ("bg", 0.0),
    ]
    cost = pytest.approx(0.004)
    assert grouped["cost"].sum().to_dict() == {"en": cost, "bg": cost}
    assert grouped["tokens"].sum().to_dict() == {"en": 40, "bg": 40}
    frame = frame_of("cicicici")
    shares = (
        frame[frame["language"] == "en"].groupby("topic")["passed"].mean().sort_values()
    )
    assert shares.to_dict() == {"Art": 0.0, "Sport": 1.0}
    frame = frame_of("cinc", "ccii")
    english = frame[frame["language"] == "en"]
    assert english["flip"].tolist() == ["same", "broke", "same", "fixed"]
    assert english["old_grade"].tolist() == [
        "CORRECT",
        "CORRECT",
        "INCORRECT",
        "INCORRECT",
    ]
    assert english["old_answer"].isna().tolist() == [True, False, False, False]
    assert list(frame["flip"].cat.categories[:3]) == ["fixed", "broke", "same"]
    frame = frame_of("cc", "c")
    english = frame[frame["language"] == "en"]
    assert english["flip"].tolist() == ["same", "new"]
    assert english["old_grade"].isna().tolist() == [False, True]
    assert frame_of()["flip"].isna().all()


def test_metadata_never_hides_a_column() -> None:
    """A field named like one of ours is set apart; all that was written can be shown."""
    records = [*answered("c", metadata={"kind": "x", "key": "y"}), *answered("cc")[1:]]
    frame = Run(report=run_of(records)).frame()
    assert frame["kind"].tolist() == ["graded", "graded"]
    assert frame["meta_kind"].tolist()[0] == "x"
    assert frame["meta_key"].isna().tolist() == [False, True]
    frame = Run(report=run_of(answered("c", answer="a\ud83d"))).frame()
    assert frame["answer"].tolist() == ["a\\ud83d"]
    str(frame).encode()


LONG_CONTEXT = "Article 178 says when an obligor is in default. " * 20


def test_the_table_of_a_notebook_shows_whole_texts_wrapped() -> None:
    """pandas alone would cut them after 50 characters."""
    run = Run(report=run_of(answered("ci", context=LONG_CONTEXT)))
    page = run.table().to_html()
    assert page.count(LONG_CONTEXT) == 2
    assert "white-space: pre-wrap" in page


def test_the_table_of_a_notebook_leaves_empty_columns_out() -> None:
    page = Run(report=run_of(answered("ci"))).table().to_html()
    names = ["id", "question", "answer", "expected", "grade", "reason"]
    assert re.findall("<th [^>]*>([^<]*)</th>", page) == names


def test_the_table_of_a_notebook_shows_the_items_that_are_named() -> None:
    run = Run(report=run_of(answered("cici")))
    page = run.table(["facts-en-i3", "facts-en-i1"]).to_html()
    assert re.findall("<td [^>]*>(i[0-9])</td>", page) == ["i3", "i1"]


def test_what_a_model_wrote_is_no_markup_in_the_table_of_a_notebook() -> None:
    run = Run(report=run_of(answered("c", answer="<script>alert(1)</script>")))
    assert "&lt;script&gt;" in run.table().to_html()
    assert "<script>" not in run.table().to_html()


NUMBERS = st.floats() | st.integers() | st.none()
VALUES = st.recursive(
    NUMBERS | st.booleans() | st.text(st.characters(), max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=8,
)


def strict(text: str) -> Any:
    """Return JSON that holds no NaN or Infinity."""

    def refuse(name: str) -> None:
        raise AssertionError(name)

    return json.loads(text, parse_constant=refuse)


@given(VALUES)
def test_any_value_becomes_strict_json_in_utf8(value: object) -> None:
    """NaN, infinities, controls and lone surrogates included."""
    text = dump(value)
    text.encode("utf-8")
    strict(text)
    assert len(text.splitlines()) == 1


@given(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=100),
    st.sampled_from("\ud800\udfff"),
)
def test_text_round_trips_with_a_lone_surrogate(text: str, surrogate: str) -> None:
    """The store's exact text comes back from the file, character by character."""
    exact = f"{text} {surrogate} {text}"
    assert json.loads(dump(exact)) == exact


def test_run_json_says_what_the_run_came_to() -> None:
    """Decision, counts, slices, gates, cost, origin; INCOMPLETE; the checksum of the records."""
    made = full()
    run = strict(rendered(made)["run.json"])
    assert (run["schema_version"], run["complete"]) == (run_json.SCHEMA_VERSION, True)
    assert run["verdict"] == "FAIL"
    assert run["decision"] == {
        "code": 1,
        "cause": "gate failed",
        "line": made.decision.line,
        "about": [],
        "cautions": [],
    }
    assert run["counts"]["plan"] == sum(
        x["counts"]["plan"] for x in run["slices"]
    ) + len(hostile())
    first = run["slices"][0]
    assert first["measures"]["correct"] == {
        "value": 0.61,
        "low": 0.5,
        "high": 0.72,
        "n": 40,
    }
    assert first["breakdowns"]["topic"]["Art"]["f_score"]["n"] == 60
    assert {"label": "YES", "grade": "NO", "count": 2} in run["slices"][5]["confusion"]
    assert [gate["state"] for gate in run["gates"]].count("INCONCLUSIVE") == 2
    assert (run["gates"][3]["measure"], run["gates"][3]["max"]) == ("drop", 0.03)
    assert (run["cost"], run["tokens"], run["model"]) == (
        1.2345,
        1_234_567,
        "openai:new",
    )
    assert run["provenance"]["data"] == {"simpleqa:en": "ab" * 32}
    counts = Counts(planned=3, passed=1, failed=0, error=0, missing=2)
    run = strict(rendered(report(complete=False, counts=counts))["run.json"])
    assert (run["complete"], run["verdict"], run["counts"]["missing"]) == (
        False,
        "INCOMPLETE",
        2,
    )
    block = strict(rendered(made)["run.json"])["records"]
    raw = "".join(lines_of(made, "records")).encode()
    assert block == {
        "file": "records.jsonl",
        "count": len(made.records),
        "sha256": hashlib.sha256(raw).hexdigest(),
    }


def test_undefined_measures_are_null() -> None:
    """Neither 0 nor NaN stands for what is undefined; other types' numbers and paths are plain."""
    slices = (part("graded", (record(),), {"correct": None}),)
    odd = replace(
        slices[0], measures={"correct": replace(estimate(None), value=math.nan)}
    )
    for one in (slices[0], odd):
        run = strict(rendered(report(slices=(one,)))["run.json"])
        assert run["slices"][0]["measures"]["correct"]["value"] is None

    class Odd(float):
        """A float of another library."""

    value = {
        "n": Odd(0.5),
        "nan": math.nan,
        "t": (True, None),
        "p": PurePosixPath("a/b"),
        3: 1,
    }
    assert strict(dump(value)) == {
        "n": 0.5, "nan": None, "t": [True, None], "p": "a/b", "3": 1,
    }  # fmt: skip


def test_only_the_run_block_tells_two_runs_apart() -> None:
    """For any order of arrival the rest is the same; by dataset, language, row, repeat."""
    first = full()
    second = replace(
        first,
        records=first.records[::-1],
        run={"id": "r2", "workers": 1},
        provenance=dict(reversed(list(first.provenance.items()))),
    )
    one, two = (strict(rendered(each)["run.json"]) for each in (first, second))
    assert one.pop("run") != two.pop("run")
    assert json.dumps(one) == json.dumps(two)
    assert list(lines_of(first, "records")) == list(lines_of(second, "records"))
    items = (record(10), record(2, repeat=2), record(2), record(1, language="bg"))
    lines = [strict(line) for line in lines_of(report(items), "records")]
    assert [(line["language"], line["row"], line["repeat"]) for line in lines] == [
        ("bg", 1, 1), ("en", 2, 1), ("en", 2, 2), ("en", 10, 1),
    ]  # fmt: skip
    assert set(lines[0]) == {field.name for field in fields(Record)}
