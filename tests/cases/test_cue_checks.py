"""The linter finds yes/no questions that give their answers away, and twins that are none."""

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from cases.check.cue_checks import (
    closed_book,
    cue_words,
    twins,
    types_of_question,
    unclustered_twins,
)
from cases.check.findings import Note, Subject
from evaluators.core import NO, YES, Case
from tests.support.linting import found, item, said, subject

NOUNS = [f"w{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(300)]


def asked(count: int, write: Callable[[int, str], str], **more: object) -> Subject:
    """Return a slice of questions, every second one answered yes."""
    labels = [YES if n % 2 else NO for n in range(count)]
    rows = [
        item(n + 1, write(n, label), label=label, context=f"p{n}", **more)
        for n, label in enumerate(labels)
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

    message = said(cue_words, asked(200, write))
    assert "means yes: that rule alone answers 60% right, above 58%" in message
    assert message.startswith("the word 'more' in a question")
    assert not found(cue_words, asked(200, neutral))
    assert not found(cue_words, asked(149, lambda _, label: f"Is it {label}?"))


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

    own = asked(200, write)
    assert not found(cue_words, own)
    message = said(closed_book, own)
    assert "answer 100% right, above 58%: 200 of 200 items, most surely rows" in message


@pytest.mark.parametrize("seed", range(5))
def test_words_by_chance_answer_nothing(seed: int) -> None:
    """Answers drawn by lot follow from no words."""
    lots = random.Random(seed)  # no secret

    def write(_: int, __: str) -> str:
        return f"Is {' '.join(lots.sample(NOUNS[:40], 6))}?"

    assert not found(closed_book, asked(200, write))


def test_twins_teach_nothing_about_each_other() -> None:
    """One question about two passages has both answers; learnt from its twin it would be wrong."""
    rows = [
        item(n, f"Is {NOUNS[n // 2]}?", label=YES if n % 2 else NO, metadata={"twin": n // 2})
        for n in range(200)
    ]
    own = subject(*rows, kind="yes_no")
    clustered = replace(own, slice_=replace(own.slice_, cluster="twin"))
    assert not found(closed_book, clustered)
    assert found(unclustered_twins, own) == [("warning", 0)]
    assert "'cluster: twin'" in said(unclustered_twins, own)
    assert not found(unclustered_twins, clustered)


def test_rare_types_and_types_with_one_answer_are_told() -> None:
    """Each of four types is a tenth or more, and none of them means yes."""
    names = ["negation", "comparison", "time", "count"]

    def typed(write: Callable[[int], str]) -> list[Note]:
        own = asked(200, neutral)
        rows = [replace(case, metadata={"type": write(n)}) for n, case in enumerate(own.cases)]
        return list(types_of_question(replace(own, cases=tuple(rows))))

    assert not typed(lambda n: names[n // 2 % 4])
    assert not typed(lambda _: "")
    rare = typed(lambda n: names[n // 2 % 3])
    assert [note.message.split(";")[0] for note in rare] == [
        "0 of 200 questions are of type 'count'"
    ]
    cue, *_ = typed(lambda n: "count" if n % 2 and n < 120 else names[n // 2 % 4])
    assert cue.message.startswith("29% of the 35 questions of type 'negation' are answered yes")


PASSAGE = "The mill has two wheels and the older one was built of oak by a smith in the year {}."


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
    assert "are the same" in said(twins, pair(YES, NO, passages=("1801", "1801")))
    far = " and ".join(NOUNS[:30])
    assert "more than a fact" in said(twins, pair(YES, NO, passages=("1801", far)))
