"""Which score decides, and which way of it is better: said, never guessed."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from qagate.command import main
from qagate.reports.extras.decide.scores import looks_less, looks_more, number
from tests.support.fixtures import Captured
from tests.support.reviewing import as_csv

ITEMS = 200


def in_tables(
    folder: Path, name: str, old: Sequence[object], new: Sequence[object], *words: str
) -> int:
    """Return how a decision over two tables ends, whose scores repeat these values."""
    paths = []
    for side, values in (("new", new), ("old", old)):
        rows = [
            {"id": n, name: values[n % len(values)], "answer": side}
            for n in range(ITEMS)
        ]
        paths.append(as_csv(folder / f"{side}.csv", rows))
    given = [f"{paths[0]}", f"--baseline={paths[1]}", f"--to={folder / 'out'}"]
    return main(["decide", *given, f"--column=score={name}", *words])


@pytest.mark.parametrize(
    "name",
    [
        "wer",
        "error_rate",
        "toxicity",
        "hallucination",
        "is_wrong",
        "loss",
        "edits",
        "incorrect",
    ],
)
def test_a_name_of_which_less_is_better_is_asked_about(
    name: str, tmp_path: Path, capsys: Captured
) -> None:
    assert in_tables(tmp_path, name, [0.1], [0.4]) == 4
    assert "less seems to be better: --scale 1:0" in capsys.readouterr().err


def test_the_scale_says_that_less_is_better(tmp_path: Path) -> None:
    assert in_tables(tmp_path, "wer", [0.1], [0.4], "--scale=1:0") == 1


@pytest.mark.parametrize(
    ("values", "option"),
    [([0.1], "--scale 1:0"), (["fair"], "--scale 0:1 --score fair=0.5")],
    ids=["scale", "score"],
)
def test_what_the_command_line_says_of_scores_stands_in_the_last_line(
    values: list[object], option: str, tmp_path: Path, capsys: Captured
) -> None:
    """Another direction, or another worth of a word, would turn the verdict."""
    in_tables(tmp_path, "cities", values, values, *option.split())
    last_line = capsys.readouterr().out.splitlines()[-1]
    assert option.replace(" --score", ", --score") in last_line


def test_a_name_that_says_nothing_is_asked_about(
    tmp_path: Path, capsys: Captured
) -> None:
    assert in_tables(tmp_path, "cities", [1], [1]) == 4
    assert "nothing says which way is better; say --scale" in capsys.readouterr().err


def test_words_for_right_and_wrong_say_it(tmp_path: Path) -> None:
    assert in_tables(tmp_path, "cities", ["correct"], ["correct", "incorrect"]) == 1


def test_true_and_false_do_not(tmp_path: Path) -> None:
    """``true`` may be a defect."""
    assert in_tables(tmp_path, "protected_material", ["true"], ["true"]) == 4


@pytest.mark.parametrize("scale", ["0:100", "100:0"])
def test_a_scale_on_which_each_loss_is_a_hundredth_is_refused(
    scale: str, tmp_path: Path, capsys: Captured
) -> None:
    assert in_tables(tmp_path, "points", [1], [0], f"--scale={scale}") == 4
    assert "so every change would look small" in capsys.readouterr().err


def test_a_perfect_score_on_a_scale_is_no_mistake(tmp_path: Path) -> None:
    assert in_tables(tmp_path, "stars", [5], [5], "--scale=1:5") == 0


def test_a_word_is_worth_what_the_user_says(tmp_path: Path, capsys: Captured) -> None:
    words = ["good", "fair", "poor"]
    assert in_tables(tmp_path, "grade", words, words) == 4
    assert "say what it is worth, with --score good=0.5" in capsys.readouterr().err
    worth = ["--score=good=1", "--score=fair=0.5", "--score=poor=0"]
    assert in_tables(tmp_path, "grade", words, ["poor"], *worth) == 1


@pytest.mark.parametrize("missing", ["", "nan", "NaN", "None", "null", "N/A"])
def test_a_cell_without_a_score_is_ungraded(missing: str, tmp_path: Path) -> None:
    """Neither 0, which would be a FAIL, nor a reason to refuse the table."""
    assert in_tables(tmp_path, "acc", ["1"], ["1"] * 3 + [missing]) == 6


def harness(
    folder: Path, side: str, better: bool, aggregation: str, value: float
) -> Path:
    """Write a result of the harness whose task has a metric ``perplexity``."""
    folder = folder / side
    folder.mkdir()
    when = "2026-11-01T00-00-00.000000"
    metric = {
        "metric": "perplexity",
        "aggregation": aggregation,
        "higher_is_better": better,
    }
    results: dict[str, Any] = {
        "results": {"lambada": {"perplexity,none": 2.0}},
        "configs": {"lambada": {"metric_list": [metric]}},
        "versions": {"lambada": 1},
        "higher_is_better": {"lambada": {"perplexity": better}},
    }
    (folder / f"results_{when}.json").write_text(json.dumps(results))
    rows = [
        {
            "doc_id": n,
            "doc": {"n": n},
            "target": "x",
            "perplexity": value,
            "metrics": ["perplexity"],
        }
        for n in range(ITEMS)
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (folder / f"samples_lambada_{when}.jsonl").write_text(lines)
    return folder


def test_lambadas_log_likelihoods_are_not_turned_round(
    tmp_path: Path, capsys: Captured
) -> None:
    """The direction is that of the figure; of what samples hold more is better."""
    new = harness(tmp_path, "new", False, "perplexity", -3.5)
    old = harness(tmp_path, "old", False, "perplexity", -0.5)
    given = [f"{new}", f"--baseline={old}", f"--to={tmp_path / 'out'}"]
    assert main(["decide", *given]) == 4
    assert (
        "takes perplexity over perplexity, which is no mean" in capsys.readouterr().err
    )
    named = [*given, "--metric=perplexity"]
    assert main(["decide", *named]) == 4
    assert "nothing says which way is better" in capsys.readouterr().err
    assert main(["decide", *named, "--scale=-10:0"]) == 1


@pytest.mark.parametrize(
    "name", ["acc", "exact_match", "pass@1", "answer_correctness", "isCorrect"]
)
def test_names_of_which_more_plainly_is_better(name: str) -> None:
    assert looks_more(name)


@pytest.mark.parametrize(
    "name", ["not_correct", "mismatch", "normal", "errors", "failRate"]
)
def test_names_of_which_it_is_not_plain(name: str) -> None:
    assert not looks_more(name)


def test_a_beginning_of_another_word_is_no_sign() -> None:
    assert not looks_less("normalized_match")


@pytest.mark.parametrize(
    ("value", "score"),
    [
        (10**400, None),
        (True, 1),
        ("0.5", 0.5),
        (" C ", 1),
        (None, None),
        ([1], None),
        ("x", None),
    ],
)
def test_a_value_as_a_number(value: object, score: float | None) -> None:
    assert number(value) == score
