"""Giant answers are kept once, in the ledger: what travels to judges and reports is bounded."""

import hashlib
from pathlib import Path

import pytest

from evaluators.core import Ask, Case, Verdict
from evaluators.runtime.engine import Task
from evaluators.text import MAX_ANSWER_BYTES, travelling
from tests.support.engine_bench import Bench
from tests.support.scripted import make_case


class Giant:
    """Answers with five megabytes, one character of them outside of ASCII."""

    spec = "recorded"

    async def answer(self, case: Case, repeat: int, ask: Ask) -> str:
        """Return them."""
        return "x" * 5_000_000 + "😀"


class Measuring:
    """Says how much it was given."""

    spec = "rule:length"

    async def judge(self, case: Case, answer: str, ask: Ask) -> Verdict:
        """Return the length as the reason."""
        return Verdict(grade="CORRECT", reason=str(len(answer)))


def test_a_giant_travels_cut(tmp_path: Path) -> None:
    """Judge and outcome have the same cut text, with the length and the hash of all (S14)."""
    task = Task(
        key="k", case=make_case(1), repeat=1, answerer=Giant(), judge=Measuring(),
        passes=lambda case, verdict: True,
    )  # fmt: skip
    outcome = Bench(tmp_path, [task]).run()["k"]
    assert outcome.answer is not None
    assert outcome.verdict is not None
    assert len(outcome.answer) < MAX_ANSWER_BYTES // 4 + 200
    assert outcome.verdict.reason == str(len(outcome.answer))
    whole = ("x" * 5_000_000 + "😀").encode()
    assert outcome.answer.endswith(
        f"[cut: 5,000,001 characters, SHA-256 {hashlib.sha256(whole).hexdigest()}]"
    )


@pytest.mark.parametrize("unit", ["x", "я", "😀", "\ud800"])
def test_the_bound_counts_bytes(unit: str) -> None:
    """256 kB travel whole in any script, a byte more does not."""
    size = len(unit.encode("utf-8", "surrogatepass"))
    fits = unit * (MAX_ANSWER_BYTES // size)
    assert travelling(fits) == fits
    assert travelling(fits + unit) != fits + unit
