"""``metrics:`` in a dataset.yaml, and what is made of the numbers: no deepeval is needed here."""

import asyncio
from pathlib import Path

import pytest

from cases.dataset import Threshold
from cases.gates_file import load_gates, with_gates
from cases.tasks import metric_runners
from evaluators.answerers import PromptedAnswer, RecordedAnswer
from evaluators.core import Answerer, Ask, CallError, Case, JudgeError, Reply, UsageError
from evaluators.extra_metrics import MetricResults, MetricRunner, MetricSpec, measure_all
from evaluators.judges.forecast import Call, calls_ahead
from evaluators.judges.offline import OverlapRater
from evaluators.ledger import LedgerError
from evaluators.rubric import Prompt
from evaluators.runtime.engine import Task
from evaluators.text import request_key
from reports.run.provenance import dump_datasets, load_datasets
from tests.support.declaring import GRADED, JUDGED, RATED, gates, refusal
from tests.support.declaring import declared as loaded
from tests.support.made_records import make_slice
from tests.support.scripted import Scripted, ask_for, make_case
from tests.support.tables import tabled

BASIS = "geval_basis: {criteria: Right?, evaluation_params: [input, context], min: 0.6}"


def test_metrics_of_a_dataset_and_of_a_language(tmp_path: Path) -> None:
    """A language's own take the place of the dataset's; bars become gates after its own."""
    text = "kind: rated\nmetrics: {faithfulness: {min: 0.7}, bias: {}}\nlanguages:\n"
    text += "  en: {file: a.yaml, gates: {mean_rating: {min: 5}, bias: {min: 0.9}}}\n"
    text += f"  bg:\n    file: b.yaml\n    metrics:\n      {BASIS}\n"
    dataset = loaded(tmp_path, text)
    english, bulgarian = dataset.slices["en"], dataset.slices["bg"]
    assert [metric.name for metric in english.metrics] == ["faithfulness", "bias"]
    assert [rule.measure for rule in english.thresholds] == ["mean_rating", "bias", "faithfulness"]
    own = MetricSpec(name="geval_basis", criteria="Right?", fields=("input", "context"))
    assert bulgarian.metrics == (own,)
    assert bulgarian.thresholds == (Threshold(measure="geval_basis", min=0.6),)
    (again,) = load_datasets(dump_datasets([dataset]))
    assert [metric.name for metric in again.slices["bg"].metrics] == ["geval_basis"]


@tabled("metrics", "message")
def test_a_wrong_metric_is_refused(tmp_path: Path, metrics: str, message: str) -> None:
    """With file, line and what is known."""
    said = refusal(tmp_path, f"{RATED}metrics:\n  {metrics}\n")
    assert message in said
    assert "dataset.yaml:3: " in said or "dataset.yaml:4: " in said


def test_metrics_are_for_kinds_in_which_a_model_answers(tmp_path: Path) -> None:
    """Labelled answers measure a judge; and one measure has one bar."""
    assert "not for kind judged" in refusal(tmp_path, f"{JUDGED}metrics: {{bias: {{}}}}\n")
    twice = f"{GRADED}    gates: {{bias: {{min: 1}}}}\n    metrics: {{bias: {{min: 1}}}}\n"
    assert "has a bar here and under gates" in refusal(tmp_path, twice)


def test_a_gates_file_may_name_a_metric_of_the_slice(tmp_path: Path) -> None:
    """Any metric is known there; which a slice has, is checked against it."""
    dataset = loaded(tmp_path, f"{GRADED}    metrics: {{bias: {{}}, {BASIS}}}\n")
    name = dataset.name
    good = gates(tmp_path, f"{name}: {{en: {{bias: {{min: 1}}, geval_basis: {{min: 1}}}}}}\n")
    rules = with_gates(dataset, load_gates(good)).slices["en"].thresholds
    assert [rule.measure for rule in rules] == ["bias", "geval_basis"]
    for wrong in ("toxicity", "geval_other"):
        bad = load_gates(gates(tmp_path, f"{name}: {{en: {{{wrong}: {{min: 1}}}}}}\n"))
        with pytest.raises(UsageError, match=f"'{wrong}': no metric"):
            with_gates(dataset, bad)


