"""MLflow 2: the artifact ``eval_results_table.json`` of ``mlflow.evaluate``."""

import json
import shutil
from pathlib import Path

import mlflow
import pandas as pd
from mlflow.metrics import MetricValue, make_metric

ITEMS = json.loads(Path("items.json").read_text(encoding="utf-8"))


def is_right(predictions: pd.Series, targets: pd.Series) -> MetricValue:
    scores = []
    # MLflow tries a metric on the first rows before it takes all.
    for item, answer, expected in zip(ITEMS, predictions, targets, strict=False):
        failed = item["scorer_fails"] or answer is None
        scores.append(None if failed else int(answer == expected))
    return MetricValue(scores=scores)


frame = pd.DataFrame(ITEMS)[["id", "language", "question", "expected", "answer"]]
mlflow.set_tracking_uri("sqlite:///mlflow.db")
mlflow.set_experiment("cities")
right = make_metric(eval_fn=is_right, greater_is_better=True, name="right")
with mlflow.start_run() as run:
    mlflow.evaluate(
        data=frame,
        targets="expected",
        predictions="answer",
        extra_metrics=[right],
        evaluators="default",
    )
    path = mlflow.artifacts.download_artifacts(
        run_id=run.info.run_id, artifact_path="eval_results_table.json"
    )
shutil.copy(path, "eval_results_table.json")
