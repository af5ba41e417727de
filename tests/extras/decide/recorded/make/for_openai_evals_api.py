"""OpenAI's Evals API: a page of a run's output items, written by hand.

It comes from OpenAI's service alone. The types of OpenAI's own client read each item, so
that no field has another name or type than theirs.
"""

import json
from pathlib import Path

from openai.types.evals.runs import OutputItemListResponse

ITEMS = json.loads(Path("items.json").read_text(encoding="utf-8"))
SIDE = Path.cwd().name
CREATED_AT = 1_795_856_400 if SIDE == "old" else 1_795_942_800


def results(item: dict) -> list[dict]:
    """Return what graders said; one that failed says nothing."""
    if item["answer"] is None or item["scorer_fails"]:
        return []
    passed = item["answer"] == item["expected"]
    return [
        {
            "name": "right",
            "type": "string_check",
            "passed": passed,
            "score": float(passed),
            "sample": None,
        }
    ]


def sample(item: dict) -> dict:
    error = {"code": "", "message": ""}
    if item["answer"] is None:
        error = {"code": "server_error", "message": "the model did not answer"}
    elif item["scorer_fails"]:
        error = {"code": "grader_error", "message": "the judge did not answer"}
    output = [{"role": "assistant", "content": item["answer"]}]
    return {
        "model": f"mock-{SIDE}",
        "input": [{"role": "user", "content": item["question"]}],
        "output": [] if item["answer"] is None else output,
        "error": error,
        "finish_reason": "stop",
        "max_completion_tokens": 100,
        "seed": 1,
        "temperature": 0.0,
        "top_p": 1.0,
        "usage": {
            "cached_tokens": 0,
            "completion_tokens": 2,
            "prompt_tokens": 10,
            "total_tokens": 12,
        },
    }


rows = []
for number, item in enumerate(ITEMS):
    failed = item["answer"] is None or item["scorer_fails"]
    passed = item["answer"] == item["expected"]
    row = {
        "object": "eval.run.output_item",
        "id": f"outputitem_{SIDE}_{number}",
        "created_at": CREATED_AT,
        "run_id": f"evalrun_{SIDE}",
        "eval_id": "eval_cities",
        "status": "error" if failed else "pass" if passed else "fail",
        "datasource_item_id": number,
        "datasource_item": {
            name: item[name] for name in ("id", "language", "question", "expected")
        },
        "results": results(item),
        "sample": sample(item),
    }
    OutputItemListResponse.model_validate(row)
    rows.append(row)
page = {
    "object": "list",
    "data": rows,
    "first_id": rows[0]["id"],
    "last_id": rows[-1]["id"],
    "has_more": False,
}
text = json.dumps(page, ensure_ascii=False, indent=1)
Path("output_items.json").write_text(text, encoding="utf-8")
