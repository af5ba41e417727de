"""Ctrl-C and SIGTERM while a server hangs: a partial report, exit 2, nobody left behind."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable

import pytest

from tests.conftest import Project
from tests.support.loopback import Answer, Seen, loopback

ITEMS = 6
PROMPT = 'name: answer\nlanguage: en\nversion: "1"\nuser: "Answer: {question}"\n'
YAML = "kind: graded\nlanguages:\n  en: {file: en.jsonl, gates: {correct: {min: 0.5}}}\n"


def hang(seen: Seen) -> Answer:
    """Say nothing, for ever."""
    return Answer(action="hang")


def eventually(condition: Callable[[], bool]) -> bool:
    """Wait until something has come true; give up after half a minute."""
    for _ in range(1500):
        if condition():
            return True
        time.sleep(0.02)
    return False


def is_gone(group: int) -> bool:
    """Return whether no process of this group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return True
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("times", [1, 5])
def test_a_server_that_hangs_holds_up_no_interrupt(
    project: Project, mode: tuple[str, ...], number: signal.Signals, times: int
) -> None:
    """However often it is sent: a valid report, INCOMPLETE, each item MISSING once, none left."""
    project.dataset("capital", {"en": [None] * ITEMS}, YAML)
    project.write("qa/capital/answer.en.yaml", PROMPT)
    with loopback(handler=hang) as server:
        process = subprocess.Popen(
            [sys.executable, "-m", "pytest", *mode, f"--model=openai:m@{server.url}/v1", "qa"],
            cwd=project.path,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert eventually(lambda: server.count > 0)
        for _ in range(times):
            process.send_signal(number)
            time.sleep(0.05)
        output, _ = process.communicate(timeout=60)
    assert process.returncode == 2, output
    assert eventually(lambda: is_gone(process.pid))
    assert project.report()["complete"] is False
    states = Counter(str(record["outcome"]) for record in project.records())
    assert states == {"missing": ITEMS}
    assert "INTERRUPTED: exit 2" in output.splitlines()[-1]
