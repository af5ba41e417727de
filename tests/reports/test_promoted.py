"""Claims about runs that are kept by name: promoted, listed, compared with, drawn as a trend."""

import gzip
import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from evaluators.core import UsageError
from reports.__main__ import main
from reports.run.report import Report
from reports.run.run_json import load_report
from reports.verdict.promoted import BASELINES, find_run, with_trend
from tests.conftest import MODULE, ROOT, Project
from tests.support.captured import Captured
from tests.support.made_runs import answered, run_of, written
from tests.support.samples import rendered
from tests.support.tables import kept, tabled


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working folder whose last run passed."""
    monkeypatch.chdir(tmp_path)
    written(run_of(answered("c" * 40)), tmp_path / "reports" / "out")
    return tmp_path


def began(report: Report, started: str) -> Report:
    """Return the report of a run that began then."""
    return replace(report, run={**report.run, "started": started})


def test_a_promoted_run_is_found_by_its_name(home: Path, capsys: Captured) -> None:
    """The next run does not change it, and a path of that name comes first.

    One is replaced, or kept although it failed, where a person says so.
    """
    assert main(["promote", "v1"]) == 0
    assert "reports/baselines/v1: PASS, 40 items; --baseline=v1" in capsys.readouterr().out
    written(run_of(answered("i" * 40)), home / "reports" / "out")
    assert load_report(find_run("v1", home)).counts.passed == 40
    assert main(["compare", "v1", "reports/out"]) == 0
    assert "facts:en             40      0     40" in capsys.readouterr().out
    assert main(["promote", "v1", "reports/out", "--replace", "--anyway"]) == 0
    assert load_report(find_run("v1", home)).counts.passed == 0
    (home / "v1").mkdir()
    assert find_run("v1", home) == home / "v1"


@tabled("given", "said")
def test_what_cannot_be_kept_or_found_is_one_line(
    home: Path, given: list[str], said: str, capsys: Captured
) -> None:
    """Exit 4, and nothing is written over."""
    main(["promote", "v1"])
    written(run_of(answered("i" * 40)), home / "failed")
    assert main(given) == 4
    assert said in capsys.readouterr().err
    assert [path.name for path in (home / BASELINES).iterdir()] == ["v1"]


def test_the_list_names_every_run_and_what_cannot_be_read(home: Path, capsys: Captured) -> None:
    """Promoted runs by name, then the last one; a broken one has its reason.

    An empty list shows a newcomer the two commands.
    """
    main(["promote", "v1"])
    broken = home / BASELINES / "v0"
    broken.mkdir()
    (broken / "run.json").write_text("{", encoding="utf-8")
    capsys.readouterr()
    assert main(["list"]) == 0
    first, second, last = capsys.readouterr().out.splitlines()
    assert first.startswith("v0 ") and "cannot be read" in first
    assert second.startswith("v1 ") and "PASS" in second and "40 items" in second
    assert last.startswith("reports/out ")
    shutil.rmtree(home / "reports")
    assert main(["list"]) == 0
    assert "promote NAME" in capsys.readouterr().out


def test_the_trend_is_in_order_and_says_what_else_changed(home: Path) -> None:
    """Oldest first by when the runs began; other data, rubric or judge are named."""
    now = run_of(answered("c" * 30 + "i" * 10))
    for name, letters, started in (("b", "ci", "2026-01-01"), ("a", "cc", "2026-02-01")):
        made = began(run_of(answered(letters * 20)), started)
        written(replace(made, judge="other") if name == "a" else made, home / BASELINES / name)
    shown = with_trend(now, home)
    assert [point.name for point in shown.trend] == ["b", "a"]
    older, newer = (point.slices["facts:en"] for point in shown.trend)
    assert (older.measure, older.estimate.value, older.changed) == ("correct", 0.5, ())
    assert (newer.estimate.value, newer.changed) == (1.0, ("judge",))
    assert shown.notes == now.notes


def test_a_trend_is_read_back_and_drawn(home: Path) -> None:
    """A run that is rendered again is the same, and the page has a row a slice."""
    made = began(run_of(answered("ci" * 20)), "2026-01-01")
    written(made, home / BASELINES / "v1")
    shown = with_trend(run_of(answered("c" * 40)), home)
    folder = written(shown, home / "now")
    assert rendered(load_report(folder)) == rendered(shown)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Over the promoted runs" in page
    assert page.count('class="whisker" d="M') >= 2
    assert "Over the promoted runs" not in rendered(run_of(answered("c")))["report.html"]


def test_a_promoted_run_that_cannot_be_read_is_left_out_with_a_note(home: Path) -> None:
    """A report is not lost for a file that only adorns it."""
    folder = written(run_of(answered("c")), home / BASELINES / "v1")
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    del run["slices"][0]["counts"]
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    shown = with_trend(run_of(answered("c")), home)
    assert shown.trend == ()
    assert any("left out of the trend" in note for note in shown.notes)


def test_a_name_never_leads_out_of_the_folder(home: Path) -> None:
    """A path that is not there stays a path, with the error of one."""
    assert find_run("../other", home) == home / "../other"
    with pytest.raises(UsageError, match="no such path, and no run was promoted"):
        find_run("v9", home)


def test_pytest_compares_with_a_promoted_run(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--baseline=NAME is the folder of that name, and the run is in the trend."""
    project.dataset("capital", {"en": ["Sofia", "Sofia"]})
    assert project.run_in_process("qa").ret in (0, 1, 6)
    monkeypatch.chdir(project.path)
    assert main(["promote", "v1", "--anyway"]) == 0
    project.run_in_process("--baseline=v1", "qa")
    run = project.report()
    assert str(run["baseline"]).endswith("reports/baselines/v1")
    (point,) = load_report(project.path / "reports" / "out").trend
    assert point.name == "v1"


