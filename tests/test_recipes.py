"""The documents: recipes and commands followed to the letter, and names that the code has."""

import csv
import json
import os
import re
import shutil
import subprocess
import sys
from argparse import SUPPRESS
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import dedent, indent
from typing import Any, cast

import pytest
import yaml

from qagate.cases.config import DATASET_KEYS, LABEL_KEYS, LANGUAGE_KEYS
from qagate.cases.thresholds import BAR_KEYS, CHANGE_KEYS, CHECK_KEYS, GEVAL_KEYS
from qagate.command import main
from qagate.evaluators.metric_specs import DEEPEVAL_METRICS
from qagate.evaluators.models.catalogue import KNOWN, KNOWN_HTTP
from qagate.evaluators.statistics.metrics import METRICS, USAGE
from qagate.reports import doors
from qagate.reports.gates.decide import INCONCLUSIVE
from qagate.reports.run.report_folder import OTHERS, RUN_FILE
from tests.support.fixtures import Captured, Patch
from tests.support.loopback import Answer, Seen, loopback, plausible, reply
from tests.support.projects import MODULE, ROOT, Project

pytestmark = pytest.mark.untraced
TEXT = (ROOT / ".github" / "CONTRIBUTING.md").read_text(encoding="utf-8")
BUNDLED = ROOT / "cases" / "simpleqa"
RUBRICS = ROOT / "evaluators" / "rubrics"
NEW = "xx"  # in place of Czech: a language that nobody adds


def blocks(recipe: str, language: str) -> list[str]:
    (section,) = re.findall(
        rf"^## {re.escape(recipe)}\n(.*?)(?=^## )", TEXT, re.S | re.M
    )
    found = re.findall(rf"^ *```{language}\n(.*?)^ *```$", section, re.S | re.M)
    return [dedent(block) for block in found]


def slice_of(project: Project, name: str) -> Mapping[str, Any]:
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
    row = {
        "question": "Write a letter.",
        "answer": "Any.",
        "predicted_answer": "Dear Sir",
    }
    project.write("qa/letters/en.jsonl", json.dumps(row) + "\n")
    project.write("qa/letters/test_letters.py", MODULE.format(name="letters"))
    return project


def test_a_language(project: Project) -> None:
    """Two texts, a data file and four lines of YAML; its gates wait for labels alone."""
    folder = project.path / "qa" / "simpleqa"
    folder.mkdir(parents=True)
    for path in BUNDLED.iterdir():
        if path.is_file():
            (folder / path.name).write_bytes(path.read_bytes())
    addition = re.sub(r"\bcs\b", NEW, blocks("A language", "yaml")[0])
    declared = (folder / "dataset.yaml").read_text(encoding="utf-8")
    indented = "".join(f"  {line}\n" for line in addition.splitlines())
    project.write(
        "qa/simpleqa/dataset.yaml",
        declared.replace("languages:\n", f"languages:\n{indented}", 1),
    )
    for source, name in (
        (BUNDLED / "answer.en.yaml", "answer"),
        (RUBRICS / "simpleqa.en.yaml", ""),
    ):
        text = source.read_text(encoding="utf-8").replace(
            "language: en", f"language: {NEW}", 1
        )
        project.write(f"qa/simpleqa/{name or 'simpleqa'}.{NEW}.yaml", text)
    header = (
        "Question",
        "Answers",
        "Aliases",
        "Predicted answers",
        "topic",
        "answer_type",
    )
    with (folder / f"{NEW}.csv").open("w", encoding="utf-8", newline="") as file:
        row = (
            "Ve kterém městě se narodil Franz Kafka?",
            "Praha",
            "",
            "Praha",
            "people",
            "place",
        )
        csv.writer(file).writerows([header, row])
    done = project.run_in_process("qa/simpleqa", "--languages", NEW)
    assert done.ret == INCONCLUSIVE, done.stdout.str()
    done.stdout.fnmatch_lines(["next: qagate label * # your labels measure the judge"])
    assert slice_of(project, f"simpleqa:{NEW}")["counts"]["passed"] == 1


