"""Which failed assertion is a miss: ``assert verdict.passed`` in the test itself, and no other."""

import pytest

from tests.support.projects import Project

TEST = """
import pytest

def helper(verdict):
    assert verdict.passed

@pytest.mark.qa("capital")
def test_capital(case, verdict):
    {body}
"""


@pytest.fixture
def capital(project: Project) -> Project:
    """Return a data set with one wrong answer of two."""
    project.dataset("capital", {"en": ["Sofia", "Varna"]})
    return project


def run(capital: Project, body: str, *arguments: str) -> pytest.RunResult:
    """Run the data set with this body of its test."""
    capital.write("qa/capital/test_capital.py", TEST.format(body=body))
    return capital.run_in_process("qa", *arguments)


@pytest.mark.parametrize(
    "body",
    [
        "assert verdict.passed",
        "assert verdict.passed, verdict.reason",
        "assert (\n        verdict.passed\n    )",
    ],
)
def test_the_verdicts_own_assertion_is_a_miss(capital: Project, body: str) -> None:
    """With a message of its own, and over several lines, too."""
    result = run(capital, body)
    assert "1 missed" in "\n".join(result.outlines)


@pytest.mark.parametrize(
    "body",
    [
        "assert len(verdict.answer) > 100",
        "assert verdict.passed and len(verdict.answer) > 2",
        "helper(verdict)",
        "assert not verdict.reason, 'a reason of mine'",
    ],
)
def test_any_other_assertion_is_a_failure(capital: Project, body: str) -> None:
    """It is no finding about the model, so no gate allows it."""
    result = run(capital, body)
    assert "failed" in "\n".join(result.outlines)
    assert "missed" not in result.outlines[-1]


def test_its_own_message_is_shown(capital: Project) -> None:
    """Not the question and the verdict, which have nothing to do with it."""
    result = run(capital, "assert not verdict.answer, 'a sentence of mine'")
    assert any("a sentence of mine" in line for line in result.outlines)


def test_such_a_failure_ends_the_run_in_1(capital: Project) -> None:
    """Whatever the gates say."""
    result = run(capital, "assert verdict.answer == 'Sofia'")
    assert result.ret == 1


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "2"])
@pytest.mark.parametrize("is_above", [True, False], ids=["above", "below"])
def test_an_item_in_several_tests_is_graded_once(
    capital: Project, workers: str, is_above: bool
) -> None:
    """A test may stack ``parametrize`` over its items, on either side of our mark."""
    ours = '@pytest.mark.qa("capital")'
    theirs = '@pytest.mark.parametrize("style", ["short", "long"])'
    marks = f"{theirs}\n{ours}" if is_above else f"{ours}\n{theirs}"
    text = TEST.format(body="assert verdict.passed").replace(ours, marks)
    capital.write("qa/capital/test_capital.py", text.replace("(case", "(style, case"))
    result = capital.run_in_process("qa", "-n", workers)
    assert "2 passed, 2 missed" in "\n".join(result.outlines)
    (slice_,) = capital.report()["slices"]
    assert (slice_["counts"]["passed"], slice_["counts"]["failed"]) == (1, 1)


@pytest.mark.slow
@pytest.mark.parametrize("workers", ["0", "2"])
def test_another_parametrisation_finds_its_items(
    capital: Project, workers: str
) -> None:
    """The item is known by the plan, not by the text of the test's name."""
    body = "assert verdict.passed"
    text = TEST.format(body=body).replace(
        '@pytest.mark.qa("capital")',
        '@pytest.mark.parametrize("style", ["short"])\n@pytest.mark.qa("capital")',
    )
    capital.write("qa/capital/test_capital.py", text.replace("(case", "(style, case"))
    result = capital.run_in_process("qa", "-n", workers)
    assert "1 missed" in "\n".join(result.outlines)
