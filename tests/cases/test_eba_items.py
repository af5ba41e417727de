"""The bundled regulatory questions: each item's fields, and the balance of the whole file."""

import re
from collections import Counter
from datetime import date
from pathlib import Path

import pytest

from cases.config import load_dataset
from cases.loading import load_cases

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
HINT = re.compile(r"cannot say|nobody|not known|is not in our file|missing|have not yet")
"""How a question gives away that a fact is lacking."""

ITEMS = load_cases(load_dataset(PATH).slices["en"])
LONG = [case for case in ITEMS if len(case.context.split()) >= 400]


def test_every_item_says_which_law_and_as_of_when() -> None:
    """Act, provision, source and state of the law stand at every item; no Q&A id is made up."""
    for case in ITEMS:
        fields = case.metadata
        assert ACT.fullmatch(str(fields["celex"])), case.id
        assert date(2024, 1, 1) <= date.fromisoformat(str(fields["as_of"])), case.id
        assert all(str(fields[name]).strip() for name in ("topic", "provision", "source")), case.id
        assert re.fullmatch(r"(\d{4}_\d{4,5})?", str(fields["qa_id"])), case.id


def test_an_expert_begins_with_the_conclusion() -> None:
    """The answer's type shows in its first words, and the answer names a provision."""
    for case in ITEMS:
        opening = OPENINGS[str(case.metadata["answer_type"])]
        assert opening.match(case.expected), case.id
        assert re.search(r"Article|paragraph|section", case.expected), case.id


def test_no_conclusion_pays_without_reading() -> None:
    """As many yes as no, a sixth cannot be settled, and few of these own up to the gap."""
    for some in (ITEMS, LONG):
        types = Counter(str(case.metadata["answer_type"]) for case in some)
        assert abs(types["yes"] - types["no"]) <= 2
        assert 0.12 <= types["unsettled"] / len(some) <= 0.25
    open_ = [case for case in ITEMS if case.metadata["answer_type"] == "unsettled"]
    assert sum(bool(HINT.search(case.question)) for case in open_) <= len(open_) / 4


def test_long_contexts_keep_the_deciding_sentence_apart() -> None:
    """At least 30 contexts of 400 to 900 words in many parts, about more than ten subjects."""
    assert len(LONG) >= 30
    assert all(len(case.context.split()) <= 900 for case in ITEMS)
    assert all(case.context.count("\n") >= 6 for case in LONG)
    assert len({case.metadata["topic"] for case in LONG}) >= 10


@pytest.mark.parametrize(
    ("law", "least"),
    [
        (r"2024/3117|2024/2956", 10),
        (r"DORA|2024/1772|2025/301|2024/2956", 8),
        (r"PSD2|2018/389", 8),
    ],
    ids=["supervisory reporting", "DORA", "PSD2"],
)
def test_what_banks_ask_most_is_asked(law: str, least: int) -> None:
    """Templates and dates of reporting, digital resilience and payments, by the act named."""
    assert sum(bool(re.search(law, str(case.metadata["source"]))) for case in ITEMS) >= least


def test_topics_are_of_useful_size() -> None:
    """No slice of a breakdown by topic rests on fewer than five items."""
    topics = Counter(str(case.metadata["topic"]) for case in ITEMS)
    assert 10 <= len(topics) <= 14
    assert min(topics.values()) >= 5