def edit(path: Path, *changes: tuple[str, str]) -> None:
    text = path.read_text(encoding="utf-8")
    for before, added in changes:
        assert before in text, f"{path} no longer has {before!r}"
        text = text.replace(before, added + before, 1)
    path.write_text(text, encoding="utf-8")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a copy of the tree with a data set (run once), a metric, a provider and a format."""
    home = tmp_path_factory.mktemp("tree")
    for name in ("qagate", "cases", "evaluators", "reports"):
        shutil.copytree(
            ROOT / name, home / name, ignore=shutil.ignore_patterns("*cache__", "out")
        )
    for name in ("conftest.py", "pyproject.toml"):
        shutil.copy(ROOT / name, home)
    folder = home / "cases" / "folklore"
    folder.mkdir()
    (declared,), (module,) = (
        blocks("A data set", language) for language in ("yaml", "python")
    )
    (folder / "dataset.yaml").write_text(declared, encoding="utf-8")
    (folder / "test_folklore.py").write_text(module, encoding="utf-8")
    rows = "Question,Answers,Predicted answers\nКой победи трима вихри?,Крали Марко,Крали Марко\n"
    (folder / "bg.csv").write_text(rows, encoding="utf-8")
    (row,) = blocks("A metric", "python")
    metrics = home / "qagate" / "evaluators" / "statistics" / "metrics.py"
    first_row = '    Metric(\n        name="incorrect",\n'
    edit(metrics, (first_row, f"{indent(row.strip(), '    ')},\n"))
    add_provider(home)
    (written,) = blocks("A report format", "python")
    (home / "qagate" / "reports" / "render" / "verdict.py").write_text(
        written, encoding="utf-8"
    )
    edit(
        home / "qagate" / "reports" / "render" / "writer.py",
        (
            "from qagate.reports.render import ",
            "from qagate.reports.render import verdict\n",
        ),
        ("(GATES, junit)):", '("verdict.txt", verdict.render), '),
        ('    "html": (', '    "verdict": ("verdict.txt",),\n'),
    )
    assert "`qagate check cases/folklore`, then `pytest -n 8 cases/folklore`" in TEXT
    assert followed(home, "cases", "check", "cases/folklore").returncode == 0
    assert followed(home, "pytest", "-n", "2", "cases/folklore").returncode == 0
    return home


def add_provider(home: Path) -> None:
    """Follow the recipe: its module, its row and its test, as they stand there."""
    adapter, row, test = blocks("A provider", "python")
    models = home / "qagate" / "evaluators" / "models"
    (models / "acme.py").write_text(adapter, encoding="utf-8")
    head = "from qagate.evaluators.models import "
    edit(
        models / "spec.py",
        (head, f"{head}acme\n"),
        ('    "openai": openai.ADAPTER,', f"    {row}"),
    )
    tests = home / "tests"
    shutil.copytree(
        ROOT / "tests" / "support",
        tests / "support",
        ignore=shutil.ignore_patterns("*cache__"),
    )
    shutil.copy(ROOT / "tests" / "conftest.py", tests)
    (tests / "evaluators").mkdir()
    (tests / "evaluators" / "test_acme.py").write_text(test, encoding="utf-8")


def followed(home: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", *words],
        cwd=home,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_data_set(tree: Path) -> None:
    """Two files as they stand, the data, and both commands of the recipe; the gate decides."""
    report = json.loads(
        (tree / "reports" / "out" / "run.json").read_text(encoding="utf-8")
    )
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


def test_the_test_of_a_provider_passes(tree: Path) -> None:
    """Module, row and test fit each other as the recipe has them."""
    done = followed(tree, "pytest", "tests/evaluators/test_acme.py")
    assert done.returncode == 0, done.stdout


def test_a_provider_asks_for_its_own_key(tree: Path) -> None:
    model = ("--model", "acme:one", "--report-dir=out2")
    done = followed(tree, "pytest", "cases/folklore", *model)
    assert done.returncode == 4
    assert "ACME_API_KEY" in done.stderr


def test_a_provider_answers_a_data_set(tree: Path) -> None:
    """Two recipes together: the model is asked for the item, and its answer is right."""
    prompt = tree / "cases" / "folklore" / "answer.bg.yaml"
    shutil.copy(BUNDLED / "answer.bg.yaml", prompt)

    def answer_of_acme(seen: Seen) -> Answer:
        return Answer(
            body={
                "text": "Крали Марко",
                "finish_reason": "stop",
                "model": seen.body["model"],
            }
        )

    with loopback(handler=answer_of_acme) as server:
        model = ("--model", f"acme:one@{server.url}/v1", "--judge", "lexical")
        # Nothing measures the placeholder judge here: its gate could not pass.
        words = ("cases/folklore", *model, "--gates=off", "--report-dir=asked")
        done = followed(tree, "pytest", *words)
        (seen,) = server.requests
    assert done.returncode == 0, done.stdout
    assert seen.path == "/v1/generate"
    assert "Кой победи трима вихри?" in seen.body["prompt"]


def test_a_report_format(tree: Path) -> None:
    """One file and two rows: a run writes it, and so does ``render``."""
    assert (tree / "reports" / "out" / "verdict.txt").read_text(
        encoding="utf-8"
    ) == "PASS\n"
    words = ("render", "reports/out", "--format", "verdict", "--to", "rendered")
    assert followed(tree, "reports", *words).returncode == 0
    assert (tree / "rendered" / "verdict.txt").read_text(encoding="utf-8") == "PASS\n"


def test_a_judge_with_labels_of_its_own(letters: Project, monkeypatch: Patch) -> None:
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
    assert (
        project.run_in_process("qa", "--judge", "python:exact:Exact", "--gates=off").ret
        == 1
    )
    assert [record["grade"] for record in project.records()] == ["CORRECT", "INCORRECT"]


def paths() -> Iterator[str]:
    documents = (
        "README.md",
        "cases/README.md",
        "evaluators/README.md",
        "reports/README.md",
    )
    for name in (*documents, ".github/CONTRIBUTING.md"):
        text = (ROOT / name).read_text(encoding="utf-8")
        yield from re.findall(
            r"`((?:qagate|cases|evaluators|reports|tests)/[\w./-]+\.(?:py|yaml|md))`",
            text,
        )


ADDED = ("cs", "bg", "acme", "folklore", "verdict")
"""What the recipes' own examples add, and nobody has."""


