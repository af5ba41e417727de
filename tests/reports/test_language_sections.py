"""The section of each language: its bar, old and new grades, and where it was lost."""

import re
from collections.abc import Sequence
from dataclasses import replace

import pytest

from qagate.cases.dataset import Dataset
from qagate.evaluators.kinds import kind_of
from qagate.evaluators.statistics.intervals import Estimate
from qagate.reports.render import html
from qagate.reports.render import language_sections as module
from qagate.reports.render.language_sections import (
    Breakdown,
    LanguageSection,
    Segment,
    language_sections,
)
from qagate.reports.run.record import Record
from qagate.reports.run.report import Report
from tests.support.hostile import HOSTILE
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of
from tests.support.pages import Page
from tests.support.samples import full, gate, part, record, report

BY_TOPIC = facts_dataset(graded_slice(by=("topic",)))
RATED = facts_dataset(graded_slice(kind=kind_of("rated"), pass_bar=7, by=("topic",)))
NEW = "ccciicnem"
OLD = "cccccieic"
"""Three stay right, two are lost, one is won, and three lack a grade in one of the runs."""


def run(letters: str, old: str = "", dataset: Dataset = BY_TOPIC) -> Report:
    """Return a run, beside a baseline where one is given."""
    baseline = run_of(answered(old), dataset) if old else None
    return run_of(answered(letters), dataset, baseline=baseline)


def rated(*ratings: int) -> list[Record]:
    """Return a record for each rating; 7 and above pass."""
    records = []
    for number, rating in enumerate(ratings):
        (made,) = answered("c")
        records.append(
            replace(
                made,
                key=f"facts-en-i{number}",
                id=f"i{number}",
                question=f"Question {number}?",
                grade=None,
                score=None,
                rating=rating,
                outcome="passed" if rating >= 7 else "failed",
            )
        )
    return records


def section_of(made: Report) -> LanguageSection:
    (section,) = language_sections(made)
    return section


def breakdown_of(section: LanguageSection) -> Breakdown:
    assert section.longest is not None
    return section.longest


def counts(segments: Sequence[Segment]) -> dict[str, int]:
    return {word: count for _, word, count in segments if count}


# The bar


def test_the_bar_says_what_became_of_every_item() -> None:
    """What lacks a grade in one of the runs is a part of its own, neither lost nor won."""
    section = section_of(run(NEW, OLD))
    expected = {"right in both": 3, "lost": 2, "won": 1, "ungraded": 3}
    assert counts(section.segments) == expected
    assert sum(expected.values()) == section.part.counts.planned


def test_an_item_that_the_old_run_lacks_is_neither_lost_nor_won() -> None:
    section = section_of(run("ciicc", "cic"))
    assert counts(section.segments) == {
        "right in both": 1,
        "lost": 1,
        "wrong in both": 1,
        "not in the old run": 2,
    }


def test_the_bar_of_a_single_run_says_how_its_items_came_out() -> None:
    section = section_of(run("cciinem"))
    assert counts(section.segments) == {
        "correct": 2,
        "not attempted": 1,
        "incorrect": 2,
        "ungraded": 2,
    }


def test_items_of_the_old_run_alone_are_named() -> None:
    section = section_of(run("cc", "ccic"))
    assert section.notes == ["2 questions of the old run not asked again."]


# Words


def test_a_sentence_has_old_and_new_share_of_the_pairs() -> None:
    section = section_of(run(NEW, OLD))
    assert section.figures == "83% right before, 67% now, of 6 questions."
    assert section.range.startswith("Change −16.7 points, 95% interval of the sample −")


def test_a_single_run_has_its_share_with_its_interval() -> None:
    section = section_of(run("ccci"))
    assert section.figures == "75% right, of 4 questions."
    assert section.range.startswith("95% interval of the sample ")


def test_a_language_without_pairs_is_told_as_a_single_run() -> None:
    """A baseline whose answers all lack a grade says nothing of it."""
    section = section_of(run("cci", "eee"))
    assert section.figures == "67% right, of 3 questions."
    assert section.grades is None


def test_a_language_without_grades_has_no_share() -> None:
    section = section_of(run("ee"))
    assert section.figures == "0 right, of 0 questions."
    assert section.range == ""


