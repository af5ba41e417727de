"""azure-ai-evaluation: the file at ``output_path`` of ``evaluate``, without a service."""

import json
from pathlib import Path

from azure.ai.evaluation import F1ScoreEvaluator, evaluate

ITEMS = json.loads(Path("items.json").read_text(encoding="utf-8"))
FAILING = {item["question"] for item in ITEMS if item["scorer_fails"]}


class Right:
    """An evaluator of one's own, with a threshold as the library's have it."""

    def __call__(self, *, question: str, expected: str, answer: str) -> dict:
        if question in FAILING or not answer:
            raise ValueError("the judge did not answer")
        score = 5 if answer == expected else 1
        passed = "pass" if score >= 3 else "fail"
        return {"right": score, "right_result": passed, "right_threshold": 3}


def main() -> None:
    lines = []
    for item in ITEMS:
        row = {key: item[key] for key in ("id", "language", "question", "expected")}
        row["answer"] = item["answer"] or ""
        lines.append(json.dumps(row, ensure_ascii=False))
    Path("data.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    columns = {"ground_truth": "${data.expected}", "response": "${data.answer}"}
    evaluate(
        data="data.jsonl",
        evaluators={"judge": Right(), "f1": F1ScoreEvaluator()},
        evaluator_config={"f1": {"column_mapping": columns}},
        output_path="result.json",
    )


if __name__ == "__main__":  # it starts processes of its own
    main()
