"""Two results are compared only where tool, samples and settings of both say the same."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from qagate.command import main
from qagate.reports.extras.decide.stated import reduced
from qagate.reports.run.run_json import load_report
from tests.extras.decide.test_forms import OLD, WORSE
from tests.extras.decide.written_results import Ending, written
from tests.support.fixtures import Captured

Change = Callable[[Any], None]
ITEMS = len(OLD)


def changed(path: Path, change: Change) -> Path:
    """Change the JSON of a file in place; return its path."""
    value = json.loads(path.read_text("utf-8"))
    change(value)
    path.write_text(json.dumps(value), "utf-8")
    return path


def verdict(folder: Path, new: Path, old: Path, *words: str) -> tuple[int, str]:
    """Return the exit code over two results, and the last line with the reasons of its gates."""
    to = folder / "out"
    code = main(["decide", f"{new}", f"--baseline={old}", f"--to={to}", *words])
    if not to.exists():
        return code, ""
    decision = load_report(to).decision
    return code, "; ".join([decision.line, *(gate.reason for gate in decision.gates)])


def pair(
    folder: Path, form: str, new: Sequence[Ending] = OLD, old: Sequence[Ending] = OLD
) -> tuple[Path, Path]:
    """Return two results of a form; by default nothing but the answers differs."""
    return (
        written(form, folder / "new" / "result", new, "new"),
        written(form, folder / "old" / "result", old, "old"),
    )


# How it was measured


def _grader_role(log: Any) -> None:
    log["eval"]["model_roles"] = {"grader": {"model": "openai/judge-2"}}


def _own_grader(log: Any) -> None:
    log["eval"]["scorers"] = [{"name": "model_graded_qa", "options": {}}]


def _task_args(log: Any) -> None:
    log["eval"]["task_args"] = {"fewshot": 5}


def _solver(log: Any) -> None:
    log["plan"] = {"steps": [{"solver": "chain_of_thought"}]}


def _limit(log: Any) -> None:
    log["eval"]["config"]["message_limit"] = 5


def _promptfoo_grader(result: Any) -> None:
    for row in result["results"]["results"]:
        row["testCase"]["options"] = {"provider": "openai:judge-2"}


def _azure_threshold(result: Any) -> None:
    for row in result["rows"]:
        row["outputs.judge.judge_threshold"] = 2


def _mlflow_judge(result: Any) -> None:
    for row in result:
        row["assessments"][0]["source"]["source_id"] = "judge-2"


def _deepeval_threshold(result: Any) -> None:
    for row in result["testCases"]:
        row["metricsData"][0]["threshold"] = 0.2


CHANGES: Mapping[str, tuple[str, Change, str]] = {
    "inspect's grader by role": ("inspect", _grader_role, "graders changed"),
    "inspect's model grades itself": ("inspect", _own_grader, "scorers changed"),
    "inspect's task arguments": ("inspect", _task_args, "arguments changed"),
    "inspect's solver": ("inspect", _solver, "solver changed"),
    "inspect's limit": ("inspect", _limit, "limits changed from not said to 5"),
    "promptfoo's grader": ("promptfoo", _promptfoo_grader, "grader changed"),
    "azure's threshold": ("azure", _azure_threshold, "threshold changed"),
    "MLflow's judge": ("mlflow", _mlflow_judge, "grader changed"),
    "deepeval's threshold": ("deepeval", _deepeval_threshold, "threshold changed"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_what_was_measured_otherwise_decides_nothing(name: str, tmp_path: Path) -> None:
    form, change, reason = CHANGES[name]
    new, old = pair(tmp_path, form)
    code, line = verdict(tmp_path, changed(new, change), old)
    assert code == 6
    assert "measured otherwise: " in line
    assert reason in line


def test_a_difference_can_be_accepted_by_field_and_value(tmp_path: Path) -> None:
    """For this run; the last line says it."""
    new, old = pair(tmp_path, "azure")
    changed(new, _azure_threshold)
    accept = "threshold=judge.judge_: 2"
    code, line = verdict(tmp_path, new, old, f"--accept-changed={accept}")
    assert code == 0
    assert f"accepted: {accept}" in line


@pytest.mark.parametrize("accept", ["threshold=judge.judge_: 3", "grader=x"])
def test_only_a_difference_that_is_there_can_be_accepted(
    accept: str, tmp_path: Path, capsys: Captured
) -> None:
    new, old = pair(tmp_path, "azure")
    changed(new, _azure_threshold)
    assert verdict(tmp_path, new, old, f"--accept-changed={accept}")[0] == 4
    assert "--accept-changed 'threshold=judge.judge_: 2'" in capsys.readouterr().err


def test_a_verdict_is_no_other_when_it_is_decided_again(tmp_path: Path) -> None:
    new, old = pair(tmp_path, "azure")
    assert verdict(tmp_path, changed(new, _azure_threshold), old)[0] == 6
    assert main(["gate", f"{tmp_path / 'out'}"]) == 6


# What the tool itself says


def stating(score: str, value: float, reducer: str | None = None) -> Change:
    """Return what makes an inspect log state a figure of a score as its headline."""

    def state(log: Any) -> None:
        metrics = {"accuracy": {"name": "accuracy", "value": value}}
        scores = [
            {"name": score, "scorer": score, "reducer": reducer, "metrics": metrics}
        ]
        log["results"] = {
            "headline": {"scorer": score, "score": score},
            "scores": scores,
        }

    return state


def test_samples_that_say_what_the_tool_says_decide(tmp_path: Path) -> None:
    new, old = pair(tmp_path, "inspect")
    changed(new, stating("match", 0.8))
    changed(old, stating("match", 0.8))
    assert verdict(tmp_path, new, old)[0] == 0


@pytest.mark.parametrize("side", ["new", "old"])
def test_samples_that_contradict_the_tool_decide_nothing(
    side: str, tmp_path: Path
) -> None:
    """Both figures are said."""
    new, old = pair(tmp_path, "inspect")
    changed(new if side == "new" else old, stating("match", 0.383))
    code, line = verdict(tmp_path, new, old)
    assert code == 6
    assert "says accuracy of match 0.383" in line
    assert "say match 0.8" in line


def _without_one(log: Any) -> None:
    """Take back a sample that is right, of which inspect's figure still speaks."""
    log["samples"][0]["invalidation"] = {"reason": "the sandbox was down"}


