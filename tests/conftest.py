"""Fixtures for tests of the plugin: a small project of its own, and pytest run in it.

``Project.run_in_process`` takes a fraction of a second and is for all that needs no worker; ``run``
starts a process of some two seconds, for workers, signals and what is loaded.
"""

import gc
import io
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from _pytest.config import _prepareconfig
from hypothesis import settings

pytest_plugins = ("pytester", "tests.support.places", "tests.support.postgres")

ROOT = Path(__file__).parent.parent

# A busy machine is no reason to fail.
settings.register_profile("qagate", deadline=None)
settings.load_profile("qagate")

# A shell lets what it starts in the background ignore Ctrl-C, and so would the tests' processes.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Without byte code every process that a test starts would compile the whole product.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

MODES = {"plain": (), "n0": ("-n", "0"), "n2": ("-n", "2")}
INI = f"""
[pytest]
pythonpath = {ROOT}
addopts = --import-mode=importlib --strict-markers -p no:deepeval -p no:asyncio -p no:repeat
    -p no:rerunfailures -p no:anyio -p no:hypothesispytest -p no:cacheprovider -p reports.plugin
"""
QUIETLY = (  # collecting this process's garbage five times over would take longer than the run
    *("-p", "no:unraisableexception", "-p", "no:threadexception"),
    *("-W", "ignore::pytest.PytestAssertRewriteWarning"),
)
MODULE = """
import pytest


@pytest.mark.qa("{name}")
def test_{name}(case, verdict):
    assert verdict.passed, verdict.reason
"""


@dataclass(frozen=True)
class Project:
    """A project with datasets of recorded answers, as a user would have it."""

    path: Path
    configs: list[pytest.Config] = field(default_factory=list)

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
        """Run with so many workers; without any in this process."""
        if workers:
            return self.run("-n", str(workers), *arguments)
        return self.run_in_process(*arguments)

    def run_in_process(self, *arguments: str) -> pytest.RunResult:
        """Run pytest in the project, in this process; what the project's modules patch stays."""
        out, err, began = io.StringIO(), io.StringIO(), time.monotonic()
        with chdir(self.path), redirect_stdout(out), redirect_stderr(err), self._forgotten():
            code = pytest.main([*arguments, *QUIETLY])
        seconds = time.monotonic() - began
        lines = out.getvalue().splitlines(), err.getvalue().splitlines()
        return pytest.RunResult(code, *lines, seconds)

    def parse_config(self, *arguments: str) -> pytest.Config:
        """Return pytest's configuration for a command line, until the test has ended."""
        config = _prepareconfig(list(arguments))
        self.configs.append(config)
        return config

    @contextmanager
    def _forgotten(self) -> Iterator[None]:
        """Drop the project's own modules afterwards, and what the plugin froze."""
        try:
            yield
        finally:
            gc.unfreeze()
            for name, module in list(sys.modules.items()):
                if str(getattr(module, "__file__", "")).startswith(str(self.path)):
                    del sys.modules[name]

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


def new_project(path: Path) -> Project:
    """Return an empty project in a folder, with the plugin switched on."""
    made = Project(path)
    made.write("pytest.ini", INI)
    return made


@pytest.fixture(scope="session", autouse=True)
def _no_keys_of_the_house() -> Iterator[None]:
    """Read no ``.env`` that happens to lie in the folder where the tests were started."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("evaluators.models.keys.ENV_FILE", Path(os.devnull) / ".env")
        yield


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """Return an empty project in the working folder, with the plugin switched on."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    made = new_project(tmp_path)
    yield made
    for config in made.configs:
        config._ensure_unconfigure()
