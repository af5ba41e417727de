"""Baselines picked so that the new model looks good, and the last report that decided."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from qagate.command import main
from qagate.reports.render import console
from qagate.reports.render.writer import write
from qagate.reports.run.report_folder import (
    NO_VERDICT,
    keep_decided,
    later_command,
    previous,
)
from qagate.reports.run.run_json import load_report
from tests.support.fixtures import Captured, Patch
from tests.support.projects import (
    BAR,
    MODULE,
    RIGHT,
    WRONG,
    Project,
    graded,
    new_project,
)
from tests.support.samples import full, report
from tests.support.tables import kept, tabled

pytestmark = pytest.mark.untraced
YAML = graded({"en": "drop: {max: 0.05}"})
OLD = [RIGHT] * 54 + [WRONG] * 6
NEW = [WRONG] * 24 + [
    RIGHT
] * 36  # right where 30 of the old ones are, and a third worse
BOTH_RIGHT = range(25, 55)


@pytest.mark.slow
@tabled("way", "code", "words")
def test_no_baseline_ships_a_worse_model(
    project: Project, way: str, code: int, words: str
) -> None:
    """It FAILs against all of the old run, and is INCONCLUSIVE against any part of it."""
    kept = [
        one if number in BOTH_RIGHT else None for number, one in enumerate(OLD, start=1)
    ]
    project.dataset("capital", {"en": kept if way == "unanswered" else OLD}, YAML)
    nodes = [
        f"qa/capital/test_capital.py::test_capital[capital-en-q{n}]" for n in BOTH_RIGHT
    ]
    chosen = {"hand-picked": nodes, "sampled": ["--limit", "20", "--seed", "1", "qa"]}
    project.run_in_process(*chosen.get(way, ["qa"]))
    project.keep("before")

    project.dataset("capital", {"en": NEW}, YAML)
    assert project.run_in_process("--baseline=before", "qa").ret == code
    assert words in project.only("gates")["reason"]


def test_a_failing_command_fails_again(project: Project, capsys: Captured) -> None:
    """Its report never takes the baseline's place, by any name; its own copy decides nothing."""
    project.dataset("capital", {"en": OLD}, YAML)
    project.run_in_process("qa")
    project.keep("before")
    project.dataset("capital", {"en": NEW}, YAML)
    for _ in range(2):
        assert project.run_in_process("--baseline=before", "qa").ret == 1
    shutil.copytree(project.path / "before", project.out / "kept")
    (project.path / "reports/link").symlink_to(project.out)
    (project.path / "reports/linked.json").symlink_to(project.out / "run.json")
    whole = project.report()
    for option in ("--baseline", "--anchor"):
        for name in (
            "out",
            "out/run.json",
            "out/kept",
            "out.previous",
            "link",
            "linked.json",
        ):
            line = project.refused(f"{option}=reports/{name}", "qa")
            assert f"{option}: " in line
            assert "lies in --report-dir" in line
            project.refused(f"{option}=reports/{name}", "--dry-run", "qa")
        words = ("--report-dir=reports/link", f"{option}=reports/out", "qa")
        assert "lies in --" in project.refused(*words)
        for command in ("gate", "merge"):
            given = [
                command,
                "before",
                f"{option}=reports/link",
                "--to",
                str(project.out),
            ]
            assert main(given) == 4
            assert "lies in --to" in capsys.readouterr().err
    assert main(["compare", "reports/out", "before", "--to", "reports/link"]) == 4
    assert project.report() == whole
    capsys.readouterr()
    assert main(["gate", "reports/out", "--baseline=reports/out"]) == 6
    assert "drop" in capsys.readouterr().out.splitlines()[-1]
    project.keep("copied")
    assert project.run_in_process("--baseline=copied", "qa").ret == 6


@pytest.mark.parametrize("ci", ["", "true"])
def test_a_refused_command_marks_the_report(
    project: Project, monkeypatch: Patch, ci: str
) -> None:
    """``merge``, ``gate`` and ``decide`` leave it in its place; in CI no verdict stays."""
    monkeypatch.setenv("CI", ci)
    project.dataset("capital", {"en": [RIGHT] * 4}, graded({"en": BAR}))
    project.run_in_process("qa")
    run, to = str(project.out), project.path / "m"
    rows = "id,score\n" + "".join(f"q{n},1\n" for n in range(99))
    old = project.write("old.csv", rows)
    new = project.write("new.csv", rows)
    for words, wrong, code in (
        (["merge", run], "nowhere", 0),
        (["merge", run], "--baseline=nowhere", 0),
        (["gate", run], "--gates=no.yaml", 0),
        (["decide", str(new), f"--baseline={old}"], "--column=score=x", 0),
    ):
        assert main([*words, "--to", str(to)]) == code
        assert main([*words, wrong, "--to", str(to)]) == 4
        assert bool(later_command(to)) is not bool(ci)
        assert (NO_VERDICT in (to / "summary.md").read_text()) is bool(ci)
    assert main(["gate", run, "--gates=no.yaml", "--to", run]) == 4
    assert project.report()["verdict"] == "PASS"


