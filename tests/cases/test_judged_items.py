"""The judged items: every language has every kind of decision, labelled by the default rubric."""

import csv
from collections import defaultdict
from pathlib import Path

import pytest

from evaluators.kinds import FALSE_PREMISE

JUDGES = Path(__file__).parents[2] / "cases" / "judges"
LANGUAGES = ["en", "bg", "pl", "hu", "be"]


def rows(language: str) -> list[dict[str, str]]:
    with (JUDGES / f"{language}.csv").open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_language_has_items_of_every_kind(language: str) -> None:
    """Eighty items or more; ranges, false premises and coarse answers are graded each way."""
    found = rows(language)
    graded = defaultdict(set)
    for row in found:
        graded[row["kind"]].add(row["label"])
    assert len(found) >= 80
    for kind in ("range", "false_premise"):
        assert {"CORRECT", "INCORRECT"} <= graded[kind]
    assert "NOT_ATTEMPTED" in graded["scope"]
    assert {"partial", "rounding", "injection", "hedged_wrong", "typo"} <= set(graded)


@pytest.mark.parametrize("language", LANGUAGES)
def test_labels_follow_the_rules_that_have_no_exception(language: str) -> None:
    """Candidates left open are never NOT_ATTEMPTED, coarse answers never INCORRECT.

    Ids and pairs of question and answer differ, and no label claims to come from people.
    """
    found = rows(language)
    assert len({row["id"] for row in found}) == len(found)
    assert len({(row["question"], row["predicted_answer"]) for row in found}) == len(found)
    assert {row["label_source"] for row in found} == {"constructed"}
    for row in found:
        if row["kind"] == "candidates":
            assert row["label"] != "NOT_ATTEMPTED", row["id"]
        if row["kind"] in ("scope", "extra_falsehood"):
            assert row["label"] != "INCORRECT", row["id"]
        assert (row["kind"] == "false_premise") <= row["answer"].startswith(FALSE_PREMISE)
