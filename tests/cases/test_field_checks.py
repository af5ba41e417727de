"""The linter finds gaps between rows, languages, raters and gates."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cases.check.field_checks import (
    aliases,
    ids,
    label_sources,
    lone_labels,
    missing_facts,
    missing_fields,
    narrow_margins,
    rater_agreement,
    repeated_facts,
    ungated,
    unused_breakdowns,
)
from cases.check.findings import Subject, rows_listed
from cases.check.item_checks import balance
from cases.dataset import Threshold
from tests.support.linting import dataset_of, found, from_file, item, said, slice_of, subject


def labelled(labels: str, kind: str) -> Subject:
    words = {"Y": "YES", "N": "NO", "C": "CORRECT", "I": "INCORRECT", "-": "NOT_ATTEMPTED"}
    rows = [item(row, f"{row}?", label=words.get(x, x)) for row, x in enumerate(labels, 1)]
    return subject(*rows, kind=kind)


@pytest.mark.parametrize(
    ("labels", "kind", "expected"),
    [
        ("YYYYYYYNNN", "yes_no", 1),
        ("YYYNNNNNNN", "yes_no", 1),
        ("YYYYYYNNNN", "yes_no", 0),
        ("YYYYNNNNNN", "yes_no", 0),
        ("YYYYYYYYY", "yes_no", 0),
        ("CCCCCIIIII", "judged", 1),
        ("CCCCCCCCCC", "judged", 2),
        ("CCCCCIIII-", "judged", 0),
        ("CCCCCCCCCCCCCCIIIIII-", "judged", 1),
        ("1234567891", "judged", 0),
        ("CCCCCCCCCC", "graded", 0),
    ],
)
def test_classes_out_of_balance_are_a_warning(labels: str, kind: str, expected: int) -> None:
    """Yes within 40 to 60 %, each label at least 10 %; fewer than ten items prove nothing."""
    assert found(balance, labelled(labels, kind)) == [("warning", 0)] * expected


def test_a_field_of_some_rows_is_told_once() -> None:
    """An error for a field of ``by:``, else a warning; a field of no row is not meant here."""
    rows = [item(row, f"{row}?", metadata=data) for row, data in enumerate(METADATA, 1)]
    own = Subject(slice_=slice_of(by=("level",)), rows=(), cases=tuple(rows))
    assert found(missing_fields, own) == [("error", 2), ("warning", 1)]
    notes = [note.message for note in missing_fields(own)]
    assert "'level' is missing in 2 of 3 rows (2, 3)" in notes[0]


METADATA = ({"level": 1, "topic": " "}, {"topic": "book"}, {"level": None, "topic": "web"})


def test_long_lists_of_rows_are_cut() -> None:
    """Five rows are named."""
    assert rows_listed(range(1, 8)) == "1, 2, 3, 4, 5 and 2 more"


def test_a_breakdown_without_values_is_an_error() -> None:
    """A field of ``by:`` that no row of any language has; a warning where one language lacks it."""
    have = Subject(
        slice_=slice_of("en", by=("topic", "level")),
        rows=(),
        cases=(item(1, "?", metadata={"topic": "Art"}),),
    )
    lack = Subject(slice_=slice_of("bg", by=("topic", "level")), rows=(), cases=(item(1, "?"),))
    notes = list(unused_breakdowns(*dataset_of(have, lack)))
    assert [(note.severity, note.file) for note in notes] == [
        ("warning", Path("bg.csv")),
        ("error", None),
    ]


def test_a_cluster_without_values_is_an_error() -> None:
    """Where one language has the column, the others go by their passages."""
    twin = (item(1, "?", metadata={"twin": "t"}),)
    have = Subject(slice_=slice_of("en", "yes_no", cluster="twin"), rows=(), cases=twin)
    lack = Subject(slice_=slice_of("be", "yes_no", cluster="twin"), rows=(), cases=(item(1, "?"),))
    assert not list(unused_breakdowns(*dataset_of(have, lack)))
    (note,) = unused_breakdowns(*dataset_of(lack))
    assert (note.severity, note.message.split(",")[0]) == ("error", "'cluster' names 'twin'")


@pytest.mark.parametrize(
    ("cell", "expected"),
    [
        ("a | b", []),
        ("", []),
        ("a | ", [("warning", 1)]),
        ("a |  | b", [("warning", 1)]),
        ("a|b", [("warning", 1)]),
    ],
)
def test_alias_cells_are_read_closely(
    tmp_path: Path, cell: str, expected: list[tuple[str, int]]
) -> None:
    """An empty entry and a bar without spaces are mistakes that the loader forgives."""
    made = from_file(tmp_path, f"question,answer,aliases\nWhat?,x,{cell}\n")
    assert found(aliases, made) == expected


def test_alias_lists_and_files_without_aliases_are_fine(tmp_path: Path) -> None:
    """A JSON list needs no bars."""
    row = {"question": "What?", "answer": "x", "aliases": ["a|b"]}
    assert not found(aliases, from_file(tmp_path, json.dumps(row), "jsonl"))
    assert not found(aliases, from_file(tmp_path, "question,answer\nWhat?,x\n"))


def test_ids_that_change_with_the_content_are_told_where_others_do_not(tmp_path: Path) -> None:
    """A file without any id is a choice; one row without is a slip."""
    mixed = from_file(tmp_path, "id,question,answer\na,Who?,x\n,What?,y\n")
    assert found(ids, mixed) == [("warning", 2)]
    assert not found(ids, from_file(tmp_path, "question,answer\nWho?,x\nWhat?,y\n"))


def test_ids_that_reports_replace_are_told_once(tmp_path: Path) -> None:
    """Ids that are not plain ASCII become hashes."""
    odd = from_file(tmp_path, "id,question,answer\nok,Who?,x\nид-1,What?,y\na b,When?,z\n")
    assert found(ids, odd) == [("warning", 2)]
    assert "2 of 3 ids are replaced by hashes, such as 'ид-1', 'a b'" in said(ids, odd)


def facts(language: str, *rows: tuple[str, str]) -> Subject:
    made = [
        item(row, f"{row}?", metadata={"fact_id": fact, "topic": topic})
        for row, (fact, topic) in enumerate(rows, 1)
    ]
    return subject(*made, language=language)


def test_facts_of_one_language_alone_are_missed_nowhere() -> None:
    """Local facts and false premises, by their part; what is shared is still missed."""

    def parted(language: str, *rows: tuple[str, str]) -> Subject:
        own = facts(language, *((fact, "") for fact, _ in rows))
        parts = zip(own.cases, rows, strict=True)
        cases = (
            replace(case, metadata={**case.metadata, "part": part}) for case, (_, part) in parts
        )
        return replace(own, cases=tuple(cases))

    english = parted("en", ("f1", "shared"), ("en-1", "local"), ("en-premise-1", "premise"))
    bulgarian = parted("bg", ("f1", ""), ("bg-1", "local"), ("f2", "shared"))
    (note,) = missing_facts(*dataset_of(english, bulgarian))
    assert note.message.startswith("lacks 1 of 2 facts of the other languages: 'f2'")


def test_a_fact_asked_twice_in_a_slice_is_an_error() -> None:
    """Rows without a fact are not compared, and judged answers share one on purpose."""
    twice = facts("en", ("f1", ""), ("", ""), ("", ""), ("f1", ""))
    assert found(repeated_facts, twice) == [("error", 4)]
    judged = Subject(slice_=slice_of(kind="judged"), rows=(), cases=twice.cases)
    assert not found(repeated_facts, judged)


def test_a_fact_that_a_language_lacks_is_an_error_there() -> None:
    """Each lacking language is told, with the facts."""
    given = dataset_of(facts("en", ("f1", "A"), ("f2", "A")), facts("bg", ("f3", "A")))
    notes = list(missing_facts(*given))
    assert [(note.severity, note.file, note.row) for note in notes] == [
        ("error", Path("en.csv"), 0),
        ("error", Path("bg.csv"), 0),
    ]
    assert "lacks 2 of 3 facts of the other languages: 'f1', 'f2'" in notes[1].message


def test_a_fact_has_one_topic_in_all_languages() -> None:
    """The first language that has it sets the rule; an empty value is another check's."""
    given = dataset_of(
        facts("en", ("f1", "Art"), ("f2", "Art")), facts("bg", ("f1", ""), ("f2", "Law"))
    )
    (note,) = missing_facts(*given)
    assert (note.severity, note.file, note.row) == ("error", Path("bg.csv"), 2)
    assert "topic 'Law' here and 'Art' in 'en'" in note.message


