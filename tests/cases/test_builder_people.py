"""What verdicts make of an item, who is asked, and what the commands of these steps refuse."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cases.builder.people import (
    ReviewStep,
    accepted,
    agreed,
    assigned,
    reviewers_of,
    sheet_of,
)
from cases.builder.validation import CONTESTED
from cases.review.reviews import Review
from cases.review.sheet import Duty
from tests.support.building import make_item, recipe
from tests.support.building_site import (
    TWO,
    Site,
    agreeing,
    answers_of,
    back_from_both,
    reviewed_site,
    sent_back,
)
from tests.support.captured import Captured
from tests.support.reviewing import sheet_rows
from tests.support.tables import tabled

ASKED = {"asked": ["Ганна", "Янка"]}
QUESTION = "Ці праўда, што возера абмялела?"


def said(*verdicts: str, edits: tuple[str, ...] = ()) -> list[Review]:
    names = ("Ганна", "Янка", "Алесь")
    edits = (*edits, "", "", "")
    return [
        Review(item="be-0001", reviewer=name, verdict=verdict, edited=edited, comment="хм")
        for name, verdict, edited in zip(names, verdicts, edits, strict=False)
    ]


def one_item(**changes: Any) -> Any:
    return make_item(1, question=QUESTION, answer="YES", review=ASKED, **changes)


@tabled("verdicts", "unreviewed", "state", "reason", "answer")
def test_verdicts_decide(
    verdicts: str, *, unreviewed: bool, state: str, reason: str, answer: str
) -> None:
    """Confirmed and corrected items stay; a dispute waits for a third, and ends with him.

    With --unreviewed what is there counts, but one person alone turns no answer round.
    """
    (item,) = accepted([one_item()], said(*verdicts.split()), unreviewed=unreviewed)
    assert (item.state, item.reason, item.answer) == (state, reason, answer)
    assert item.review.get("answer_before", answer) == ("YES" if answer == "NO" else answer)


def test_an_edit_takes_the_place_of_the_question() -> None:
    """One who edits is enough; two different wordings are a dispute, shown to the third."""
    (item,) = accepted([one_item()], said("YES", "YES", edits=("Ці так?", "")), unreviewed=False)
    assert (item.question, item.review["question_before"]) == ("Ці так?", QUESTION)
    edits = ("Ці гэта так?", "Ці гэта праўда?")
    (item,) = accepted([one_item()], said("YES", "YES", edits=edits), unreviewed=False)
    assert (item.state, item.reason) == ("pending", "conflict")
    assert sheet_of("be", [item], recipe()).items[0].reasons == edits


def test_a_share_is_drawn_from_every_source_and_answer() -> None:
    """Half of the items are asked about, a quarter of those of two people."""
    items = [make_item(number, answer=("YES", "NO")[number % 2]) for number in range(40)]
    duty = Duty(reviewers=("a", "b", "c"), overlap=0.25, seed=3)
    asked = assigned(items, 0.5, duty)
    seen = [item for item in asked if reviewers_of(item)]
    assert len(seen) == 20
    assert sum(len(reviewers_of(item)) == 2 for item in seen) == 5
    assert sum(item.answer == "YES" for item in seen) == 10
    assert assigned(items, 0.5, duty) == asked
    assert not any(reviewers_of(item) for item in assigned(items, 1.0, None))


def test_what_models_disagree_on_goes_to_people() -> None:
    """All of it, however small the share, and the sheet says so; what nobody sees is dropped."""
    items = [make_item(n, answer="NO", validator={CONTESTED: n < 3}) for n in range(20)]
    values = {"share": 0.1, "reviewers": ["Ганна"], "overlap": None, "seed": 0}
    duty = ReviewStep._duty(values)
    assert duty == Duty(reviewers=("Ганна",), overlap=0), "one alone sees no item twice"
    asked = assigned(items, 0.1, duty)
    assert all(map(reviewers_of, asked[:3]))
    assert [one.reasons for one in sheet_of("be", asked[2:4], recipe()).items] == [(CONTESTED,), ()]
    left = accepted(asked, [], unreviewed=True)
    assert [item.reason for item in left] == [CONTESTED] * 3 + [""] * 17


def test_who_decides_disputes_is_left_out_of_agreement() -> None:
    """A third sees only what two differ on, and would make agreement look worse."""
    (item,) = accepted([one_item()], said("YES", "NO", "NO"), unreviewed=False)
    (pair,) = agreed([item], recipe())[0].pairs
    assert (pair.first, pair.second) == ("Ганна", "Янка")


@tabled("language", "question", "kind")
def test_questions_have_types(language: str, question: str, kind: str) -> None:
    """The first pattern of the language's recipe that is found."""
    assert recipe(language).type_of(question) == kind


def test_agreement_is_counted_by_type_as_the_reviewers_saw_it() -> None:
    """An edited question keeps the type that it had on the sheet."""
    (item,) = accepted([one_item()], said("YES", "YES", edits=("Ці 5?", "")), unreviewed=False)
    other = replace(item, id="be-0002", review={**item.review, "question_before": "Ці не так?"})
    assert [one.group for one in agreed([item, other], recipe())] == ["", "denial", "other"]


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with reviewed_site(tmp_path_factory.mktemp("people"), count=4) as made:
        yield made


