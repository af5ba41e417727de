"""``qagate compare`` of three runs and more, and ``qagate.compare`` in a notebook."""

from pathlib import Path

import pandas as pd
import pytest

import qagate
from qagate.command import main
from qagate.evaluators.core import UsageError
from tests.extras.side_by_side.test_counting import night
from tests.support.made_runs import answered, run_of, written

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def runs(tmp_path: Path) -> list[str]:
    """Three runs: the second is worse, the third has items that nobody graded."""
    paths = []
    for name, letters in (
        ("old", "c" * 60),
        ("worse", "c" * 30 + "i" * 30),
        ("gaps", "c" * 50 + "e" * 10),
    ):
        made = run_of(answered(letters), model=f"openai:{name}-model")
        paths.append(str(written(made, tmp_path / name)))
    return paths


def test_comparing_ends_in_0_whatever_it_shows(
    runs: list[str], capsys: Captured
) -> None:
    assert main(["compare", *runs]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Of two other runs one is worse than old-model."
    assert lines[1].startswith("worse-model: worse in English by −50.0 (")
    (row,) = [line for line in lines if line.startswith("  worse-model")]
    assert "50.0% (37.7 to 62.3)" in row
    assert row.endswith("< 0.001")
    assert lines[-1] == (
        "gaps-model: 10 items without a grade (10 in facts:en); counted as wrong, and the ranges "
        "reach from all wrong to all right."
    )


def test_the_files_are_written_where_asked(
    runs: list[str], tmp_path: Path, capsys: Captured
) -> None:
    to = tmp_path / "out"
    assert main(["compare", *runs, "--to", str(to)]) == 0
    assert sorted(path.name for path in to.iterdir()) == [
        "changes-facts.svg",
        "compare.csv",
        "compare.html",
        "compare.md",
        "grades-facts.svg",
        "scores-facts.svg",
    ]
    assert capsys.readouterr().out.splitlines()[-1] == f"page: {to / 'compare.html'}"


def test_two_runs_are_compared_item_by_item_and_side_by_side(
    runs: list[str], tmp_path: Path
) -> None:
    to = tmp_path / "out"
    assert main(["compare", *runs[:2], "--to", str(to)]) == 0
    assert (to / "report.html").is_file()
    assert (to / "compare.html").is_file()


def test_no_run_is_written_over(runs: list[str], capsys: Captured) -> None:
    assert main(["compare", *runs, "--to", runs[1]]) == 4
    assert "--to" in capsys.readouterr().err


def test_a_run_that_is_named_twice_is_refused(
    runs: list[str], capsys: Captured
) -> None:
    again = str(Path(runs[0], "run.json"))
    assert main(["compare", *runs, again]) == 4
    assert "named twice; name each run once" in capsys.readouterr().err


def test_an_anchor_is_for_two_runs(runs: list[str], capsys: Captured) -> None:
    assert main(["compare", *runs, "--anchor", runs[0]]) == 4
    assert "--anchor: is for two runs" in capsys.readouterr().err


def test_one_run_is_no_comparison(runs: list[str], capsys: Captured) -> None:
    assert main(["compare", runs[0]]) == 4
    assert "NEW" in capsys.readouterr().err


def test_nights_are_drawn_beside_the_answers_that_change(
    tmp_path: Path, capsys: Captured
) -> None:
    first = night("c" * 40, 0)
    baseline = written(first.report, tmp_path / "first")
    from qagate.reports.run.baseline import load_baseline  # noqa: PLC0415

    kept = load_baseline(baseline)
    nights = [str(baseline)]
    for number in (1, 2):
        made = night("c" * 38 + "ii", number, kept).report
        nights.append(str(written(made, tmp_path / f"night{number}")))
    to = tmp_path / "out"
    assert main(["compare", *nights, "--to", str(to)]) == 0
    text = "asked again: verdicts that change: 2.5% ("
    assert text in capsys.readouterr().out
    assert "English, asked again: verdicts that change: 2.5%" in (
        to / "compare.md"
    ).read_text("utf-8")
    drawing = (to / "nights-facts.svg").read_text("utf-8")
    assert drawing.count('class="whisker"') == 3
    assert "verdicts that change: 2.5% (" in drawing
    assert "verdicts changed" in (to / "compare.csv").read_text("utf-8")


def test_a_notebook_gets_a_row_for_each_figure(runs: list[str]) -> None:
    frame = qagate.compare(*runs)
    right = frame[frame["figure"] == "right"].set_index("run")["value"]
    assert right.to_dict() == {
        "old-model": 1.0,
        "worse-model": 0.5,
        "gaps-model": pytest.approx(50 / 60),
    }
    assert frame["count"].dtype == pd.Int64Dtype()
    assert (frame["high"] >= frame["value"]).all()
    with pytest.raises(UsageError, match="two runs or more"):
        qagate.compare(runs[0])
