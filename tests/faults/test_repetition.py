"""A text that says one thing over and over costs no more than its length: every reader is linear.

CPU seconds of this process, so that a busy machine changes nothing; a quadratic reader of these
texts needs ten to a hundred times the bound.
"""

import time
from collections.abc import Callable

import pytest
from pydantic import BaseModel

from cases.tools.builder.paragraphs import clean
from evaluators.core import Reply
from evaluators.judges.deepeval_bridge import read_text
from evaluators.models.secrets import mask, one_line
from evaluators.template import encode

LENGTH = 32_000  # characters
SECONDS = 0.5
UNITS = (
    " ", "\n", "\t ", ".", ". ", " ,", "(", "( ", "()", "[1]", "[a ", "```", "```\n", "`", "\\",
    '"', "{", "[", "a", "a ", "no. ", "no, ", "I choose, ", "I think ", "not ", "Paris ", "1 ",
    "1,", "1-", "0.", "и ", "но ", "не ", "nie ", "ale ", "nem ", "de ", "Так ", "Ці ", "ﷺ",
    "\u0301", "\u200b", "e\u0301", "A1 ", "sk-", "://", "@", "eyJ",
)  # fmt: skip


class Scored(BaseModel):
    """What one of deepeval's metrics asks for."""

    score: float


READERS: dict[str, Callable[[str], object]] = {
    "paragraphs": clean,
    "deepeval": lambda text: read_text(Scored, Reply(text=text)),
    "fence": lambda text: read_text(Scored, Reply(text=f"```{text}x")),
    "mask": mask,
    "line": one_line,
    "slot": encode,
}


@pytest.mark.parametrize("name", READERS)
def test_a_reader_takes_time_in_proportion(name: str) -> None:
    """No repeated unit makes 32,000 characters cost half a second."""
    read = READERS[name]
    read("warm")
    slow = {}
    for unit in UNITS:
        text = (unit * (LENGTH // len(unit) + 1))[:LENGTH]
        start = time.process_time()
        read(text)
        slow[unit] = time.process_time() - start
    assert {unit: spent for unit, spent in slow.items() if spent > SECONDS} == {}
