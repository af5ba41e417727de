"""``check`` finds slices out of balance, that give answers away, or that cannot show a loss."""

import random
import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from cases.check.checks import check_datasets
from cases.check.item_checks import Subject
from cases.check.set_checks import (
    balance,
    closed_book,
    cue_words,
    narrow_margins,
    too_easy,
    twins,
    unclustered,
    ungated,
)
from cases.dataset import Threshold
from evaluators.core import NO, YES, Case, UsageError
from tests.support.linting import dataset_of, found, item, said, slice_of, subject
from tests.support.tables import tabled

TODAY = datetime.now(UTC).date()
NOUNS = [f"w{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(300)]
PASSAGE = "The mill has two wheels and the older one was built of oak by a smith in the year {}."


@tabled("kind", "labels", "told")
def test_classes_out_of_balance_are_told(kind: str, labels: list[str | None], told: str) -> None:
    """Yes and no, and the grades of judged items; ten items are the fewest that say anything."""
    rows = [item(row, f"{row}?", label=label) for row, label in enumerate(labels, 1)]
    notes = list(balance(subject(*rows, kind=kind)))
    assert [note.message.split(";")[0] for note in notes] == [told] * bool(told)


def yes_or_no(count: int, write: Callable[[int, str], str]) -> Subject:
    """Return a slice of questions, every second one answered yes."""
    labels = [YES if n % 2 else NO for n in range(count)]
    rows = [
        item(n + 1, write(n, label), label=label, context=f"p{n}") for n, label in enumerate(labels)
    ]
    return subject(*rows, kind="yes_no")


def neutral(n: int, _: str) -> str:
    """Return a question whose words say nothing of its answer."""
    return f"Is {NOUNS[n // 2]} here?"


def test_a_word_that_means_yes_is_told_with_its_share() -> None:
    """In 40 of 100 yes and in 20 of 100 no it answers 60 %; fewer than 150 items are too few."""

    def write(n: int, label: str) -> str:
        cued = n // 2 < (40 if label == YES else 20)
        return f"Is {NOUNS[n // 2]} {'more' if cued else NOUNS[100 + n // 2]}?"

    message = said(cue_words, yes_or_no(200, write))
    assert "means yes: that rule alone answers 60% right, above 58%" in message
    assert message.startswith("the word 'more' in a question")
    assert not found(cue_words, yes_or_no(200, neutral))
    assert not found(cue_words, yes_or_no(149, lambda _, label: f"Is it {label}?"))


def test_the_share_of_a_rule_is_balanced() -> None:
    """Nine yes for every no is another check's finding, not that of every rare word."""
    rows = [
        item(n, f"Is {NOUNS[n]} here?", label=NO if n % 10 == 0 else YES) for n in range(1, 201)
    ]
    assert not found(cue_words, subject(*rows, kind="yes_no"))
    assert not found(cue_words, subject(*(replace(row, label=YES) for row in rows), kind="yes_no"))


def test_words_that_answer_together_are_told() -> None:
    """No one word is a rule, and yet the topic of a question says its answer."""
    topics = {YES: NOUNS[:15], NO: NOUNS[15:30]}

    def write(n: int, label: str) -> str:
        return f"Is {topics[label][n // 2 % 15]} {NOUNS[30 + n]} here?"

    own = yes_or_no(200, write)
    assert not found(cue_words, own)
    message = said(closed_book, own)
    assert "answer 100% right, above 58%: 200 of 200 items, most surely rows" in message


@pytest.mark.parametrize("seed", range(5))
def test_words_by_chance_answer_nothing(seed: int) -> None:
    """Answers drawn by lot follow from no words."""
    lots = random.Random(seed)  # no secret

    def write(_: int, __: str) -> str:
        return f"Is {' '.join(lots.sample(NOUNS[:40], 6))}?"

    assert not found(closed_book, yes_or_no(200, write))


def test_twins_teach_nothing_about_each_other() -> None:
    """One question about two passages has both answers; learnt from its twin it would be wrong."""
    rows = [
        item(n, f"Is {NOUNS[n // 2]}?", label=YES if n % 2 else NO, metadata={"twin": n // 2})
        for n in range(200)
    ]
    own = subject(*rows, kind="yes_no")
    clustered = replace(own, slice_=replace(own.slice_, cluster="twin"))
    assert not found(closed_book, clustered)
    other = [replace(row, question=f"{row.question} {n}") for n, row in enumerate(rows)]
    alone = subject(*other, kind="yes_no")
    assert found(unclustered, alone) == [("warning", 0)]
    assert "'cluster: twin'" in said(unclustered, alone)
    assert not found(unclustered, own), "copies of a question are one cluster as they are"
    assert not found(unclustered, clustered)


def pair(*labels: str, passages: tuple[str, ...] = ("1801", "1810")) -> Subject:
    rows: list[Case] = [
        item(row, "Was it?", label=label, context=PASSAGE.format(year), metadata={"twin": "t1"})
        for row, (label, year) in enumerate(zip(labels, passages, strict=True), 1)
    ]
    return subject(*rows, item(9, "Is it?", label=YES, metadata={"twin": ""}), kind="yes_no")


def test_twins_are_two_with_opposite_answers_and_one_fact_changed() -> None:
    """A lone twin, an equal answer and an equal or quite different passage are told."""
    assert not found(twins, pair(YES, NO))
    assert found(twins, pair(YES, YES)) == [("error", 2)]
    assert found(twins, pair(YES, passages=("1801",))) == [("error", 1)]
    assert found(twins, pair(YES, NO, YES, passages=("1", "2", "3"))) == [("error", 1)]
    same = pair(YES, NO, passages=("1801", "1801"))
    assert "are the same" in said(twins, same)
    asked = tuple(replace(one, question=f"{one.question} {one.row}") for one in same.cases)
    assert not found(twins, replace(same, cases=asked)), "two questions about one passage"
    far = " and ".join(NOUNS[:30])
    assert "more than a fact" in said(twins, pair(YES, NO, passages=("1801", far)))


def answered(right: int, wrong: int, kind: str, **more: object) -> Subject:
    """Return a slice with this many right and wrong recorded answers."""
    words = {"graded": ("Paris", "Rome"), "yes_no": ("Yes", "No")}.get(kind, ("a b c", ""))
    rows = [
        item(row, f"{row}?", words[0], label="YES", recorded=words[row > right], **more)
        for row in range(1, right + wrong + 1)
    ]
    return Subject(slice_=slice_of(kind=kind, yes="Yes", no="No"), cases=tuple(rows))


@pytest.mark.parametrize("kind", ["graded", "yes_no", "rated"])
def test_a_slice_that_its_own_answers_pass_cannot_see_a_loss(kind: str) -> None:
    """Above 95 % of twenty items or more; 95 % is where it begins."""
    assert found(too_easy, answered(20, 0, kind)) == [("warning", 0)]
    assert not found(too_easy, answered(19, 1, kind))
    assert not found(too_easy, answered(19, 0, kind))
    assert "cannot see a loss: recorded answers are right in 98% of 40" in said(
        too_easy, answered(39, 1, kind)
    )
    assert not found(too_easy, answered(30, 0, "judged"))


def test_the_difficulty_that_was_published_counts_before_recorded_answers() -> None:
    """It is the share of models that were right; items without one are left out.

    What is no share is an error: a percentage would count as very easy.
    """
    for value in ("1.5", "-1", "nan", "easy"):
        odd = subject(item(4, "?", metadata={"difficulty": value}))
        assert found(too_easy, odd) == [("error", 4)]
    easy = answered(0, 30, "graded", metadata={"difficulty": "0.97"})
    assert "by the mean 'difficulty', in 97% of 30" in said(too_easy, easy)
    assert not found(too_easy, answered(30, 0, "graded", metadata={"difficulty": "0.5"}))


@tabled("given", "told")
def test_a_difficulty_that_old_models_gave_is_a_warning(
    tmp_path: Path, given: str, told: str
) -> None:
    """It must say when they answered; without the column there is nothing to ask."""
    given = re.sub(
        r"\{(\d+) days ago\}", lambda days: f"{TODAY - timedelta(days=int(days[1]))}", given
    )
    rows = "question,answer,difficulty\nWho?,Vazov,0.5\nWhere?,Sofia,1\n"
    (tmp_path / "dated").mkdir()
    path = tmp_path / "dated" / "dataset.yaml"
    text = "kind: graded\nlanguages: {en: {file: en.csv, gates: {correct: {min: 0.5}}}}\n"
    path.write_text(f"{text}check:\n  waive: {{}}\n  {given}\n", encoding="utf-8")
    for data, message in ((rows, told), (rows.replace("difficulty", "source"), "")):
        path.with_name("en.csv").write_text(data, encoding="utf-8")
        lines = check_datasets([path]).lines
        assert bool(lines) is bool(message)
        assert re.search(message, "".join(lines))
    path.write_text(f"{text}check: {{difficulty_date: last year}}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="key 'difficulty_date': want a date"):
        check_datasets([path])


def with_rules(language: str, items: int, *rules: Threshold, fact: bool = False) -> Subject:
    cases = tuple(
        item(n, f"{n}?", language=language, metadata={"fact_id": f"f{n}"} if fact else {})
        for n in range(items)
    )
    return Subject(slice_=slice_of(language, thresholds=rules), cases=cases)


def test_a_language_without_gates_is_a_warning() -> None:
    """Every declared language has a gate of its own."""
    gated = with_rules("en", 1, Threshold(measure="correct", min=0.5))
    (note,) = ungated(*dataset_of(gated, with_rules("bg", 1)))
    assert "'bg' has no gates" in note.message


@pytest.mark.parametrize(
    ("items", "rule", "told"),
    [
        (34, Threshold(measure="drop", max=0.1, evidence="confident"), "takes 35"),
        (35, Threshold(measure="drop", max=0.1, evidence="confident"), ""),
        (34, Threshold(measure="drop", max=0.1), ""),
        (34, Threshold(measure="drop", max=0.0, evidence="confident"), "no number of items"),
        (34, Threshold(measure="drop", max=1.0, evidence="confident"), ""),
        (34, Threshold(measure="correct", max=0.1, evidence="confident"), ""),
    ],
)
def test_a_margin_too_narrow_is_told(items: int, rule: Threshold, told: str) -> None:
    """Of a language's own drop gate, and of one that pools the languages."""
    own = list(narrow_margins(*dataset_of(with_rules("en", items, rule))))
    halves = with_rules("en", items // 2), with_rules("bg", items - items // 2)
    pooled = list(narrow_margins(*dataset_of(*halves, pooled=(rule,))))
    for notes in (own, pooled):
        assert len(notes) == bool(told)
        assert all(told in note.message for note in notes)


@pytest.mark.parametrize("fact", [False, True])
def test_a_fact_in_several_languages_counts_once_for_a_pooled_margin(*, fact: bool) -> None:
    """Forty items in two languages are enough for a margin of 0.1; twenty facts in both are not."""
    rule = Threshold(measure="drop", max=0.1, evidence="confident")
    halves = [with_rules(code, 20, fact=fact) for code in ("en", "bg")]
    notes = [note.message for note in narrow_margins(*dataset_of(*halves, pooled=(rule,)))]
    assert len(notes) == fact
    assert all("20 independent items can never show a drop below 0.1" in note for note in notes)
