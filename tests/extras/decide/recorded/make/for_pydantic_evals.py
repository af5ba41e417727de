"""pydantic-evals: the report of ``Dataset.evaluate``, as JSON."""

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import Evaluator, EvaluatorContext
from pydantic_evals.reporting import EvaluationReportAdapter

ITEMS = json.loads(Path("items.json").read_text(encoding="utf-8"))
BY_QUESTION = {item["question"]: item for item in ITEMS}


@dataclass
class Right(Evaluator):
    def evaluate(self, ctx: EvaluatorContext) -> bool:
        if BY_QUESTION[ctx.inputs]["scorer_fails"]:
            raise ValueError("the judge did not answer")
        return ctx.output == ctx.expected_output


@dataclass
class Length(Evaluator):
    def evaluate(self, ctx: EvaluatorContext) -> int:
        return len(ctx.output)


def ask(question: str) -> str:
    answer = BY_QUESTION[question]["answer"]
    if answer is None:
        raise TimeoutError("the model did not answer")
    return answer


cases = [
    Case(
        name=item["id"],
        inputs=item["question"],
        expected_output=item["expected"],
        metadata={"language": item["language"]},
    )
    for item in ITEMS
]
dataset = Dataset(name="cities", cases=cases, evaluators=[Right(), Length()])
for name, repeat in (("report.json", 1), ("repeated.json", 2)):
    report = dataset.evaluate_sync(ask, progress=False, repeat=repeat)
    Path(name).write_bytes(EvaluationReportAdapter.dump_json(report, indent=1))
