"""inspect_ai: the log of ``eval``, of which one scorer fails on a sample."""

import json
import sys
from pathlib import Path

from inspect_ai import Task, eval, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.log import EvalLog, write_eval_log
from inspect_ai.model import GenerateConfig, ModelAPI, ModelOutput, modelapi
from inspect_ai.scorer import CORRECT, INCORRECT, Score, accuracy, scorer, stderr
from inspect_ai.solver import generate

ITEMS = json.loads(Path("items.json").read_text(encoding="utf-8"))
SIDE = Path.cwd().name
BY_QUESTION = {item["question"]: item for item in ITEMS}


@modelapi(name="cities")
class Model(ModelAPI):
    """A model that answers as the items say."""

    async def generate(self, input, tools, tool_choice, config: GenerateConfig):
        answer = BY_QUESTION[input[-1].text]["answer"]
        if answer is None:
            raise ConnectionError(
                "the model did not answer"
            )  # a TimeoutError is a limit
        return ModelOutput.from_content(self.model_name, answer)


@scorer(metrics=[accuracy(), stderr()])
def right():
    async def score(state, target):
        if BY_QUESTION[state.input_text]["scorer_fails"]:
            raise ValueError("the judge did not answer")
        is_right = state.output.completion == target.text
        return Score(value=CORRECT if is_right else INCORRECT)

    return score


@scorer(metrics=[accuracy()])
def length():
    async def score(state, target):
        return Score(value=len(state.output.completion))

    return score


@task
def cities() -> Task:
    samples = [
        Sample(
            id=item["id"],
            input=item["question"],
            target=item["expected"],
            metadata={"language": item["language"]},
        )
        for item in ITEMS
    ]
    dataset = MemoryDataset(samples, name="cities")
    return Task(dataset=dataset, solver=generate(), scorer=[right(), length()])


(log,) = eval(
    cities(),
    model=f"cities/{SIDE}",
    fail_on_error=False,
    log_dir="logs",
    display="none",
)
# The archive cannot be scrubbed as text, so its paths are taken out before it is written.
text = log.model_dump_json(round_trip=True)
for path in (sys.prefix, sys.base_prefix, str(Path.cwd())):
    text = text.replace(f"{path}/", "")
write_eval_log(EvalLog.model_validate_json(text), "log.eval")
