"""A thought is no answer: every kind of data set, every form of thought, every judge.

The thought names a wrong answer where the answer is right, and the right one where it is wrong,
so whoever reads the thought is wrong every time.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from qagate.cases.dataset import PlannedItem
from qagate.cases.earlier import EarlierAnswer, EarlierAnswers
from qagate.cases.tasks import make_tasks
from qagate.evaluators import core
from qagate.evaluators.metric_specs import CheckSpec, MetricSpec
from qagate.evaluators.rubric import Protocol
from qagate.evaluators.runtime.task import Task
from qagate.reports.run.record import Record, make_record
from tests.support.engine_bench import Bench
from tests.support.judging import judges
from tests.support.made_records import make_slice
from tests.support.made_runs import answered, run_of
from tests.support.samples import rendered
from tests.support.scripted import PROMPT, Scripted, make_case, make_rubric

THOUGHT = "It may be"
FORMS: Mapping[str, Callable[[str, str], str]] = {
    "think": lambda thought, answer: f"<think>{thought}</think>\n\n{answer}",
    "swallowed opening": lambda thought, answer: f"{thought}</think>{answer}",
    "reasoning": lambda thought, answer: f"<reasoning>{thought}</reasoning>{answer}",
    "square": lambda thought, answer: f"[THINK]{thought}[/THINK]{answer}",
    "triangles": lambda thought, answer: f"◁think▷{thought}◁/think▷{answer}",
    "channels": lambda thought, answer: (
        f"<|channel|>analysis<|message|>{thought}<|end|>"
        f"<|start|>assistant<|channel|>final<|message|>{answer}<|return|>"
    ),
    "long": lambda thought, answer: f"<think>{f'{thought}. ' * 3_000}</think>{answer}",
}
OPEN_FORMS = {
    "open": lambda thought: f"<think>{thought}",
    "closed": lambda thought: f"<think>{thought}</think>",
    "open channel": lambda thought: f"<|channel|>analysis<|message|>{thought}",
}
KINDS = {
    "graded": ("София", "Варна"),
    "rated": ("София", "Варна"),
    "yes_no": ("Да", "Не"),
    "checked": ("София", "Варна"),
    "judged": ("София", "Варна"),
}
"""The right answer and a wrong one, by the kind of data set."""
JUDGES = {
    "rules": ("lexical",),
    "model": ("openai:judge",),
    "cascade": ("lexical+openai:judge",),
    "panel": ("openai:judge", "lexical"),
}
EACH_JUDGE = [
    "model",
    *(pytest.param(name, marks=pytest.mark.slow) for name in JUDGES if name != "model"),
]
"""All of them; only the model's tests are quick enough for every look."""


def judge_of(right: str) -> Scripted:
    """Return a judge's model that finds the right answer anywhere in what it is sent."""

    def handle(request: core.Request) -> core.Reply:
        name = request.tool.name if request.tool else ""
        is_right = f'"{right}"' in request.messages[-1].content.partition(" | ")[2]
        grade = "CORRECT" if is_right else "INCORRECT"
        fields: dict[str, object] = {"reason": "", "grade": grade}
        if name == "rate":
            fields = {"reason": "", "rating": 10 if is_right else 1}
        verdict = json.dumps(fields)
        call = core.ToolCall(name=name, arguments=verdict)
        return core.Reply(calls=(call,), finish="tool_calls")

    return Scripted(handle, spec="openai:judge", provider="judge")


@dataclass(frozen=True)
class Listening:
    """A metric that keeps the answers it was given."""

    heard: list[str] = field(default_factory=list)
    spec: MetricSpec = field(default_factory=lambda: MetricSpec(name="heard"))

    async def measure(self, case: core.Case, answer: str, ask: core.Ask) -> float:
        self.heard.append(answer)
        return 1.0


@dataclass(frozen=True, kw_only=True)
class Ended:
    """How an item ended whose reply held a thought."""

    record: Record
    earlier: Record
    """The same reply, as kept by an earlier run."""
    judged: list[str]
    """All that the judge's model was sent."""
    heard: list[str]
    """What the metric was given."""


