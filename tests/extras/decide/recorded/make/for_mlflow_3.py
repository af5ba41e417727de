"""MLflow 3: the frame of ``mlflow.genai.evaluate``, and its traces."""

import json
from pathlib import Path

import mlflow
from mlflow.genai import scorer

ITEMS = json.loads(Path("items.json").read_text(encoding="utf-8"))
BY_QUESTION = {item["question"]: item for item in ITEMS}


def predict(question: str) -> str:
    answer = BY_QUESTION[question]["answer"]
    if answer is None:
        raise TimeoutError("the model did not answer")
    return answer


@scorer
def right(inputs: dict, outputs: str, expectations: dict) -> bool:
    if BY_QUESTION[inputs["question"]]["scorer_fails"]:
        raise ValueError("the judge did not answer")
    return outputs == expectations["expected_response"]


@scorer
def edits(outputs: str, expectations: dict) -> int:
    """Return how many letters differ. Less is better, and nothing says so."""
    expected = expectations["expected_response"]
    same = sum(a == b for a, b in zip(outputs or "", expected, strict=False))
    return max(len(outputs or ""), len(expected)) - same


mlflow.set_tracking_uri("sqlite:///mlflow.db")
mlflow.set_experiment("cities")
data = [
    {
        "inputs": {"question": item["question"]},
        "expectations": {"expected_response": item["expected"]},
        "tags": {"id": item["id"], "language": item["language"]},
    }
    for item in ITEMS
]
result = mlflow.genai.evaluate(data=data, predict_fn=predict, scorers=[right, edits])
frame = result.result_df
frame.to_json("frame.json", orient="records", force_ascii=False, indent=1)
frame.to_csv("frame.csv", index=False)
traces = mlflow.search_traces(run_id=result.run_id, return_type="list")
listed = {"traces": [trace.to_dict() for trace in traces]}
Path("traces.json").write_text(
    json.dumps(listed, ensure_ascii=False, indent=1), encoding="utf-8"
)