def test_a_metric_that_reads_the_context_needs_one() -> None:
    """Before any call; where no model judges nothing is measured, and nothing is missing."""
    slice_ = make_slice(metrics=(MetricSpec(name="bias"), MetricSpec(name="faithfulness")))
    model = Scripted(lambda request: Reply())
    with pytest.raises(UsageError, match=r"bg.csv: metric faithfulness reads .* item 'q2' has"):
        metric_runners(slice_, [make_case(1, context="x"), make_case(2)], model)
    assert metric_runners(slice_, [make_case(2)], None) == ()
    assert metric_runners(make_slice(), [make_case(2)], model) == ()


class Fixed:
    """A runner without deepeval: asks twice, one after the other, and gives what it is told."""

    def __init__(self, name: str, end: float | BaseException) -> None:
        self.spec = MetricSpec(name=name)
        self.model = Scripted(lambda request: Reply(text="x"))
        self._end = end

    async def measure(self, case: Case, answer: str, ask: Ask) -> float:
        for text in ("first", "second"):
            await ask(self.model, ask_for(f"{text}: {answer}"))
        if isinstance(self._end, BaseException):
            raise self._end
        return self._end


def taken(*fixed: MetricRunner) -> MetricResults:
    async def ask(model: object, request: object) -> Reply:
        return Reply(text="x")

    return asyncio.run(measure_all(fixed, make_case(), "so", ask))


def test_a_measure_that_fails_fails_alone() -> None:
    """The others stand; why it is missing is told, and a ledger that is full stops the run."""
    found = taken(
        Fixed("good", 0.5),
        Fixed("late", CallError("timeout", "no reply")),
        Fixed("odd", JudgeError("unreadable")),
        Fixed("broken", KeyError("x\ny")),
        Fixed("full", LedgerError("the disk is full")),
    )
    assert found.values == {"good": 0.5, "late": None, "odd": None, "broken": None, "full": None}
    assert found.unmeasured == {
        "late": "timeout: no reply",
        "odd": "judge_unreadable: unreadable",
        "broken": r"internal: KeyError: 'x\ny'",
        "full": "ledger: LedgerError: the disk is full",
    }
    assert found.failure == "the disk is full"
    assert taken(Fixed("good", 0.5)).failure == ""


def test_an_interrupt_is_no_measure() -> None:
    """It ends the run, as everywhere."""
    with pytest.raises(asyncio.CancelledError):
        taken(Fixed("late", asyncio.CancelledError()))


def ahead(answerer: Answerer, kept: dict[str, Reply], recorded: str | None = "so") -> list[Call]:
    task = Task(
        key="k",
        case=make_case(recorded=recorded),
        repeat=1,
        answerer=answerer,
        judge=OverlapRater(),
        passes=lambda case, verdict: True,
        metric_runners=(Fixed("faithfulness", 0.5),),
    )
    return asyncio.run(calls_ahead(task, kept.get))


def test_calls_of_a_measure_are_foreseen() -> None:
    """As many as it usually takes where a reply is missing; the kept ones where none is."""
    identity = Fixed("x", 0.5).model.identity
    keys = [request_key(identity, ask_for(f"{text}: so")) for text in ("first", "second")]
    assert [call.kept for call in ahead(RecordedAnswer(), {})] == [False] * 3
    assert [call.kept for call in ahead(RecordedAnswer(), {keys[0]: Reply()})] == [
        *(True, False, False)
    ]
    both = dict.fromkeys(keys, Reply())
    assert [call.kept for call in ahead(RecordedAnswer(), both)] == [True, True]
    assert ahead(RecordedAnswer(), both, recorded=None) == []
    prompt = Prompt(name="p", language="bg", version="1", system="", user="{question}")
    asked = PromptedAnswer(model=Scripted(lambda request: Reply()), prompt=prompt)
    assert len(ahead(asked, {})) == 1 + 3