def item_of(kind: str, reply: str) -> PlannedItem:
    style: Protocol = "rate" if kind == "rated" else "tool"
    slice_ = make_slice(
        kind,
        prompt=PROMPT,
        rubric=make_rubric(style, user="{question} {target} | {predicted_answer}"),
        yes="Да",
        no="Не",
        checks=(CheckSpec(name="short", check="regex", text=r"\A\w+\Z"),),
    )
    if kind == "judged":
        slice_ = replace(slice_, checks=())
    label = {"yes_no": core.YES, "judged": core.CORRECT}.get(kind)
    case = make_case(recorded=reply if kind == "judged" else None, label=label)
    return PlannedItem(key="k", slice=slice_, case=case, repeat=1)


def end_of(folder: Path, kind: str, judge: str, reply: str) -> Ended:
    """Return how an item ends to which the model says ``reply``."""
    item = item_of(kind, reply)
    model = Scripted(lambda request: core.Reply(text=reply))
    judge_model = judge_of(KINDS[kind][0])
    earlier = EarlierAnswers(
        role="baseline",
        model="openai:old",
        by_key={"k": EarlierAnswer(reply=reply, case=item.case)},
    )
    factory = judges(*JUDGES[judge], models=[judge_model])
    tasks = make_tasks([item], model, factory, None, [earlier])
    metric = Listening()
    task: Task = replace(tasks["k"], metric_runners=(metric,))
    outcome = Bench(folder, [task]).run()["k"]
    return Ended(
        record=make_record(item, outcome),
        earlier=make_record(item, outcome.readings["baseline"]),
        judged=[
            message.content
            for request in judge_model.requests
            for message in request.messages
        ],
        heard=metric.heard,
    )


@pytest.mark.parametrize("judge", EACH_JUDGE)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_right", [True, False])
def test_the_answer_alone_is_read(
    tmp_path: Path, kind: str, form: str, judge: str, is_right: bool
) -> None:
    right, wrong = KINDS[kind]
    answer, other = (right, wrong) if is_right else (wrong, right)
    reply = FORMS[form](f"{THOUGHT} {other}", answer)
    ended = end_of(tmp_path, kind, judge, reply)
    for record in (ended.record, ended.earlier):
        assert record.answer == answer
        assert (record.answer_state, record.reply) == ("answered", reply)
        assert not any(check < 1 for name, check in record.measures.items() if check)
    if kind != "checked":  # its check does not know which answer is right
        assert ended.record.passes() == is_right
        assert ended.earlier.passes() == is_right
    assert not any(THOUGHT in text for text in ended.judged)
    assert ended.heard == [answer]


@pytest.mark.parametrize("judge", EACH_JUDGE)
@pytest.mark.parametrize("form", OPEN_FORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_thought_without_an_answer_is_graded_by_nobody(
    tmp_path: Path, kind: str, form: str, judge: str
) -> None:
    """That the thought names the gold makes no difference."""
    reply = OPEN_FORMS[form](f"{THOUGHT} {KINDS[kind][0]}")
    ended = end_of(tmp_path, kind, judge, reply)
    for record in (ended.record, ended.earlier):
        assert (record.outcome, record.answer) == ("error", None)
        assert (record.answer_state, record.reply) == ("thought_only", reply)
        assert record.error.startswith("thought_only: the reply holds thoughts")
    assert ended.record.error_kind == "model: thought_only"
    assert ended.judged == ended.heard == []


def test_no_report_file_but_the_records_shows_the_thought(tmp_path: Path) -> None:
    """``records.jsonl`` and ``results.csv`` keep the reply as it came, in a field of its own."""
    reply = FORMS["think"](f"{THOUGHT} Варна", "София")
    read = end_of(tmp_path, "graded", "rules", reply).record
    (record,) = answered("c")
    record = replace(record, answer=read.answer, reply=read.reply)
    files = rendered(run_of([record]))
    showing = {name for name, text in files.items() if THOUGHT in text}
    assert showing == {"records.jsonl", "results.csv"}
