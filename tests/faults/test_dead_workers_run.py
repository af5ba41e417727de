"""Workers that die again and again cost no verdict: the engine is a process of its own."""

from collections import Counter

import pytest

from tests.conftest import Project
from tests.support.tables import kept

ITEMS = 60
DEADLY: str = kept(__file__, "deadly")


@pytest.mark.slow
def test_workers_that_die_without_end(project: Project) -> None:
    """xdist gives up after so many deaths: every item has its verdict (R8, F8)."""
    yaml = "kind: graded\nlanguages:\n  en: {file: en.jsonl, gates: {correct: {min: 0.9}}}\n"
    project.dataset("capital", {"en": ["Sofia"] * ITEMS}, yaml)
    project.write("qa/conftest.py", DEADLY)
    project.run("-n", "2", "--max-worker-restart", "3", "qa")
    states = Counter(str(record["outcome"]) for record in project.records())
    assert states["passed"] + states["error"] == ITEMS
    assert states["passed"] > ITEMS - 10
    notes = [str(note) for note in project.report()["notes"]]
    assert any("graded without a test: the workers died" in note for note in notes)