LANGUAGES = ("en", "bg", "pl", "hu", "be")
PARROT: str = kept(__file__, "parrot")


def test_a_promoted_run_is_small_and_compares_like_the_whole(
    project: Project, capsys: Captured
) -> None:
    """Of 360 bundled items with answers and reasons at most 200 kB stay; no verdict differs."""
    for language in LANGUAGES:
        text = (ROOT / "cases" / "simpleqa" / f"{language}.csv").read_text(encoding="utf-8")
        project.write(f"qa/facts/{language}.csv", "".join(text.splitlines(keepends=True)[:73]))
    listed = "".join(f"  {one}: {{file: {one}.csv}}\n" for one in LANGUAGES)
    gates = "{correct: {min: 0.5}, drop: {max: 0.05}}"
    yaml = (
        f"kind: graded\nrubric: simpleqa\njudge: unmeasured\ngates: {gates}\nlanguages:\n{listed}"
    )
    project.write("qa/facts/dataset.yaml", yaml)
    project.write("qa/facts/test_facts.py", MODULE.format(name="facts"))
    project.write("parrot.py", PARROT)
    asked = ("qa", "--judge", "python:parrot:Wordy", "--report-dir")
    assert project.run_in_process(*asked, "old", "--model", "python:parrot:old").ret == 0
    assert project.run_in_process(*asked, "new", "--model", "python:parrot:new").ret == 0
    assert main(["promote", "small", "old"]) == main(["promote", "whole", "old", "--whole"]) == 0
    small, whole = (project.path / BASELINES / name for name in ("small", "whole"))
    assert sorted(path.name for path in small.iterdir()) == ["records.jsonl.gz", "run.json"]
    assert {"report.html", "records.jsonl", "transcripts.jsonl.gz"} <= {
        path.name for path in whole.iterdir()
    }
    assert load_report(small) == load_report(whole)
    assert load_report(small).counts.planned == 360
    assert sum(path.stat().st_size for path in small.iterdir()) <= 200_000
    shown = []
    for command in (["compare", "{}", "new"], ["gate", "new", "--baseline={}"]):
        for name in ("small", "whole"):
            capsys.readouterr()
            code = main([word.format(name) for word in command])
            shown.append((code, capsys.readouterr().out.replace(name, "NAME")))
    assert shown[0] == shown[1] and shown[2] == shown[3]
    assert shown[2][0] == 1 and "FAIL         facts:pl" in shown[2][1]
    assert main(["promote", "again", "small"]) == 0
    assert load_report(project.path / BASELINES / "again") == load_report(small)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"no archive", "cannot be unpacked"),
        (gzip.compress(b"{}\n" * 40, mtime=0)[:-20], "cannot be unpacked"),
        (gzip.compress(b"{}\n", mtime=0), "altered since run.json was written"),
    ],
)
def test_packed_records_that_are_not_the_runs_are_refused(
    home: Path, content: bytes, said: str, capsys: Captured
) -> None:
    """A cut, a foreign or another file is exit 4 in one line."""
    main(["promote", "v1"])
    (home / BASELINES / "v1" / "records.jsonl.gz").write_bytes(content)
    assert main(["gate", "reports/out", "--baseline=v1"]) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
