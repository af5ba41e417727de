"""``python -m reports run``: the run that pytest makes, without tests, in any number of shards."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import chdir
from pathlib import Path
from typing import Any

import pytest

from cases.tasks import traits_of
from reports.__main__ import main
from reports.plugin import shard_run
from reports.plugin.shard_work import Ends, Show
from tests.conftest import ROOT, Project
from tests.support.loopback import Answer, loopback, plausible

YAML = """
kind: graded
by: [topic]
languages:
  en: {file: en.jsonl, gates: {correct: {min: 0.5}}}
  bg: {file: bg.jsonl, gates: {correct: {min: 0.5}, incorrect: {max: 0.5}}}
drop: {max: 0.5, pool: languages}
"""
ASKED = """
kind: graded
rubric: plain.en.yaml
languages:
  en: {file: en.jsonl, gates: {correct: {min: 0.5}}}
"""
PROMPT = 'name: answer\nlanguage: en\nversion: "1"\nuser: "Answer: {question}"\n'
RUBRIC = """
name: plain
language: en
version: "1"
protocol: tool
user: "Question: {question} Reference: {target} Submission: {predicted_answer}"
"""
KILLER = """
import os, signal
from pathlib import Path
from evaluators.core import CORRECT, Verdict


class Judge:
    async def judge(self, case, answer, ask):
        if case.id == "q7" and not Path("fell").exists():
            Path("fell").touch()
            os.kill(os.getpid(), signal.{name})
        return Verdict(grade=CORRECT, reason="so it is", sure=True)
"""
SLOW = """
import asyncio
from pathlib import Path
from evaluators.core import CORRECT, Verdict


class Judge:
    async def judge(self, case, answer, ask):
        Path(FOLDER, "began").touch()
        if case.id != "q1":
            await asyncio.sleep(60)
        return Verdict(grade=CORRECT, reason="so it is", sure=True)
"""


def prepared(project: Project) -> Project:
    """Return a project with twelve English items and four Bulgarian ones, some of them wrong."""
    answers = {"en": ["Sofia"] * 9 + ["Varna", None, "I don't know."], "bg": ["Sofia"] * 3 + [None]}
    project.dataset("capital", answers, YAML)
    return project


def run(project: Project, *words: str) -> int:
    """Run the command in the project; return its exit code."""
    with chdir(project.path):
        return main(["run", *words])


def differences(project: Project, one: str = "here", other: str = "pytest") -> list[str]:
    """Return what two reports say otherwise, but for when and how they were made."""
    names = [path.name for path in (project.path / one).iterdir() if path.is_file()]
    assert "records.jsonl" in names
    runs: list[dict[str, Any]] = []
    for folder in (one, other):
        text = (project.path / folder / "run.json").read_text(encoding="utf-8")
        runs.append(json.loads(text))
        runs[-1].pop("run")
    files = set(names) - {"run.json", "report.html"}
    pairs = {
        name: [(project.path / one_ / name).read_bytes() for one_ in (one, other)] for name in files
    }
    found = [name for name, (here, there) in pairs.items() if here != there]
    return found + [name for name in runs[0] if runs[0][name] != runs[1].get(name)]


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--repeats", "2", "--languages", "en"),
        ("--limit", "3", "--seed", "7"),
        ("--first", "2"),
        ("--shard", "2/3"),
        ("--gates", "off"),
        ("--baseline=before",),
    ],
)
def test_the_report_is_that_of_pytest(project: Project, options: tuple[str, ...]) -> None:
    """Every file, and the exit code, in one shard and in several."""
    prepared(project)
    if "--baseline=before" in options:
        project.run_in_process("qa", "--report-dir=before")
    code = project.run_in_process("qa", *options, "--report-dir=pytest").ret
    for count in ("1", "5"):
        assert run(project, "qa", *options, "--report-dir=here", "--shards", count) == code
        assert differences(project) == []
    assert not list(project.path.glob("here/.shards*"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("qa", "-k", "en"), "-k: only pytest knows it"),
        (("qa", "-m", "en"), "-m: only pytest knows it"),
        (("qa", "-n", "8"), "-n: only pytest knows it"),
        (("qa/capital/test_capital.py::test_capital",), "only pytest knows it"),
        (("qa", "--until-decided"), "--until-decided needs pytest's tests"),
        (("qa", "--dry-run"), "--dry-run needs pytest's tests"),
        (("qa", "--on", "dask"), "--on: ray or ray:ADDRESS is needed, got 'dask'"),
        (("qa", "--shards", "-1"), "--shards: a number from 1"),
        (("qa", "--shards", "2", "--batch"), "--batch: one process can wait for all of it"),
        (("elsewhere",), "file or directory not found: elsewhere"),
        (("qa", "--limit", "x"), "--limit: a whole number"),
        (("qa", "--languages", "xx"), "--languages: no dataset has 'xx'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(
    project: Project, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    """Exit 4, before any call, and nothing is left behind."""
    assert run(prepared(project), *words) == 4
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert not (project.path / "reports" / "out" / "run.json").exists()


def test_ray_is_an_option(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it is missing, a line says what to install."""
    monkeypatch.setitem(sys.modules, "ray", None)
    assert run(prepared(project), "qa", "--on", "ray") == 4
    assert "pip install 'qagate[ray]'" in capsys.readouterr().err


