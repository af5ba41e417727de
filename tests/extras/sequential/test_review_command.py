"""Claims about ``qagate review``: what is picked, accepted and exported."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from qagate.cases.adjudication_files import load_adjudications, save_adjudications
from qagate.cases.extras.review.reviews import IssuedItem, load_issued
from qagate.cases.extras.review.sheet import SheetItem, texts_in, verdict_question
from qagate.command import main
from qagate.evaluators.core import CORRECT, INCORRECT, Vote
from qagate.evaluators.kinds import kind_of
from qagate.evaluators.ledger import Ledger
from qagate.evaluators.rubric import RUBRICS, load_rubric
from qagate.reports.extras.sequential import human_review
from qagate.reports.run.report import Report
from qagate.reports.run.run_json import load_report
from qagate.reports.run.transcripts import of_ledger
from tests.reports.test_transcripts import LONG, fill
from tests.support.fixtures import Captured
from tests.support.hostile import HOSTILE
from tests.support.made_runs import (
    answered,
    facts_dataset,
    graded_slice,
    run_of,
    written,
)
from tests.support.reviewing import IssuedRun, review, saved

VOTES = (Vote(judge="a", grade=CORRECT), Vote(judge="b", grade=INCORRECT))


def run(folder: Path, letters: str = "ccccc") -> Path:
    return written(run_of(answered(letters)), folder)


def reasons(report: Report, sample: int = 0) -> dict[str, tuple[str, ...]]:
    return {one.record.id: one.reasons for one in human_review.pick(report, sample)}


def ids(path: Path) -> list[str]:
    return [one.id for one in human_review.pick(load_report(path), 99)]


def rated(ratings: Sequence[int]) -> Report:
    part = graded_slice(kind=kind_of("rated"), pass_bar=6)
    records = [
        replace(record, grade=None, rating=rating)
        for record, rating in zip(answered("c" * len(ratings)), ratings, strict=True)
    ]
    return run_of(records, facts_dataset(part, kind=kind_of("rated")))


def test_what_judges_differ_on_is_picked() -> None:
    """Votes that differ, flips, no verdict, ratings next to the bar; nothing else."""
    records = answered("ccc")
    records[1] = replace(records[1], votes=VOTES)
    records[2] = replace(records[2], votes=(VOTES[0], VOTES[0]))
    assert reasons(run_of(records, judge="a b")) == {"i1": ("judges_differ",)}
    assert reasons(run_of(records, judge="lexical+b")) == {"i1": ("audit_differs",)}
    records = [*answered("icc"), *answered("eem")[1:]]
    records[3] = replace(
        records[3], id="i3", key="facts-en-i3", answer="tie", votes=VOTES
    )
    records[4] = replace(records[4], id="i4", key="facts-en-i4")
    made = run_of(records, baseline=run_of(answered("ccc")), judge="a b")
    assert reasons(made) == {"i0": ("flipped",), "i3": ("judges_differ", "no_verdict")}
    near = ("near_bar",)
    assert reasons(rated([4, 5, 6, 7])) == {"i1": near, "i2": near}


def test_the_sample_is_drawn_by_the_seed_and_nothing_stands_twice() -> None:
    """By the seed, each answer once; of a limit first no verdict, then differences, flips."""
    records = answered("c" * 30)
    records.append(replace(records[0], key="facts-en-i0~r2", repeat=2))
    records[1] = replace(records[1], answer="[key masked]")
    records[2] = replace(records[2], adjudicated_by="Ана")
    made = run_of(records)
    assert len(human_review.pick(made, 99)) == 28
    drawn = [[one.id for one in human_review.pick(made, 5, seed)] for seed in (0, 0, 1)]
    assert drawn[0] == drawn[1] != drawn[2]
    assert set(reasons(made, 5).values()) == {("sample",)}
    assert "1 verdict by people (Ана)" in made.notes
    assert not any("by people" in note for note in run_of(records[:1]).notes)
    records = [*answered("iiicc"), *answered("eeeeec")[5:]]
    records[3] = replace(records[3], votes=VOTES)
    made = run_of(records, baseline=run_of(answered("cccccc")), judge="a b")
    picks = human_review.pick(made, 99)
    assert len(picks) == 6
    assert human_review.at_most(picks, None) == human_review.at_most(picks, 6) == picks
    assert [one.reasons for one in human_review.at_most(picks, 1)] == [
        ("judges_differ",)
    ]
    three = human_review.at_most(picks, 3)
    assert [one.reasons[0] for one in three] == ["flipped", "flipped", "judges_differ"]
    assert [one.probability for one in three] == [2 / 3, 2 / 3, 1.0]
    drawn = [
        [one.id for one in human_review.at_most(picks, 3, seed)] for seed in range(9)
    ]
    assert any(one != drawn[0] for one in drawn)


def test_a_person_is_no_judge_of_the_run(tmp_path: Path) -> None:
    """Counted apart and kept in the record; items that test the judge have their label."""
    records = [*answered("cc", adjudicated_by="Ана"), *answered("ccc")[2:]]
    made = run_of([replace(one, judge="lexical") for one in records], judge="lexical")
    judging = made.judging
    assert (judging.by_judge, judging.settled) == ({"lexical": 1, "people": 2}, 1)
    read = load_report(written(made, tmp_path / "run")).records
    assert [one.adjudicated_by for one in read] == ["Ана", "Ана", ""]
    part = graded_slice(kind=kind_of("judged"), thresholds=())
    records = [replace(one, label=CORRECT) for one in answered("cci")]
    assert (
        human_review.pick(
            run_of(records, facts_dataset(part, kind=kind_of("judged"))), 99
        )
        == ()
    )


def shown(report: Report) -> SheetItem:
    (one,) = human_review.pick(report, 1)
    return human_review.sheet_item(one, (verdict_question(one.part.kind.choices),))


def test_the_sheet_hides_what_the_judge_said(tmp_path: Path) -> None:
    """No gold where yes or no is read; who reads why it was picked knows what was said."""
    records = [replace(one, context="Passage") for one in answered("i")]
    made = run_of(records)
    item = shown(made)
    assert [*item.fields] == ["context", "question", "expected", "answer"]
    assert "It is INCORRECT." not in str(item)
    part = graded_slice(kind=kind_of("yes_no"), thresholds=(), yes="Yes", no="No")
    yes_no = run_of(
        [replace(one, grade="YES", label="YES") for one in answered("c")],
        facts_dataset(part, kind=kind_of("yes_no")),
    )
    item = shown(yes_no)
    assert [*item.fields] == ["question", "answer"]
    assert item.questions == (verdict_question("yes_no"),)
    records = [*answered("icc"), *answered("eeec")[3:]]
    records[1] = replace(records[1], votes=VOTES)
    made = run_of(records, baseline=run_of(answered("cccc")), judge="a b")
    assert {one for some in reasons(made).values() for one in some} == {
        "flipped",
        "judges_differ",
    }
    written(made, tmp_path / "run")
    assert main(["review", str(tmp_path / "run"), "--sample", "0"]) == 0
    for name in ("review.html", "review.csv"):
        text = (tmp_path / "run" / name).read_text("utf-8")
        for words in texts_in("en")["reasons"].values():
            assert words not in text
    sheet = json.loads((tmp_path / "run" / "sheet.json").read_text("utf-8"))
    assert not sheet.keys() - {"sheets", "items"}


def test_the_form_shows_the_rubric_that_the_judge_was_given(tmp_path: Path) -> None:
    """A bundled one of this version from its file, another as it was sent; else none is shown."""
    bundled = load_rubric(RUBRICS / "simpleqa.en.yaml")
    picks = human_review.pick(
        run_of(answered("c"), facts_dataset(graded_slice(rubric=bundled))), 1
    )
    assert human_review.rubric_texts(picks, None) == {bundled.version: bundled.system}
    assert bundled.system[:40] in human_review.issue_picks(tmp_path, picks)[
        0
    ].read_text("utf-8")
    for version in ("simpleqa.en@2#other", "../models@1#x", "own.en@1#x"):
        odd = facts_dataset(graded_slice(rubric=replace(bundled, version=version)))
        picks = human_review.pick(run_of(answered("c"), odd), 1)
        assert human_review.rubric_texts(picks, None) == {}
    records = fill(tmp_path / "l", ["q"])
    asked = facts_dataset(graded_slice(rubric=replace(bundled, version="answer@1#c")))
    known = [replace(one, calls=records[0].calls) for one in answered("c")]
    picks = human_review.pick(run_of(known, asked), 1)
    with Ledger(tmp_path / "l", read_only=True) as ledger:
        assert human_review.rubric_texts(picks, of_ledger(ledger)) == {
            "answer@1#c": LONG
        }


def test_what_was_asked_stands_beside_the_verdict(tmp_path: Path) -> None:
    """From the sheet into a comment, for any texts; the file can be read all the same."""
    texts = [text for text in HOSTILE if text.strip() and "sk-" not in text]
    records = answered("c" * len(texts))
    odd = [
        replace(r, question=text, answer=text)
        for r, text in zip(records, texts, strict=True)
    ]
    picks = human_review.pick(run_of(odd), 99)
    human_review.issue_picks(tmp_path, picks)
    items = load_issued(tmp_path / "sheet.json")["items"]
    reviews = [review(one.id, "Ana", CORRECT) for one in picks]
    given, _ = human_review.accept(reviews, "2026-11-21", items)
    path = tmp_path / "adjudications.yaml"
    save_adjudications({one.digest: one for one in given}, path)
    assert load_adjudications(path) == {one.digest: one for one in given}
    assert path.read_text("utf-8").count("\n# question: ") == len(texts)


def test_only_what_reviewers_agree_on_is_accepted() -> None:
    """A conflict, an unclear one and a rating by a criterion are listed, each in one line."""
    digest = "0" * 32
    asked = IssuedItem(choices=(), judged="", upgrades=())
    items = {f"{name}@{digest}": asked for name in "abc"}
    items[f"d@{digest}#style"] = replace(asked, criterion="style")
    reviews = [
        review(f"a@{digest}", "B", CORRECT, comment="fine\nindeed"),
        review(f"a@{digest}", "A", CORRECT, comment="fine indeed"),
        review(f"b@{digest}", "A", CORRECT),
        review(f"b@{digest}", "B", INCORRECT),
        review(f"c@{digest}", "A", "UNCLEAR"),
        review(f"d@{digest}#style", "A", "7"),
    ]
    (one,), said = human_review.accept(reviews, "2026-11-21", items)
    assert (one.item, one.digest, one.label) == ("a", digest, CORRECT)
    assert (one.name, one.reason, one.date) == ("A, B", "fine indeed", "2026-11-21")
    assert said[human_review.CONFLICTING] == ["b: A: CORRECT; B: INCORRECT"]
    assert said[human_review.UNDECIDED] == [
        "c: unclear to A",
        "d: '7' is no verdict on an answer",
    ]


def test_the_form_goes_beside_the_run_and_comes_back(
    tmp_path: Path, capsys: Captured
) -> None:
    """From a run to adjudications.yaml: agreement is told, conflicts are exit 6 and not written."""
    made = IssuedRun(tmp_path, run(tmp_path / "run", "ccci"), "--sample", "4")
    assert "4 answers to review" in capsys.readouterr().out
    assert {"review.html", "review.csv"} <= {path.name for path in made.run.iterdir()}
    one, two, three, _ = made.items
    files = [
        made.back("Ana", {one: CORRECT, two: CORRECT, three: INCORRECT}),
        made.back("Ben", {one: CORRECT, two: INCORRECT}),
    ]
    assert made.accept(*files) == 6
    out = capsys.readouterr().out
    assert "2 answers seen by more than one: agreement 0.500 [" in out
    assert "  Ana and Ben: kappa 0.000 [-" in out
    assert "2 new verdicts, 2 in" in out
    assert (
        "conflict, for a third person: facts-en-i1: Ana: CORRECT; Ben: INCORRECT" in out
    )
    names = {found.item: found.name for found in made.kept}
    assert names == {"facts-en-i0": "Ana, Ben", "facts-en-i2": "Ana"}
    assert made.accept(*files, made.back("Cyd", {two: INCORRECT})) == 0
    assert made.accept(made.back("Dan", {one: INCORRECT})) == 6
    assert (
        "refused: facts-en-i0: Dan says INCORRECT, but Ana, Ben"
        in capsys.readouterr().out
    )
    assert len(made.kept) == 3


def test_names_from_files_cannot_write_on_the_terminal(
    tmp_path: Path, capsys: Captured
) -> None:
    """Escape sequences and CI commands are written out."""
    made = IssuedRun(tmp_path, run(tmp_path / "run"))
    (sheet,) = made.issued["sheets"]
    file = saved(
        tmp_path / "a.json", "\x1b[31mAna", {made.items[0]: "UNCLEAR"}, sheet=sheet
    )
    assert made.accept(file) == 4
    err = capsys.readouterr().err
    assert "'[31mAna' has hidden or odd characters; type it again" in err
    assert "\x1b" not in err
    saved(file, "Ana", {"a\n::error::x\x1b[2K": "YES"}, sheet=sheet)
    assert made.accept(file) == 4
    err = capsys.readouterr().err
    assert "verdicts on items that no sheet asked: 'a ::error::x [2K'" in err
    assert err.count("\n") == 1


def test_another_baseline_shows_other_flips(tmp_path: Path, capsys: Captured) -> None:
    """Named now, it takes the place of the run's own."""
    new, old = run(tmp_path / "new", "cci"), run(tmp_path / "old", "ccc")
    words = [
        "review",
        str(new),
        f"--baseline={old}",
        "--sample",
        "0",
        "--to",
        str(tmp_path / "to"),
    ]
    assert main(words) == 0
    assert "1  the verdict differs from the baseline's" in capsys.readouterr().out
    assert (tmp_path / "to" / "review.csv").is_file()