def test_datasets_without_facts_have_none_missing() -> None:
    """The check is silent where no row has a fact_id."""
    assert not list(missing_facts(*dataset_of(facts("en", ("", "A")), facts("bg", ("", "B")))))


def test_a_language_with_questions_of_its_own_lacks_nothing() -> None:
    """A slice without a single fact_id asks other things on purpose."""
    given = dataset_of(facts("en", ("f1", "A")), facts("cs", ("", "A"), ("", "B")))
    assert not list(missing_facts(*given))


def rated(*rows: str, source: str = "human") -> Subject:
    """Return judged items: each text is the label, then what the raters gave."""
    made = []
    for row, text in enumerate(rows, 1):
        label, *given = text.split()
        data: dict[str, object] = {f"label_{n}": value for n, value in enumerate(given, 1)}
        made.append(item(row, f"{row}?", label=label, metadata={**data, "label_source": source}))
    return subject(*made, kind="judged")


def test_raters_who_disagree_too_often_are_a_warning() -> None:
    """Four of five pairs are enough, two of three are not."""
    assert not found(rater_agreement, rated("C C C", "C C C", "C C C", "C C C", "C C I"))
    assert found(rater_agreement, rated("C C C", "C C C", "C C I")) == [("warning", 0)]
    assert "agree in 2 of 3 pairs" in said(rater_agreement, rated("C C C", "C C C", "C C I"))


