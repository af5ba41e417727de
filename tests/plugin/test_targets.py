"""What people ship as the model under test: a Python function, and a service by its entry."""

import json
import sys
from pathlib import Path

import pytest

from tests.support.loopback import Answer, Seen, loopback
from tests.support.projects import BAR, Project, graded
from tests.support.tables import kept, tabled

FUNCTION: str = kept(__file__, "function")
SERVICE: str = kept(__file__, "service")
YAML = graded({"en": BAR})


@pytest.fixture
def capitals(project: Project, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Return a project of three items without a prompt, and an application beside it."""
    monkeypatch.setattr(sys, "path", list(sys.path))  # no other test's folder stays in it
    project.dataset("capital", {"en": [None] * 3}, YAML)
    project.write("app_under_test.py", FUNCTION)
    return project


def calls(project: Project) -> int:
    path = project.path / "calls.txt"
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


@pytest.mark.parametrize("workers", [0, 2])
def test_a_function_is_asked_once_an_item(capitals: Project, workers: int) -> None:
    """A dry run makes no call, a second run none; other code or another version all anew."""
    model = ("--model", "python:app_under_test:answer")
    planned = capitals.run_in_process("qa", *model, "--dry-run")
    assert (planned.ret, calls(capitals)) == (0, 0)
    assert "price unknown: python:app_under_test:answer" in planned.stdout.str()
    first = capitals.run_with(workers, "qa", *model)
    assert first.ret == 0, first.stdout.str()
    assert calls(capitals) == 3
    records = capitals.records()
    assert [record["answer"] for record in records] == ["Sofia"] * 3
    assert [(record["tokens"], record["cost"]) for record in records] == [(7, 0.01)] * 3
    assert capitals.run_in_process("qa", *model, "--replay").ret == 0
    assert calls(capitals) == 3
    assert "no version is declared" in capitals.text("summary.md")
    capitals.run_in_process("qa", "--model", "python:app_under_test:answer@2")
    assert calls(capitals) == 6
    capitals.write("app_under_test.py", FUNCTION + "\n# mended\n")
    capitals.run_in_process("qa", *model)
    assert calls(capitals) == 9


def test_an_exception_is_an_error_of_its_item(capitals: Project) -> None:
    """Never a grade; where three calls fail alike nothing can be: exit 4 with the cause."""
    done = capitals.run_in_process("qa", "--model", "python:app_under_test:picky")
    assert [record["outcome"] for record in capitals.records()] == ["passed", "error", "passed"]
    (error,) = [record for record in capitals.records() if record["outcome"] == "error"]
    assert "target_failed" in json.dumps(error)
    assert done.ret == 0, done.stdout.str()
    capitals.write("qa/capital/dataset.yaml", YAML.replace("0.5", "0.9"))
    assert capitals.run_in_process("qa", "--model", "python:app_under_test:picky").ret == 6
    done = capitals.run_in_process("qa", "--model", "python:app_under_test:broken")
    assert done.ret == 4
    assert "LookupError: no index for en (app_under_test.py:" in done.outlines[-1]
    assert "check the function (app_under_test:broken)" in done.outlines[-1]


def test_a_service_by_its_entry(capitals: Project) -> None:
    """One request an item, with the question in its template; a wrong path ends the run."""

    def handle(seen: Seen) -> Answer:
        return Answer(body={"answer": "Sofia" if "Bulgaria" in seen.body["question"] else "?"})

    with loopback(handler=handle) as server:
        capitals.write("models.yaml", SERVICE.format(url=server.url))
        options = ("qa", "--models", "models.yaml", "--model", "http:house")
        done = capitals.run_in_process(*options)
        assert done.ret == 0, done.stdout.str()
        assert server.count == 3
        assert capitals.run_in_process(*options, "--replay").ret == 0
        assert server.count == 3
        wrong = SERVICE.replace("$.answer", "$.anser")
        capitals.write("models.yaml", wrong.format(url=server.url))
        done = capitals.run_in_process(*options)
        assert done.ret == 4
        assert "$.anser leads to nothing in the reply, which has answer" in done.stdout.str()
        assert "none succeeded: check the service (" in done.outlines[-1]
        assert server.count == 6


@tabled("options", "said")
def test_what_is_wrong_is_said(capitals: Project, options: tuple[str, ...], said: str) -> None:
    """Exit 4 before any call, with what is likely to be meant."""
    capitals.write("models.yaml", SERVICE.format(url="http://127.0.0.1:1"))
    assert said in capitals.refused("qa", *options)
    assert not Path("calls.txt").exists()
