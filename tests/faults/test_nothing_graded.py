"""A run in which nothing could be graded ends with 4 and says why; the report is written."""

import pytest

from evaluators.runtime import server as runtime_server
from reports.__main__ import main
from tests.support.loopback import Answer, Handler, Seen, good, loopback
from tests.support.model_calls import error_body
from tests.support.projects import Project
from tests.support.tables import tabled

ITEMS = 12


@pytest.fixture
def capitals(project: Project) -> Project:
    return project.asked(ITEMS)


def options(answers: str, judges: str = "") -> tuple[str, ...]:
    return ("--model", f"openai:m@{answers}/v1", "--judge", f"openai:j@{judges or answers}/v1")


def refusing(status: int, words: str) -> Handler:
    return lambda seen: Answer(status=status, body=error_body(words))


def check_end(project: Project, result: pytest.RunResult, cause: str) -> None:
    """Exit 4, the last line names the cause, and so does every file that people read."""
    assert result.ret == 4
    assert result.outlines[-1].startswith("NOTHING GRADED: exit 4; ")
    assert cause in result.outlines[-1]
    assert all(said in project.text("summary.md") for said in ("exit code 4", cause))
    assert {record["outcome"] for record in project.records()} <= {"error", "missing"}
    assert len(project.records()) == ITEMS


@pytest.mark.parametrize("workers", [0, pytest.param(8, marks=pytest.mark.slow)])
@tabled("status", "words", "requests")
def test_a_wrong_key_or_model_name(
    capitals: Project, status: int, words: str, requests: int, workers: int
) -> None:
    """The words of the server stand in the last line; nobody is asked in vain."""
    with loopback(handler=refusing(status, words)) as server:
        result = capitals.run_with(workers, *options(server.url), "qa")
    assert server.count == requests
    check_end(capitals, result, words)


def test_a_host_that_cannot_be_reached(capitals: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The line says which host, and that it could not be reached."""
    monkeypatch.setattr(runtime_server, "NEVER_REACHED_S", 0.5)
    result = capitals.run_in_process(*options("http://127.0.0.1:9"), "qa")
    check_end(capitals, result, "127.0.0.1:9 could not be reached for")


def test_a_host_that_answers_no_call(capitals: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server whose every reply is HTTP 500 from the first call on is not waited for long."""
    monkeypatch.setattr(runtime_server, "NEVER_ANSWERED_S", 1.0)
    with loopback(handler=refusing(500, "upstream is dead")) as server:
        result = capitals.run_in_process(*options(server.url), "qa")
    check_end(capitals, result, "upstream is dead")
    assert "has given no reply for" in result.outlines[-1]


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_judge_with_a_wrong_key(capitals: Project, workers: int) -> None:
    """Answers alone are no grade: the same end, for the judge's key; so says ``qagate gate``."""
    with loopback(handler=good) as one, loopback(handler=refusing(401, "wrong key")) as two:
        result = capitals.run_with(workers, *options(one.url, two.url), "qa")
    check_end(capitals, result, "openai:j@")
    assert main(["gate", str(capitals.out)]) == 4


def test_a_run_that_graded_something_is_inconclusive(capitals: Project) -> None:
    """A quota that ends in mid-run leaves 6: what was graded stands in the report."""
    seen = []

    def handle(one: Seen) -> Answer:
        seen.append(one)
        return good(one) if len(seen) <= 10 else Answer(status=402, body=error_body("used up"))

    with loopback(handler=handle) as server:
        result = capitals.run_in_process(*options(server.url), "--concurrency", "1", "qa")
    assert result.ret == 6
    assert "passed" in {record["outcome"] for record in capitals.records()}


def test_the_user_s_own_bounds_are_no_error(capitals: Project) -> None:
    """Where --deadline ends a run before its first grade nothing is wrong with the options."""
    with loopback(handler=lambda seen: Answer(action="hang")) as server:
        result = capitals.run_in_process(*options(server.url), "--deadline", "1", "qa")
    assert result.ret == 6
