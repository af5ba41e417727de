"""The recipe of docs/scale.md for an array of jobs, in bash: its words, and plain processes.

Jobs are stopped as schedulers do it, and started again with the same words.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.support.killing import alive, until
from tests.support.loopback import Answer, Loopback, Seen, good, loopback
from tests.support.projects import ROOT, Project

pytestmark = pytest.mark.untraced

ITEMS = 24
SHARDS = 3
CALLS = 2 * ITEMS
"""An answer and a judgement for each item."""
DOCUMENT = (ROOT / "docs" / "scale.md").read_text(encoding="utf-8")
THIS_PYTHON = f'qagate() {{ exec "{sys.executable}" -m qagate "$@"; }}\n'


def recipe() -> tuple[str, str]:
    """Return the commands of each job, and that of the job that decides."""
    _, _, text = DOCUMENT.partition("**An array of jobs**")
    match = re.search(r"```sh\n(.*?)```", text, re.DOTALL)
    assert match is not None
    job, decide, rest = match[1].partition("qagate merge")
    return job, decide + rest


@dataclass(slots=True, kw_only=True)
class Array:
    """The jobs of one array on one ledger."""

    project: Project
    server: Loopback

    def start(self, shard: int) -> "subprocess.Popen[str]":
        """Start the job of a shard in a process group of its own."""
        return self._bash(recipe()[0], I=str(shard))

    def decide(self) -> tuple[int, str]:
        """Return the exit code and the output of the last job."""
        process = self._bash(recipe()[1])
        output, _ = process.communicate(timeout=120)
        return process.returncode, output

    def _bash(self, commands: str, **variables: str) -> "subprocess.Popen[str]":
        places = {
            "run cases ": "run qa ",
            "N=8": f"N={SHARDS}",
            "openai:NEW": f"openai:m@{self.server.url}/v1",
            "openai:JUDGE": f"openai:j@{self.server.url}/v1",
            "postgresql://USER@HOST/DATABASE": "ledger.sqlite3",
        }
        for words, ours in places.items():
            commands = commands.replace(words, ours)
        return subprocess.Popen(
            ["bash", "-c", THIS_PYTHON + commands],
            cwd=self.project.path,
            env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )


@pytest.fixture
def slow_answers() -> Iterator[Loopback]:
    """Serve good answers, each after a while."""

    def answer(seen: Seen) -> Answer:
        return Answer(body=good(seen).body, delay=0.2)

    with loopback(handler=answer) as server:
        yield server


@pytest.fixture
def temporary_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Give processes a folder of their own for temporary files; a short one, as Ray needs it."""
    with tempfile.TemporaryDirectory(prefix="qat-") as folder:
        monkeypatch.setenv("TMPDIR", folder)
        yield Path(folder)


@pytest.fixture
def array(project: Project, slow_answers: Loopback) -> Array:
    return Array(project=project.asked(ITEMS), server=slow_answers)


def ended(process: "subprocess.Popen[str]") -> tuple[int, str]:
    """Return the exit code and the last line of a job, of which nothing is left running."""
    output, _ = process.communicate(timeout=120)
    until(lambda: not alive(process.pid))
    return process.returncode, output.splitlines()[-1]


def test_an_array_of_jobs_decides_as_the_recipe_says(array: Array) -> None:
    """Each call is made once, whichever job makes it."""
    jobs = [array.start(shard) for shard in range(1, SHARDS + 1)]
    for job in jobs:
        code, line = ended(job)
        assert code == 0, line
    code, output = array.decide()
    assert code == 0, output
    assert "GATES PASS" in output.splitlines()[-1]
    assert array.server.count == CALLS


@pytest.mark.parametrize(
    "number",
    [
        signal.SIGTERM,
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(signal.SIGHUP, marks=pytest.mark.slow),
    ],
)
def test_a_job_that_is_stopped_leaves_a_partial_report_and_nothing_else(
    array: Array, temporary_files: Path, number: signal.Signals
) -> None:
    job = array.start(1)
    until(lambda: array.server.count >= 2)
    os.killpg(job.pid, number)
    code, line = ended(job)
    assert code == 2, line
    assert line.startswith("INTERRUPTED: exit 2; ")
    report = json.loads((array.project.path / "shards/1/run.json").read_text("utf-8"))
    assert report["complete"] is False
    assert list(temporary_files.glob("qa-*")) == []


def test_a_job_that_is_stopped_goes_on_with_the_same_words(array: Array) -> None:
    """Before that the array decides nothing; after it no call was made twice."""
    first = array.start(1)
    until(lambda: array.server.count >= 2)
    first.send_signal(signal.SIGTERM)
    assert ended(first)[0] == 2
    for shard in range(2, SHARDS + 1):
        code, line = ended(array.start(shard))
        assert code == 0, line
    code, output = array.decide()
    assert code not in (0, 1), output
    code, line = ended(array.start(1))
    assert code == 0, line
    code, output = array.decide()
    assert code == 0, output
    assert array.server.count == CALLS


def test_the_temporary_files_of_a_killed_job_go_with_the_next(
    array: Array, temporary_files: Path
) -> None:
    first = array.start(1)
    until(lambda: array.server.count >= 2)
    first.kill()
    first.communicate(timeout=120)
    until(lambda: not alive(first.pid))
    assert list(temporary_files.glob("qa-*")) != []
    code, line = ended(array.start(1))
    assert code == 0, line
    assert list(temporary_files.glob("qa-*")) == []
