"""Small projects, as a user would have them, and pytest run in them.

``Project.run_in_process`` takes a fraction of a second and is for all that needs no worker; ``run``
starts a process of some two seconds, for workers, signals and what is loaded.
"""

import gc
import io
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import chdir, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import xdist.plugin
from _pytest.config import _prepareconfig

import qagate.reports.plugin
from qagate.reports.run.baselines import Promotion, write_promotion
from qagate.reports.run.decisions import why_no_baseline
from qagate.reports.run.run_json import load_report
from tests.support.tables import kept

ROOT = Path(__file__).parents[2]
RIGHT, WRONG = "Sofia", "Plovdiv"
BAR = "correct: {min: 0.5}"
PROMPT: str = kept(__file__, "prompt")
RUBRIC: str = kept(__file__, "rubric")
MODES = {"plain": (), "n0": ("-n", "0"), "n2": ("-n", "2")}
INI = f"""
[pytest]
pythonpath = {ROOT}
addopts = --import-mode=importlib --strict-markers --disable-plugin-autoload -p no:cacheprovider
    -p xdist.plugin -p qagate.reports.plugin
"""
PLUGINS = (
    qagate.reports.plugin,
    xdist.plugin,
)  # to look a name up reads what all packages offer
QUIETLY = (  # collecting this process's garbage five times over would take longer than the run
    *("-p", "no:unraisableexception", "-p", "no:threadexception"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
)
MODULE: str = kept(__file__, "module")


@dataclass(frozen=True)
class Project:
    """A project with datasets of recorded answers, as a user would have it."""

    path: Path
    configs: list[pytest.Config] = field(default_factory=list)

    def write(self, name: str, text: str) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def dataset(
        self, name: str, answers: Mapping[str, Sequence[str | None]], yaml: str = ""
    ) -> None:
        """Write a graded dataset: gold ``Sofia``, one recorded answer an item, by language."""
        languages = {language: f"{{file: {language}.jsonl}}" for language in answers}
        head = "kind: graded\n" + "languages:\n"
        listed = "".join(
            f"  {language}: {value}\n" for language, value in languages.items()
        )
        text = yaml or head + listed
        self.write(f"qa/{name}/dataset.yaml", text)
        for language in answers:
            rubric = f"plain.{language}.yaml"
            if rubric in text:
                self.write(f"qa/{name}/{rubric}", RUBRIC.format(language))
        self.write(f"qa/{name}/test_{name}.py", MODULE.format(name=name))
        for language, recorded in answers.items():
            rows = [
                item(number, answer) for number, answer in enumerate(recorded, start=1)
            ]
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            self.write(f"qa/{name}/{language}.jsonl", lines)

    def asked(
        self,
        count: int = 12,
        gates: str = BAR,
        head: str = "judge: unmeasured",
        languages: Sequence[str] = ("en",),
    ) -> "Project":
        """Write a data set ``capital`` that a model answers and a model judges by a rubric."""
        yaml = graded(dict.fromkeys(languages, gates), head, judged=True)
        self.dataset("capital", dict.fromkeys(languages, [None] * count), yaml)
        for language in languages:
            self.write(f"qa/capital/answer.{language}.yaml", PROMPT.format(language))
            self.write(f"qa/capital/plain.{language}.yaml", RUBRIC.format(language))
        return self

    def keep(self, name: str, *, anyway: bool = False) -> Path:
        """Move the last report away, to be a baseline whatever it decided; return its folder."""
        self.out.rename(self.path / name)
        return self.promote(name, anyway=anyway)

    def promote(self, name: str, *, anyway: bool = False) -> Path:
        """Let a report be a baseline whatever it decided; return its folder.

        ``anyway`` also if another run passed before it.
        """
        folder = self.path / name
        if anyway or why_no_baseline(load_report(folder, items=False), ()):
            write_promotion(folder, Promotion(name=name, anyway="a test"))
        return folder

    def run(self, *arguments: str) -> pytest.RunResult:
        began = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *arguments],
            cwd=self.path,
            capture_output=True,
            text=True,
            check=False,
        )
        seconds = time.monotonic() - began
        out, err = done.stdout.splitlines(), done.stderr.splitlines()
        return pytest.RunResult(done.returncode, out, err, seconds)

    def run_with(self, workers: int, *arguments: str) -> pytest.RunResult:
        return self.run_in_process(
            *(("-n", str(workers)) if workers else ()), *arguments
        )

    def run_in_process(self, *arguments: str) -> pytest.RunResult:
        """Run pytest in the project, in this process; what the project's modules patch stays."""
        out, err, began = io.StringIO(), io.StringIO(), time.monotonic()
        with chdir(self.path), redirect_stdout(out), redirect_stderr(err):
            try:
                code = pytest.main([*arguments, *QUIETLY], plugins=PLUGINS)
            finally:
                self.forget()
        seconds = time.monotonic() - began
        lines = out.getvalue().splitlines(), err.getvalue().splitlines()
        return pytest.RunResult(code, *lines, seconds)

    def parse_config(self, *arguments: str) -> pytest.Config:
        """Return pytest's configuration for a command line, until the test has ended."""
        config = _prepareconfig(list(arguments), PLUGINS)
        self.configs.append(config)
        return config

    def forget(self) -> None:
        """Drop the project's own modules, and what the plugin froze."""
        gc.unfreeze()
        for name, module in list(sys.modules.items()):
            if str(getattr(module, "__file__", "")).startswith(str(self.path)):
                del sys.modules[name]

    def refused(self, *arguments: str) -> str:
        """Run in this process, which must end with 4; return the one line that says why."""
        done = self.run_in_process(*arguments)
        assert done.ret == pytest.ExitCode.USAGE_ERROR, (
            done.stdout.str() + done.stderr.str()
        )
        assert "Traceback" not in done.stderr.str()
        (line,) = (line for line in done.errlines if line.startswith("ERROR"))
        return line

    @property
    def out(self) -> Path:
        return self.path / "reports" / "out"

    def text(self, name: str) -> str:
        return (self.out / name).read_text(encoding="utf-8")

    def report(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.text("run.json"))
        return loaded

    def notes(self) -> str:
        return "\n".join(self.report()["notes"])

    def only(self, part: str) -> Any:
        (found,) = self.report()[part]
        return found

    def gate_states(self) -> dict[str, str]:
        return {gate["measure"]: gate["state"] for gate in self.report()["gates"]}

    def records(self) -> list[dict[str, Any]]:
        return [
            json.loads(line) for line in self.text("records.jsonl").split("\n") if line
        ]

    def outcomes(self) -> Counter[str]:
        return Counter(record["outcome"] for record in self.records())