def test_what_people_still_owe_is_said(reviewed: Site, capsys: Captured) -> None:
    """While a sheet is out, the way on is to bring it or to do without, not to try again."""
    sheet = reviewed.path / "work" / "review" / "be-1.csv"
    empty = sent_back(sheet, reviewed.path / "empty.csv", lambda *_: {"verdict": ""})
    assert reviewed.build("accept", str(empty)) == 1
    assert "files that are still out, or with --unreviewed" in capsys.readouterr().err
    (reviewed.path / "work" / "accept.jsonl").unlink()  # the others begin from the sheets


def refused(made: Site, capsys: Captured, *words: str) -> str:
    """Return the line of a command that is refused."""
    capsys.readouterr()
    assert made.build(*words) == 4
    (line,) = capsys.readouterr().err.strip().splitlines()[-1:]
    return line


@tabled("words", "message")
def test_wrong_words_are_one_line(
    reviewed: Site, capsys: Captured, words: list[str], message: str
) -> None:
    """Whatever is wrong is said before anything is written."""
    assert message in refused(reviewed, capsys, *words)
    assert not (reviewed.path / "work" / "freeze.jsonl").exists()


def test_review_needs_names(reviewed: Site, tmp_path: Path, capsys: Captured) -> None:
    """Reviewers have to be named, unless nobody is to review."""
    made = Site(tmp_path, reviewed.generator, reviewed.validator)
    made.recipe()
    assert "name who reviews" in refused(made, capsys, "review")


def test_a_verdict_of_an_unknown_item_is_refused(reviewed: Site, capsys: Captured) -> None:
    """Files of another sheet are noticed, with the row."""
    sheet = reviewed.path / "work" / "review" / "be-1.csv"
    back = sent_back(
        sheet, reviewed.path / "odd.csv", lambda _, __: {"item": "be-x", "verdict": "YES"}
    )
    assert "'be-x' is no item of the sheet" in refused(reviewed, capsys, "accept", str(back))


def test_sheets_show_no_answer(reviewed: Site) -> None:
    """Reviewers judge blind: neither form nor CSV tells what was generated."""
    sheets = reviewed.path / "work" / "review"
    for row in sheet_rows(sheets / "be-1.csv"):
        assert "YES | NO | UNCLEAR | BAD_LANGUAGE" in row["choices"]
        assert not {"answer", "shown: answer", "expected"} & set(row)
    page = (sheets / "be-1.html").read_text("utf-8")
    assert "Ганна" in page
    assert '"answer"' not in page.partition('<script type="application/json"')[2].partition("]")[0]


def test_sheets_are_written_again_and_settings_remembered(reviewed: Site, capsys: Captured) -> None:
    """A lost sheet comes back with the same items, and `accept` done again asks for nothing."""
    sheet = reviewed.path / "work" / "review" / "be-1.csv"
    before = sheet.read_bytes()
    sheet.unlink()
    assert reviewed.build("review") == 0
    assert sheet.read_bytes() == before
    files = back_from_both(reviewed, agreeing(answers_of(reviewed.path / "work")))
    assert reviewed.build("accept", *files) == 0
    assert reviewed.build("accept") == 0
    assert "(done before)" in capsys.readouterr().err
    assert reviewed.build("review", *TWO) == 0


def test_a_language_can_be_added_to_a_dataset(reviewed: Site, capsys: Captured) -> None:
    """dataset.yaml stays as it is; the way to run the new file is said."""
    to = reviewed.path / "ours"
    to.mkdir()
    settings = "kind: yes_no\nlanguages:\n  en: {file: en.jsonl, yes: Yes, no: No}\n"
    (to / "dataset.yaml").write_text(settings, encoding="utf-8")
    assert reviewed.build("accept", "--unreviewed") == 0
    assert reviewed.build("freeze", "--to", str(to)) == 0
    assert f"--items ours:be={to / 'be.jsonl'}" in capsys.readouterr().err
    assert (to / "dataset.yaml").read_text("utf-8") == settings


def test_one_answer_alone_makes_no_set(tmp_path: Path, capsys: Captured) -> None:
    """Where people turn every answer to yes, nothing can be balanced; nothing is written."""
    with reviewed_site(tmp_path, count=2) as made:
        assert made.build("accept", *back_from_both(made, lambda *_: {"verdict": "YES"})) == 1
        disputes = sent_back(
            tmp_path / "work/review/be-disputes.csv",
            tmp_path / "third.csv",
            lambda _, __: {"verdict": "YES", "reviewer": "Алесь"},
        )
        assert made.build("accept", str(disputes)) == 0
        assert made.build("freeze", "--to", str(tmp_path / "mine")) == 1
    assert "no item is left" in capsys.readouterr().err
    assert not (tmp_path / "mine").exists()
