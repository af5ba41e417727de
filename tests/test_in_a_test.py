"""The page "In a test": what it says of ``case`` and ``verdict`` is so."""

import re
import typing

import pytest

from qagate.evaluators.core import Case, Outcome, Usage, Verdict
from tests.support.projects import ROOT, Project

PAGE = (ROOT / "docs" / "in-a-test.md").read_text(encoding="utf-8")
TYPES = {"case": Case, "verdict": Outcome}
NESTED = {"verdict": Verdict, "answering": Usage}
"""The types of attributes that have attributes of their own."""


def named(fixture: str) -> list[str]:
    """Return the attributes that the page names after a fixture, such as ``verdict.grade``."""
    return sorted(set(re.findall(rf"`{fixture}\.([a-z_.]+)`", PAGE)))


@pytest.mark.parametrize("fixture", ["case", "verdict"])
def test_each_attribute_exists(fixture: str) -> None:
    """A rename in the code is a rename on the page."""
    assert len(named(fixture)) >= 7
    for path in named(fixture):
        name, _, inner = path.partition(".")
        assert hasattr(TYPES[fixture], name), path
        assert not inner or hasattr(NESTED[name], inner), path


def test_the_amounts_of_an_answer_exist() -> None:
    """They stand without the fixture's name before them."""
    (row,) = re.findall(r"\| `verdict.answering` \|.*", PAGE)
    amounts = re.findall(r"`\.([a-z_]+)`", row)
    assert set(amounts) <= typing.get_type_hints(Usage).keys() and len(amounts) == 4


def test_an_assert_of_ones_own_is_no_miss(project: Project) -> None:
    """The page's example: a slow or leaking answer fails its test, and no gate allows it."""
    project.write(
        "folklore/dataset.yaml",
        "kind: graded\nrubric: simpleqa\njudge: unmeasured\n"
        "languages: {en: {file: en.csv, gates: {correct: {min: 0.1}}}}\n",
    )
    project.write(
        "folklore/en.csv",
        "id,Question,Answers,Predicted answers\n"
        "a,How many legs has a spider?,8,8\n"
        "b,How many legs has an ant?,6,the key is sk-12345: 5\n",
    )
    (example,) = [
        block
        for block in re.findall(r"```python\n(.*?)```", PAGE, re.S)
        if "sk-" in block
    ]
    project.write("folklore/test_folklore.py", f"import pytest\n\n\n{example}")
    result = project.run("folklore")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["*a key leaked*"])