def item(number: int, answer: str | None) -> dict[str, object]:
    row: dict[str, object] = {
        "id": f"q{number}",
        "question": f"What is the capital of Bulgaria, asked for the time number {number}?",
        "answer": "Sofia",
    }
    return row if answer is None else {**row, "predicted_answer": answer}


def graded(gates: Mapping[str, str], head: str = "", *, judged: bool = False) -> str:
    """Return a dataset.yaml with these gates, by language; ``judged`` by the rubric ``plain``.

    If nothing else is said, no label measures its judge, which is waived: no bundled labels are
    of that rubric.
    """
    is_waived = "judge" not in head and "rubric" not in head
    if is_waived:
        head = "\n".join(line for line in (head, "judge: unmeasured") if line)
    lines = ["kind: graded", *filter(None, [head]), "languages:"]
    for language, declared in gates.items():
        rubric = ""
        if judged or is_waived:
            rubric = f", rubric: plain.{language}.yaml"
        lines.append(
            f"  {language}: {{file: {language}.jsonl{rubric}, gates: {{{declared}}}}}"
        )
    return "\n".join(lines) + "\n"


def specs(
    url: str, model: str = "m", judges: Iterable[str] = ("j",), provider: str = "openai"
) -> tuple[str, ...]:
    named = (
        word for judge in judges for word in ("--judge", f"{provider}:{judge}@{url}/v1")
    )
    return ("--model", f"{provider}:{model}@{url}/v1", *named)


def new_project(path: Path) -> Project:
    made = Project(path)
    made.write("pytest.ini", INI)
    return made


def without_last_line(report: dict[str, Any]) -> dict[str, Any]:
    """Return what a report says beside its last line, which tells kept answers from new ones."""
    decision = dict(report["decision"])
    del decision["line"]
    del decision["cautions"]
    return {**report, "decision": decision}
