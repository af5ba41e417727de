"""Claims about ``qagate``: what it prints and writes, its errors, and runs kept by name."""

import gzip
import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from qagate.cases.dataset import Threshold
from qagate.command import main
from qagate.evaluators.core import UsageError
from qagate.reports.render import console
from qagate.reports.run.baselines import BASELINES, find_run
from qagate.reports.run.record import Record
from qagate.reports.run.report import Report
from qagate.reports.run.report_folder import later_command, mark
from qagate.reports.run.run_json import load_report
from qagate.reports.verdict.trend import with_trend
from tests.support.fixtures import Captured, Patch
from tests.support.made_runs import (
    answered,
    before,
    facts_dataset,
    graded_slice,
    run_of,
    written,
)
from tests.support.projects import MODULE, ROOT, Project
from tests.support.recorded import fill
from tests.support.samples import rendered
from tests.support.tables import kept, tabled

DROP = Threshold(measure="drop", max=0.1, evidence="confident")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return written(run_of(answered("c" * 200)), tmp_path / "old")


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return written(run_of(worse()), tmp_path / "new")


def worse() -> list[Record]:
    return answered("i" * 30 + "c" * 170)


def gates_file(folder: Path, text: str) -> str:
    (folder / "gates.yaml").write_text(text, encoding="utf-8")
    return str(folder / "gates.yaml")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a data set, a ledger, a run and criteria."""
    folder = tmp_path_factory.mktemp("place")
    (folder / "facts" / "empty").mkdir(parents=True)
    (folder / "facts" / "en.csv").write_text(
        "question,answer\nWho?,Vazov\n", encoding="utf-8"
    )
    (folder / "empty.yaml").write_text("", encoding="utf-8")
    (folder / "criteria.yaml").write_text(
        "- {name: c, question: q}\n", encoding="utf-8"
    )
    fill(folder / "l", 1)
    written(run_of(answered("ccccc")), folder / "run")
    return folder


@tabled("words", "message")
def test_wrong_words_are_one_line_and_exit_4(
    place: Path, words: list[str], message: str, monkeypatch: Patch, capsys: Captured
) -> None:
    """Of every command: what is wrong and what to give, never a traceback."""
    monkeypatch.chdir(place)
    assert main(words) == 4
    found = capsys.readouterr()
    assert message in found.err
    assert (found.err.count("\n"), found.out) == (1, "")


NEEDED = ("run.json", "records.jsonl", "labels.jsonl", "readings.jsonl")
"""The files from which all others can be written again."""


def test_render_writes_the_same_bytes(
    old: Path, tmp_path: Path, capsys: Captured
) -> None:
    """All files into another folder, or those of the formats named in place, next to the run."""
    assert main(["render", str(old / "run.json"), "--to", str(tmp_path / "again")]) == 0
    before = {path.name: path.read_bytes() for path in old.iterdir()}
    assert before == {
        path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()
    }
    for path in old.glob("*"):
        if path.name not in NEEDED:
            path.unlink()
    capsys.readouterr()
    assert main(["render", str(old), "--format", "md, junit"]) == 0
    *paths, last_line = capsys.readouterr().out.splitlines()
    shown = [Path(path).name for path in paths]
    assert shown == ["summary.md", "gates.xml"]
    assert last_line.startswith("GATES PASS (1 of 1): exit 0")
    assert {path.name for path in old.iterdir()} == {
        *shown,
        *NEEDED,
    }


def test_render_ends_in_the_code_of_the_run(tmp_path: Path, capsys: Captured) -> None:
    """A CI job that renders last must not turn a FAIL into success."""
    failed = written(run_of(answered("ci" * 20 + "i" * 20)), tmp_path / "failed")
    assert main(["render", str(failed)]) == 1
    assert capsys.readouterr().out.splitlines()[-1].startswith("GATES FAIL")


@pytest.mark.parametrize("command", ["render", "gate", "merge"])
def test_the_run_before_a_command_that_wrote_no_report_passes_nothing(
    command: str, tmp_path: Path, capsys: Captured
) -> None:
    """A killed or refused command asked for another verdict than the one that lies there."""
    passed = written(run_of(answered("c" * 40)), tmp_path / "passed")
    to = ("--to", str(tmp_path / "again"))
    assert main([command, str(passed), *to]) == 0
    mark(passed, "qagate run facts --model openai:worse")
    assert main([command, str(passed), *to]) == 6
    last_line = capsys.readouterr().out.splitlines()[-1]
    assert last_line.startswith("INCONCLUSIVE: exit 6; a later command wrote no report")
    assert "--model openai:worse" in last_line


def test_what_a_marked_run_is_rendered_to_is_marked(tmp_path: Path) -> None:
    """Its page is that of the run before, in any folder."""
    failed = written(run_of(answered("i" * 40)), tmp_path / "failed")
    mark(failed, "qagate run facts")
    main(["render", str(failed), "--to", str(tmp_path / "again")])
    assert later_command(tmp_path / "again") == "qagate run facts"


def test_compare_prints_what_broke(
    old: Path, new: Path, tmp_path: Path, capsys: Captured
) -> None:
    """Exit 0 although the new run is worse: comparing is not gating. Nothing in common is 4."""
    assert main(["compare", str(old), str(new), "--to", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert (
        "facts:en            200      0     30  -0.150 [-0.206, -0.107]    < 0.001"
        in text
    )
    assert "facts-en-i0: Question 0?" in text
    assert "and 20 more" in text
    assert max(map(len, text.splitlines()[:-1])) <= 100
    assert load_report(tmp_path / "out").comparison is not None
    other = written(shard("bg", "c"), tmp_path / "other")
    assert main(["compare", str(old), str(other)]) == 4
    assert "have no item in common" in capsys.readouterr().err


@tabled("text", "code")
def test_gate_decides_as_a_run(text: str, code: int, old: Path, tmp_path: Path) -> None:
    """New thresholds on recorded outcomes, drop gates against the baseline of the run."""
    gates = gates_file(tmp_path, text)
    made = run_of(worse(), baseline=before(load_report(old), str(old)))
    run = written(made, tmp_path / "compared")
    assert main(["gate", str(run), "--gates", gates, f"--baseline={old}"]) == code


def test_gate_prints_why_and_writes(
    new: Path, tmp_path: Path, capsys: Captured, old: Path
) -> None:
    """The gate table, the report's place, the exit code's line; what cannot be written is 3."""
    gates = gates_file(tmp_path, "facts: {en: {correct: {min: 0.9}}}")
    assert (
        main(["gate", str(new), "--gates", gates, "--to", str(tmp_path / "out")]) == 1
    )
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:4] == ["FAIL", "facts:en", "correct", "0.850"]
    assert lines[0].endswith(", bar >= 0.9")
    assert lines[1].strip() == "correct 0.85 is below 0.9 (n=200)"
    assert lines[-1].startswith("GATES FAIL (1 of 1 failed): exit 1")
    assert load_report(tmp_path / "out").decision.code == 1
    assert load_report(new).decision.code == 0
    (tmp_path / "file").write_text("x", encoding="utf-8")
    assert main(["render", str(old), "--to", str(tmp_path / "file")]) == 4
    assert main(["render", str(old), "--to", str(tmp_path / "file" / "below")]) == 3
    assert "cannot be written" in capsys.readouterr().err


def test_its_own_baseline_is_found_or_asked(
    old: Path, tmp_path: Path, capsys: Captured
) -> None:
    """A run that was compared is never decided on without: its drop gate would be gone."""
    made = run_of(
        worse(), facts_dataset(graded_slice("en", DROP)), baseline=load_report(old)
    )
    run = written(made, tmp_path / "run")
    assert main(["gate", str(run)]) == 4
    assert "say where with --baseline=RUN" in capsys.readouterr().err
    block = json.loads((run / "run.json").read_text(encoding="utf-8"))
    block["baseline"] = str(old)
    (run / "run.json").write_text(json.dumps(block), encoding="utf-8")
    assert main(["gate", str(run)]) == 1
    capsys.readouterr()
    written(run_of(answered("i" * 200)), old)
    assert main(["gate", str(run)]) == 4
    assert "is no longer what the run was compared with" in capsys.readouterr().err


def test_merge_writes_the_whole_and_ends_as_it_would(
    tmp_path: Path, capsys: Captured
) -> None:
    """Two shards of a language each; the counts sum; others are refused."""
    made = (shard("en", "ccc"), shard("bg", "cii"), shard("en", "ccc", model="other"))
    *folders, other = (
        str(written(one, tmp_path / str(n))) for n, one in enumerate(made)
    )
    assert main(["merge", *folders, "--to", str(tmp_path / "out")]) == 1
    assert "GATES FAIL (1 of 2 failed)" in capsys.readouterr().out
    assert load_report(tmp_path / "out").counts.planned == 6
    assert main(["merge", *folders, other, "--to", str(tmp_path / "no")]) == 4
    assert "the runs differ in model" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


def shard(language: str, letters: str, model: str = "openai:new") -> Report:
    return run_of(
        answered(letters, language), facts_dataset(graded_slice(language)), model=model
    )


def test_shards_of_two_baselines_need_to_say(
    old: Path, tmp_path: Path, capsys: Captured
) -> None:
    """The error names both."""
    runs = []
    for name in ("a", "b"):
        run = written(run_of(answered("c")), tmp_path / name)
        block = json.loads((run / "run.json").read_text(encoding="utf-8"))
        (run / "run.json").write_text(
            json.dumps({**block, "baseline": name}), encoding="utf-8"
        )
        runs.append(str(run))
    assert main(["merge", *runs, "--to", str(tmp_path / "out")]) == 4
    assert "compared with a and b; say which" in capsys.readouterr().err
    assert (
        main(["merge", *runs, f"--baseline={old}", "--to", str(tmp_path / "out")]) == 6
    )
    assert "with the 199 items that this run lacks" in capsys.readouterr().out


def test_the_module_runs_in_any_locale(old: Path) -> None:
    """What the terminal cannot show is escaped, and the exit code is the process's (F25)."""
    words = [sys.executable, "-m", "reports", "gate", str(old)]
    done = subprocess.run(
        words,
        cwd=ROOT,
        capture_output=True,
        check=False,
        env={"PYTHONIOENCODING": "ascii"},
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"GATES PASS (1 of 1): exit 0" in done.stdout


@pytest.fixture
def home(tmp_path: Path, monkeypatch: Patch) -> Path:
    """A working folder whose last run passed."""
    monkeypatch.chdir(tmp_path)
    written(run_of(answered("c" * 40)), tmp_path / "reports" / "out")
    return tmp_path


def began(report: Report, started: str) -> Report:
    return replace(report, run={**report.run, "started": started})


def test_an_item_without_calls_says_why(home: Path, capsys: Captured) -> None:
    """A recorded answer needed none; a failed call left none."""
    for letter, said in (
        ("c", "No model was asked"),
        ("e", "No reply is kept: the call failed"),
    ):
        written(run_of(answered(letter)), home / "reports" / "out")
        assert main(["show", "i0"]) == 0
        assert said in capsys.readouterr().out


LONG_ANSWER = "  - " + " ".join(f"word{number}" for number in range(60))


def test_an_item_is_shown_on_lines_that_a_terminal_holds(
    home: Path, capsys: Captured
) -> None:
    """The words are the answer's, and later lines are indented as the first."""
    written(run_of(answered("c", answer=LONG_ANSWER)), home / "reports" / "out")
    assert main(["show", "i0"]) == 0
    lines = capsys.readouterr().out.splitlines()
    start = lines.index("  answer:") + 1
    shown = lines[start : lines.index("  reason:")]
    assert " ".join(shown).split() == LONG_ANSWER.split()
    assert all(line.startswith(" " * 6) for line in shown)
    assert max(len(line) for line in lines) <= console.width()


def test_an_item_is_shown_unwrapped_where_asked(home: Path, capsys: Captured) -> None:
    written(run_of(answered("c", answer=LONG_ANSWER)), home / "reports" / "out")
    assert main(["show", "i0", "--unwrapped"]) == 0
    assert f"    {LONG_ANSWER}\n" in capsys.readouterr().out


@tabled("given", "said")
def test_none_kept_is_one_line(
    home: Path, given: list[str], said: str, capsys: Captured
) -> None:
    """Exit 4, and nothing is written over."""
    main(["promote", "v1"])
    written(run_of(answered("i" * 40)), home / "failed")
    assert main(given) == 4
    assert said in capsys.readouterr().err
    assert [path.name for path in (home / BASELINES).iterdir()] == ["v1"]


def test_the_list_names_every_run_and_what_cannot_be_read(
    home: Path, capsys: Captured
) -> None:
    """By name, then the last one, a broken one with its reason; an empty list has the commands."""
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
    for name, letters, started in (
        ("b", "ci", "2026-01-01"),
        ("a", "cc", "2026-02-01"),
    ):
        made = began(run_of(answered(letters * 20)), started)
        written(
            replace(made, judge="other") if name == "a" else made,
            home / BASELINES / name,
        )
    shown = with_trend(now, home)
    assert [point.name for point in shown.trend] == ["b", "a"]
    older, newer = (point.slices["facts:en"] for point in shown.trend)
    assert (older.measure, older.estimate.value, older.changed) == ("correct", 0.5, ())
    assert (newer.estimate.value, newer.changed) == (1.0, ("judge",))
    assert shown.notes == now.notes


def test_a_trend_is_read_back_and_drawn(home: Path) -> None:
    """Rendered again it is the same, with a row a slice; a broken run is left out and said."""
    written(began(run_of(answered("ci" * 20)), "2026-01-01"), home / BASELINES / "v1")
    shown = with_trend(run_of(answered("c" * 40)), home)
    folder = written(shown, home / "now")
    assert rendered(load_report(folder)) == rendered(shown)
    page = (folder / "report.html").read_text(encoding="utf-8")
    assert "Over the promoted runs" in page
    assert page.count('class="whisker" d="M') >= 2
    assert (
        "Over the promoted runs" not in rendered(run_of(answered("c")))["report.html"]
    )
    folder = written(run_of(answered("c")), home / BASELINES / "v1")
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    del run["slices"][0]["counts"]
    (folder / "run.json").write_text(json.dumps(run), encoding="utf-8")
    shown = with_trend(run_of(answered("c")), home)
    assert shown.trend == ()
    assert any("left out of the trend" in note for note in shown.notes)


def test_a_name_never_leads_out_of_the_folder(home: Path, capsys: Captured) -> None:
    """A later run changes nothing unless it replaces it; a path comes first, and stays one."""
    assert find_run("../other", home) == home / "../other"
    with pytest.raises(UsageError, match="no such path, and no run was promoted"):
        find_run("v9", home)
    assert main(["promote", "v1"]) == 0
    assert (
        "reports/baselines/v1: PASS, 40 items; --baseline=v1" in capsys.readouterr().out
    )
    written(run_of(answered("i" * 40)), home / "reports" / "out")
    assert load_report(find_run("v1", home)).counts.passed == 40
    assert main(["compare", "v1", "reports/out"]) == 0
    assert "facts:en             40      0     40" in capsys.readouterr().out
    assert [
        main(one) for one in (["show", "i1", "v1"], ["review", "v1", "--to=form"])
    ] == [0, 0]
    assert main(["promote", "v1", "reports/out", "--replace", "--anyway=a test"]) == 0
    assert load_report(find_run("v1", home)).counts.passed == 0
    (home / "v1").mkdir()
    assert find_run("v1", home) == home / "v1"


def test_pytest_takes_a_promoted_run(project: Project, monkeypatch: Patch) -> None:
    """--baseline=NAME is the folder of that name, and the run is in the trend."""
    project.dataset("capital", {"en": ["Sofia", "Sofia"]})
    assert project.run_in_process("qa").ret in (0, 1, 6)
    monkeypatch.chdir(project.path)
    assert main(["promote", "v1", "--anyway=a test"]) == 0
    project.run_in_process("--baseline=v1", "qa")
    run = project.report()
    assert str(run["baseline"]).endswith("reports/baselines/v1")
    (point,) = load_report(project.path / "reports" / "out").trend
    assert point.name == "v1"


LANGUAGES = ("en", "bg", "pl", "hu", "be")
PARROT: str = kept(__file__, "parrot")


@pytest.mark.untraced
def test_a_promoted_run_is_small_and_as_the_whole(
    project: Project, capsys: Captured
) -> None:
    """Of 360 bundled items with answers and reasons at most 200 kB stay; no verdict differs."""
    for language in LANGUAGES:
        text = (ROOT / "cases" / "simpleqa" / f"{language}.csv").read_text(
            encoding="utf-8"
        )
        project.write(
            f"qa/facts/{language}.csv", "".join(text.splitlines(keepends=True)[:73])
        )
        # By a rubric of its own, so that no bundled labels measure the judge.
        rubric = ROOT / "evaluators" / "rubrics" / f"simpleqa.{language}.yaml"
        project.write(
            f"qa/facts/own.{language}.yaml",
            rubric.read_text(encoding="utf-8").replace(
                "name: simpleqa", "name: own", 1
            ),
        )
    listed = "".join(f"  {one}: {{file: {one}.csv}}\n" for one in LANGUAGES)
    gates = "{correct: {min: 0.5}, drop: {max: 0.05}}"
    declared = "kind: graded\nrubric: own\njudge: unmeasured\n"
    yaml = f"{declared}gates: {gates}\nlanguages:\n{listed}"
    project.write("qa/facts/dataset.yaml", yaml)
    project.write("qa/facts/test_facts.py", MODULE.format(name="facts"))
    project.write("parrot.py", PARROT)
    asked = ("qa", "--judge", "python:parrot:Wordy", "--report-dir")
    old = project.run_in_process(*asked, "old", "--model", "python:parrot:old")
    assert old.ret == 0
    assert main(["promote", "small", "old"]) == 0
    assert main(["promote", "whole", "old", "--whole"]) == 0
    words = ("--model", "python:parrot:new", "--baseline=small")
    assert project.run_in_process(*asked, "new", *words).ret == 1
    small, whole = (project.path / BASELINES / name for name in ("small", "whole"))
    assert sorted(path.name for path in small.iterdir()) == [
        "grades.jsonl.gz",
        "labels.jsonl.gz",
        "promoted.json",
        "readings.jsonl.gz",
        "records.jsonl.gz",
        "run.json",
    ]
    assert {"report.html", "records.jsonl", "transcripts.jsonl.gz"} <= {
        path.name for path in whole.iterdir()
    }
    assert (load_report(small), load_report(small).counts.planned) == (
        load_report(whole),
        360,
    )
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
def test_foreign_runs_are_refused(
    home: Path, content: bytes, said: str, capsys: Captured
) -> None:
    """A cut, a foreign or another file is exit 4 in one line."""
    main(["promote", "v1"])
    (home / BASELINES / "v1" / "records.jsonl.gz").write_bytes(content)
    assert main(["gate", "reports/out", "--baseline=v1"]) == 4
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line
