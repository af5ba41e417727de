"""README's commands: each is run in a fresh environment, or stands here with the reason why not."""

import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.support.checkouts import fresh_checkout, shell
from tests.support.projects import ROOT

README = (ROOT / "README.md").read_text("utf-8")
OFFLINE = "pip install --no-deps -e . && pytest -n 8 cases/"
MODELS = "--model openai:gpt-4.1 --judge anthropic:claude-opus-4-1"
OWN = "--model openai:OLD --judge anthropic:JUDGE"

RUN: Mapping[str, int] = {
    "python3 -m venv .venv && . .venv/bin/activate && "
    f"pip install --no-compile -r requirements.lock && {OFFLINE}": 0,
    f"pytest cases/ --dry-run {MODELS}": 0,
    "qagate new folklore --lang de": 0,
    "qagate new folklore_labels --kind judged --lang de": 0,
    f"qagate run folklore --dry-run {OWN}": 0,
    "qagate promote v1": 0,
}
"""The commands that are run, in this order, each with its exit code."""
PAID = "asks models that cost money; tests of the wire and of the gates have servers of their own"
NOT_RUN: Mapping[str, str] = {
    "export OPENAI_API_KEY=… ANTHROPIC_API_KEY=…": "keys of a person",
    f"pytest -n 8 cases/ {MODELS} --max-cost 400": PAID,
    "pytest -n 8 cases/ --model openai:NEW --judge openai:JUDGE --baseline=last-release": PAID,
    f"qagate run folklore {OWN}": PAID,
    "qagate run folklore --model openai:NEW --judge anthropic:JUDGE --baseline=v1": PAID,
    "python3 -m venv .venv && . .venv/bin/activate && pip install -r tests/requirements.lock && "
    "pytest -n 3 --dist worksteal -m 'not slow' tests/": "runs these tests",
}


def commands() -> Iterator[str]:
    """Yield each command of README's blocks, without its comment."""
    for block in re.findall(r"^```sh\n(.*?)^```$", README, re.S | re.M):
        for line in block.splitlines():
            words = re.split(r" (&&) ", line)
            parts = [
                word if word == "&&" else shlex.join(shlex.split(word, comments=True))
                for word in words
            ]
            command = " ".join(parts).replace("'OPENAI_API_KEY=…'", "OPENAI_API_KEY=…")
            yield command.replace("'ANTHROPIC_API_KEY=…'", "ANTHROPIC_API_KEY=…")


def test_each_command_is_run_or_has_a_reason() -> None:
    assert sorted(commands()) == sorted([*RUN, *NOT_RUN])


@pytest.mark.slow
def test_the_commands_work_in_a_fresh_environment(tmp_path: Path) -> None:
    """From the lock, whose hashes pip checks; without a key and without a model."""
    checkout = fresh_checkout(tmp_path / "qagate")
    in_environment = ""
    for command, code in RUN.items():
        done = shell(f"{in_environment}{command}", checkout, OPENAI_API_KEY="unused")
        assert done.returncode == code, f"{command}\n{done.stdout}\n{done.stderr}"
        in_environment = ". .venv/bin/activate; "
    report = shell(f"{in_environment}qagate demo", checkout)
    assert report.returncode == 1, "README: it shows a FAIL"