def test_a_change_without_an_interval_has_none_in_words() -> None:
    made = run(NEW, OLD)
    assert made.comparison is not None
    (compared,) = made.comparison.slices
    bare = replace(compared, difference=Estimate.of(-1 / 6, None, 6))
    made = replace(made, comparison=replace(made.comparison, slices=(bare,)))
    assert section_of(made).range == "Change −16.7 points."


@pytest.mark.parametrize(
    ("state", "verdict"),
    [
        ("FAIL", "Polish fails"),
        ("INCONCLUSIVE", "Polish is undecided"),
        ("PASS", "Polish holds"),
    ],
)
def test_a_heading_has_the_worst_verdict(state: str, verdict: str) -> None:
    polish = (record(language="pl"),)
    made = report(polish, slices=(part("graded", polish, {"correct": 0.6}),))
    gates = (gate("PASS", language="pl"), gate(state, language="pl"))  # type: ignore[arg-type]
    made = replace(made, decision=replace(made.decision, gates=gates))
    assert verdict in Page(html.render(made)).text


def test_a_language_without_a_gate_says_so() -> None:
    made = report()
    made = replace(made, decision=replace(made.decision, gates=()))
    assert section_of(made).verdict == "has no gate of its own"


def test_a_part_of_a_language_decides_nothing() -> None:
    made = report()
    partial = replace(made.slices[0], partial=True, note="A placeholder judge.")
    notes = section_of(replace(made, slices=(partial,))).notes
    assert notes[0] == "Asked: partial."
    assert notes[1].startswith("Decides nothing: only a part of the slice was run")
    assert notes[2] == "A placeholder judge."


def test_a_language_that_stopped_early_says_after_how_many() -> None:
    (section,) = language_sections(run("cccss"))
    assert section.notes == ["Asked: settled after 3 of 5."]


def test_another_judge_is_named() -> None:
    made = run(NEW, OLD)
    assert made.comparison is not None
    (compared,) = made.comparison.slices
    blocked = replace(compared, blocked="facts:en was judged by another")
    made = replace(made, comparison=replace(made.comparison, slices=(blocked,)))
    said = "English was judged by another; the difference may be the judge's own."
    assert section_of(made).notes == [said]


# Grades


def test_old_and_new_grades_stand_below_each_other() -> None:
    """Both add up to the items of this run; of an item without a pair nothing old is said."""
    grades = section_of(run(NEW, OLD)).grades
    assert grades is not None
    old, new = grades.rows
    assert counts(old.segments) == {"correct": 5, "incorrect": 1, "not compared": 3}
    assert counts(new.segments) == {
        "correct": 4,
        "not attempted": 1,
        "incorrect": 2,
        "ungraded": 2,
    }
    columns = ["correct", "incorrect", "not compared", "not attempted", "ungraded"]
    assert list(grades.columns) == columns
    assert (old.counts, new.counts) == ([5, 1, 3, 0, None], [4, 2, None, 1, 2])


def test_an_old_refusal_is_not_a_wrong_answer() -> None:
    grades = section_of(run("cin", "nnn")).grades
    assert grades is not None
    assert counts(grades.rows[0].segments) == {"not attempted": 3}


def test_ratings_of_both_runs_are_drawn_to_one_scale() -> None:
    made = run_of(rated(3, 8, 8), RATED, baseline=run_of(rated(9, 8, 7), RATED))
    section = section_of(made)
    assert section.figures == "100% passed before, 67% now, of 3 questions."
    old, new = section.ratings
    assert old.title == "Ratings, old; 7 and above pass"
    rated_old = [column.text for column in old.columns if column.count]
    assert rated_old == ["7", "8", "9"]
    heights = {column.text: column.height for column in new.columns if column.count}
    assert heights["8"] == 2 * heights["3"]


def test_a_yes_or_no_language_has_its_confusion() -> None:
    sections = {section.name: section for section in language_sections(full(5))}
    assert sections["Belarusian in boolq"].figures == "82% right, of 5 questions."
    assert "Confusion of Belarusian in boolq" in html.render(full(5))


def test_what_tests_the_judge_comes_last() -> None:
    sections = language_sections(full(5))
    assert sections[-1].name == "English in judges"
    assert sections[-1].figures == "93% judged as labelled, of 5 answers."


