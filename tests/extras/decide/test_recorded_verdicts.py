"""What each tool's newest version wrote is read as it is: see ``recorded/README.md``.

Of eight questions six have a grade on both sides, and NEW has lost two of them.
"""

from pathlib import Path

import pytest

from qagate.command import main
from qagate.reports.run.run_json import load_report
from tests.support.fixtures import Captured

RECORDED = Path(__file__).parent / "recorded"
PAIRS = (
    ("azure-ai-evaluation/{}/result.json", "--metric=judge.right_result"),
    ("braintrust/{}/results.json", "--metric=right"),
    ("inspect_ai/{}/log.eval",),
    ("langfuse/{}/experiment_items.json", "--metric=right"),
    ("mlflow-2/{}/eval_results_table.json",),
    ("mlflow-3/{}/frame.csv.gz", "--metric=right"),
    ("mlflow-3/{}/frame.json.gz", "--metric=right"),
    ("mlflow-3/{}/traces.json.gz", "--metric=right"),
    ("openai-evals-api/{}/output_items.json",),
    ("promptfoo/{}/results.json.gz",),
    ("promptfoo/{}/repeated.json.gz",),
    ("pydantic-evals/{}/report.json", "--metric=Right"),
    ("pydantic-evals/{}/repeated.json.gz", "--metric=Right"),
)
"""A file of a tool, on both sides, and what to say beside it."""
GIVE_INSTEAD = (
    ("braintrust/new/summary.jsonl", "write the results of Eval() to a file"),
    ("promptfoo/new/results.csv", "give results.json: promptfoo eval -o"),
    ("promptfoo/new/results.jsonl.gz", "give results.json: promptfoo eval -o"),
    (
        "lm_eval/new/results_2026-11-29T00-00-00.000000.json",
        "run lm_eval with --log_samples",
    ),
)


def decided(folder: Path, new: Path, old: Path, *words: str) -> tuple[int, Path]:
    to = folder / "out"
    slices = "--slice=inputs.language" if "azure" in f"{new}" else "--slice=language"
    given = ["decide", f"{new}", f"--baseline={old}", f"--to={to}", slices]
    return main([*given, *words]), to


@pytest.mark.parametrize(("file", "words"), [(file, words) for file, *words in PAIRS])
def test_a_recorded_pair_has_lost_two_of_six(
    file: str, words: list[str], tmp_path: Path
) -> None:
    """By slice: nothing of four in English, two of two in Polish; two more have no grade."""
    new, old = (RECORDED / file.format(side) for side in ("new", "old"))
    code, to = decided(tmp_path, new, old, *words)
    assert code == 6
    gates = load_report(to).decision.gates
    values = {gate.slice.partition(":")[2]: gate.estimate.value for gate in gates}
    assert values == {"en": 0.0, "pl": -1.0, "*": pytest.approx(-1 / 3)}


@pytest.mark.parametrize("file", ["scores.csv", "scores.json"])
def test_ragas_has_no_slices(file: str, tmp_path: Path) -> None:
    new, old = (RECORDED / f"ragas/{side}/{file}" for side in ("new", "old"))
    to = tmp_path / "out"
    words = [f"--baseline={old}", f"--to={to}", "--metric=right"]
    assert main(["decide", f"{new}", *words]) == 6
    (gate,) = load_report(to).decision.gates
    assert gate.estimate.value == pytest.approx(-1 / 3)


def test_deepeval_leaves_a_failed_case_out(tmp_path: Path) -> None:
    """It is missing then, and counts at its worst."""
    new, old = (RECORDED / f"deepeval/{side}/test_run.json" for side in ("new", "old"))
    code, to = decided(tmp_path, new, old)
    (_, pl, _) = load_report(to).decision.gates
    assert (code, pl.estimate.value) == (6, -1.0)
    assert "1 ungraded, 1 missing items" in pl.reason


def test_the_harness_has_a_grade_for_each(tmp_path: Path) -> None:
    new, old = (RECORDED / f"lm_eval/{side}" for side in ("new", "old"))
    code, to = decided(tmp_path, new, old)
    values = [gate.estimate.value for gate in load_report(to).decision.gates]
    assert code == 6
    assert values == [0.0, -0.75, -0.375]


@pytest.mark.parametrize("file", ["details.jsonl", "details.parquet"])
def test_lighteval_has_a_grade_for_each(file: str, tmp_path: Path) -> None:
    """It ends where a model or a scorer fails."""
    if file.endswith("parquet"):
        pytest.importorskip("pyarrow")
    new, old = (RECORDED / f"lighteval/{side}/{file}" for side in ("new", "old"))
    code, to = decided(tmp_path, new, old, "--metric=em")
    values = [gate.estimate.value for gate in load_report(to).decision.gates]
    assert (code, values) == (6, [0.0, -0.75, -0.375])


def test_helm_says_beside_the_scores_which_calls_failed(tmp_path: Path) -> None:
    """Its file of scores counts the empty answer of a failed call as wrong."""
    new, old = (
        RECORDED / f"helm/{side}/per_instance_stats.json.gz" for side in ("new", "old")
    )
    words = [f"--baseline={old}", "--metric=exact_match", f"--to={tmp_path / 'out'}"]
    assert main(["decide", f"{new}", *words]) == 6
    report = load_report(tmp_path / "out")
    (gate,) = report.decision.gates
    assert gate.estimate.value == pytest.approx(-3 / 7)
    (failed,) = (record for record in report.records if record.error)
    assert (failed.id, failed.error) == ("q8", "tool: the model is down")


@pytest.mark.parametrize(("file", "advice"), GIVE_INSTEAD)
def test_a_file_without_rows_is_answered_by_what_to_give(
    file: str, advice: str, tmp_path: Path, capsys: Captured
) -> None:
    path = RECORDED / file
    assert decided(tmp_path, path, path)[0] == 4
    assert advice in capsys.readouterr().err
