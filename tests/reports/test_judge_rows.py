"""The judge's agreement, drawn language by language against what is asked of it."""

from dataclasses import replace

import pytest

from qagate.evaluators.statistics.intervals import Estimate
from qagate.reports.render import html
from qagate.reports.render.judge_rows import judge_rows
from qagate.reports.run.evidence import Calibration, Judging
from qagate.reports.run.report import Report
from tests.support.pages import Page
from tests.support.samples import report

POLISH = Calibration(
    dataset="judges",
    language="pl",
    measures={"agreement": Estimate.of(0.96, (0.88, 0.99), 100)},
    floor={"agreement": 0.9},
    floor_limit={"agreement": 0.85},
    trusted=True,
    graders=("simpleqa:pl",),
)


def measured(*calibrations: Calibration) -> Report:
    return report((), judging=Judging(graded=340, calibrations=calibrations))


def test_a_row_says_on_how_many_labels_the_judge_agreed() -> None:
    rows = judge_rows(measured(POLISH))
    assert rows is not None
    (row,) = rows.rows
    assert (row.name, row.agreed, row.word) == ("Polish", "96 of 100", "trusted")


def test_the_limit_is_that_for_the_end_of_the_interval() -> None:
    """So a trusted judge's band is clear of the grey."""
    rows = judge_rows(measured(POLISH))
    assert rows is not None
    assert [tick.text for tick in rows.ticks if tick.is_limit] == ["85% limit"]
    picture = rows.rows[0].picture
    assert picture.band is not None
    assert picture.band.start > picture.limits[0]


def test_a_judge_without_a_limit_has_no_grey() -> None:
    rows = judge_rows(measured(replace(POLISH, floor={}, floor_limit={})))
    assert rows is not None
    assert rows.rows[0].picture.limits == []
    assert rows.rows[0].picture.beyond == []


def test_a_figure_without_an_interval_has_no_band() -> None:
    bare = replace(POLISH, measures={"agreement": Estimate.of(0.96, None, 100)})
    rows = judge_rows(measured(bare))
    assert rows is not None
    assert rows.rows[0].picture.band is None


@pytest.mark.parametrize(
    ("trusted", "stand_in", "state", "word"),
    [
        (True, "", "PASS", "trusted"),
        (False, "", "FAIL", "not trusted"),
        (None, "", "INCONCLUSIVE", "not known"),
        (True, "rules", "INCONCLUSIVE", "placeholder"),
    ],
)
def test_a_row_is_drawn_as_the_judge_is_trusted(
    trusted: bool | None, stand_in: str, state: str, word: str
) -> None:
    rows = judge_rows(measured(replace(POLISH, trusted=trusted, stand_in=stand_in)))
    assert rows is not None
    assert (rows.rows[0].state, rows.rows[0].word) == (state, word)


def test_sets_of_several_data_sets_are_told_apart() -> None:
    rows = judge_rows(measured(POLISH, replace(POLISH, dataset="own")))
    assert rows is not None
    assert [row.name for row in rows.rows] == ["Polish in judges", "Polish in own"]


def test_there_are_no_rows_without_labels() -> None:
    assert judge_rows(measured()) is None
    assert judge_rows(measured(replace(POLISH, measures={}))) is None


def test_the_page_says_who_graded_and_how_often_that_was_right() -> None:
    text = Page(html.render(measured(POLISH))).text
    assert "It agreed with 96 of 100 answers graded beforehand (96%)" in text
    assert "Polish 96 of 100 96.0%" in text