def test_an_anchor_is_a_second_run_to_pass(
    project: Project, monkeypatch: Patch
) -> None:
    """The gate passes against the baseline and fails against the anchor: exit 1. Without a baseline
    the anchor alone brings the paired gates into a dry run, and keeps it from exit 0."""
    yaml = YAML.replace("0.05", "0.1")
    for folder, answers in (("anchor", OLD), ("before", ["Varna", *NEW[1:]])):
        project.dataset("capital", {"en": answers}, yaml)
        project.run_in_process("qa")
        project.keep(folder)
    monkeypatch.setattr("qagate.reports.extras.odds.odds.MOST_RUNS", 20)
    planned = project.run_in_process("--anchor=anchor", "--dry-run", "qa").stdout.str()
    assert "without --baseline" not in planned
    assert "drop (anchor) <= 0.1" in planned
    project.dataset("capital", {"en": NEW}, yaml)
    result = project.run_in_process("--baseline=before", "--anchor=anchor", "qa")
    assert result.ret == 1
    result.stdout.fnmatch_lines(
        [
            "*capital:en * drop (anchor) -0.300*bar not below -0.1",
            "PASS *capital:en *drop +0.000*",
        ]
    )
    assert project.run_in_process("--anchor=nowhere", "qa").ret == 4


def test_both_sides_of_recorded_answers_are_named_by_their_file(
    project: Project,
) -> None:
    """Summary, page and ``compare`` tell one file of answers from the other, and where it was."""
    project.dataset("capital", {"en": ["Sofia"] * 4}, YAML)
    rows = project.path / "qa/capital/en.jsonl"
    for name in ("gpt-4o.jsonl", "mini.jsonl"):
        (project.path / name).write_bytes(rows.read_bytes())
    last = project.path / "last"
    project.run_in_process(
        "--items=capital:en=gpt-4o.jsonl", f"--report-dir={last}", "qa"
    )
    project.promote("last")
    new = "--items=capital:en=mini.jsonl"
    project.run_in_process(new, f"--baseline={last}", f"--anchor={last}", "qa")
    summary = project.text("summary.md")
    assert "Model ` recorded (mini.jsonl) `" in summary
    assert "compared with ` recorded (gpt-4o.jsonl) ` in ` last `" in summary
    assert "anchor ` recorded (gpt-4o.jsonl) ` in ` last `" in summary
    page = project.text("report.html")
    assert "Paired item by item with <b>recorded (gpt-4o.jsonl)</b>" in page
    lines = list(console.comparison(load_report(project.out)))
    assert lines[0] == "old: recorded (gpt-4o.jsonl), judge lexical"
    assert lines[1] == "new: recorded (mini.jsonl), judge lexical"


@pytest.mark.parametrize("role", ["baseline", "anchor"])
def test_what_the_baseline_has_is_missed(project: Project, role: str) -> None:
    """A data set, a language or a sixteenth of the items less: INCONCLUSIVE by name."""
    bars = dict.fromkeys(("en", "bg"), f"{BAR}, drop: {{max: 0.3, evidence: estimate}}")
    for first in (WRONG, RIGHT):
        for name in ("one", "two"):
            project.dataset(
                name, {"en": [first, *[RIGHT] * 47], "bg": [RIGHT] * 3}, graded(bars)
            )
        if first == WRONG:
            project.run_in_process("qa")
            project.keep("before")
    assert project.run_in_process(f"--{role}=before", "qa").ret == 0
    lost = {"qa/one": "two:bg (3 items), two:en (48 items)"}
    if role == "baseline":
        lost["qa --languages=en"] = "one:bg (3 items), two:bg (3 items)"
    for words, said in lost.items():
        result = project.run_in_process(f"--{role}=before", *words.split())
        assert result.ret == 6
        line = f"INCONCLUSIVE: exit 6; this run lacks {said}, which the {role} has; run all"
        assert line in result.outlines[-1]
        assert line in project.text("summary.md").replace("\\", "")
        assert line in project.text("gates.xml")
    project.dataset("one", {"en": [RIGHT] * 45, "bg": [RIGHT] * 3}, graded(bars))
    project.run_in_process(f"--{role}=before", "qa")
    reasons = " ".join(gate["reason"] for gate in project.report()["gates"])
    assert "3 missing items: at worst" in reasons


@tabled("text", "code", "said")
def test_a_project_may_demand_a_baseline(
    project: Project, text: str, code: int, said: str
) -> None:
    """``[tool.qagate]`` in pyproject.toml holds for all data sets; a typo is refused."""
    project.dataset(
        "capital", {"en": [RIGHT] * 4}, graded({"en": BAR + ", drop: {max: 0.9}"})
    )
    project.write("pyproject.toml", f"[tool.qagate]\n{text}\n")
    result = project.run_in_process("qa")
    assert result.ret == code
    assert said in result.stdout.str() + result.stderr.str()
    if code == 6:
        project.keep("before")
        words = ("--baseline=before", "qa")
        assert "NO BASELINE" not in project.run_in_process(*words).outlines[-1]


