"""Which run of rules is a placeholder: bundled answers, known by each row's content."""

from dataclasses import replace

import pytest

from qagate.bundled import CASES
from qagate.cases.config import load_dataset
from qagate.cases.dataset import Slice
from qagate.cases.loading import load_cases
from qagate.evaluators.core import RECORDED
from qagate.reports.judge.waivers import is_placeholder
from qagate.reports.run.record import Record
from tests.support.made_records import make_record


@pytest.fixture(scope="module")
def smoke() -> Slice:
    return load_dataset(CASES / "smoke" / "dataset.yaml").slices["en"]


@pytest.fixture(scope="module")
def bundled(smoke: Slice) -> list[Record]:
    """Return records of the recorded answers that come with the package."""
    return [
        make_record(
            number,
            digest=case.digest,
            answer=case.recorded,
            model=RECORDED,
            judge="lexical",
        )
        for number, case in enumerate(load_cases(smoke))
    ]


def test_rules_over_bundled_answers_are_a_placeholder(
    smoke: Slice, bundled: list[Record]
) -> None:
    assert is_placeholder(smoke, bundled, "lexical")


def test_one_answer_of_ones_own_is_enough_to_be_measured(
    smoke: Slice, bundled: list[Record]
) -> None:
    mine = [replace(bundled[0], answer="Plovdiv"), *bundled[1:]]
    assert not is_placeholder(smoke, mine, "lexical")


def test_one_edited_item_is_enough_to_be_measured(
    smoke: Slice, bundled: list[Record]
) -> None:
    edited = [replace(bundled[0], digest="edited"), *bundled[1:]]
    assert not is_placeholder(smoke, edited, "lexical")


def test_rules_over_a_live_model_are_no_placeholder(
    smoke: Slice, bundled: list[Record]
) -> None:
    """Even where it gives the recorded answers word by word."""
    live = [replace(record, model="openai:new") for record in bundled]
    assert not is_placeholder(smoke, live, "lexical")


@pytest.mark.parametrize(
    "judge", ["openai:judge", "python:mine:Mine", "lexical+openai:j"]
)
def test_any_other_judge_is_measured(
    smoke: Slice, bundled: list[Record], judge: str
) -> None:
    assert not is_placeholder(smoke, bundled, judge)


def test_a_run_without_answers_is_no_placeholder(
    smoke: Slice, bundled: list[Record]
) -> None:
    silent = [replace(record, answer=None) for record in bundled]
    assert not is_placeholder(smoke, silent, "lexical")


def test_a_data_set_of_ones_own_is_no_placeholder(
    smoke: Slice, bundled: list[Record]
) -> None:
    assert not is_placeholder(replace(smoke, dataset="guild"), bundled, "lexical")