# Topics


def test_the_topic_that_lost_most_comes_first() -> None:
    breakdown = breakdown_of(section_of(run("ci" * 6, "c" * 12)))
    assert breakdown.title == "By topic"
    rows = [(row.value, row.asked, row.old, row.new) for row in breakdown.rows]
    assert rows == [("Art", 6, 1.0, 0.0), ("Sport", 6, 1.0, 1.0)]
    assert [row.direction for row in breakdown.rows] == ["fell", ""]
    assert breakdown.rows[0].picture.label == "Art: 100% right before, 0% now"


def test_a_topic_that_won_for_certain_rose() -> None:
    breakdown = breakdown_of(section_of(run("cc" * 6, "ci" * 6)))
    directions = {row.value: row.direction for row in breakdown.rows}
    assert directions == {"Sport": "", "Art": "rose"}


def test_the_shares_of_a_topic_are_of_its_pairs() -> None:
    breakdown = breakdown_of(section_of(run("cccci", "eccce")))
    asked = {row.value: (row.asked, row.old, row.new) for row in breakdown.rows}
    assert asked == {"Sport": (1, 1.0, 1.0), "Art": (2, 1.0, 1.0)}


def test_topics_of_a_single_run_have_its_share_and_interval() -> None:
    breakdown = breakdown_of(section_of(run("cicc")))
    assert [(row.value, row.old, row.new) for row in breakdown.rows] == [
        ("Art", None, 0.5),
        ("Sport", None, 1.0),
    ]
    assert all(row.picture.band is not None for row in breakdown.rows)
    assert breakdown.rows[0].picture.label == "Art: 50% right"


def test_a_topic_of_ratings_has_its_mean_too() -> None:
    breakdown = breakdown_of(section_of(run_of(rated(3, 8, 8), RATED)))
    assert breakdown.main == "mean_rating"
    (main,) = [row.main for row in breakdown.rows]
    assert main is not None
    assert main.value == pytest.approx(19 / 3)


def test_a_topic_without_a_share_has_no_mark() -> None:
    made = report()
    nothing = {"correct": Estimate.of(None, None, 0)}
    alone = replace(made.slices[0], breakdowns={"topic": {"Art": nothing}})
    (row,) = breakdown_of(section_of(replace(made, slices=(alone,)))).rows
    assert (row.new, row.picture.mark) == (None, None)
    assert row.picture.label == "Art: no share"


def test_of_many_topics_the_worst_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_VALUES", 1)
    made = run("ci" * 6, "c" * 12)
    breakdown = breakdown_of(section_of(made))
    assert [row.value for row in breakdown.rows] == ["Art"]
    assert breakdown.more == 1
    assert "1 more value; run.json has all." in Page(html.render(made)).text


# The page


def test_the_page_tells_of_a_language_in_words() -> None:
    made = html.render(run("ci" * 6, "c" * 12))
    text = Page(made).text
    assert "100% right before, 50% now, of 12 questions." in text
    assert "6 right in both 6 lost" in text
    assert re.search(r"Art 6 100.0% → 0.0% 0.0% to [\d.]+%", text)


def test_only_several_languages_have_links() -> None:
    assert not Page(html.render(run("cc"))).named("a", href="#language-1")
    both = facts_dataset(graded_slice(), graded_slice("bg"))
    page = Page(html.render(run_of(answered("cc") + answered("ci", "bg"), both)))
    assert page.named("a", href="#language-2")
    assert page.named("h3", id="language-2")


def test_hostile_topics_are_shown_as_text() -> None:
    """No tag more than a plain topic has."""

    def page_with(topics: Sequence[str]) -> Page:
        records = [
            replace(made, metadata={"topic": topic})
            for made, topic in zip(answered("c" * len(topics)), topics, strict=True)
        ]
        baseline = run_of(records, BY_TOPIC)
        return Page(html.render(run_of(records, BY_TOPIC, baseline=baseline)))

    plain = page_with([f"topic {number}" for number in range(len(HOSTILE))])
    attacked = page_with([f"{number} {text}" for number, text in enumerate(HOSTILE)])
    assert {tag for tag, _ in attacked.tags} == {tag for tag, _ in plain.tags}
