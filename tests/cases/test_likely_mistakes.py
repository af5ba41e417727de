"""Mistakes that people make in ``dataset.yaml``: each message has what to write instead."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.declaring import refusal

GATED = "kind: graded\ngates:\n  {gate}\nlanguages:\n  en: {{file: en.csv}}\n"

MISTAKES: Mapping[str, tuple[str, str]] = {
    "a tab": (
        "kind: graded\nlanguages:\n\ten: {file: en.csv}\n",
        "dataset.yaml:3: not valid YAML: a tab before the text; indent by spaces",
    ),
    "a margin without max": (
        GATED.format(gate="drop: 0.05"),
        "gates: key 'drop': write drop: {max: 0.05}",
    ),
    "a margin of no metric": (
        GATED.format(gate="rise: 0.05"),
        "gates: key 'rise': write rise: {incorrect: {max: 0.05}}",
    ),
    "a percentage": (
        GATED.format(gate="correct: {min: 80}"),
        "a number from 0 to 1 is needed, not '80'; write 0.8 for 80 %",
    ),
    "a rubric misspelt": (
        "kind: graded\nrubric: simple_qa\nlanguages:\n  en: {file: en.csv}\n",
        "no rubric 'simple_qa' in language 'en' (did you mean 'simpleqa'?)",
    ),
}


@pytest.mark.parametrize(("text", "message"), MISTAKES.values(), ids=list(MISTAKES))
def test_a_likely_mistake_says_what_to_write(
    tmp_path: Path, text: str, message: str
) -> None:
    assert message in refusal(tmp_path, text)
