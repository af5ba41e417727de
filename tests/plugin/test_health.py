"""A model that is wired wrongly: its answers come, are graded, and decide nothing."""

from collections.abc import Iterator

import pytest

from tests.support.loopback import Answer, Loopback, Seen, good, loopback
from tests.support.projects import Project, specs

ITEMS = 12
HEALTH_OFF = "health: off\n"


def cut_answer(seen: Seen) -> Answer:
    """Return a good reply; an answer ends at the token limit."""
    answer = good(seen)
    assert isinstance(answer.body, dict)
    choice = answer.body["choices"][0]
    if not choice["message"].get("tool_calls"):
        choice["finish_reason"] = "length"
    return answer


@pytest.fixture
def server() -> Iterator[Loopback]:
    with loopback(handler=cut_answer) as running:
        yield running


@pytest.fixture
def capitals(project: Project) -> Project:
    return project.asked(ITEMS)


def test_answers_that_are_cut_decide_nothing(
    capitals: Project, server: Loopback
) -> None:
    result = capitals.run_in_process(*specs(server.url), "qa")
    assert result.ret == 6
    assert "UNHEALTHY ANSWERS: exit 6; GATES PASS (1 of 1)" in result.outlines[-1]
    cause = "12 of 12 answers of capital:en were cut at 5 tokens: raise max_tokens"
    assert cause in result.outlines[-1]
    assert any(line.startswith("SEVERE") for line in result.outlines)


def test_the_next_step_is_to_mend_it(capitals: Project, server: Loopback) -> None:
    result = capitals.run_in_process(*specs(server.url), "qa")
    [step] = [line for line in result.outlines if line.startswith("next: ")]
    assert step.endswith("# once that is fixed")


def test_health_off_lets_them_decide(capitals: Project, server: Loopback) -> None:
    path = capitals.path / "qa" / "capital" / "dataset.yaml"
    path.write_text(HEALTH_OFF + path.read_text(encoding="utf-8"), encoding="utf-8")
    result = capitals.run_in_process(*specs(server.url), "qa")
    assert result.ret == 0
    assert "health: off in capital" in result.outlines[-1]
    assert any(line.startswith("WAIVED") for line in result.outlines)


def test_a_later_command_says_the_same(capitals: Project, server: Loopback) -> None:
    """The records hold what it takes: nothing is asked again."""
    capitals.run_in_process(*specs(server.url), "qa")
    calls = server.count
    result = capitals.run_in_process(*specs(server.url), "--replay", "qa")
    assert (result.ret, server.count) == (6, calls)