def test_a_figure_may_count_what_has_no_score_here(tmp_path: Path) -> None:
    new, old = pair(tmp_path, "inspect")
    changed(new, stating("match", 0.8))
    assert verdict(tmp_path, changed(new, _without_one), old)[0] == 0


def _counted(count: int) -> Change:
    def state(result: Any) -> None:
        result["results"]["stats"] = {"successes": count, "failures": ITEMS - count}

    return state


@pytest.mark.parametrize(("count", "code"), [(96, 0), (90, 6)])
def test_promptfoos_count_of_successes_is_recounted(
    count: int, code: int, tmp_path: Path
) -> None:
    new, old = pair(tmp_path, "promptfoo")
    assert verdict(tmp_path, changed(new, _counted(count)), old)[0] == code


def _of_two_scores(log: Any) -> None:
    for sample in log["samples"]:
        right = 1.0 if sample["scores"]["match"]["value"] == "C" else 0.0
        sample["scores"] = {"two": {"value": {"fluent": 1.0, "right": right}}}
    log["results"] = {"headline": {"scorer": "two", "score": "right"}}


def test_the_headline_of_a_scorer_with_several_values_decides(tmp_path: Path) -> None:
    """It is not the first of them."""
    new, old = pair(tmp_path, "inspect", WORSE)
    for path in (new, old):
        changed(path, _of_two_scores)
    code, line = verdict(tmp_path, new, old)
    assert code == 1
    assert "all lost 30 of 120 answers" in line


def _in_three_epochs(log: Any) -> None:
    """OLD is right in one epoch of each item, NEW in all of a third of them."""
    is_new = log["eval"]["run_id"] == "new"
    samples = []
    for place, sample in enumerate(log["samples"]):
        for epoch in (1, 2, 3):
            right = place % 3 == 0 if is_new else epoch == 1
            value = "C" if right else "I"
            samples.append(
                {**sample, "epoch": epoch, "scores": {"match": {"value": value}}}
            )
    log["samples"] = samples
    stating("match", 1 / 3 if is_new else 1.0, "max")(log)


def test_repeats_are_one_value_by_the_headlines_reducer(tmp_path: Path) -> None:
    new, old = pair(tmp_path, "inspect")
    for path in (new, old):
        changed(path, _in_three_epochs)
    code, line = verdict(tmp_path, new, old)
    assert code == 1
    assert "all lost 80 of 120 answers" in line


def test_of_several_reducers_the_headlines_counts(tmp_path: Path) -> None:
    """At most one epoch of OLD is right, and the mean is what inspect shows."""
    new, old = pair(tmp_path, "inspect")

    def by_mean(log: Any) -> None:
        _in_three_epochs(log)
        (by_max,) = log["results"]["scores"]
        mean = {"accuracy": {"name": "accuracy", "value": 1 / 3}}
        by_mean = {**by_max, "reducer": "mean", "metrics": mean}
        log["results"]["scores"] = [by_max, by_mean]
        log["results"]["headline"]["reducer"] = "mean"

    for path in (new, old):
        changed(path, by_mean)
    verdict(tmp_path, new, old)
    (gate,) = load_report(tmp_path / "out").decision.gates
    assert gate.estimate.n == 3 * ITEMS


