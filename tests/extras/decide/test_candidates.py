"""Several candidates beside one baseline: each has its verdict, adjusted for their number."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from qagate.command import main
from qagate.reports.run.run_json import load_report
from tests.support.fixtures import Captured
from tests.support.reviewing import as_csv

ITEMS = 200
CLOSE = 3
"""So many lost answers of 200 pass at 2.5 % and at half of it, not at a third."""
LOST = 60
HARDLY_LOST = 17
"""So many fail at 5 %, and not at a third of it."""


def result(path: Path, broke: int) -> Path:
    """Write a table in which every item but these is right."""
    path.parent.mkdir(exist_ok=True)
    return as_csv(path, [{"id": n, "acc": int(n >= broke)} for n in range(ITEMS)])


def decide(folder: Path, losses: Sequence[int], *words: str) -> int:
    """Decide over candidates ``a``, ``b`` … that lost so many answers, and return the code."""
    names = "abcdefgh"[: len(losses)]
    candidates = [
        result(folder / f"{name}.csv", broke)
        for name, broke in zip(names, losses, strict=True)
    ]
    old = result(folder / "old.csv", 0)
    given = [f"--baseline={old}", "--column=score=acc", f"--to={folder / 'out'}"]
    return main(["decide", *map(str, candidates), *given, *words])


def verdicts(folder: Path) -> list[str]:
    reports = sorted((folder / "out").glob("?/run.json"))
    return [load_report(path.parent).verdict for path in reports]


def test_all_candidates_that_pass_end_in_0(tmp_path: Path) -> None:
    assert decide(tmp_path, [0, 1]) == 0
    assert verdicts(tmp_path) == ["PASS", "PASS"]


def test_one_candidate_that_fails_ends_in_1(tmp_path: Path) -> None:
    assert decide(tmp_path, [0, LOST]) == 1
    assert verdicts(tmp_path) == ["PASS", "FAIL"]


def test_one_candidate_that_is_undecided_ends_in_6(tmp_path: Path) -> None:
    assert decide(tmp_path, [0, 8]) == 6
    assert verdicts(tmp_path) == ["PASS", "INCONCLUSIVE"]


def test_the_last_line_has_every_verdict(tmp_path: Path, capsys: Captured) -> None:
    decide(tmp_path, [0, 8, LOST])
    last_line = capsys.readouterr().out.splitlines()[-1]
    assert last_line == (
        "CANDIDATES (1 of 3 pass): exit 1; a PASS, b INCONCLUSIVE, c FAIL"
    )


def test_what_passes_alone_does_not_pass_as_the_best_of_three(tmp_path: Path) -> None:
    assert decide(tmp_path, [CLOSE]) == 0
    decide(tmp_path, [CLOSE, LOST, LOST])
    assert verdicts(tmp_path)[0] == "INCONCLUSIVE"


def test_each_candidate_that_passes_makes_it_easier_for_the_rest(
    tmp_path: Path,
) -> None:
    """Holm's step: with one of three decided, the others share the error of two."""
    decide(tmp_path, [CLOSE, 0, LOST])
    assert verdicts(tmp_path) == ["PASS", "PASS", "FAIL"]


def test_what_fails_alone_may_be_chance_among_three(tmp_path: Path) -> None:
    assert decide(tmp_path, [HARDLY_LOST]) == 1
    decide(tmp_path, [HARDLY_LOST, 0, 0])
    assert verdicts(tmp_path)[0] == "INCONCLUSIVE"


def test_gates_that_failed_no_longer_hold_the_others_back(tmp_path: Path) -> None:
    decide(tmp_path, [HARDLY_LOST, LOST, LOST])
    assert verdicts(tmp_path) == ["FAIL", "FAIL", "FAIL"]


def test_a_candidate_that_is_decided_again_stays_adjusted(tmp_path: Path) -> None:
    """Else ``gate`` would pass what the command did not."""
    decide(tmp_path, [CLOSE, LOST, LOST])
    assert main(["gate", f"{tmp_path / 'out' / 'a'}"]) == 6


def test_the_line_and_the_gate_say_how_many_there_are(tmp_path: Path) -> None:
    decide(tmp_path, [CLOSE, LOST, LOST])
    decision = load_report(tmp_path / "out" / "a").decision
    assert "one of 3 candidates, adjusted for their number" in decision.line
    assert "held to 98.33 %, as one of 3 candidates" in decision.gates[0].reason


def test_an_earlier_report_in_the_folder_is_marked(tmp_path: Path) -> None:
    """Its verdict is no longer what the folder was last asked for."""
    assert decide(tmp_path, [0]) == 0
    decide(tmp_path, [LOST, LOST])
    assert main(["gate", f"{tmp_path / 'out'}"]) == 6


