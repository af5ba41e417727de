"""``--pool``: one verdict over many tasks, none of which is hidden by the others."""

import json
from collections.abc import Callable
from pathlib import Path

from qagate.command import main
from qagate.reports.run.run_json import load_report
from tests.support.fixtures import Captured

TASKS = tuple(f"topic{n}" for n in range(10))
ITEMS = 60
WHEN = "2026-11-01T00-00-00.000000"
IsRight = Callable[[str, int], bool]


def harness(
    folder: Path, is_right: IsRight, group: str = "", metric: str = "acc"
) -> Path:
    """Write a result of the harness over ten tasks, in a group if it is named."""
    folder.mkdir()
    results = {
        "results": {},
        "configs": {task: {} for task in TASKS},
        "versions": dict.fromkeys(TASKS, 1),
        "group_subtasks": {group: list(TASKS)} if group else {},
    }
    (folder / f"results_{WHEN}.json").write_text(json.dumps(results))
    for task in TASKS:
        rows = [
            {
                "doc_id": n,
                "doc": {"task": task, "n": n},
                "target": "x",
                "filtered_resps": [folder.name],
                "metrics": [metric],
                metric: float(is_right(task, n)),
            }
            for n in range(ITEMS)
        ]
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / f"samples_{task}_{WHEN}.jsonl").write_text(lines)
    return folder


def four_of_five(task: str, n: int) -> bool:
    return n % 5 > 0


def another_four_of_five(task: str, n: int) -> bool:
    """As many are right, but one in fifteen differs either way."""
    if n % 30 == 1:
        return False
    return n % 5 > 0 or n % 30 == 5


def one_task_lost(task: str, n: int) -> bool:
    return four_of_five(task, n) and task != "topic3"


def decided(folder: Path, new: IsRight, *words: str, group: str = "") -> int:
    results = (
        harness(folder / "new", new, group),
        harness(folder / "old", four_of_five, group),
    )
    to = folder / "out"
    return main(
        ["decide", f"{results[0]}", f"--baseline={results[1]}", f"--to={to}", *words]
    )


def test_tasks_that_decide_nothing_alone_decide_together(tmp_path: Path) -> None:
    assert decided(tmp_path, another_four_of_five, "--pool") == 0
    (gate,) = load_report(tmp_path / "out").decision.gates
    assert (gate.slice, gate.estimate.n) == ("tasks:*", len(TASKS) * ITEMS)


def test_each_alone_is_not_decided(tmp_path: Path) -> None:
    assert decided(tmp_path, another_four_of_five) == 6


def test_one_task_that_is_lost_fails_by_name(tmp_path: Path) -> None:
    """Although all tasks together keep to the margin."""
    assert decided(tmp_path, one_task_lost, "--pool", "--margin=0.2") == 1
    (gate,) = load_report(tmp_path / "out").decision.gates
    assert "topic3 is shown to be beyond the margin" in gate.reason


def test_the_tools_own_group_is_a_pool(tmp_path: Path) -> None:
    assert decided(tmp_path, another_four_of_five, "--pool", group="mmlu") == 0
    (gate,) = load_report(tmp_path / "out").decision.gates
    assert gate.slice == "mmlu:*"


def test_a_pool_decides_again_as_before(tmp_path: Path) -> None:
    assert decided(tmp_path, another_four_of_five, "--pool") == 0
    assert main(["gate", f"{tmp_path / 'out'}"]) == 0


def test_scores_between_0_and_1_are_pooled_by_their_mean(tmp_path: Path) -> None:
    paths = []
    for side, value in (("new", 0.5), ("old", 0.8)):
        folder = harness(tmp_path / side, four_of_five)
        for path in folder.glob("samples*"):
            path.write_text(path.read_text().replace('"acc": 1.0', f'"acc": {value}'))
        paths.append(folder)
    given = [f"{paths[0]}", f"--baseline={paths[1]}", f"--to={tmp_path / 'out'}"]
    assert main(["decide", *given, "--pool"]) == 1
    (gate,) = load_report(tmp_path / "out").decision.gates
    assert gate.name == "drop of score"


def test_gates_of_single_tasks_are_no_pool(tmp_path: Path, capsys: Captured) -> None:
    gates = tmp_path / "gates.yaml"
    gates.write_text("topic1: {all: {correct: {min: 0.5}}}")
    assert decided(tmp_path, four_of_five, "--pool", f"--gates={gates}") == 4
    assert "--pool: --gates and --labels are of each task" in capsys.readouterr().err
