"""Ranges, tolerances and the mark of a false premise are read exactly."""

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases.gold_notation import check_gold, with_tolerance
from evaluators.judges.lexical.judge import grade
from evaluators.judges.lexical.tables import tables
from evaluators.kinds import FALSE_PREMISE
from tests.support.loading import line, loaded
from tests.support.tables import tabled


@tabled("language", "gold", "tolerance", "range_")
def test_a_tolerance_becomes_a_range(language: str, gold: str, tolerance: str, range_: str) -> None:
    """The range is exact, in the gold's unit and with the language's decimal mark."""
    assert with_tolerance(gold, tolerance, language) == range_
    check_gold(range_, language)


@given(
    gold=st.decimals(min_value=1, max_value=99999, places=2),
    tolerance=st.decimals(min_value=Decimal("0.01"), max_value=999, places=2),
    language=st.sampled_from(["en", "bg", "pl", "hu", "be"]),
)
def test_ranges_are_exact(gold: Decimal, tolerance: Decimal, language: str) -> None:
    """Both ends are what a pupil would work out, however the language writes decimals."""
    mark = tables(language).decimal
    written = [str(number).replace(".", mark) for number in (gold, tolerance)]
    range_ = with_tolerance(f"{written[0]} m", written[1], language)
    check_gold(range_, language)
    low, high = range_.removesuffix(" m").replace(mark, ".").split("..")
    assert (Decimal(low), Decimal(high)) == (gold - tolerance, gold + tolerance)


@pytest.mark.parametrize(
    "gold", ["5..5", "-7..-3 °C", "Wait... what", "False premise", f"{FALSE_PREMISE}it has none"]
)
def test_other_golds_are_left_alone(gold: str) -> None:
    """Dots that part no numbers are no range, and a point is one."""
    check_gold(gold, "en")


def test_the_loader_adds_the_range_to_the_accepted_forms(tmp_path: Path) -> None:
    """Judges see it beside the others, items without a tolerance keep their digest."""
    head = "Question,Answers,Aliases,tolerance\n"
    plain, widened = loaded(tmp_path, f"{head}q,5 m,five metres,\nr,5 m,five metres,1\n")
    assert plain.golds == ("5 m", "five metres")
    assert widened.golds == ("5 m", "five metres", "4..6 m")
    assert loaded(tmp_path, line(answer="5 m", tolerance=2), "jsonl")[0].golds == ("5 m", "3..7 m")
    without = loaded(tmp_path, "Question,Answers,Aliases\nq,5 m,five metres\n")
    assert without[0].digest == plain.digest


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("2928 m", "CORRECT"), ("2,930 metres", "CORRECT"), ("2931 m", "INCORRECT")],
)
def test_the_lexical_judge_reads_ranges(tmp_path: Path, answer: str, expected: str) -> None:
    """A number within the tolerance is right, the ends included, and one beyond it is wrong."""
    (case,) = loaded(tmp_path, 'Question,Answers,tolerance\nHow high is it?,"2,925 m",5 m\n')
    assert grade(case, answer).grade == expected
