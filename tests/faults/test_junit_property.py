"""What goes into JUnit with each item holds no key and no endless text, at whatever depth."""

import json
from dataclasses import replace
from pathlib import Path

from cases.dataset import PlannedItem, Slice
from evaluators.core import Outcome, Verdict, Vote
from evaluators.kinds import kind_of
from reports.render.outcome_text import LONGEST, qa_property
from tests.support.scripted import make_case

KEY = "sk-CANARY0123456789abcdef"
SLICE = Slice(dataset="simpleqa", language="bg", kind=kind_of("graded"), path=Path("bg.csv"))


def test_votes_and_metadata_are_masked_and_cut() -> None:
    """A key in a column of the user's file or in a judge's vote is hidden, as in every report.

    Row F23 of the fault matrix.
    """
    case = replace(make_case(1), metadata={"note": [f"see {KEY}"], KEY: {"deep": KEY}})
    vote = Vote(judge="j", grade="CORRECT", reason=f"{KEY} {'z' * 50_000}")
    outcome = Outcome(
        key="k", state="passed", answer="a", verdict=Verdict(grade="CORRECT", votes=(vote,))
    )
    written = qa_property(PlannedItem(key="k", slice=SLICE, case=case, repeat=1), outcome)
    assert "CANARY" not in written
    assert len(json.loads(written)["votes"][0]["reason"]) < LONGEST + 100
