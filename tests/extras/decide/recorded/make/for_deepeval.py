"""deepeval: the file of a test run, for ``deepeval test run`` over a copy of this file."""

import json
from pathlib import Path

import pytest
from deepeval import assert_test
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase

ITEMS = json.loads(Path("items.json").read_text(encoding="utf-8"))
FAILING = {item["question"] for item in ITEMS if item["scorer_fails"]}


class Right(BaseMetric):
    threshold = 0.5
    evaluation_model = "mock-judge"

    def measure(self, test_case: LLMTestCase) -> float:
        if test_case.input in FAILING:
            raise ValueError("the judge did not answer")
        self.score = float(test_case.actual_output == test_case.expected_output)
        self.success = self.score >= self.threshold
        self.reason = "compared"
        return self.score

    async def a_measure(self, test_case: LLMTestCase, *args, **kwargs) -> float:
        return self.measure(test_case)

    def is_successful(self) -> bool:
        return bool(self.success)

    @property
    def __name__(self) -> str:
        return "Right"


class Brief(Right):
    """Whether the answer is one word."""

    threshold = 1.0
    evaluation_model = None

    def measure(self, test_case: LLMTestCase) -> float:
        self.score = float(" " not in test_case.actual_output)
        self.success = self.score >= self.threshold
        return self.score

    @property
    def __name__(self) -> str:
        return "Brief"


@pytest.mark.parametrize("item", ITEMS, ids=[item["id"] for item in ITEMS])
def test_cities(item: dict) -> None:
    if item["answer"] is None:
        raise TimeoutError("the model did not answer")
    case = LLMTestCase(
        name=item["id"],
        input=item["question"],
        actual_output=item["answer"],
        expected_output=item["expected"],
        metadata={"language": item["language"]},
    )
    assert_test(case, [Right(), Brief()], run_async=False)