def test_a_baseline_above_the_data_is_seen_from_any_folder(project: Project) -> None:
    """Another working folder is no other project: the run names what it lacks, and ends in 6."""
    project.dataset("capital", {"en": [RIGHT] * 4}, graded({"en": BAR}))
    project.run_in_process("qa")
    (project.path / "reports" / "baselines").mkdir()
    kept = project.keep("reports/baselines/v1", anyway=True)
    below = Project(path=project.path / "below")
    below.path.mkdir()
    result = below.run_in_process("../qa")
    assert result.ret == 6
    assert f"NO BASELINE: exit 6; {kept} is promoted" in result.outlines[-1]
    assert below.run_in_process("../qa", "--baseline=none").ret == 0


HALF = graded({"en": BAR})


def verdict(folder: Path) -> str:
    run = json.loads((folder / "run.json").read_text(encoding="utf-8"))
    return f"{run['verdict']} of {run['counts']['plan']}"


def test_runs_that_decide_nothing_leave_the_last_that_did(project: Project) -> None:
    """Two samples after a PASS: it stays next to them, and the terminal says where."""
    project.dataset("capital", {"en": ["Sofia"] * 4}, HALF)
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
        result.stdout.fnmatch_lines(
            ["the last one that decided: *out.previous/report.html"]
        )
    project.dataset("capital", {"en": ["Varna"] * 4}, HALF)
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
    written = {path.name for path in write(report(), out)}
    (out / "adjudications.yaml").write_text("kept", encoding="utf-8")
    assert keep_decided(out) == ""
    assert {path.name for path in kept.iterdir()} == written | {"mine.txt"}
    assert (out / "adjudications.yaml").is_file()
    write(report(), tmp_path / "new")
    (tmp_path / "new.previous").write_text("in the way", encoding="utf-8")
    problem = keep_decided(tmp_path / "new")
    assert (
        "new.previous: the report before cannot be kept there (File exists)" in problem
    )


ABORTED: str = kept(__file__, "aborted")


@pytest.fixture(scope="module")
def passed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a project whose last run passed; read only."""
    project = new_project(tmp_path_factory.mktemp("passed"))
    project.dataset("capital", {"en": ["Sofia"] * 4}, HALF)
    project.write(".empty/note.txt", "no data set")
    assert project.run_in_process("qa").ret == 0
    return project.path


@pytest.fixture
def decided(passed: Path, project: Project) -> Project:
    shutil.copytree(passed, project.path, dirs_exist_ok=True)
    return project


@tabled("words", "body", "code", "said")
def test_no_pass_stays_unmarked(
    decided: Project, words: list[str], body: str, code: int, said: str
) -> None:
    """It is marked by a command that was refused, and gives way to one that began."""
    project = decided
    if body:
        project.write("qa/capital/test_capital.py", ABORTED.format(body))
    done = project.run(*words) if "os.kill" in body else project.run_in_process(*words)
    assert done.ret == code
    if said == "MARKED":
        assert project.report()["verdict"] == "PASS"
        assert words[0] in later_command(project.out)
        return
    assert project.report()["verdict"] == said
    assert not later_command(project.out)
    if said == "PASS":
        return
    assert verdict(previous(project.out)) == "PASS of 4"
    for name in ("gates.xml", "summary.md", "report.html"):
        assert said in project.text(name)
    if said == NO_VERDICT:
        assert 'errors="1"' in project.text("gates.xml")
        why = "was refused: exit 4" if code == 4 else "has written no report"
        assert f"{why}</error>" in project.text("gates.xml")
        assert NO_VERDICT in project.refused(
            "--baseline=reports/out", "--report-dir=new", "qa"
        )
    project.write("qa/capital/test_capital.py", MODULE.format(name="capital"))
    if body:
        assert project.run_in_process("qa").ret == 0
        assert verdict(project.out) == "PASS of 4"


def test_a_second_run_into_the_folder_is_refused(project: Project) -> None:
    """One line while the first goes on, or where nothing can be written; the report stays."""
    project.dataset("capital", {"en": ["Sofia"] * 4}, HALF)
    code = (
        "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); "
    )
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
    project.dataset("capital", {"en": ["Sofia"] * 4}, HALF)
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
    project.dataset("capital", {"en": ["Sofia", "Varna", "Varna"]}, HALF)
    for quiet in ("-q", "-qq"):
        lines = project.run_in_process(quiet, "qa").stdout.lines
        assert any(line.startswith("FAIL ") and "capital:en" in line for line in lines)
        assert any(line.startswith("report: ") for line in lines)
        assert [line for line in lines if line][-1].startswith(
            "GATES FAIL (1 of 1 failed): exit 1"
        )
