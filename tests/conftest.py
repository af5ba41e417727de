"""Fixtures for tests of the plugin: a small project of its own, run in three modes."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import settings

pytest_plugins = ("pytester",)

ROOT = Path(__file__).parent.parent

# A busy machine is no reason to fail.
settings.register_profile("qagate", deadline=None)
settings.load_profile("qagate")

# Without byte code every process that a test starts would compile the whole product.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

MODES = {"plain": (), "n0": ("-n", "0"), "n2": ("-n", "2")}
INI = f"""
[pytest]
pythonpath = {ROOT}
addopts = --import-mode=importlib --strict-markers -p no:deepeval -p no:asyncio -p no:repeat
    -p no:rerunfailures -p no:anyio -p no:hypothesispytest -p no:cacheprovider -p reports.plugin
"""
MODULE = """
import pytest


@pytest.mark.qa("{name}")
def test_{name}(case, verdict):
    assert verdict.passed, verdict.reason
"""


@pytest.fixture(params=list(MODES))
def mode(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Return the options of one way to run pytest: plain, in one process, with two workers."""
    return MODES[request.param]


@dataclass(frozen=True)
class Project:
    """A project with datasets of recorded answers, as a user would have it."""

    pytester: pytest.Pytester

    @property
    def path(self) -> Path:
        return self.pytester.path

    def write(self, name: str, text: str) -> Path:
        """Write one file of the project."""
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
        listed = "".join(f"  {language}: {value}\n" for language, value in languages.items())
        self.write(f"qa/{name}/dataset.yaml", yaml or head + listed)
        self.write(f"qa/{name}/test_{name}.py", MODULE.format(name=name))
        for language, recorded in answers.items():
            rows = [item(number, answer) for number, answer in enumerate(recorded, start=1)]
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            self.write(f"qa/{name}/{language}.jsonl", lines)

    def run(self, *arguments: str) -> pytest.RunResult:
        """Run pytest in the project, in a process of its own."""
        return self.pytester.runpytest_subprocess(*arguments)

    def report(self) -> dict[str, object]:
        """Return run.json of the last run."""
        text = (self.path / "reports" / "out" / "run.json").read_text(encoding="utf-8")
        loaded: dict[str, object] = json.loads(text)
        return loaded

    def records(self) -> list[dict[str, object]]:
        """Return the lines of records.jsonl of the last run."""
        text = (self.path / "reports" / "out" / "records.jsonl").read_text(encoding="utf-8")
        return [json.loads(line) for line in text.split("\n") if line]


def item(number: int, answer: str | None) -> dict[str, object]:
    """Return one line of a graded dataset; an answer of None is a model's silence."""
    row: dict[str, object] = {
        "id": f"q{number}",
        "question": f"What is the capital of Bulgaria, asked for the time number {number}?",
        "answer": "Sofia",
    }
    return row if answer is None else {**row, "predicted_answer": answer}


@pytest.fixture
def project(pytester: pytest.Pytester) -> Project:
    """Return an empty project with the plugin switched on."""
    made = Project(pytester)
    made.write("pytest.ini", INI)
    return made
