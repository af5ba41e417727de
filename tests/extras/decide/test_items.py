"""Which item a row is of: by id, question and target; and what belongs together."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from qagate.command import main
from qagate.reports.extras.decide.foreign_run import Choice
from qagate.reports.extras.decide.reading import read_run
from qagate.reports.run.run_json import load_report
from tests.extras.decide.test_forms import BETTER, OLD, WORSE
from tests.extras.decide.written_results import written
from tests.support.fixtures import Captured


def lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), "utf-8")
    return path


def repeats(path: Path) -> list[tuple[str, int]]:
    run = read_run(path, "", Choice())
    return [(sample.id, sample.repeat) for sample in run.samples]


def test_the_same_id_again_is_a_repeat(tmp_path: Path) -> None:
    rows = [{"id": "a", "score": 1}, {"id": "b", "score": 1}, {"id": "a", "score": 0}]
    assert repeats(lines(tmp_path / "x.jsonl", rows)) == [("a", 1), ("b", 1), ("a", 2)]


def test_repeats_may_be_counted_from_0(tmp_path: Path) -> None:
    rows = [{"id": "a", "repeat": n, "score": 1} for n in range(3)]
    assert repeats(lines(tmp_path / "x.jsonl", rows)) == [("a", 1), ("a", 2), ("a", 3)]


def test_another_question_under_one_id_is_another_item(tmp_path: Path) -> None:
    """As of a test that asserts in a loop."""
    rows = [{"id": "test_all", "question": f"{n}?", "score": 1} for n in range(2)]
    first, second = repeats(lines(tmp_path / "x.jsonl", rows))
    assert first[0] != second[0]
    assert first[1] == second[1] == 1


def test_a_constant_prompt_is_no_cluster(tmp_path: Path) -> None:
    """Items with ids of their own are independent; else no number of them would decide."""
    paths = []
    for side in ("new", "old"):
        rows = [
            {"id": n, "question": "Solve the task.", "score": 1, "answer": side}
            for n in range(200)
        ]
        paths.append(lines(tmp_path / f"{side}.jsonl", rows))
    given = [f"{paths[0]}", f"--baseline={paths[1]}", f"--to={tmp_path / 'out'}"]
    assert main(["decide", *given]) == 0


def test_one_table_may_hold_several_models(tmp_path: Path, capsys: Captured) -> None:
    rows = [
        {"id": n, "model": model, "score": int(model == "b" or n % 2)}
        for n in range(200)
        for model in ("a", "b")
    ]
    path = lines(tmp_path / "both.jsonl", rows)
    given = [f"{path}", f"--baseline={path}", f"--to={tmp_path / 'out'}"]
    assert main(["decide", *given]) == 4
    assert "results of several models, a, b; say which" in capsys.readouterr().err
    assert main(["decide", *given, "--new=a", "--old=b"]) == 1
    assert main(["decide", *given, "--new=b", "--old=a"]) == 0
    assert main(["decide", *given, "--new=c", "--old=a"]) == 4
    assert "no model 'c'" in capsys.readouterr().err


def test_two_prompts_of_promptfoo_are_two_sides(tmp_path: Path) -> None:
    """Prompt A against prompt B in one file."""
    path = written("promptfoo", tmp_path / "new" / "result", WORSE, "mock")
    other = json.loads(
        written("promptfoo", tmp_path / "old" / "x", OLD, "mock").read_text()
    )
    both = json.loads(path.read_text())
    for row in both["results"]["results"]:
        row["prompt"]["label"] = "short"
    both["results"]["results"] += other["results"]["results"]
    path.write_text(json.dumps(both))
    given = [f"{path}", f"--baseline={path}", f"--to={tmp_path / 'out'}"]
    assert main(["decide", *given, "--new=short", "--old={{question}}"]) == 1


def test_a_sample_that_met_a_limit_keeps_its_score(tmp_path: Path) -> None:
    """inspect scores it; an agent meets limits often."""
    new = written("inspect", tmp_path / "new" / "result", BETTER, "new")
    old = written("inspect", tmp_path / "old" / "result", OLD, "old")
    for path in (new, old):
        log = json.loads(path.read_text())
        for sample in log["samples"][:40]:
            sample["limit"] = {"type": "token", "limit": 5}
        path.write_text(json.dumps(log))
    assert (
        main(["decide", f"{new}", f"--baseline={old}", f"--to={tmp_path / 'out'}"]) == 0
    )


INVALID: Mapping[str, Any] = {"invalidation": {"reason": "the sandbox was down"}}
UNREADABLE: Mapping[str, Any] = {
    "scores": {
        "match": {"value": "I", "explanation": "Grade not found in model output: 7"}
    }
}


@pytest.mark.parametrize(
    "change", [INVALID, UNREADABLE], ids=["taken back", "no grade found"]
)
def test_a_sample_that_does_not_count_is_ungraded(
    change: Mapping[str, Any], tmp_path: Path
) -> None:
    path = written("inspect", tmp_path / "result", OLD, "old")
    log = json.loads(path.read_text())
    for sample in log["samples"][:30]:
        sample.update(change)
    path.write_text(json.dumps(log))
    new = written("inspect", tmp_path / "new" / "result", WORSE, "new")
    to = tmp_path / "out"
    assert main(["decide", f"{new}", f"--baseline={path}", f"--to={to}"]) == 6
    assert load_report(tmp_path / "out-baseline").counts.ungraded == 30


def test_a_grader_of_promptfoo_that_answered_prose_is_ungraded(tmp_path: Path) -> None:
    """Some graders set no mark of it; their reason says it."""
    path = written("promptfoo", tmp_path / "result", OLD, "old")
    result = json.loads(path.read_text())
    for row in result["results"]["results"][:5]:
        row |= {"success": False, "score": 0}
        row["gradingResult"] |= {
            "pass": False,
            "reason": "Output did not match expected format",
        }
    path.write_text(json.dumps(result))
    run = read_run(path, "", Choice())
    assert [bool(sample.error) for sample in run.samples[:6]] == [True] * 5 + [False]


def test_slices_of_deepeval_are_its_metadata(tmp_path: Path) -> None:
    path = written("deepeval", tmp_path / "result", OLD, "old")
    result = json.loads(path.read_text())
    for row in result["testCases"]:
        row["metadata"] = {"language": "pl"}
    path.write_text(json.dumps(result))
    run = read_run(path, "", Choice(slice="language"))
    assert {sample.slice for sample in run.samples} == {"pl"}


def test_a_slice_may_be_a_path(tmp_path: Path) -> None:
    rows = [{"id": n, "tags": {"lang": {"code": "pl"}}, "score": 1} for n in range(3)]
    run = read_run(
        lines(tmp_path / "x.jsonl", rows), "", Choice(slice="tags.lang.code")
    )
    assert {sample.slice for sample in run.samples} == {"pl"}


def test_several_lists_in_an_object_are_asked_about(
    tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "x.json"
    rows = [{"id": n, "score": 1} for n in range(5)]
    path.write_text(json.dumps({"prompts": [{"text": "x"}], "run": {"items": rows}}))
    given = [f"{path}", f"--baseline={path}", f"--to={tmp_path / 'out'}"]
    assert main(["decide", *given]) == 4
    assert (
        "holds the lists prompts, run.items; say --rows NAME" in capsys.readouterr().err
    )
    assert main(["decide", *given, "--rows=run"]) == 4
    assert (
        "no list of objects there; there are: prompts, run.items"
        in capsys.readouterr().err
    )
    assert main(["decide", *given, "--rows=run.items"]) == 6


def test_an_object_without_rows_ends_no_circle(
    tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "x.json"
    path.write_text(json.dumps({"accuracy": 0.9}))
    assert main(["decide", f"{path}", f"--baseline={path}"]) == 4
    assert "give a CSV or JSONL with a row for each answer" in capsys.readouterr().err


def test_a_folder_of_unknown_files_is_asked_for_one(
    tmp_path: Path, capsys: Captured
) -> None:
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text("id,score\n1,1\n")
    assert main(["decide", f"{tmp_path}", f"--baseline={tmp_path}"]) == 4
    assert "holds 2 files of no known tool; name one file" in capsys.readouterr().err


def _log_of(
    folder: Path, name: str, change: Callable[[Any], None], right: bool
) -> None:
    """Write one more log of the same task into a folder."""
    path = written("inspect", folder / name, BETTER if right else WORSE, folder.name)
    log = json.loads(path.read_text())
    change(log)
    path.write_text(json.dumps(log))


def test_a_failed_log_is_left_out_beside_its_retry(tmp_path: Path) -> None:
    for side in ("new", "old"):
        _log_of(
            tmp_path / side, "a", lambda log: log.update(status="error"), right=False
        )
        _log_of(tmp_path / side, "b", lambda log: None, right=True)
    run = read_run(tmp_path / "new", "", Choice())
    assert len(run.samples) == len(BETTER)
    given = [f"{tmp_path / 'new'}", f"--baseline={tmp_path / 'old'}"]
    assert main(["decide", *given, f"--to={tmp_path / 'out'}"]) == 0


def test_a_failed_log_alone_is_said(tmp_path: Path) -> None:
    _log_of(tmp_path / "new", "a", lambda log: log.update(status="error"), right=True)
    run = read_run(tmp_path / "new", "", Choice())
    assert run.notes[0].endswith("a.json: the log's status is error")


def test_a_task_with_several_arguments_is_a_task_for_each(tmp_path: Path) -> None:
    for language in ("en", "pl"):
        arguments = {"language": language}

        def set_arguments(log: Any, arguments: Mapping[str, str] = arguments) -> None:
            log["eval"]["task_args"] = arguments

        _log_of(tmp_path / "new", language, set_arguments, right=True)
    run = read_run(tmp_path / "new", "", Choice())
    assert list(run.tasks) == [
        'numbers {"language": "en"}',
        'numbers {"language": "pl"}',
    ]


def test_two_whole_logs_of_one_task_are_asked_about(
    tmp_path: Path, capsys: Captured
) -> None:
    for name in ("a", "b"):
        _log_of(tmp_path / "new", name, lambda log: None, right=True)
    assert (
        main(["decide", f"{tmp_path / 'new'}", f"--baseline={tmp_path / 'new'}"]) == 4
    )
    assert "a second log of task numbers; name one log" in capsys.readouterr().err


def test_what_the_pairs_can_show_is_said_first(
    tmp_path: Path, capsys: Captured
) -> None:
    new = written("table", tmp_path / "new" / "result", OLD, "new")
    old = written("table", tmp_path / "old" / "result", OLD, "old")
    given = [f"{new}", f"--baseline={old}", f"--to={tmp_path / 'out'}", "--margin=0.03"]
    assert main(["decide", *given]) == 6
    first, second, *_ = capsys.readouterr().out.splitlines()
    assert first.startswith("no --gates: the deciding score may drop by 0.03")
    assert second == "table:all: 120 pairs can show a drop from 0.031 on"