@pytest.mark.parametrize("rows", [("C", "I"), ("C C", "I I"), ("3 1 9", "4 2 8")])
def test_one_rater_or_ratings_have_no_agreement(rows: tuple[str, ...]) -> None:
    """It takes two labels on one item; ratings differ by degrees."""
    assert not found(rater_agreement, rated(*rows))


def test_a_label_that_no_rater_gave_is_a_warning() -> None:
    """For ratings the label may lie between the raters'."""
    assert found(lone_labels, rated("C C I", "C I I", "C")) == [("warning", 2)]
    assert found(lone_labels, rated("5 3 7", "8 3 7")) == [("warning", 2)]


def test_labels_say_where_they_come_from() -> None:
    """One note for the file, on the first row that lacks it unless all do."""
    assert not found(label_sources, rated("C", "I"))
    assert found(label_sources, rated("C", "I", source="")) == [("warning", 0)]
    some = rated("C")
    cases = (*some.cases, item(2, "2?", label="C"))
    both = Subject(slice_=some.slice_, rows=(), cases=cases)
    assert found(label_sources, both) == [("warning", 2)]


@pytest.mark.parametrize("check", [label_sources, rater_agreement, lone_labels])
def test_only_judged_items_have_raters(check: object) -> None:
    """Another kind's ``label_1`` column is metadata."""
    own = Subject(slice_=slice_of(), rows=(), cases=rated("C I I", source="").cases)
    assert not list(check(own))  # type: ignore[operator]


def with_rules(language: str, items: int, *rules: Threshold) -> Subject:
    named = (item(row, f"{row}?") for row in range(1, items + 1))
    cases = tuple(replace(case, language=language) for case in named)
    return Subject(slice_=slice_of(language, thresholds=rules), rows=(), cases=cases)


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
def test_a_margin_that_so_few_items_never_keep_is_a_warning(
    items: int, rule: Threshold, told: str
) -> None:
    """Of a language's own drop gate, and of one that pools the languages."""
    own = list(narrow_margins(*dataset_of(with_rules("en", items, rule))))
    halves = with_rules("en", items // 2), with_rules("bg", items - items // 2)
    pooled = list(narrow_margins(*dataset_of(*halves, pooled=(rule,))))
    for notes in (own, pooled):
        assert len(notes) == bool(told)
        assert all(told in note.message for note in notes)


def test_a_fact_in_several_languages_counts_once_for_a_pooled_margin() -> None:
    """Forty items in two languages are enough for a margin of 0.1; twenty facts in both are not."""
    rule = Threshold(measure="drop", max=0.1, evidence="confident")
    halves = [with_rules("en", 20), with_rules("bg", 20)]
    linked = [
        Subject(
            slice_=half.slice_,
            rows=(),
            cases=tuple(replace(one, metadata={"fact_id": one.id}) for one in half.cases),
        )
        for half in halves
    ]
    assert not list(narrow_margins(*dataset_of(*halves, pooled=(rule,))))
    (note,) = narrow_margins(*dataset_of(*linked, pooled=(rule,)))
    assert "20 independent items can never show a drop below 0.1" in note.message