@pytest.mark.parametrize("name", sorted(set(paths())))
def test_documents_name_files_that_exist(name: str) -> None:
    """A path in a document leads somewhere, unless a recipe adds it."""
    assert (
        any(re.search(rf"[/._]{word}[/._]", name) for word in ADDED)
        or (ROOT / name).is_file()
    )


@pytest.mark.parametrize("package", ["cases", "evaluators", "reports"])
def test_a_folders_readme_maps_its_folders(package: str) -> None:
    """One line a sub-folder, no more and no fewer."""
    root = ROOT / package
    text = (
        (root / "README.md")
        .read_text(encoding="utf-8")
        .partition("\n## The folder\n")[2]
    )
    named = re.findall(r"^\| `([\w./]+)/` \|", text, re.M)
    made = (
        "__pycache__",
        "out",
        "baselines",
        "calibrate",
        "attack",
    )  # by runs, and with .previous
    every = (path.name for path in root.iterdir() if path.is_dir())
    folders = {name for name in every if name.removesuffix(".previous") not in made}
    assert sorted(named) == sorted(folders)


README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    re.split(r"\s+# ", line)[0]
    for block in re.findall(r"^```sh\n(.*?)^```$", README, re.S | re.M)
    for line in block.splitlines()
]
QAGATE = """\
import sys
sys.path.insert(0, {home!r})
from qagate.command import main
sys.exit(main())
"""
ROWS, LABELS = 400, 80
GRADES = ("CORRECT", "INCORRECT", "NOT_ATTEMPTED")


def answer(seen: Seen) -> Answer:
    """Answer with the question's number, and find an answer right that has that number."""
    if seen.tool is None:
        asked = re.findall(r"Frage (\d+)", seen.prompt)
        return reply(seen, text=f"Nummer {asked[-1]}" if asked else "I do not know.")
    grade = "CORRECT"
    for word, stands_for in (("Falsch", "INCORRECT"), ("Unbekannt", "NOT_ATTEMPTED")):
        if word in seen.prompt:
            grade = stands_for
    return reply(
        seen, arguments={"reason": "by its number", "grade": grade, "rating": 7}
    )


