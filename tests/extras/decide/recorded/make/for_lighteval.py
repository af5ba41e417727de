"""lighteval: the details of one task, as parquet and as JSON Lines, with a model of our own.

The file is a task, a model and the command over both: lighteval imports it twice.
"""

import json
import subprocess
import sys
from pathlib import Path

from lighteval.metrics.metrics import Metrics
from lighteval.models.abstract_model import LightevalModel
from lighteval.models.model_output import ModelResponse
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc
from lighteval.utils.cache_management import SampleCache

ITEMS = json.loads(Path("items.json").read_text(encoding="utf-8"))


def question(row: dict, task_name: str = "") -> Doc:
    """Return a question as lighteval asks it."""
    return Doc(
        task_name=task_name,
        query=row["question"],
        choices=[row["expected"]],
        gold_index=0,
        specific={"language": row["language"]},
    )


TASKS_TABLE = [
    LightevalTaskConfig(
        name="cities",
        prompt_function=question,
        hf_repo="data",
        hf_subset="default",
        hf_avail_splits=["test"],
        evaluation_splits=["test"],
        metrics=[Metrics.exact_match],
        generation_size=20,
        stop_sequence=[],
        version=1,
    )
]


class OurModel(LightevalModel):
    """Answers from the file, and nothing where the call failed."""

    def __init__(self, config) -> None:
        """Keep what names the model, and where lighteval keeps its answers."""
        self.config = config
        self._cache = SampleCache(config)

    @property
    def tokenizer(self) -> None:
        """It has none."""

    @property
    def add_special_tokens(self) -> bool:
        """Whether there are any: there are not."""
        return False

    @property
    def max_length(self) -> int:
        """The longest prompt, in tokens."""
        return 2048

    def greedy_until(self, docs: list[Doc]) -> list[ModelResponse]:
        """Answer these questions."""
        answers = {item["question"]: item["answer"] or "" for item in ITEMS}
        return [ModelResponse(text=[answers[doc.query]]) for doc in docs]

    def loglikelihood(self, docs: list[Doc]) -> list[ModelResponse]:
        """Answer no such question: the task has none."""
        raise NotImplementedError

    def loglikelihood_rolling(self, docs: list[Doc]) -> list[ModelResponse]:
        """Answer no such question: the task has none."""
        raise NotImplementedError


if __name__ == "__main__":
    import lighteval
    import pandas

    # It fetches the weights of another benchmark while it lists tasks: a file stands in.
    tasks = Path(lighteval.__file__).parent / "tasks" / "tasks"
    (tasks / "tinyBenchmarks.pkl").touch()
    Path("data").mkdir()
    rows = [
        {name: item[name] for name in ("question", "expected", "language")}
        for item in ITEMS
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    Path("data/test.jsonl").write_text(lines, encoding="utf-8")
    program = Path(sys.executable).with_name("lighteval")
    words = f"custom ours/{Path.cwd().name} cities.py cities --custom-tasks cities.py"
    saved = ["--save-details", "--output-dir", "out"]
    subprocess.run([program, *words.split(), *saved], check=True)
    (details,) = Path("out/details").rglob("*.parquet")
    details.rename("details.parquet")
    pandas.read_parquet("details.parquet").to_json(
        "details.jsonl", orient="records", lines=True, force_ascii=False
    )
