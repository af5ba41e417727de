"""lm-evaluation-harness: ``lm_eval run --log_samples`` with a model and a task of our own.

A model that fails ends the harness, so the item that fails elsewhere has an empty answer.
"""

import json
import sys
from pathlib import Path

from lm_eval.__main__ import cli_evaluate
from lm_eval.api.model import LM
from lm_eval.api.registry import register_model

ITEMS = json.loads(Path("items.json").read_text(encoding="utf-8"))
SIDE = Path.cwd().name
TASK = """\
task: cities
dataset_path: json
dataset_kwargs: {data_files: {test: data.jsonl}}
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "{{expected}}"
generation_kwargs: {until: ["\\n"]}
metric_list:
  - {metric: exact_match, aggregation: mean, higher_is_better: true}
metadata: {version: 1.0}
"""


@register_model("cities")
class Cities(LM):
    """A model that answers as the items say."""

    def __init__(self, **settings: object) -> None:
        """Settings of a real model, such as its batch size, do nothing here."""
        super().__init__()

    def generate_until(self, requests, disable_tqdm=False) -> list[str]:
        questions = [request.args[0] for request in requests]
        answers = {item["question"]: item["answer"] for item in ITEMS}
        return [answers[question] or "" for question in questions]

    def loglikelihood(self, requests, disable_tqdm=False):
        raise NotImplementedError

    def loglikelihood_rolling(self, requests, disable_tqdm=False):
        raise NotImplementedError


Path("tasks").mkdir()
Path("tasks/cities.yaml").write_text(TASK, encoding="utf-8")
names = ("id", "language", "question", "expected")
lines = [
    json.dumps({name: item[name] for name in names}, ensure_ascii=False)
    for item in ITEMS
]
Path("data.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
words = "run --model cities --tasks cities --include_path tasks --log_samples"
sys.argv = ["lm_eval", *words.split(), "--output_path", "results"]
cli_evaluate()
