"""Langfuse: a page of ``GET /api/public/experiment-items``, written by hand.

It comes from a server, which cannot be had offline. The types of Langfuse's own client
read it, so that no field has another name or type than theirs.
"""

import json
from pathlib import Path

from langfuse.api.core.pydantic_utilities import parse_obj_as
from langfuse.api.experiments.types import ExperimentItemsResponse

ITEMS = json.loads(Path("items.json").read_text(encoding="utf-8"))
SIDE = Path.cwd().name
AT = "2026-11-28T09:00:00.000Z" if SIDE == "old" else "2026-11-29T09:00:00.000Z"


def score(item: dict, name: str, kind: str, value: object) -> dict:
    return {
        "id": f"score-{SIDE}-{item['id']}-{name}",
        "projectId": "project-1",
        "name": name,
        "dataType": kind,
        "value": value,
        "source": "EVAL",
        "timestamp": AT,
        "environment": "default",
        "createdAt": AT,
        "updatedAt": AT,
        "configId": None,
    }


rows = []
for item in ITEMS:
    answer = item["answer"]
    scores = []
    if answer is not None:
        scores.append(score(item, "length", "NUMERIC", len(answer)))
        if not item["scorer_fails"]:
            is_right = answer == item["expected"]
            scores.append(score(item, "right", "BOOLEAN", is_right))
    row = {
        "id": f"observation-{SIDE}-{item['id']}",
        "traceId": f"trace-{SIDE}-{item['id']}",
        "startTime": AT,
        "level": "ERROR" if answer is None else "DEFAULT",
        "environment": "default",
        "experimentId": f"experiment-{SIDE}",
        "experimentName": SIDE,
        "experimentItemId": item["id"],
        "input": item["question"],
        "output": answer,
        "expectedOutput": item["expected"],
        "experimentItemMetadata": {"language": item["language"]},
        "scores": scores,
    }
    rows.append(row)
page = {"data": rows, "meta": {"limit": 50}}
parse_obj_as(ExperimentItemsResponse, page)
text = json.dumps(page, ensure_ascii=False, indent=1)
Path("experiment_items.json").write_text(text, encoding="utf-8")