def fill(folder: Path) -> None:
    rows = "".join(f"Frage {n}?,Nummer {n}\n" for n in range(ROWS))
    (folder / "folklore" / "de.csv").write_text(
        f"question,answer\n{rows}", encoding="utf-8"
    )
    labels = "".join(
        f"Frage {n}?,Nummer {n},{text} {n},{label}\n"
        for n in range(LABELS)
        for text, label in zip(("Nummer", "Falsch", "Unbekannt"), GRADES, strict=True)
    )
    head = "question,answer,predicted_answer,label\n"
    (folder / "folklore_labels" / "de.csv").write_text(head + labels, encoding="utf-8")


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The repository as a fresh clone has it, and `qagate` as the install would put it."""
    names = subprocess.check_output(
        ["git", "ls-files", "-z"], cwd=ROOT, text=True
    ).split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, tmp_path / name)
    home = tmp_path / ".venv" / "bin"
    home.mkdir(parents=True)
    script = home / "qagate"
    script.write_text(
        f"#!{sys.executable}\n{QAGATE.format(home=str(tmp_path))}", encoding="utf-8"
    )
    script.chmod(0o755)
    return tmp_path


@pytest.mark.slow
def test_every_command_of_the_readme_works(copy: Path) -> None:
    """No usage error and no crash; the user's own product passes, before and after the upgrade.
    Models are those of a loopback server, the bundled sets are the smallest, nothing is
    installed."""
    with loopback(handler=answer) as server:
        entries = {
            named(spec): {
                **dict(zip(("provider", "model"), spec.split(":"), strict=True)),
                "base_url": f"{server.url}/v1",
                "prices": {"input": 1, "output": 1},
            }
            for command in COMMANDS
            for spec in re.findall(r"--(?:model|judge) (\S+)", command)
        }
        (copy / "models.yaml").write_text(json.dumps(entries), encoding="utf-8")
        said = {command: run(copy, command) for command in COMMANDS}
    codes = {command: code for command, (code, _) in said.items()}
    assert {*codes.values()} <= {0, 6}, json.dumps(said, indent=1)
    own = [
        command
        for command in COMMANDS
        if "qagate" in command and "install" not in command
    ]
    assert [codes[command] for command in own] == [0] * 6, json.dumps(said, indent=1)
    assert "(0 of" not in said[own[-1]][1] and "GATES PASS" in said[own[-1]][1]


def named(spec: str) -> str:
    """Return the name in the models file of what stands for a model of the README."""
    return re.sub(r"\W", "_", spec)


def run(folder: Path, command: str) -> tuple[int, str]:
    """Return the exit code and the end of the output of one line."""
    given = re.sub(r"-n \d", "-n 0", command.rpartition("&& ")[2]).replace(
        "cases/", "cases/smoke"
    )
    given = given.replace("…", "k").replace(" tests/", " tests/test_ci_examples.py")
    given = re.sub(
        r"(--(?:model|judge)) (\S+)", lambda m: f"{m[1]} {named(m[2])}", given
    )
    if "--model" in given:
        given += " --models models.yaml"
    if given.endswith("--models models.yaml") and "folklore" in given:
        fill(folder)
    if "last-release" in given:
        given = f"qagate promote last-release --anyway test && {given}"
    if given.startswith("export"):
        return 0, ""
    bin_ = folder / ".venv" / "bin"
    done = subprocess.run(
        ["sh", "-c", given],
        cwd=folder,
        env={
            "PATH": os.pathsep.join(
                [str(bin_), str(Path(sys.executable).parent), os.defpath]
            ),
            "PYTHONPATH": str(folder),
            "HOME": str(folder),
        },
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.returncode, (done.stdout + done.stderr)[-1500:]


DOCUMENTS = sorted(
    [
        ROOT / "README.md",
        *(ROOT / name / "README.md" for name in ("cases", "evaluators", "reports")),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob(".github/*.md"),
    ]
)
STEPS = ("stats", "export", "import", "prune", "check", "batches")
"""Of ``qagate ledger``."""
REFERENCE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")


def section(title: str) -> str:
    (text,) = re.findall(
        rf"^## {re.escape(title)}\n(.*?)(?=^## |\Z)", REFERENCE, re.S | re.M
    )
    return str(text)


def keys(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield str(key)
            yield from keys(inner)


def examples(title: str) -> set[str]:
    """Return the keys that the YAML examples of a section show."""
    blocks = re.findall(r"^```yaml\n(.*?)^```$", section(title), re.S | re.M)
    return {key for block in blocks for key in keys(yaml.load(block, yaml.BaseLoader))}


def test_the_reference_lists_every_option(pytestconfig: pytest.Config) -> None:
    """Each option of our group has a line, and no line is about an option that went."""
    parser = pytestconfig._parser  # pytest has no public list of options
    group = next(group for group in parser._groups if group.name == "qa")
    shown = (
        option for option in group.options if option.attrs().get("help") != SUPPRESS
    )
    options = {
        name
        for option in shown
        for name in option.names()
        if not name.startswith("--qa-")
    }
    assert set(re.findall(r"`(--[\w-]+)", section("Options"))) == options


def test_the_reference_shows_every_key() -> None:
    """Of a data set, a gates file and a models file by example; and each metric."""
    gates = {*BAR_KEYS, *CHANGE_KEYS, "pool"}
    inner = {
        *LABEL_KEYS,
        *GEVAL_KEYS,
        *CHECK_KEYS,
        "limit",
        "seed",
        "waive",
        "difficulty_date",
    }
    known = {*DATASET_KEYS, *LANGUAGE_KEYS, *gates, *inner}
    assert known <= set(re.findall(r"[a-z_]+(?=:)", section("dataset.yaml")))
    assert {*DATASET_KEYS, *LANGUAGE_KEYS} <= examples("dataset.yaml")
    shown = examples("Gates file") | examples("dataset.yaml")
    assert {*BAR_KEYS, *CHANGE_KEYS, "pool", "replace", "sample"} <= shown | set(
        re.findall(r"`(\w+): all`", section("Gates file"))
    )
    assert {*KNOWN, *KNOWN_HTTP} <= examples("Models file")
    named = {name for kind in METRICS.values() for name in kind} | {
        *USAGE,
        *DEEPEVAL_METRICS,
    }
    numbered = {re.sub(r"_\d+$", "_N", name) for name in named}
    assert numbered <= set(re.findall(r"`([\w@^]+)`", section("Metrics")))


def test_the_reference_lists_every_command_with_its_options(capsys: Captured) -> None:
    """A row is about real commands and names their options; help also says the exit codes."""
    rows = [
        re.split(r" ?\| ?", line)[1:4]
        for line in section("Commands").splitlines()[4:]
        if line
    ]
    cells = {
        name: text for names, _, text in rows for name in re.findall(r"`(\w+)", names)
    }
    assert cells.keys() == {*doors.COMMANDS, *STEPS[1:]}
    for name in sorted(doors.COMMANDS.keys() - {"run"}):  # pytest's own help
        helped = set[str]()
        for step in STEPS if name == "ledger" else ("",):
            with pytest.raises(SystemExit) as ended:
                main([name, *filter(None, [step]), "--help"])
            text = capsys.readouterr().out
            assert ended.value.code == 0 and "exit codes" in text, name
            assert text.startswith(
                f"usage: qagate {' '.join([name, step])}".rstrip()
            ), name
            helped |= set(re.findall(r"^ +(--[a-z0-9-]+)", text, re.M))
        of_runs = (
            {"--limit", "--report-dir", "--judge"}
            if "of `run`" in cells[name]
            else set()
        )
        assert set(re.findall(r"--[a-z0-9-]+", cells[name])) == helped - of_runs, name


def test_the_reference_lists_every_file_and_exit_code() -> None:
    """Those that a report has, and those that a session can end with."""
    files = section("Files of a report")
    assert [
        name
        for name in (*OTHERS, RUN_FILE)
        if f"`{name}`" not in files + section("Commands")
    ] == []
    codes = re.findall(r"^\| (\d) \|", section("Exit codes"), re.M)
    assert list(map(int, codes)) == sorted(
        {int(one) for one in range(INCONCLUSIVE + 1)}
    )


def slug(heading: str) -> str:
    return re.sub(r"[^\w\s-]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize(
    "path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix()
)
def test_links_lead_somewhere(path: Path) -> None:
    """A link names a file that is there, and an anchor that is a heading of it."""
    text = re.sub(
        r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.S | re.M
    )
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        name, _, anchor = link.partition("#")
        target = (path.parent / name).resolve() if name else path
        assert target.exists(), link
        headings = (
            re.findall(r"^#+ (.*)$", target.read_text(encoding="utf-8"), re.M)
            if anchor
            else ()
        )
        assert not anchor or anchor in {slug(heading) for heading in headings}, link