# What candidates are called


def test_candidates_are_called_by_what_differs_in_their_paths(tmp_path: Path) -> None:
    old = result(tmp_path / "old" / "results.csv", 0)
    new = [result(tmp_path / name / "results.csv", 0) for name in ("gpt 5", "opus")]
    words = [f"--baseline={old}", "--column=score=acc", f"--to={tmp_path / 'out'}"]
    assert main(["decide", *map(str, new), *words]) == 0
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"gpt-5", "gpt-5-baseline", "opus", "opus-baseline"}


def test_paths_that_differ_in_no_one_place_are_numbered(tmp_path: Path) -> None:
    """Of any two of these three the names differ, and of no place all three."""
    (tmp_path / "x").mkdir()
    new = [tmp_path / "a.csv", tmp_path / "x" / "a.csv", tmp_path / "x" / "b.csv"]
    for path in new:
        result(path, 0)
    old = result(tmp_path / "old.csv", 0)
    words = [f"--baseline={old}", "--column=score=acc", f"--to={tmp_path / 'out'}"]
    assert main(["decide", *map(str, new), *words]) == 0
    assert (tmp_path / "out" / "candidate-3" / "run.json").is_file()


def test_a_candidate_is_given_once(tmp_path: Path, capsys: Captured) -> None:
    path = tmp_path / "both.csv"
    rows = [{"id": n, "one": 1, "two": 1} for n in range(ITEMS)]
    as_csv(path, rows)
    words = [f"--baseline={path}", "--new=two", "--new=two", "--old=one"]
    assert main(["decide", f"{path}", *words]) == 4
    assert "two candidates would both be 'two'; give each once" in (
        capsys.readouterr().err
    )


def test_labels_are_of_one_candidate(tmp_path: Path, capsys: Captured) -> None:
    assert decide(tmp_path, [0, 0], f"--labels={tmp_path / 'labels.csv'}") == 4
    assert "--labels: what people say of one candidate's answers" in (
        capsys.readouterr().err
    )


# Several models in one file


def test_several_models_of_one_table_are_candidates(tmp_path: Path) -> None:
    losses = {"a": 0, "b": 0, "c": LOST}
    rows = [
        {"id": n, "model": model, "score": int(n >= broke)}
        for n in range(ITEMS)
        for model, broke in losses.items()
    ]
    path = as_csv(tmp_path / "all.csv", rows)
    words = [f"--baseline={path}", "--old=a", f"--to={tmp_path / 'out'}"]
    assert main(["decide", f"{path}", "--new=b", "--new=c", *words]) == 1
    assert verdicts(tmp_path) == ["PASS", "FAIL"]


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """A table with a column for each model, by name alone and with what it holds."""
    rows = [
        {
            "id": n,
            "gpt-4.1": "correct",
            "opus": "correct" if n >= LOST else "incorrect",
            "gpt-4.1_acc": 1,
            "opus_acc": int(n >= LOST),
            "gpt-4.1_text": f"{n}",
            "opus_text": f"it is {n}",
        }
        for n in range(ITEMS)
    ]
    return as_csv(tmp_path / "wide.csv", rows)


def over_columns(path: Path, new: str, old: str, *words: str) -> int:
    given = [f"--baseline={path}", f"--new={new}", f"--old={old}"]
    return main(["decide", f"{path}", *given, f"--to={path.parent / 'out'}", *words])


def test_a_column_for_each_model_is_read_by_its_name(wide: Path) -> None:
    assert over_columns(wide, "opus", "gpt-4.1") == 1
    assert over_columns(wide, "gpt-4.1", "opus") == 0


def test_a_star_in_a_column_stands_for_the_model(wide: Path) -> None:
    words = ("--column=score=*_acc", "--column=answer=*_text")
    assert over_columns(wide, "opus", "gpt-4.1", *words) == 1
    report = load_report(wide.parent / "out")
    (gate,) = report.decision.gates
    assert gate.name == "drop"
    assert report.records[0].answer == "it is 0"


def test_a_column_named_by_its_model_says_no_direction(
    tmp_path: Path, capsys: Captured
) -> None:
    rows = [{"id": n, "a": 0.1, "b": 0.4} for n in range(ITEMS)]
    path = as_csv(tmp_path / "wide.csv", rows)
    assert over_columns(path, "b", "a") == 4
    assert "nothing says which way is better" in capsys.readouterr().err


def test_a_model_without_rows_and_columns_is_refused(
    wide: Path, capsys: Captured
) -> None:
    assert over_columns(wide, "opsu", "gpt-4.1") == 4
    message = capsys.readouterr().err
    assert "no row names a model, and there is no column 'opsu'" in message
    assert "opus" in message
