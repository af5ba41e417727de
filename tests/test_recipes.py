"""The recipes of CONTRIBUTING.md, followed to the letter: what is code or data in them is run."""

import csv
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from textwrap import dedent
from typing import Any, cast

import pytest

from evaluators.models import openai
from evaluators.models.spec import PROVIDERS
from evaluators.statistics import metrics
from tests.conftest import MODULE, ROOT, Project
from tests.support.loopback import Seen, loopback, plausible
from tests.support.samples import full

TEXT = (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
BUNDLED = ROOT / "cases" / "simpleqa"
RUBRICS = ROOT / "evaluators" / "rubrics"
NEW = "xx"  # in place of Czech: a language that nobody adds


def blocks(recipe: str, language: str) -> list[str]:
    """Return the fenced blocks of a recipe that are in this language."""
    (section,) = re.findall(rf"^## {re.escape(recipe)}\n(.*?)(?=^## )", TEXT, re.S | re.M)
    found = re.findall(rf"^ *```{language}\n(.*?)^ *```$", section, re.S | re.M)
    return [dedent(block) for block in found]


def slice_of(project: Project, name: str) -> Mapping[str, Any]:
    """Return a slice of the last run's report."""
    slices = cast("list[dict[str, Any]]", project.report()["slices"])
    return next(part for part in slices if part["name"] == name)


@pytest.fixture
def letters(project: Project) -> Project:
    """Return a project with a data set of letters, judged by the rubric of the recipe."""
    (rubric,) = blocks("A judge with labels of its own", "yaml")
    project.write("qa/letters/register.en.yaml", rubric)
    project.write(
        "qa/letters/dataset.yaml",
        "kind: graded\nrubric: register\njudge: unmeasured\nlanguages:\n"
        "  en: {file: en.jsonl, gates: {correct: {min: 0.5}, share_informal: {max: 0.5}}}\n",
    )
    row = {"question": "Write a letter.", "answer": "Any.", "predicted_answer": "Dear Sir"}
    project.write("qa/letters/en.jsonl", json.dumps(row) + "\n")
    project.write("qa/letters/test_letters.py", MODULE.format(name="letters"))
    return project


def test_a_language(project: Project) -> None:
    """Two texts, a data file and four lines of YAML; its gates are decided."""
    folder = project.path / "qa" / "simpleqa"
    folder.mkdir(parents=True)
    for path in BUNDLED.iterdir():
        if path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())
    addition = re.sub(r"\bcs\b", NEW, blocks("A language", "yaml")[0])
    declared = (folder / "dataset.yaml").read_text(encoding="utf-8")
    indented = "".join(f"  {line}\n" for line in addition.splitlines())
    project.write(
        "qa/simpleqa/dataset.yaml", declared.replace("languages:\n", f"languages:\n{indented}", 1)
    )
    for source, name in (
        (BUNDLED / "answer.en.yaml", "answer"),
        (RUBRICS / "simpleqa.en.yaml", ""),
    ):
        text = source.read_text(encoding="utf-8").replace("language: en", f"language: {NEW}", 1)
        project.write(f"qa/simpleqa/{name or 'simpleqa'}.{NEW}.yaml", text)
    header = ("Question", "Answers", "Aliases", "Predicted answers", "topic", "answer_type")
    with (folder / f"{NEW}.csv").open("w", encoding="utf-8", newline="") as file:
        row = ("Ve kterém městě se narodil Franz Kafka?", "Praha", "", "Praha", "people", "place")
        csv.writer(file).writerows([header, row])
    done = project.run_in_process("qa/simpleqa", "--languages", NEW)
    assert done.ret == 0, done.stdout.str()
    assert slice_of(project, f"simpleqa:{NEW}")["counts"]["passed"] == 1


def test_a_data_set(tmp_path: Path) -> None:
    """In a copy of the tree: two files as they stand, the data, and both commands of the recipe."""
    skip = shutil.ignore_patterns("__pycache__", "out")
    for name in ("cases", "evaluators", "reports"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=skip)
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    folder = tmp_path / "cases" / "folklore"
    folder.mkdir()
    (declared,), (module,) = (blocks("A data set", language) for language in ("yaml", "python"))
    (folder / "dataset.yaml").write_text(declared, encoding="utf-8")
    (folder / "test_folklore.py").write_text(module, encoding="utf-8")
    rows = "Question,Answers,Predicted answers\nКой победи трима вихри?,Крали Марко,Крали Марко\n"
    (folder / "bg.csv").write_text(rows, encoding="utf-8")
    assert "`qagate check cases/folklore`, then `pytest -n 8 cases/folklore`" in TEXT
    for words in (["cases", "check", "cases/folklore"], ["pytest", "-n", "2", "cases/folklore"]):
        command = [sys.executable, "-m", *words]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads((tmp_path / "reports" / "out" / "run.json").read_text(encoding="utf-8"))
    assert [gate["state"] for gate in report["gates"]] == ["PASS"]


