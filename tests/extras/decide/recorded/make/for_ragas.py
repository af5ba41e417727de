"""ragas: the frame of ``evaluate``, as csv and JSON."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from ragas import EvaluationDataset, evaluate
from ragas.metrics.base import MetricType, SingleTurnMetric

ITEMS = json.loads(Path("items.json").read_text(encoding="utf-8"))
FAILING = {item["question"] for item in ITEMS if item["scorer_fails"]}


@dataclass
class Right(SingleTurnMetric):
    name: str = "right"
    _required_columns: dict = field(
        default_factory=lambda: {
            MetricType.SINGLE_TURN: {"user_input", "response", "reference"}
        }
    )

    def init(self, run_config) -> None:
        """Nothing to set up: it asks no model."""

    async def _single_turn_ascore(self, sample, callbacks) -> float:
        if sample.user_input in FAILING or not sample.response:
            raise ValueError("the judge did not answer")
        return float(sample.response == sample.reference)


@dataclass
class Length(Right):
    name: str = "length"

    async def _single_turn_ascore(self, sample, callbacks) -> float:
        if not sample.response:
            raise ValueError("there is no answer")
        return float(len(sample.response))


rows = [
    {
        "user_input": item["question"],
        "response": item["answer"] or "",
        "reference": item["expected"],
    }
    for item in ITEMS
]
dataset = EvaluationDataset.from_list(rows)
result = evaluate(dataset, metrics=[Right(), Length()], show_progress=False)
frame = result.to_pandas()
frame.to_csv("scores.csv", index=False)
frame.to_json("scores.json", orient="records", force_ascii=False, indent=1)
