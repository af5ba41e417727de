"""docs/any-run.md: its commands and figures, over what the tools themselves wrote."""

import gzip
import json
import re
import shlex
import shutil
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from qagate.command import main
from qagate.evaluators.statistics.paired import tango
from tests.extras.decide.written_results import WRITERS
from tests.support.figures import some
from tests.support.fixtures import Captured, Patch
from tests.support.projects import ROOT
from tests.support.reviewing import as_csv

PAGE = (ROOT / "docs" / "any-run.md").read_text(encoding="utf-8")
RECORDED = ROOT / "tests" / "extras" / "decide" / "recorded"
FOLDERS = {
    "promptfoo": "promptfoo",
    "inspect_ai": "inspect_ai",
    "lm-evaluation-harness": "lm_eval",
    "deepeval": "deepeval",
    "MLflow 3, the frame": "mlflow-3",
    "MLflow 3, traces": "mlflow-3",
    "MLflow 2": "mlflow-2",
    "azure-ai-evaluation": "azure-ai-evaluation",
    "pydantic-evals": "pydantic-evals",
    "ragas": "ragas",
    "Braintrust": "braintrust",
    "Langfuse": "langfuse",
    "OpenAI Evals": "openai-evals-api",
    "HELM": "helm",
    "lighteval": "lighteval",
}
"""Where results of a row of the page's table were recorded."""
DROPS = {"lm_eval": "-0.375", "lighteval": "-0.375", "helm": "-0.429"}
"""Of tools that end where a scorer fails."""


def after(mark: str) -> str:
    """Return the block or table that follows a mark in the page."""
    text = PAGE.partition(f"<!-- {mark} -->\n")[2]
    block = re.match(r"```\w*\n(.*?)```", text, re.DOTALL)
    return block[1] if block else text.partition("\n\n")[0]


def rows_of(mark: str) -> list[list[str]]:
    lines = after(mark).splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]


COMMANDS = {row[0]: row[2].strip("`") for row in rows_of("tools")}


def run(command: str, capsys: Captured) -> tuple[int, str]:
    """Return the exit code of a command of qagate, and what it prints."""
    program, *words = shlex.split(command)
    assert program == "qagate"
    code = main(words)
    printed = capsys.readouterr()
    return code, printed.out + printed.err


def unpack(recorded: Path, folder: Path) -> None:
    """Copy a recording to where its tool would have written it."""
    folder.mkdir()
    for path in recorded.iterdir():
        if path.suffix == ".gz":
            content = gzip.decompress(path.read_bytes())
            (folder / path.stem).write_bytes(content)
        else:
            shutil.copy(path, folder)


def test_the_table_has_each_tool_once() -> None:
    assert list(COMMANDS) == list(FOLDERS)


@pytest.mark.parametrize("tool", FOLDERS)
def test_a_command_finds_the_drop_in_what_its_tool_wrote(
    tool: str, tmp_path: Path, capsys: Captured, monkeypatch: Patch
) -> None:
    """A failed scorer and a failed model are no wrong answers; so few items decide nothing."""
    if tool == "inspect_ai":
        pytest.importorskip("backports.zstd")
    monkeypatch.chdir(tmp_path)
    for side in ("old", "new"):
        unpack(RECORDED / FOLDERS[tool] / side, tmp_path / side)
    code, printed = run(COMMANDS[tool], capsys)
    assert code == 6, printed
    drop = DROPS.get(FOLDERS[tool], "-0.333")
    assert re.search(rf":(\*|all) +drop {drop} ", printed), printed
    assert ("ungraded" in printed) == (DROPS.get(FOLDERS[tool]) != "-0.375")


@pytest.mark.parametrize(
    ("path", "instead"),
    [
        ("promptfoo/{}/results.csv", "give results.json"),
        ("promptfoo/{}/results.jsonl.gz", "give results.json"),
        ("braintrust/{}/summary.jsonl", "write the results of Eval() to a file"),
    ],
)
def test_what_holds_no_scores_says_what_to_give(
    path: str, instead: str, tmp_path: Path, capsys: Captured, monkeypatch: Patch
) -> None:
    """As the page promises of files that the tools write beside those of its table."""
    monkeypatch.chdir(tmp_path)
    old, new = (RECORDED / path.format(side) for side in ("old", "new"))
    code, printed = run(f"qagate decide {new} --baseline {old}", capsys)
    assert code == 4
    assert instead in printed


def test_every_form_of_a_tool_has_a_command() -> None:
    """A form is a recorded tool's, or a plain table."""
    tools = {
        "azure",
        "braintrust",
        "deepeval",
        "helm",
        "inspect",
        "langfuse",
        "lighteval",
    }
    tools |= {"lm", "mlflow", "openai", "promptfoo", "pydantic", "ragas", "table"}
    assert {form.partition("_")[0] for form in WRITERS} == tools


