"""The recipes of CONTRIBUTING.md, followed to the letter: what is code or data in them is run."""

import csv
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import dedent
from typing import Any, cast

import pytest

from tests.support.loopback import Seen, loopback, plausible
from tests.support.projects import MODULE, ROOT, Project

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


def edit(path: Path, *changes: tuple[str, str]) -> None:
    """Put a text before another one that the file holds."""
    text = path.read_text(encoding="utf-8")
    for before, added in changes:
        assert before in text, f"{path} no longer has {before!r}"
        text = text.replace(before, added + before, 1)
    path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the tree with a data set, a metric, a provider and a format added to it.

    One run of the new data set serves all of them.
    """
    home = tmp_path_factory.mktemp("tree")
    for name in ("cases", "evaluators", "reports"):
        shutil.copytree(
            ROOT / name, home / name, ignore=shutil.ignore_patterns("*pycache__", "out")
        )
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, home)
    folder = home / "cases" / "folklore"
    folder.mkdir()
    (declared,), (module,) = (blocks("A data set", language) for language in ("yaml", "python"))
    (folder / "dataset.yaml").write_text(declared, encoding="utf-8")
    (folder / "test_folklore.py").write_text(module, encoding="utf-8")
    rows = "Question,Answers,Predicted answers\nКой победи трима вихри?,Крали Марко,Крали Марко\n"
    (folder / "bg.csv").write_text(rows, encoding="utf-8")
    (row,) = blocks("A metric", "python")
    metrics = home / "evaluators" / "statistics" / "metrics.py"
    edit(metrics, ('        _item_rate("incorrect", "Incorrect"', f"        {row.strip()},\n"))
    acme = (
        "from dataclasses import replace\n\nfrom evaluators.models import openai\n\n"
        'ADAPTER = replace(openai.ADAPTER, api_key_env="ACME_API_KEY")\n'
    )
    (home / "evaluators" / "models" / "acme.py").write_text(acme, encoding="utf-8")
    edit(
        home / "evaluators" / "models" / "spec.py",
        ("from evaluators.models import ", "from evaluators.models import acme\n"),
        ('    "openai": openai.ADAPTER,', '    "acme": acme.ADAPTER,\n'),
    )
    (written,) = blocks("A report format", "python")
    (home / "reports" / "render" / "verdict.py").write_text(written, encoding="utf-8")
    edit(
        home / "reports" / "render" / "writer.py",
        ("from reports.render import ", "from reports.render import verdict\n"),
        ('    "gates.xml": junit.render', '    "verdict.txt": verdict.render,\n'),
        ('    "html": (', '    "verdict": ("verdict.txt",),\n'),
    )
    assert "`qagate check cases/folklore`, then `pytest -n 8 cases/folklore`" in TEXT
    assert followed(home, "cases", "check", "cases/folklore").returncode == 0
    assert followed(home, "pytest", "-n", "2", "cases/folklore").returncode == 0
    return home


def followed(home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run a command in the copy."""
    return subprocess.run(
        [sys.executable, "-m", *words], cwd=home, capture_output=True, text=True, check=False
    )


@pytest.mark.untraced
def test_a_data_set(tree: Path) -> None:
    """Two files as they stand, the data, and both commands of the recipe; the gate decides."""
    report = json.loads((tree / "reports" / "out" / "run.json").read_text(encoding="utf-8"))
    assert [gate["state"] for gate in report["gates"]] == ["PASS"]


def test_a_metric(tree: Path) -> None:
    """One row: a gate may name it, also over a recorded run, and every report file shows it."""
    gates = tree / "strict.yaml"
    gates.write_text("folklore: {bg: {not_correct: {max: 0.7}}}\n", encoding="utf-8")
    words = ("gate", "reports/out", "--gates", "strict.yaml", "--to", "again")
    assert followed(tree, "reports", *words).returncode == 0
    for name in ("report.html", "summary.md", "gates.xml"):
        text = (tree / "again" / name).read_text(encoding="utf-8")
        assert re.search(r"not(?: |_|\\_)correct", text), name


@pytest.mark.untraced
def test_a_provider(tree: Path) -> None:
    """One file and one row: its SPEC is known, and its own key is asked for."""
    without = followed(
        tree, "pytest", "cases/folklore", "--model", "acme:one", "--report-dir=asked"
    )
    assert without.returncode == 4
    assert "ACME_API_KEY" in without.stderr
    prompt = tree / "cases" / "folklore" / "answer.bg.yaml"
    shutil.copy(BUNDLED / "answer.bg.yaml", prompt)
    with loopback() as server:
        model = ("--model", f"acme:one@{server.url}/v1", "--gates=off", "--report-dir=asked")
        done = followed(tree, "pytest", "cases/folklore", *model)
        assert server.count == 1
    assert done.returncode == 1, done.stdout


def test_a_report_format(tree: Path) -> None:
    """One file and two rows: a run writes it, and so does ``render``."""
    assert (tree / "reports" / "out" / "verdict.txt").read_text(encoding="utf-8") == "PASS\n"
    words = ("render", "reports/out", "--format", "verdict", "--to", "rendered")
    assert followed(tree, "reports", *words).returncode == 0
    assert (tree / "rendered" / "verdict.txt").read_text(encoding="utf-8") == "PASS\n"


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
    made = ("__pycache__", "out", "baselines", "calibrate", "attack")  # by runs, and with .previous
    every = (path.name for path in root.iterdir() if path.is_dir())
    folders = {name for name in every if name.removesuffix(".previous") not in made}
    assert sorted(named) == sorted(folders)
