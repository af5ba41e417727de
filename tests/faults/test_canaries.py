"""No key of a run is shown anywhere, however much of it the user asks to see."""

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from qagate.cases.dataset import PlannedItem, Slice
from qagate.evaluators.core import Outcome, Verdict, Vote
from qagate.evaluators.kinds import kind_of
from qagate.reports.render.outcome_text import LONGEST, qa_property
from tests.support.loopback import Answer, Seen, loopback, plausible, reply
from tests.support.model_calls import error_body
from tests.support.projects import Project
from tests.support.scripted import make_case
from tests.support.tables import kept

LOUD = ("-l", "-vv", "-rA", "--tb=long", "--full-trace", "--log-level=DEBUG",
        "--log-file=log.txt", "--junitxml=junit.xml")  # fmt: skip
KEYS = kept(__file__, "keys")
IN_DOTENV = "JUDGE_KEY"
PROMPT = 'name: answer\nlanguage: en\nversion: "1"\nuser: "Answer: {question}"\n'
YAML: str = kept(__file__, "yaml")
MODELS = """
relay: {provider: openai, model: m, base_url: "%s/v1", api_key_env: RELAY_KEY}
"""
OWN_TESTS: str = kept(__file__, "own_tests")


def relay(seen: Seen) -> Answer:
    """Answer with the key that came, in the reply, in an error, or in one that ends the try."""
    key = seen.headers.get("authorization", "nobody")
    if "number 2?" in seen.prompt:
        return Answer(status=400, body=error_body(f"wrong parameter for {key}"))
    if "number 3?" in seen.prompt:
        headers = {"x-should-retry": "false", "x-you-are": key}
        return Answer(status=500, body=error_body(f"{key} broke it"), headers=headers)
    return reply(seen, f"Sofia, says {key}")


def judge(seen: Seen) -> Answer:
    """Give the key that came as the reason; answer metrics with a text that holds it."""
    key = seen.headers.get("authorization", "nobody")
    if seen.tool is None:
        return reply(seen, f"no JSON for {key}")
    return plausible(
        lambda asked, name, schema: key if name == "reason" else "CORRECT"
    )(seen)


@pytest.fixture
def told(project: Project) -> Project:
    """Return a project with an answering model, a judge, a metric, and tests of the user's own."""
    project.dataset("capital", {"en": [None] * 6}, YAML)
    lines = (project.path / "qa/capital/en.jsonl").read_text(encoding="utf-8")
    given = lines.replace(
        '"question":', '"context": "Sofia is the capital.", "question":'
    )
    project.write("qa/capital/en.jsonl", given)
    project.write("qa/capital/answer.en.yaml", PROMPT)
    project.write("qa/test_own.py", OWN_TESTS)
    project.write(".env", f"{IN_DOTENV}={KEYS[IN_DOTENV]}\n")
    return project


def run(project: Project, *arguments: str) -> "subprocess.CompletedProcess[bytes]":
    """Run pytest as loudly as it can, with all keys in its environment or in ``.env``."""
    (project.path / "temporary").mkdir(exist_ok=True)
    environ = {**os.environ, **KEYS, "TMPDIR": str(project.path / "temporary")}
    for name in (IN_DOTENV, "OPENAI_API_KEY"):
        environ.pop(name, None)
    command = [sys.executable, "-m", "pytest", *LOUD, *arguments, "qa"]
    return subprocess.run(
        command, cwd=project.path, env=environ, capture_output=True, check=False
    )


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["plain", "n2"])
def test_no_channel_of_a_loud_run_holds_a_key(
    told: Project, workers: tuple[str, ...]
) -> None:
    """Keys from four places, echoed in answers, errors, verdicts and metrics (F23)."""
    got: set[str] = set()

    def hear(handler: object, seen: Seen) -> Answer:
        got.add(seen.headers.get("authorization", ""))
        return handler(seen)  # type: ignore[operator, no-any-return]

    with (
        loopback(handler=lambda seen: hear(relay, seen)) as one,
        loopback(handler=lambda seen: hear(judge, seen)) as two,
    ):
        told.write("models.yaml", MODELS % one.url)
        result = run(told, *workers, "--models=models.yaml", "--model=relay",
                     f"--judge=openai:j@{two.url}/v1",
                     f"--key-env={two.url}/v1={IN_DOTENV}")  # fmt: skip
    output = (result.stdout + result.stderr).decode()
    assert {f"Bearer {KEYS['RELAY_KEY']}", f"Bearer {KEYS[IN_DOTENV]}"} <= got, output
    assert told.outcomes().keys() >= {"passed", "error"}, output
    assert "ANTHROPIC_API_KEY: the key holds a space" in output
    assert "wrong parameter for Bearer ***" in output
    files = {  # reports, log, JUnit, ledger, temporary ones
        str(path.relative_to(told.path)): path.read_bytes()
        for path in told.path.rglob("*")
        if path.is_file() and path.name != ".env"
    }
    assert {"log.txt", "junit.xml", "reports/out/records.jsonl"} <= files.keys()
    assert any(name.endswith(".sqlite3") for name in files)
    shown = {"the terminal": result.stdout + result.stderr, **files}
    found = [(where, key) for where, text in shown.items() for key in KEYS.values()
             if key.encode() in text]  # fmt: skip
    assert found == []


KEY = "sk-CANARY0123456789abcdef"
SLICE = Slice(
    dataset="simpleqa", language="bg", kind=kind_of("graded"), path=Path("bg.csv")
)


def test_votes_and_metadata_are_masked_and_cut() -> None:
    """A key in a column of the user's file or in a judge's vote is hidden (F23)."""
    case = replace(make_case(1), metadata={"note": [f"see {KEY}"], KEY: {"deep": KEY}})
    vote = Vote(judge="j", grade="CORRECT", reason=f"{KEY} {'z' * 50_000}")
    outcome = Outcome(
        key="k",
        state="passed",
        answer="a",
        verdict=Verdict(grade="CORRECT", votes=(vote,)),
    )
    written = qa_property(
        PlannedItem(key="k", slice=SLICE, case=case, repeat=1), outcome
    )
    assert "CANARY" not in written
    assert len(json.loads(written)["votes"][0]["reason"]) < LONGEST + 100
