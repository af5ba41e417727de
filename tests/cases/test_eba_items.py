"""The bundled regulatory questions: each item's fields, and the balance of the whole file."""

import re
from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from cases.config import load_dataset
from cases.loading import load_cases
from evaluators.core import Case

PATH = Path(__file__).parents[2] / "cases" / "eba" / "dataset.yaml"
ACT = re.compile(r"3\d{4}[RL]\d{4}|EBA/GL/\d{4}/\d{2}")
"""A CELEX number of a regulation or directive, or the number of a guideline of the EBA."""
OPENINGS = {
    "yes": re.compile(r"Yes\b"),
    "no": re.compile(r"No\b"),
    "value": re.compile(r"(?!Yes\b|No\b)"),
    "unsettled": re.compile(r".*\bnot settle\b.*\bmissing\b"),
}
"""How an expert's answer of each type begins; an unsettled one says what is missing."""


@pytest.fixture(scope="module")
def items() -> list[Case]:
    """Return the English items."""
    return load_cases(load_dataset(PATH).slices["en"])


def test_every_item_says_which_law_and_as_of_when(items: list[Case]) -> None:
    """Act, provision, source and state of the law stand at every item; no Q&A id is made up."""
    for case in items:
        fields = case.metadata
        assert ACT.fullmatch(str(fields["celex"])), case.id
        assert date(2024, 1, 1) <= date.fromisoformat(str(fields["as_of"])), case.id
        assert all(str(fields[name]).strip() for name in ("topic", "provision", "source")), case.id
        assert re.fullmatch(r"(\d{4}_\d{4,5})?", str(fields["qa_id"])), case.id


def test_an_expert_begins_with_the_conclusion(items: list[Case]) -> None:
    """The answer's type shows in its first words, and the answer names a provision."""
    for case in items:
        opening = OPENINGS[str(case.metadata["answer_type"])]
        assert opening.match(case.expected), case.id
        assert re.search(r"Article|paragraph|section", case.expected), case.id


def test_no_conclusion_pays_without_reading(items: list[Case]) -> None:
    """As many yes as no, and about a fifth of the questions cannot be settled."""
    types = Counter(str(case.metadata["answer_type"]) for case in items)
    assert len(items) >= 82
    assert abs(types["yes"] - types["no"]) <= 2
    assert 0.15 <= types["unsettled"] / len(items) <= 0.25


def test_topics_are_of_useful_size(items: list[Case]) -> None:
    """No slice of a breakdown by topic rests on fewer than five items."""
    topics = Counter(str(case.metadata["topic"]) for case in items)
    assert 10 <= len(topics) <= 14
    assert min(topics.values()) >= 5