def test_a_metric(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row: a gate may name it, and every report file shows it."""
    (row,) = blocks("A metric", "python")
    metric = eval(row, dict(vars(metrics)))
    monkeypatch.setitem(cast("dict[str, Any]", metrics.METRICS["graded"]), metric.name, metric)
    project.dataset(
        "capital",
        {"en": ["Sofia", "Varna", "I do not know."]},
        "kind: graded\nlanguages:\n  en: {file: en.jsonl, gates: {not_correct: {max: 0.7}}}\n",
    )
    done = project.run_in_process("qa")
    assert done.ret == 0, done.stdout.str()
    assert slice_of(project, "capital:en")["measures"]["not_correct"]["value"] == pytest.approx(
        2 / 3
    )
    out = project.path / "reports" / "out"
    for name in ("report.html", "summary.md", "gates.xml"):
        text = (out / name).read_text(encoding="utf-8")
        assert re.search(r"not(?: |_|\\_)correct", text)


def test_a_judge_with_labels_of_its_own(letters: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rubric alone makes a model call with its three words, one of which passes."""
    monkeypatch.setenv("OPENAI_API_KEY", "none")

    def grade(seen: Seen, name: str, schema: Mapping[str, Any]) -> object:
        return schema["enum"][0] if "enum" in schema else "Dear Sir"

    with loopback(handler=plausible(grade)) as server:
        done = letters.run_in_process("qa", "--judge", f"openai:judge@{server.url}/v1")
    assert done.ret == 0, done.stdout.str()
    assert slice_of(letters, "letters:en")["labels"]["formal"] == 1


def test_a_judge_of_rules(project: Project) -> None:
    """One file of another repository, named on the command line."""
    (module,) = blocks("A judge of rules", "python")
    project.write("exact.py", module)
    project.dataset("capital", {"en": ["Sofia", "sofia"]})
    done = project.run_in_process("qa", "--judge", "python:exact:Exact", "--gates=off")
    assert done.ret == 1
    assert [record["grade"] for record in project.records()] == ["CORRECT", "INCORRECT"]


def test_a_provider(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row for its adapter: its SPEC is known, and its own key is asked for."""
    adapter = replace(openai.ADAPTER, api_key_env="ACME_API_KEY")
    monkeypatch.setitem(cast("dict[str, Any]", PROVIDERS), "acme", adapter)
    project.dataset("capital", {"en": ["Sofia"]})
    prompt = (BUNDLED / "answer.en.yaml").read_text(encoding="utf-8")
    project.write("qa/capital/answer.en.yaml", prompt)
    declared = "kind: graded\nlanguages:\n  en: {file: en.jsonl, prompt: answer.en.yaml}\n"
    project.write("qa/capital/dataset.yaml", declared)
    with loopback() as server:
        without = project.run_in_process("qa", "--model", "acme:one")
        monkeypatch.setenv("ACME_API_KEY", "none")
        model = f"acme:one@{server.url}/v1"
        done = project.run_in_process("qa", "--model", model, "--gates=off")
        assert server.count == 1
    assert without.ret == 4
    assert "ACME_API_KEY" in without.stderr.str()
    assert done.ret == 1, done.stdout.str()
    (record,) = project.records()
    assert record["answer"]


def test_a_report_format() -> None:
    """A pure function from the report to text."""
    (module,) = blocks("A report format", "python")
    scope: dict[str, Any] = {}
    exec(module, scope)
    assert scope["render"](full()) in ("PASS\n", "FAIL\n", "INCONCLUSIVE\n", "INCOMPLETE\n")


def paths() -> Iterator[str]:
    """Yield every path of this repository that a document names."""
    documents = ("README.md", "cases/README.md", "evaluators/README.md", "reports/README.md")
    for name in (*documents, ".github/CONTRIBUTING.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        yield from re.findall(
            r"`((?:cases|evaluators|reports|tests)/[\w./-]+\.(?:py|yaml|md))`", text
        )


ADDED = ("cs", "bg", "acme", "folklore", "verdict")
"""What the recipes' own examples add, and nobody has."""


@pytest.mark.parametrize("name", sorted(set(paths())))
def test_documents_name_files_that_exist(name: str) -> None:
    """A path in a document leads somewhere, unless a recipe adds it."""
    added = any(re.search(rf"[/._]{word}[/._]", name) for word in ADDED)
    assert added or (ROOT / name).is_file()


@pytest.mark.parametrize("package", ["cases", "evaluators", "reports"])
def test_a_folders_readme_maps_its_folders(package: str) -> None:
    """One line a sub-folder, no more and no fewer."""
    root = ROOT / package
    text = (root / "README.md").read_text(encoding="utf-8").partition("\n## The folder\n")[2]
    named = re.findall(r"^\| `([\w./]+)/` \|", text, re.M)
    made = {"__pycache__", "out", "out.previous", "baselines"}  # by runs
    assert sorted(named) == sorted({path.name for path in root.iterdir() if path.is_dir()} - made)
