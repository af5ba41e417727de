"""Runs and what they sent: every prompt and reply of an item, in the words that were sent."""

from collections.abc import Iterator
from typing import Any

import pytest

from reports.__main__ import main
from reports.run.report_folder import TRANSCRIPTS
from reports.run.run_json import load_report
from reports.run.transcripts import SentCall, calls_of, of_files
from tests.support.fixtures import Captured
from tests.support.loopback import Answer, Loopback, Seen, good, loopback, reply
from tests.support.projects import RUBRIC, Project

DOWN, MUMBLED = "number 2?", "number 3?"


def handle(seen: Seen) -> Answer:
    """Answer and judge; one item's model is down, another's judge mumbles at first."""
    if seen.tool is None:
        refused = Answer(status=400, body={"error": {"message": "refused"}})
        return refused if DOWN in seen.prompt else reply(seen, text=f"Sofia, {seen.prompt[-9:]}")
    if MUMBLED in seen.prompt and not mumbled:
        mumbled.append(seen)
        return reply(seen, text="Well, who knows.")
    return good(seen)


mumbled: list[Seen] = []


@pytest.fixture
def server(project: Project) -> Iterator[Loopback]:
    """A server, and a project of three items that a model answers and two models judge."""
    mumbled.clear()
    project.asked(3, "correct: {min: 0.1}")
    project.write("qa/capital/plain.en.yaml", RUBRIC.format("en") + f"system: {'Rule. ' * 300}\n")
    with loopback(handler=handle) as running:
        yield running


def run(project: Project, server: Loopback, *options: str, workers: int = 0) -> None:
    at = f"@{server.url}/v1"
    judges = ("--judge", f"openai:j1{at}", "--judge", f"openai:j2{at}")
    project.run_with(workers, "--model", f"openai:m{at}", *judges, *options, "qa")


def calls(project: Project) -> dict[str, list[SentCall]]:
    source = of_files([project.out / TRANSCRIPTS])
    assert source is not None
    return {
        record.id: list(calls_of(source, record.calls).values())
        for record in load_report(project.out).records
    }


def prompt_of(call: SentCall) -> str:
    assert call.request is not None
    return "\n".join(message.content for message in call.request.messages)


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_what_was_sent_is_beside_the_report(
    project: Project, server: Loopback, workers: int
) -> None:
    """The answer, each judge of a panel, each attempt, and what was asked in vain."""
    run(project, server, workers=workers)
    found = calls(project)
    assert {one: len(of) for one, of in found.items()} == {"q1": 3, "q2": 1, "q3": 4}
    kept = [prompt_of(call) for of in found.values() for call in of]
    assert set(kept) == {seen.prompt for seen in server.requests}
    assert all(call.is_exact for of in found.values() for call in of)
    assert found["q2"][0].reply is None
    answered: Any = found["q1"][0].reply
    assert answered.text == "Sofia, number 1?"
    judges = {(call.spec.partition("@")[0], call.request.attempt) for call in found["q3"][1:]
              if call.request}  # fmt: skip
    assert len(judges) == 3
    assert "Well, who knows." in [call.reply.text for call in found["q3"] if call.reply]


def test_a_second_run_has_them_too(project: Project, server: Loopback, capsys: Captured) -> None:
    """A second run or a replay has the same file; without transcripts there is none."""
    run(project, server)
    file = project.out / TRANSCRIPTS
    first, sent = file.read_bytes(), server.count
    run(project, server)
    assert (file.read_bytes(), server.count) == (first, sent + 1)
    run(project, server, "--replay")
    assert (file.read_bytes(), server.count) == (first, sent + 1)
    assert file.stat().st_mode & 0o077 == 0
    run(project, server)
    run(project, server, "--no-transcripts", "--ledger", "other.sqlite3")
    assert not (project.out / TRANSCRIPTS).exists()
    assert b"Keep to the rules" not in (project.path / "other.sqlite3").read_bytes()
    assert main(["show", "q1", str(project.out)]) == 0
    assert "neither prompt nor reply is kept with this run" in capsys.readouterr().out


def test_show_prints_what_was_sent(project: Project, server: Loopback, capsys: Captured) -> None:
    """By its key, its id or its test's node id; a wrong name is one line that says the right."""
    run(project, server)
    for name in ("capital-en-q3", "q3", "qa/test_capital.py::test_capital[capital-en-q3]"):
        assert main(["show", name]) == 0
        shown = capsys.readouterr().out
        said = ("Answer in en: What is the", "Well, who knows.", '"grade": "CORRECT"', "Rule. ")
        for words in (*said, "attempt 2", "reply calls grade", "openai:j2@", "plain.en@1"):
            assert words in shown
    assert main(["show", "q2"]) == 0
    shown = capsys.readouterr().out
    assert "(none: the call failed)" in shown
    assert "refused" in shown
    assert main(["show", "capital-en-q33"]) == 4
    message = capsys.readouterr().err
    assert "no item 'capital-en-q33' in this run; did you mean 'capital-en-q3'?" in message
