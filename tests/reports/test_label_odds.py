"""The table of `docs/labels.md` on how many labels it takes is what its benchmark prints."""

from collections import Counter

import pytest

from qagate.evaluators.core import CORRECT, GRADES, INCORRECT, NOT_ATTEMPTED
from qagate.evaluators.output import markdown_table
from qagate.reports.judge.calibration import calibration_of
from qagate.reports.judge.labels import LabelSet
from qagate.reports.metrics.summary import summarise
from qagate.reports.run.record import Record
from tests.benchmarks.common import ROOT
from tests.benchmarks.label_odds import (
    FLOORS,
    HEADER,
    MIX,
    RIGHT_SHARES,
    WRONG_GRADE,
    Pattern,
    Row,
    cell,
    chance_of_trust,
    is_trusted,
    rows,
)
from tests.support.made_records import make_record, make_slice

pytestmark = pytest.mark.untraced
LABELS_PAGE = (ROOT / "docs" / "labels.md").read_text(encoding="utf-8").splitlines()


def documented_rows() -> list[list[str]]:
    """Return the cells of the table, without its heading."""
    heading, _ = markdown_table(HEADER, [])
    start = LABELS_PAGE.index(heading) + 2
    found = []
    for line in LABELS_PAGE[start:]:
        if not line.startswith("|"):
            break
        found.append(line.strip("| ").split(" | "))
    return found


def documented_cell(row: Row, right_share: float) -> str:
    cells = documented_rows()[rows().index(row)]
    return cells[len(row.names) + RIGHT_SHARES.index(right_share)]


def test_the_page_has_every_row_and_no_other() -> None:
    names = [tuple(cells[:3]) for cells in documented_rows()]
    assert names == [row.names for row in rows()]


@pytest.mark.parametrize("right_share", [0.94, 0.97])
def test_a_cell_of_the_page_is_what_the_benchmark_computes(right_share: float) -> None:
    """With the seed it comes out to the last digit; this row is the quickest."""
    row = Row(labels=60, questions=60)
    assert documented_cell(row, right_share) == cell(row, right_share)


@pytest.mark.parametrize("row", rows(), ids=lambda row: "-".join(row.names))
def test_every_row_of_the_page_agrees_with_a_few_rounds(row: Row) -> None:
    """Of 100 rounds a share is known to 0.17: more than three standard errors."""
    in_one_language = float(documented_cell(row, 0.94).partition(" / ")[0])
    assert chance_of_trust(row, 0.94, 100) == pytest.approx(in_one_language, abs=0.17)


SLICE = make_slice(
    "judged", floor=FLOORS.floor, floor_limit=FLOORS.floor_limit, language="en"
)


def judged_answers(errors: int, to_one_question: int) -> list[Record]:
    """Return 120 labelled answers, the first so many misjudged."""
    records = []
    for number in range(120):
        label = MIX[number % len(MIX)]
        is_error = number < errors
        records.append(
            make_record(
                number,
                label=label,
                grade=WRONG_GRADE[label] if is_error else label,
                outcome="failed" if is_error else "passed",
                question=f"{number // to_one_question}?",
            )
        )
    return records


def patterns_of(records: list[Record]) -> frozenset[tuple[Pattern, int]]:
    by_question: dict[str, list[tuple[str, bool]]] = {}
    for record in records:
        answer = (str(record.label), record.grade == record.label)
        by_question.setdefault(record.question, []).append(answer)
    patterns = (tuple(sorted(answers)) for answers in by_question.values())
    return frozenset(Counter(patterns).items())


@pytest.mark.parametrize("to_one_question", [1, 4])
def test_the_benchmark_trusts_whom_a_run_trusts(to_one_question: int) -> None:
    """Over all numbers of errors around the floor, some trusted and some not."""
    decisions = []
    for errors in range(14):
        records = judged_answers(errors, to_one_question)
        labels = LabelSet(slice_=SLICE, records=tuple(records))
        measured = calibration_of(labels, summarise(records, SLICE), (), "openai:judge")
        decisions.append(measured.trusted is True)
        assert is_trusted(patterns_of(records)) is decisions[-1], errors
    assert {*decisions} == {True, False}


def test_errors_that_share_questions_make_trust_rarer() -> None:
    apart = chance_of_trust(Row(labels=120, questions=30), 0.97, 200)
    together = chance_of_trust(
        Row(labels=120, questions=30, correlation=0.3), 0.97, 200
    )
    assert together < apart


def test_every_label_has_a_wrong_grade() -> None:
    assert {*MIX} == {*WRONG_GRADE} == {*GRADES} == {CORRECT, INCORRECT, NOT_ATTEMPTED}
    assert all(label != grade for label, grade in WRONG_GRADE.items())
