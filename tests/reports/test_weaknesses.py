"""What a judge is weak at: by the column `error` of the labelled answers, worst first."""

from dataclasses import replace
from pathlib import Path

import pytest

from qagate.evaluators.core import CORRECT, INCORRECT
from qagate.reports.extras.calibrate.command import main as calibrate
from qagate.reports.judge.weaknesses import MAX_CHARACTERS, MAX_KINDS, weaknesses
from qagate.reports.render import html, markdown, words
from qagate.reports.run.evidence import Calibration, Weakness
from qagate.reports.run.record import Record
from qagate.reports.run.report import Report
from tests.reports.test_votes import judged_dataset, labelled
from tests.support.fixtures import Captured
from tests.support.labelled_rows import graded, spec, write
from tests.support.loopback import loopback
from tests.support.made_records import make_record, make_slice
from tests.support.made_runs import answered, facts_dataset, run_of
from tests.support.projects import QUIETLY

GRADES = make_slice("judged")
RATINGS = make_slice("judged", pass_bar=7)


def judged(kind: object, right: int, wrong: int, **fields: object) -> list[Record]:
    """Return labelled answers of one kind of error, so many graded as labelled."""
    metadata = {} if kind is None else {"error": kind}
    records = []
    for number in range(right + wrong):
        is_right = number < right
        given: dict[str, object] = {
            "label": CORRECT,
            "grade": CORRECT if is_right else INCORRECT,
            "outcome": "passed" if is_right else "failed",
            "metadata": metadata,
        }
        records.append(make_record(number, **{**given, **fields}))
    return records


def told(*kinds: Weakness) -> str:
    made = Calibration(dataset="d", language="en", measures={}, weaknesses=kinds)
    return words.weaknesses(made)


def test_a_kind_is_counted_with_its_errors() -> None:
    (kind,) = weaknesses(GRADES, judged("off_by_one", 3, 2))
    assert kind == Weakness(kind="off_by_one", wrong=2, answers=5)


def test_the_kind_with_the_largest_share_wrong_is_first() -> None:
    found = weaknesses(GRADES, [*judged("alias", 8, 2), *judged("bound", 2, 8)])
    assert [kind.kind for kind in found] == ["bound", "alias"]


def test_one_wrong_of_one_does_not_stand_before_nine_of_ten() -> None:
    """A single answer says little of its kind."""
    found = weaknesses(GRADES, [*judged("alias", 0, 1), *judged("bound", 1, 9)])
    assert [kind.kind for kind in found] == ["bound", "alias"]


def test_an_answer_without_a_grade_is_no_error_of_the_judge() -> None:
    lost = judged("alias", 0, 1, outcome="error", grade=None)
    assert weaknesses(GRADES, lost) == ()


def test_an_answer_without_a_label_is_not_counted() -> None:
    """People tied on it: nobody knows whether the judge is wrong."""
    assert weaknesses(GRADES, judged("alias", 1, 0, label=None)) == ()


@pytest.mark.parametrize("kind", [None, "", "  "])
def test_an_answer_that_names_no_kind_is_not_counted(kind: object) -> None:
    assert weaknesses(GRADES, judged(kind, 1, 1)) == ()


@pytest.mark.parametrize(("rating", "wrong"), [(6, 1), (7, 0), (9, 0)])
def test_a_rating_is_wrong_on_the_other_side_of_the_bar(
    rating: int, wrong: int
) -> None:
    """A label of 8 and a rating of 7 differ, and move no verdict."""
    rated = judged("duty", 0, 1, label="8", grade=None, rating=rating)
    (kind,) = weaknesses(RATINGS, rated)
    assert kind.wrong == wrong


def test_a_column_of_free_text_keeps_the_report_small() -> None:
    records = [
        record
        for number in range(MAX_KINDS + 1)
        for record in judged(f"{number} " + "word " * 99, 1, 0)
    ]
    found = weaknesses(GRADES, records)
    assert len(found) == MAX_KINDS
    assert max(len(kind.kind) for kind in found) <= MAX_CHARACTERS


def test_kinds_that_are_always_right_are_not_told() -> None:
    right = Weakness(kind="alias", wrong=0, answers=9)
    assert told(Weakness(kind="bound", wrong=1, answers=2), right) == "bound 1 of 2"
    assert told(right) == ""


def test_more_kinds_than_one_reads_are_counted() -> None:
    kinds = [Weakness(kind=f"k{n}", wrong=1, answers=2) for n in range(12)]
    assert told(*kinds).endswith("k9 1 of 2 and 2 more")


def run_with_kinds() -> Report:
    """Return a run whose judge errs on one labelled answer of three."""
    labels = [
        replace(record, metadata={"error": "off_by_one"}) for record in labelled("cci")
    ]
    return run_of([*answered("ci"), *labels], facts_dataset(), judged_dataset())


def test_the_page_says_what_the_judge_is_weak_at() -> None:
    text = html.render(run_with_kinds())
    assert "Wrong by kind of error, worst first" in text
    assert "off_by_one 1 of 3" in text


def test_the_summary_says_what_the_judge_is_weak_at() -> None:
    text = markdown.render(run_with_kinds())
    said = r"judges:en, wrong by kind of error, worst first: off\_by\_one 1 of 3."
    assert said in text


def test_labels_without_kinds_leave_no_trace_in_the_summary() -> None:
    made = run_of(
        [*answered("ci"), *labelled("cci")], facts_dataset(), judged_dataset()
    )
    assert "kind of error" not in markdown.render(made)


def test_calibrate_says_what_the_judge_is_weak_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Captured
) -> None:
    monkeypatch.chdir(tmp_path)
    rows = [graded(n, "CORRECT", "CORRECT", error="alias") for n in range(4)]
    rows += [graded(4, "INCORRECT", "CORRECT", error="off_by_one")]
    path = write("labelled.jsonl", rows)
    with loopback() as running:
        calibrate(["--judge", spec(running.url), path, *QUIETLY])
    card = capsys.readouterr().out.partition("How the judge was measured:")[2]
    assert "wrong by kind of error, worst first: off_by_one 1 of 1." in card
