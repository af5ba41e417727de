"""From a spreadsheet to a gate, by the commands that ``qagate start`` names."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.support.loopback import Answer, Loopback, Seen, loopback, reply
from tests.support.projects import ROOT

pytestmark = pytest.mark.slow
QUESTIONS = 60


def answer_or_judge(seen: Seen) -> Answer:
    """Add two numbers as ``old`` does, rightly, or as ``new``: wrongly if they are odd."""
    if seen.headers.get("authorization") != "Bearer secret":
        return Answer(status=401, body={"error": {"message": "no key"}})
    model = seen.body["model"]
    numbers = re.findall(r"(\d+) und (\d+)", seen.prompt)
    first, second = (int(number) for number in numbers[-1])
    right = first + second
    if model == "old":
        return reply(seen, text=str(right))
    if model == "new":
        return reply(seen, text=str(right + first % 2))
    given = seen.prompt.rpartition("Submitted answer: ")[2]
    is_right = re.search(rf"\b{right}\b", given) is not None
    return reply(seen, text="A" if is_right else "B")


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback(handler=answer_or_judge) as running:
        yield running


class Repository:
    """A repository of a user, with ``qagate`` on the path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.programs = path.parent / "bin"
        self.programs.mkdir()
        program = self.programs / "qagate"
        program.write_text(f'#!/bin/sh\nexec {sys.executable} -m qagate "$@"\n')
        program.chmod(0o755)
        (path / ".git").mkdir(parents=True)

    def run(self, command: str) -> "subprocess.CompletedProcess[str]":
        """Run a command as a person would type it, or a step of a workflow."""
        return subprocess.run(
            ["bash", "-e", "-c", command],
            cwd=self.path,
            env={
                **os.environ,
                "PATH": f"{self.programs}:{os.environ['PATH']}",
                "PYTHONPATH": str(ROOT),
                "GATEWAY_KEY": "secret",
            },
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )


def test_an_excel_file_becomes_a_gate_that_stops_a_loss(
    tmp_path: Path, server: Loopback
) -> None:
    repository = Repository(tmp_path / "app")
    rows = [
        f"{n};Wie viel ist {n} und {n + 3}, grüß Gott?;{2 * n + 3}"
        for n in range(QUESTIONS)
    ]
    text = "\r\n".join(["Nr.;Frage;Antwort", *rows])
    (repository.path / "fragen.csv").write_bytes(text.encode("cp1252"))
    started = repository.run(
        "qagate start fragen.csv --encoding cp1252 --lang de --unmeasured "
        f"--model openai:old@{server.url} --model-key GATEWAY_KEY --model-price 2,8 "
        f"--judge openai:judge@{server.url} --judge-key GATEWAY_KEY --judge-price 2,8"
    )
    assert started.returncode == 0, started.stderr
    said = started.stdout.partition("next:")[2]
    commands = re.findall(r"^  (qagate .*?)(?:    # .*)?$", said, re.M)
    assert [command.split()[1] for command in commands] == ["run", "run", "promote"]
    for command in commands:
        done = repository.run(command)
        assert done.returncode == 0, done.stdout + done.stderr

    models = repository.path / "fragen" / "models.yaml"
    models.write_text(models.read_text("utf-8").replace('"old"', '"new"'), "utf-8")
    workflow = yaml.safe_load(
        (repository.path / ".github/workflows/qa.yml").read_text()
    )
    steps = [step.get("run", "") for step in workflow["jobs"]["qa"]["steps"]]
    (gate,) = [step for step in steps if step.startswith("qagate run")]
    refused = repository.run(gate)
    assert refused.returncode == 1, refused.stdout + refused.stderr
    assert "WARNING" not in refused.stdout, "the model alone changed"
    assert "lost 30 of 60 answers" in refused.stdout
