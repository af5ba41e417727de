"""Braintrust: the rows of ``Eval(…, no_send_logs=True)``, and the summary that it prints."""

import json
from pathlib import Path

from braintrust import Eval

ITEMS = json.loads(Path("items.json").read_text(encoding="utf-8"))
SIDE = Path.cwd().name
BY_QUESTION = {item["question"]: item for item in ITEMS}


def ask(question: str) -> str:
    answer = BY_QUESTION[question]["answer"]
    if answer is None:
        raise TimeoutError("the model did not answer")
    return answer


def right(input: str, output: str, expected: str) -> float:
    if BY_QUESTION[input]["scorer_fails"]:
        raise ValueError("the judge did not answer")
    return float(output == expected)


def brief(input: str, output: str, expected: str) -> float:
    return float(" " not in output)


data = [
    {
        "input": item["question"],
        "expected": item["expected"],
        "metadata": {"id": item["id"], "language": item["language"]},
    }
    for item in ITEMS
]
result = Eval(
    "cities",
    experiment_name=SIDE,
    data=data,
    task=ask,
    scores=[right, brief],
    no_send_logs=True,
)
rows = [row.as_dict() for row in result.results]
for name, content in (
    ("results.json", {"summary": result.summary.as_dict(), "results": rows}),
    ("summary.jsonl", result.summary.as_dict()),
):
    indent = 1 if name == "results.json" else None
    text = json.dumps(content, ensure_ascii=False, indent=indent, default=str)
    Path(name).write_text(text + "\n", encoding="utf-8")