@pytest.mark.parametrize(
    ("reducer", "value"),
    [
        ("mean", 0.5),
        ("max", 1.0),
        ("median", 0.5),
        ("mode", 1.0),
        ("at_least_2", 1.0),
        ("at_least_3", 0.0),
        ("pass_at_1", 0.5),
        ("pass_at_3", 1.0),
    ],
)
def test_reducers(reducer: str, value: float) -> None:
    assert reduced([1.0, 0.0, 1.0, 0.0], reducer) == value


# Which run it is


def test_one_result_on_both_sides_decides_nothing(tmp_path: Path) -> None:
    new, _ = pair(tmp_path, "table")
    code, line = verdict(tmp_path, new, new)
    assert code == 6
    assert "both results are one file" in line


def test_a_copy_with_all_its_answers_decides_nothing(tmp_path: Path) -> None:
    new, old = pair(tmp_path, "table")
    old.write_bytes(new.read_bytes())
    code, line = verdict(tmp_path, new, old)
    assert code == 6
    assert "both results are one file" in line


def test_equal_scores_without_answers_are_no_sign_of_a_copy(tmp_path: Path) -> None:
    """An unchanged model passes."""
    rows = "".join(f"q{n},{int(n % 5 > 0)}\n" for n in range(400))
    paths = tmp_path / "new.csv", tmp_path / "old.csv"
    for path in paths:
        path.write_text(f"id,score\n{rows}")
    assert verdict(tmp_path, *paths)[0] == 0


def test_two_files_of_one_run_decide_nothing(tmp_path: Path) -> None:
    new, _ = pair(tmp_path, "inspect")
    again = tmp_path / "again.json"
    again.write_text(new.read_text("utf-8") + "\n", "utf-8")
    code, line = verdict(tmp_path, new, again)
    assert code == 6
    assert "both results are of one run" in line


def test_equal_short_answers_are_no_sign_of_the_same_run(tmp_path: Path) -> None:
    new, old = pair(tmp_path, "inspect")

    def short(log: Any) -> None:
        for sample in log["samples"]:
            sample["output"]["completion"] = "A"

    assert verdict(tmp_path, changed(new, short), changed(old, short))[0] == 0


def test_a_baseline_that_is_younger_is_said(tmp_path: Path) -> None:
    new, old = pair(tmp_path, "inspect")
    changed(new, lambda log: log["eval"].update(created="2024-05-01T10:00:00+00:00"))
    changed(old, lambda log: log["eval"].update(created="2026-05-01T10:00:00+00:00"))
    verdict(tmp_path, new, old)
    notes = load_report(tmp_path / "out").notes
    assert any("the baseline is younger than the new result" in note for note in notes)


def test_what_neither_result_says_is_said(tmp_path: Path) -> None:
    """Unknown on both sides is equal, and named."""
    new, old = pair(tmp_path, "azure")
    verdict(tmp_path, new, old)
    notes = load_report(tmp_path / "out").notes
    assert "neither result says how it was measured in grader" in notes


def test_another_chat_template_pairs_by_document(tmp_path: Path) -> None:
    new, old = pair(tmp_path, "lm_eval")
    for folder, template in ((new, "chatml"), (old, "llama")):
        samples = next(folder.glob("samples*"))
        rows = [json.loads(line) for line in samples.read_text("utf-8").splitlines()]
        for row in rows:
            row["arguments"]["gen_args_0"]["arg_0"] = f"<{template}>{row['doc']}"
            row["prompt_hash"] = template
        samples.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
        results = {
            "results": {},
            "configs": {"numbers": {}},
            "chat_template_sha": template,
        }
        name = samples.name.replace("samples_numbers", "results").removesuffix("l")
        (folder / name).write_text(json.dumps(results), "utf-8")
    assert verdict(tmp_path, new, old)[0] == 0
    notes = load_report(tmp_path / "out").notes
    assert "the chat templates differ; items are paired by their documents" in notes


def test_another_question_of_the_same_id_is_edited(tmp_path: Path) -> None:
    """Earlier messages of a chat are part of what was asked."""
    new, old = pair(tmp_path, "inspect")

    def other_history(log: Any) -> None:
        for sample in log["samples"]:
            last = {"role": "user", "content": sample["input"]}
            sample["input"] = [{"role": "system", "content": "Be brief."}, last]

    code, line = verdict(tmp_path, changed(new, other_history), old)
    assert code == 6
    assert "no item has a grade in this run and in the baseline (120 of" in line
