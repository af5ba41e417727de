"""The report before: one that decided is kept when another run takes its place."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from reports.render.writer import write
from reports.run.report_folder import NO_VERDICT, keep_decided, previous
from tests.support.projects import BAR, MODULE, Project, graded, new_project
from tests.support.samples import full, report
from tests.support.tables import kept, tabled

YAML = graded({"en": BAR})


def verdict(folder: Path) -> str:
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return f"{run['verdict']} of {run['counts']['plan']}"


def test_runs_that_decide_nothing_leave_the_last_that_did(project: Project) -> None:
    """Two samples after a PASS: it stays beside them, and the terminal says where."""
    project.dataset("capital", {"en": ["Sofia"] * 4}, YAML)
    out = project.out
    kept = previous(out)
    assert kept == project.path / "reports/out.previous"
    assert project.run_in_process("qa").ret == 0
    assert not kept.exists()
    whole = {path.name: path.read_bytes() for path in out.iterdir() if path.suffix}
    for limit in ("1", "2"):
        result = project.run_in_process("--limit", limit, "qa")
        assert verdict(out) == f"INCONCLUSIVE of {limit}"
        assert {path.name: path.read_bytes() for path in kept.iterdir()} == whole
        result.stdout.fnmatch_lines(["the last one that decided: *out.previous/report.html"])
    project.dataset("capital", {"en": ["Varna"] * 4}, YAML)
    assert project.run_in_process("qa").ret == 1
    assert verdict(kept) == "PASS of 4"
    result = project.run_in_process("qa")
    assert (verdict(out), verdict(kept)) == ("FAIL of 4", "FAIL of 4")
    assert "the last one" not in result.stdout.str()


def test_only_the_files_of_a_report_are_kept(tmp_path: Path) -> None:
    """Files of the user's own stay; an older report's go. What cannot be kept is one line."""
    out, kept = tmp_path / "out", tmp_path / "out.previous"
    write(full(3), kept)
    (kept / "mine.txt").write_text("kept", encoding="utf-8")
    decided = report()
    written = {path.name for path in write(decided, out)}
    (out / "adjudications.yaml").write_text("kept", encoding="utf-8")
    assert keep_decided(out) == ""
    assert {path.name for path in kept.iterdir()} == written | {"mine.txt"}
    assert (out / "adjudications.yaml").is_file()
    write(report(), tmp_path / "new")
    (tmp_path / "new.previous").write_text("in the way", encoding="utf-8")
    problem = keep_decided(tmp_path / "new")
    assert "new.previous: the report before cannot be kept there (File exists)" in problem


ABORTED: str = kept(__file__, "aborted")


@pytest.fixture(scope="module")
def passed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a project whose last run passed; read only."""
    project = new_project(tmp_path_factory.mktemp("passed"))
    project.dataset("capital", {"en": ["Sofia"] * 4}, YAML)
    project.write(".empty/note.txt", "no data set")
    assert project.run_in_process("qa").ret == 0
    return project.path


@pytest.fixture
def decided(passed: Path, project: Project) -> Project:
    shutil.copytree(passed, project.path, dirs_exist_ok=True)
    return project


@pytest.mark.untraced
@tabled("words", "body", "code", "said")
def test_no_pass_outlives(
    decided: Project, words: list[str], body: str, code: int, said: str
) -> None:
    """In no file that CI publishes; it is kept as the previous one, and the next run decides."""
    project = decided
    if body:
        project.write("qa/capital/test_capital.py", ABORTED.format(body))
    done = project.run(*words) if "os.kill" in body else project.run_in_process(*words)
    assert done.ret == code
    assert project.report()["verdict"] == said
    if said == "PASS":
        return
    assert verdict(previous(project.out)) == "PASS of 4"
    for name in ("gates.xml", "summary.md", "report.html"):
        assert said in project.text(name)
    if said == NO_VERDICT:
        assert 'errors="1"' in project.text("gates.xml")
        why = "was refused: exit 4" if code == 4 else "has written no report"
        assert f"{why}</error>" in project.text("gates.xml")
        assert NO_VERDICT in project.refused("--baseline=reports/out", "--report-dir=new", "qa")
    project.write("qa/capital/test_capital.py", MODULE.format(name="capital"))
    if body:
        assert project.run_in_process("qa").ret == 0
        assert verdict(project.out) == "PASS of 4"


def test_a_second_run_into_the_folder_is_refused(project: Project) -> None:
    """One line while the first goes on, or where nothing can be written; the report stays."""
    project.dataset("capital", {"en": ["Sofia"] * 4}, YAML)
    code = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); "
    code += "print(flush=True); sys.stdin.read()"
    project.out.mkdir(parents=True)
    lock = str(project.out / ".lock")
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code, lock], **pipes) as other:  # type: ignore[call-overload]
        other.stdout.readline()
        assert "another run is writing to" in project.refused("qa")
        assert [path.name for path in project.out.iterdir()] == [".lock"]
        other.stdin.close()
    assert project.run_in_process("qa").ret == 0
    project.dataset("capital", {"en": ["Sofia"] * 4}, YAML)
    project.write("file", "")
    assert "cannot be written" in project.refused("--report-dir=file/out", "qa")
    project.run_in_process("qa")
    shutil.rmtree(previous(project.out))
    previous(project.out).write_text("in the way", encoding="utf-8")
    assert "the report before cannot be kept there" in project.refused("qa")
    assert verdict(project.out) == "PASS of 4"


@pytest.mark.parametrize(
    "text", ["", "[]", "{", '{"verdict": "PASS"}', '{"verdict": "PASS", "gates": []}']
)
def test_what_is_no_decided_report_is_not_kept(tmp_path: Path, text: str) -> None:
    """Nor is a folder without one; a run goes on over both."""
    out = tmp_path / "out"
    assert keep_decided(out) == ""
    out.mkdir()
    (out / "run.json").write_text(text, encoding="utf-8")
    assert keep_decided(out) == ""
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_quiet_still_prints_gates_path_and_verdict(project: Project) -> None:
    """Under -q, and -qq, the end is the same: what the run is for is no chatter."""
    project.dataset("capital", {"en": ["Sofia", "Varna", "Varna"]}, YAML)
    for quiet in ("-q", "-qq"):
        result = project.run_in_process(quiet, "qa")
        lines = result.stdout.lines
        assert any(line.startswith("FAIL ") and "capital:en" in line for line in lines)
        assert any(line.startswith("report: ") for line in lines)
        assert [line for line in lines if line][-1].startswith("GATES FAIL (1 of 1 failed): exit 1")