def test_the_screen_shows_the_gates_that_a_reader_sees(
    tmp_path: Path, capsys: Captured, monkeypatch: Patch
) -> None:
    """Their lines to the letter; what explains them is tested where it is written."""
    monkeypatch.chdir(tmp_path)
    old, new = [], []
    for n in range(400):
        language = "en" if n < 200 else "pl"
        row = {"id": f"q{n}", "lang": language}
        right = n % 5 > 0
        lost = language == "pl" and right and n % 200 < 38
        old.append({**row, "acc": int(right)})
        new.append({**row, "acc": int(right and not lost)})
    as_csv(tmp_path / "old.csv", old)
    as_csv(tmp_path / "new.csv", new)
    command, shown = after("screen").split("\n", 1)
    code, printed = run(command.removeprefix("$ "), capsys)
    assert code == 1
    gates = [line for line in shown.splitlines() if re.match("FAIL|PASS|GATES", line)]
    assert len(gates) == 4
    for line in gates:
        assert line.partition(";")[0] in printed


def test_the_gates_file_of_the_page_is_one(
    tmp_path: Path, capsys: Captured, monkeypatch: Patch
) -> None:
    monkeypatch.chdir(tmp_path)
    for side in ("old", "new"):
        unpack(RECORDED / "lm_eval" / side, tmp_path / side)
    (tmp_path / "gates.yaml").write_text(after("gates"))
    code, printed = run(
        f"{COMMANDS['lm-evaluation-harness']} --gates gates.yaml", capsys
    )
    assert code == 6, printed
    gates = re.findall(r"(?m)^[A-Z]+ +cities:(\w+) +(drop|correct) ", printed)
    assert sorted(gates) == [("en", "correct"), ("en", "drop"), ("pl", "drop")]


def test_an_unknown_tool_needs_column_names_alone(
    tmp_path: Path, capsys: Captured, monkeypatch: Patch
) -> None:
    """The file of the page, with more of the same rows."""
    monkeypatch.chdir(tmp_path)
    shown = json.loads(after("rows"))
    (row,) = shown["cases"]
    for side, right in (("old", 96), ("new", 60)):
        cases = []
        for n in range(120):
            points = [{"check": "exact", "points": int(n < right)}, row["checks"][1]]
            name = {"name": f"q{n}", "lang": row["case"]["lang"]}
            cases.append({**row, "case": name, "checks": points})
        text = json.dumps({"run": {"model": side}, "cases": cases})
        (tmp_path / f"{side}.json").write_text(text)
    code, printed = run(after("unknown"), capsys)
    assert code == 1, printed
    assert re.search(r":pl +drop -0.300 ", printed)


def test_three_candidates_end_in_the_line_of_the_page(
    tmp_path: Path, capsys: Captured, monkeypatch: Patch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, broke in (("old", 0), ("a", 0), ("b", 60), ("c", 8)):
        rows = [{"id": n, "score": int(n >= broke)} for n in range(200)]
        (tmp_path / f"{name}.json").write_text(json.dumps(rows))
    command = "qagate decide a.json b.json c.json --baseline old.json"
    assert f"```sh\n{command}\n```" in PAGE
    code, printed = run(command, capsys)
    assert code == 1
    assert printed.splitlines()[-1] == after("candidates").strip()


def test_a_table_may_have_a_column_for_each_model(
    tmp_path: Path, capsys: Captured, monkeypatch: Patch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = ("gpt-4.1_acc", "gpt-5_acc", "gpt-5-mini_acc")
    rows = [{"id": n, **dict.fromkeys(names, 1)} for n in range(200)]
    as_csv(tmp_path / "all.csv", rows)
    code, printed = run(after("columns"), capsys)
    assert code == 0, printed
    assert "CANDIDATES (2 of 2 pass)" in printed


@pytest.mark.parametrize("row", rows_of("pairs"), ids=lambda row: row[0])
def test_so_many_pairs_let_an_unchanged_model_pass(row: list[str]) -> None:
    """In 80 % of 1,500 simulated runs, within what so many can show."""
    flips = int(row[0].removesuffix(" %")) / 100
    for margin, cell in zip((0.10, 0.05, 0.03), row[1:], strict=True):
        pairs = int(cell.replace(",", ""))
        assert 0.77 <= share_that_passes(pairs, flips, margin) <= 0.88


def share_that_passes(pairs: int, flips: float, margin: float) -> float:
    """Return how many of 1,500 runs pass in which as many answers are fixed as broken."""

    @cache
    def passes(fixed: int, broke: int) -> bool:
        lower, _ = some(tango(fixed, broke, pairs))
        return lower > -margin

    generator = np.random.default_rng(1)
    chances = [flips / 2, flips / 2, 1 - flips]
    runs = generator.multinomial(pairs, chances, 1_500)
    passed = [passes(int(fixed), int(broke)) for fixed, broke, _ in runs]
    return sum(passed) / len(passed)
