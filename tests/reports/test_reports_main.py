"""Claims about ``qagate``: what it prints and writes, its exit codes, its errors."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from cases.dataset import Threshold
from evaluators.command_line import PROGRAMS
from reports.__main__ import main
from reports.run.record import Record
from reports.run.report import Report
from reports.run.run_json import load_report
from tests.conftest import Project
from tests.support.captured import Captured
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of, written
from tests.support.recorded import fill
from tests.support.tables import tabled
from tests.test_architecture import HEAVY, ROOT

DROP = Threshold(measure="drop", max=0.1, evidence="confident")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """The folder of a run of two hundred right items."""
    return written(run_of(answered("c" * 200)), tmp_path / "old")


@pytest.fixture
def new(tmp_path: Path) -> Path:
    """The folder of a run of the same items, thirty of them wrong."""
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
    (folder / "facts" / "en.csv").write_text("question,answer\nWho?,Vazov\n", encoding="utf-8")
    (folder / "empty.yaml").write_text("", encoding="utf-8")
    (folder / "criteria.yaml").write_text("- {name: c, question: q}\n", encoding="utf-8")
    fill(folder / "l", 1)
    written(run_of(answered("ccccc")), folder / "run")
    return folder


@tabled("words", "message")
def test_wrong_words_are_one_line_and_exit_4(
    place: Path, words: list[str], message: str, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    """Of every command: what is wrong and what to give, never a traceback."""
    monkeypatch.chdir(place)
    programs = {name: one for one in PROGRAMS.values() for name in one.commands}
    assert programs.get("".join(words[:1]), PROGRAMS["reports"]).run(words) == 4
    found = capsys.readouterr()
    assert message in found.err
    assert (found.err.count("\n"), found.out) == (1, "")


def test_render_writes_the_same_bytes(old: Path, tmp_path: Path, capsys: Captured) -> None:
    """All files into another folder, or those of the formats named in place, beside the run."""
    assert main(["render", str(old / "run.json"), "--to", str(tmp_path / "again")]) == 0
    before = {path.name: path.read_bytes() for path in old.iterdir()}
    assert before == {path.name: path.read_bytes() for path in (tmp_path / "again").iterdir()}
    for path in old.glob("*"):
        if path.name not in ("run.json", "records.jsonl"):
            path.unlink()
    capsys.readouterr()
    assert main(["render", str(old), "--format", "md, junit"]) == 0
    shown = [Path(line).name for line in capsys.readouterr().out.splitlines()]
    assert shown == ["summary.md", "gates.xml"]
    assert {path.name for path in old.iterdir()} == {*shown, "run.json", "records.jsonl"}


def test_compare_prints_the_table_and_what_broke(
    old: Path, new: Path, tmp_path: Path, capsys: Captured
) -> None:
    """Exit 0 although the new run is worse: comparing is not gating. Nothing in common is 4."""
    assert main(["compare", str(old), str(new), "--to", str(tmp_path / "out")]) == 0
    text = capsys.readouterr().out
    assert "facts:en            200      0     30  -0.150 [-0.206, -0.107]    < 0.001" in text
    assert "facts-en-i0: Question 0?" in text
    assert "and 20 more" in text
    assert max(map(len, text.splitlines()[:-1])) <= 100
    assert load_report(tmp_path / "out").comparison is not None
    other = written(shard("bg", "c"), tmp_path / "other")
    assert main(["compare", str(old), str(other)]) == 4
    assert "have no item in common" in capsys.readouterr().err


@tabled("text", "code")
def test_gate_decides_as_the_run_would_have(
    text: str, code: int, old: Path, new: Path, tmp_path: Path
) -> None:
    """New thresholds on recorded outcomes, drop gates against a baseline named now."""
    gates = gates_file(tmp_path, text)
    assert main(["gate", str(new), "--gates", gates, f"--baseline={old}"]) == code


def test_gate_prints_why_and_writes_a_whole_report(
    new: Path, tmp_path: Path, capsys: Captured, old: Path
) -> None:
    """The gate table, the report's place, the exit code's line; what cannot be written is 3."""
    gates = gates_file(tmp_path, "facts: {en: {correct: {min: 0.9}}}")
    assert main(["gate", str(new), "--gates", gates, "--to", str(tmp_path / "out")]) == 1
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


def test_the_runs_own_baseline_is_found_again_or_asked_for(
    old: Path, tmp_path: Path, capsys: Captured
) -> None:
    """A run that was compared is never decided on without: its drop gate would be gone."""
    dataset = facts_dataset(graded_slice("en", DROP))
    made = run_of(worse(), dataset, baseline=load_report(old))
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


def test_merge_writes_the_whole_and_ends_as_it_would(tmp_path: Path, capsys: Captured) -> None:
    """Two shards of a language each; the counts sum; others are refused."""
    made = (shard("en", "ccc"), shard("bg", "cii"), shard("en", "ccc", model="other"))
    *folders, other = (str(written(one, tmp_path / str(n))) for n, one in enumerate(made))
    assert main(["merge", *folders, "--to", str(tmp_path / "out")]) == 1
    assert "GATES FAIL (1 of 2 failed)" in capsys.readouterr().out
    assert load_report(tmp_path / "out").counts.planned == 6
    assert main(["merge", *folders, other, "--to", str(tmp_path / "no")]) == 4
    assert "the runs differ in model" in capsys.readouterr().err
    assert not (tmp_path / "no").exists()


def shard(language: str, letters: str, model: str = "openai:new") -> Report:
    dataset = facts_dataset(graded_slice(language))
    return run_of(answered(letters, language), dataset, model=model)


def test_shards_of_real_sessions_make_one_run(project: Project) -> None:
    """Two sessions of a language each, merged: run.json is that of one session over both."""
    project.dataset("capital", {"en": ["Sofia", "Varna"], "bg": ["Sofia", None]})
    for languages in ("en", "bg", "en,bg"):
        project.run_in_process("qa", f"--languages={languages}", f"--report-dir={languages}")
    folders = [str(project.path / name) for name in ("en", "bg")]
    assert main(["merge", *folders, "--to", str(project.path / "all")]) == 6
    whole, both = (
        json.loads((project.path / name / "run.json").read_text(encoding="utf-8"))
        for name in ("all", "en,bg")
    )
    assert whole.pop("run") != both.pop("run")
    assert whole == both


def test_shards_of_different_baselines_need_to_be_told_which(
    old: Path, tmp_path: Path, capsys: Captured
) -> None:
    """The error names both."""
    runs = []
    for name in ("a", "b"):
        run = written(run_of(answered("c")), tmp_path / name)
        block = json.loads((run / "run.json").read_text(encoding="utf-8"))
        (run / "run.json").write_text(json.dumps({**block, "baseline": name}), encoding="utf-8")
        runs.append(str(run))
    assert main(["merge", *runs, "--to", str(tmp_path / "out")]) == 4
    assert "compared with a and b; say which" in capsys.readouterr().err
    assert main(["merge", *runs, f"--baseline={old}", "--to", str(tmp_path / "out")]) == 6
    assert "the baseline has 100% of facts:en's items" in capsys.readouterr().out


def test_importing_reports_loads_nothing_heavy() -> None:
    """Neither the package nor its commands' table pays for pandas, scipy or an SDK."""
    code = "import reports, reports.__main__, sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    loaded = json.loads(done.stdout)
    assert set(loaded).isdisjoint({*HEAVY, "pytest", "jinja2"})


def test_the_module_runs_in_any_locale(old: Path) -> None:
    """What the terminal cannot show is escaped, and the exit code is the process's (F25)."""
    words = [sys.executable, "-m", "reports", "gate", str(old)]
    done = subprocess.run(
        words, cwd=ROOT, capture_output=True, check=False, env={"PYTHONIOENCODING": "ascii"}
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"GATES PASS (1 of 1): exit 0" in done.stdout