def test_a_cluster_that_is_not_there_is_said(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """At once, in one line: nobody waits minutes for a wrong address."""
    monkeypatch.setitem(sys.modules, "ray", sys.modules[__name__])
    assert run(prepared(project), "qa", "--on", "ray:127.0.0.1:1") == 4
    assert "--on ray:127.0.0.1:1: no cluster answers there" in capsys.readouterr().err


def test_an_interrupt_leaves_a_partial_report(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 2; what was answered is there, the rest is MISSING; the same command goes on."""
    project.dataset("capital", {"en": ["Sofia"] * 12, "bg": ["Sofia"] * 4}, YAML)
    project.write("killer.py", KILLER.format(name="SIGINT"))
    words = ("qa", "--judge", "python:killer:Judge", "--shards", "4", "--concurrency", "1")
    assert run(project, *words) == 2
    assert capsys.readouterr().out.splitlines()[-1].startswith("INTERRUPTED: exit 2; ")
    states = {str(one["outcome"]) for one in project.records()}
    assert states == {"passed", "missing"}
    assert len(project.records()) == 16
    assert project.report()["complete"] is False
    assert run(project, *words) == 0


@pytest.mark.parametrize("limits", [(), ("--rpm", "6000"), ("--deadline", "60")])
def test_what_one_asked_no_other_asks_again(project: Project, limits: tuple[str, ...]) -> None:
    """Shards with a model, then pytest on their ledger: no further request, the same report."""
    project.dataset("capital", {"en": [None] * 12}, ASKED)
    project.write("qa/capital/answer.en.yaml", PROMPT)
    project.write("qa/capital/plain.en.yaml", RUBRIC)
    reply = plausible(lambda asked, name, schema: "CORRECT" if name == "grade" else "fine")
    with loopback(handler=reply) as server:
        models = (f"--model=openai:m@{server.url}/v1", f"--judge=openai:j@{server.url}/v1")
        code = run(project, "qa", *models, *limits, "--report-dir=here", "--shards", "3")
        asked = server.count
        assert project.run_in_process("qa", *models, "--report-dir=pytest").ret == code == 6
        assert server.count == asked == 24
    assert differences(project) == ["summary.md"]  # which says that all replies were there


def test_a_wrong_key_costs_a_few_calls_and_grades_nothing(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    """Exit 4 with the cause, as in pytest."""
    project.dataset("capital", {"en": [None] * 40}, ASKED)
    project.write("qa/capital/answer.en.yaml", PROMPT)
    project.write("qa/capital/plain.en.yaml", RUBRIC)
    with loopback(handler=lambda seen: Answer(status=401, body={"error": "no"})) as server:
        models = (f"--model=openai:m@{server.url}/v1", "--judge=lexical")
        assert run(project, "qa", *models, "--shards", "2") == 4
        assert server.count <= 8
    assert "NOTHING GRADED: exit 4" in capsys.readouterr().out
    assert {str(one["outcome"]) for one in project.records()} == {"error", "missing"}


class Losing:
    """An executor that loses its second shard."""

    slots = 2

    def run(self, jobs: Any, slots: int, show: Show) -> Ends:
        """Work on all but one."""
        for number, (job, end) in enumerate(shard_run.InThisProcess().run(jobs, slots, show)):
            yield job, None if number == 1 else end


def test_a_lost_shard_is_missing_and_never_a_grade(
    project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its items are MISSING, the report is incomplete, and the gates stay open."""
    monkeypatch.setattr("reports.commands.run_command.InThisProcess", Losing)
    assert run(prepared(project), "qa", "--shards", "2") == 6
    lost = [one for one in project.records() if str(one["error"]).startswith("shard_lost: ")]
    assert len(lost) == 8
    assert {str(one["outcome"]) for one in lost} == {"missing"}
    assert project.report()["complete"] is False
    assert "its shard was lost" in capsys.readouterr().out


def test_a_shard_knows_what_all_items_of_its_slices_are(project: Project) -> None:
    """Where by chance none of a shard's items has a recorded answer, it runs as the whole does."""
    prepared(project)
    rows = (project.path / "qa/capital/en.jsonl").read_text(encoding="utf-8").splitlines()
    bare = [json.dumps({**json.loads(row), "predicted_answer": None}) for row in rows[1:]]
    project.write("qa/capital/en.jsonl", "\n".join([rows[0], *bare]) + "\n")
    code = project.run_in_process("qa", "--languages=en", "--report-dir=pytest").ret
    assert run(project, "qa", "--languages=en", "--report-dir=here", "--shards", "12") == code
    assert differences(project) == []
    assert traits_of([]).recorded == frozenset()


@pytest.fixture
def with_ray(project: Project) -> Project:
    """Return the project; skip where Ray is not installed."""
    pytest.importorskip("ray", reason="Ray is not installed: pip install 'qagate[ray]'")
    return prepared(project)


def run_on_ray(project: Project, *words: str) -> subprocess.Popen[str]:
    """Start the command on a cluster of its own, in a process that Ray can do with as it likes."""
    found = {**os.environ, "PYTHONPATH": f"{project.path}{os.pathsep}{ROOT}"}
    command = [sys.executable, "-m", "reports", "run", "qa", *words, "--on", "ray"]
    return subprocess.Popen(
        command,
        cwd=project.path,
        env=found,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_on_ray_the_report_is_that_of_pytest(with_ray: Project) -> None:
    """Every file, and the exit code, whatever shards there are; a killed worker is made good.

    Its task runs once more in another process; no item is missing and none is there twice.
    """
    fell = str(with_ray.path / "fell")
    with_ray.write("killer.py", KILLER.format(name="SIGKILL").replace('"fell"', repr(fell)))
    options = ("--repeats", "3", "--judge", "python:killer:Judge")
    made = run_on_ray(with_ray, *options, "--report-dir=here", "--shards", "3")
    out, err = made.communicate()
    assert Path(fell).exists(), err
    assert made.returncode == 0, err
    assert with_ray.run_in_process("qa", *options, "--report-dir=pytest").ret == 0
    assert differences(with_ray) == []
    assert out.splitlines()[-1].startswith("GATES PASS")


@pytest.mark.slow
def test_an_interrupt_ends_the_tasks_of_ray(with_ray: Project) -> None:
    """Ctrl-C while a judge is slow: a partial report, exit 2, and no process is left behind."""
    with_ray.write("killer.py", SLOW.replace("FOLDER", repr(str(with_ray.path))))
    made = run_on_ray(with_ray, "--judge", "python:killer:Judge", "--shards", "4")
    began = with_ray.path / "began"
    while not began.exists() and made.poll() is None:
        time.sleep(0.05)
    made.send_signal(signal.SIGINT)
    out, err = made.communicate()
    assert made.returncode == 2, err
    assert out.splitlines()[-1].startswith("INTERRUPTED: exit 2; ")
    assert with_ray.report()["complete"] is False
    assert len(with_ray.records()) == 16


@pytest.mark.slow
def test_tasks_of_ray_share_a_ledger_in_a_database(with_ray: Project, database: str) -> None:
    """What a killed task has paid for is not asked again; pytest finds every reply there.

    Only calls that were under way when the task died may be asked a second time.
    """
    with_ray.dataset("capital", {"en": [None] * 24}, ASKED)
    with_ray.write("qa/capital/answer.en.yaml", PROMPT)
    with_ray.write("qa/capital/plain.en.yaml", RUBRIC)
    fell = str(with_ray.path / "fell")
    with_ray.write("killer.py", KILLER.format(name="SIGKILL").replace('"fell"', repr(fell)))
    reply = plausible(lambda asked, name, schema: "fine")
    with loopback(handler=reply) as server:
        models = (f"--model=openai:m@{server.url}/v1", "--judge=python:killer:Judge")
        options = (*models, f"--ledger={database}", "--concurrency=4")
        made = run_on_ray(with_ray, *options, "--report-dir=here", "--shards", "3")
        out, err = made.communicate()
        assert Path(fell).exists(), err
        assert 24 <= server.count <= 24 + 4
        asked = server.count
        code = with_ray.run_in_process("qa", *options, "--report-dir=pytest").ret
        assert server.count == asked
    assert made.returncode == code, out + err
    assert differences(with_ray) == ["summary.md"]  # which says that all replies were there
