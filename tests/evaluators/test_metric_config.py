"""``metrics:`` in a dataset.yaml, and runs whose dataset names metrics of deepeval."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

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
from tests.conftest import Project
from tests.support.declaring import GRADED, JUDGED, RATED, gates, refusal
from tests.support.declaring import declared as loaded
from tests.support.loopback import Loopback, loopback
from tests.support.made_records import make_slice
from tests.support.metric_judge import judge
from tests.support.scripted import Scripted, ask_for, make_case
from tests.support.tables import kept, tabled

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
    """The others stand; why it is missing is told; a full ledger and an interrupt end the run."""
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


METRICS = """
metrics:
  faithfulness: {min: 0.6}
  geval_basis:
    criteria: Does the answer name the right article?
    evaluation_params: [input, actual_output, retrieval_context]
    min: 0.1
"""
ITEM = """
- id: q{number}
  question: May we do it, asked for the time number {number}?
  context: Article {number} says that it is so.
  expected: Yes, by Article {number}.
  predicted_answer: "It is so, says Article {number}. {mark} [[rating=8]]"
"""
WATCH = kept(__file__, "watch")


@pytest.fixture(autouse=True)
def unset(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take away what loading deepeval here has set for child processes too; tempt it to upload."""
    for name in ("DEEPEVAL_TELEMETRY_OPT_OUT", "DEEPEVAL_DISABLE_DOTENV"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CONFIDENT_API_KEY", "confident_us_x")


def law(project: Project, answers: Mapping[str, Sequence[str]]) -> Project:
    """Write a rated dataset with two metrics: by language a mark for each recorded answer."""
    listed = "".join(f"  {language}: {{file: {language}.yaml}}\n" for language in answers)
    yaml = f"kind: rated\nrubric: eba\njudge: unmeasured\n{METRICS}languages:\n{listed}"
    project.dataset("law", {}, yaml)
    for language, marks in answers.items():
        items = [ITEM.format(number=number, mark=mark) for number, mark in enumerate(marks)]
        project.write(f"qa/law/{language}.yaml", "".join(items))
    return project


def named(server: Loopback, provider: str = "openai") -> tuple[str, ...]:
    return "--judge", f"{provider}:j@{server.url}/v1", "--calibration", "off"


def report(project: Project) -> Any:
    return project.report()


@pytest.mark.slow
def test_measures_are_taken_gated_and_kept(project: Project) -> None:
    """Each answer gets its numbers from the judge's model; a run without workers asks nothing more.

    Only the controller loads deepeval, which calls nobody else, reads no .env and leaves no folder.

    Row F24 of the fault matrix.
    """
    law(project, {"en": ["", "[[faithful=no]] [[score=5]]", ""]})
    project.write(".env", "QA_LEAK=1\n")
    project.write("conftest.py", WATCH)
    with loopback(handler=judge) as server:
        first = project.run("-n", "2", *named(server), "qa")
        assert first.ret == 0, first.stdout.str()
        check_quiet(project)
        # One call for the steps; two answers claim the same, so that one call judges both claims.
        assert server.count == 3 * (1 + 3 + 1) + 1 - 1
        before = project.records()
        assert project.run(*named(server), "qa").ret == 0
        check_quiet(project)
        assert server.count == 15
    assert [one["measures"] for one in before] == [
        {"faithfulness": 1.0, "geval_basis": 0.8},
        {"faithfulness": 0.0, "geval_basis": 0.5},
        {"faithfulness": 1.0, "geval_basis": 0.8},
    ]
    assert project.records() == before
    (slice_,) = report(project)["slices"]
    found = slice_["measures"]["faithfulness"]
    assert (found["value"], found["n"]) == (pytest.approx(2 / 3), 3)
    assert 0 <= found["low"] < 2 / 3 < found["high"] <= 1
    states = {gate["measure"]: gate["state"] for gate in report(project)["gates"]}
    assert states == {"faithfulness": "PASS", "geval_basis": "PASS"}
    assert report(project)["tokens"] > 0


def check_quiet(project: Project) -> None:
    """Check what each process of the runs so far has loaded, read, called and left."""
    seen = {path.stem: json.loads(path.read_text()) for path in project.path.glob("seen-*.json")}
    assert sorted(seen) == ["seen-controller", "seen-gw0", "seen-gw1"]
    assert [name for name, one in seen.items() if one["deepeval"]] == ["seen-controller"]
    assert not any(one["leaked"] for one in seen.values())
    assert {host for one in seen.values() for host in one["hosts"]} <= {"127.0.0.1"}
    assert not (project.path / ".deepeval").exists()


def test_a_measure_fails_its_gate_or_leaves_it_open(project: Project) -> None:
    """Too low fails; an item that could not be measured decides nothing, and its grade stands."""
    law(project, {"en": ["[[faithful=no]]", "[[faithful=no]]"], "bg": ["", "[[broken=yes]]"]})
    with loopback(handler=judge) as server:
        result = project.run_in_process(*named(server, "anthropic"), "qa")
    assert result.ret == 1
    gates = {(one["language"], one["measure"]): one for one in report(project)["gates"]}
    assert gates["en", "faithfulness"]["state"] == "FAIL"
    assert gates["en", "faithfulness"]["reason"] == "faithfulness 0 is below 0.6 (n=2)"
    open_ = gates["bg", "faithfulness"]
    assert open_["state"] == "INCONCLUSIVE"
    assert open_["reason"] == "faithfulness could not be taken of 1 item; see the notes"
    assert gates["bg", "geval_basis"]["state"] == "PASS"
    assert {record["outcome"] for record in project.records()} == {"passed"}
    notes = "\n".join(report(project)["notes"])
    assert "faithfulness: 1 item not measured: judge_unreadable: anthropic:j@" in notes


def test_rules_take_no_measures(project: Project) -> None:
    """The offline judge has no model to ask: the report says so, and the gates stay open."""
    law(project, {"en": [""]})
    assert project.run_in_process("qa").ret == 6
    notes = report(project)["notes"]
    assert "law:en: faithfulness, geval_basis not measured: --judge lexical asks no model" in notes
    assert {gate["state"] for gate in report(project)["gates"]} == {"INCONCLUSIVE"}


def test_a_dry_run_counts_the_calls_of_measures(project: Project) -> None:
    """As an estimate, before anything is kept."""
    law(project, {"en": ["", "", ""]})
    with loopback(handler=judge) as server:
        result = project.run_in_process(*named(server), "--dry-run", "qa")
        assert server.count == 0
    result.stdout.fnmatch_lines(["law:en*3 items*18 calls", "extra metrics: as many calls*"])
