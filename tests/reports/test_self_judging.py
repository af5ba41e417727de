"""A judge whose replies name the model under test has judged itself."""

import pytest

from qagate.reports.verdict.self_judging import self_judged
from tests.support.made_records import make_record

MODEL = "openai:prod@https://gateway.example/v1"
JUDGE = "openai:strict@https://gateway.example/v1"
SENT = {MODEL: {"name": "prod"}, JUDGE: {"name": "strict"}}
RELEASE = "gpt-4.1-2025-04-14"


def lines(
    model: str, judge: str, *, spec: str = JUDGE, **provenance: object
) -> list[str]:
    """Return what is said where replies name these models."""
    record = make_record(1, model=model, judge=judge)
    return [*self_judged([record], MODEL, spec, {"sent": SENT, **provenance})]


@pytest.mark.parametrize("judge", [RELEASE, "gpt-4.1"])
def test_one_name_on_both_sides_is_said(judge: str) -> None:
    (line,) = lines(RELEASE, judge)
    assert line.startswith(f"{JUDGE} judged itself: ")
    assert line.endswith("name another judge, or give --allow-self-judge")


def test_a_member_of_a_panel_behind_rules_is_found() -> None:
    panel = f"openai:other lexical+{JUDGE}"
    (line,) = lines(RELEASE, f"gpt-5 lexical+{RELEASE}", spec=panel)
    assert line.startswith(JUDGE)


@pytest.mark.parametrize(
    ("model", "judge"),
    [
        (RELEASE, "gpt-4.1-mini-2025-04-14"),
        (RELEASE, JUDGE),
        (MODEL, RELEASE),
        (MODEL, JUDGE),
        (RELEASE, "lexical"),
    ],
    ids=["another", "no name of the judge", "no name of the model", "none", "rules"],
)
def test_other_names_are_no_self_judging(model: str, judge: str) -> None:
    assert lines(model, judge) == []


def test_who_allows_it_is_told_nothing() -> None:
    assert lines(RELEASE, RELEASE, allow_self_judge=True) == []


def test_two_specs_that_ask_for_one_name_mean_two_servers() -> None:
    """The same release by two providers, say: the user has named both."""
    sent = {MODEL: {"name": "gpt-4.1"}, JUDGE: {"name": "gpt-4.1"}}
    assert lines(RELEASE, RELEASE, sent=sent) == []
