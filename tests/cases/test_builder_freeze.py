"""The final choice is balanced by seed; its folder runs, and respects what is there."""

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases.builder import freeze
from cases.builder.freeze import balanced, datasheet
from cases.builder.work_folder import DraftItem
from cases.config import load_dataset
from cases.loading import load_cases
from cases.review.reviews import agreement
from evaluators.core import UsageError
from evaluators.output import write_texts
from tests.support.building import make_item, recipe, rows
from tests.support.building_site import back_from_both, reviewed_site
from tests.support.captured import Captured
from tests.support.reviewing import Row

LABELS = {"YES": "Так", "NO": "Не"}
ITEMS = [
    make_item(
        number,
        question=f"Ці праўда, што гэта {number}?",
        answer=("YES", "NO")[number % 2],
        split=("train", "test")[number // 2 % 2],
        generator={"model": "openai:x@http://10.0.0.1/v1", "returned": "x-1", "prompt": "g#1"},
        validator={"model": "anthropic:y", "prompt": "v#1"},
    )
    for number in range(8)
]


SHARES = {"majority": 0.52, "first word": 0.595}


def freeze_into(folder: Path, items: list[DraftItem] = ITEMS) -> Path:
    """Write the data files and what else is needed; returns the main file."""
    data = freeze.data_files(folder, "be", freeze.rows_of(items, recipe()))
    write_texts(freeze.changed(data).items())
    write_texts(freeze.missing_files(folder, recipe(), SHARES, ["train", "test"]).items())
    return next(iter(data))


def test_a_new_folder_becomes_a_dataset(tmp_path: Path) -> None:
    """Settings, prompt and test module are put next to the data, and never written over.

    The same content is left alone. Without a bundled prompt the settings name none.
    """
    folder = tmp_path / "mine"
    main = freeze_into(folder)
    before = main.stat().st_mtime_ns
    freeze_into(folder)
    assert main.stat().st_mtime_ns == before
    with pytest.raises(UsageError, match=r"be\.jsonl: is there already, with other content"):
        freeze_into(folder, ITEMS[:4])
    slice_ = load_dataset(folder / "dataset.yaml").slices["be"]
    assert (slice_.yes, slice_.no, slice_.path) == ("Так", "Не", folder / "be.jsonl")
    assert slice_.prompt is not None
    assert {one.measure: one.min for one in slice_.thresholds}["accuracy"] == 0.6
    told = (folder / "dataset.yaml").read_text("utf-8")
    assert "the more frequent answer is right in 0.52 of the items" in told
    assert "# test alone: --languages be/test" in told
    cases = load_cases(slice_)
    parts = [
        load_cases(replace(slice_, path=main.with_suffix(f".{one}.jsonl")))
        for one in ("train", "test")
    ]
    assert {case.id for case in cases} == {case.id for part in parts for case in part}
    assert "10.0.0.1" not in main.read_text("utf-8"), "no server's address"
    assert [case.label for case in cases] == [item.answer for item in ITEMS]
    assert cases[0].metadata["split"] == "train"
    (folder / "dataset.yaml").write_text("mine", encoding="utf-8")
    assert freeze.missing_files(folder, recipe(), SHARES, ["train", "test"]) == {}
    french = replace(recipe(), language="fr", labels={"YES": "Oui", "NO": "Non"})
    files = freeze.missing_files(tmp_path / "none", french, SHARES, [])
    assert {path.name for path in files} == {"dataset.yaml", "test_none.py"}
    assert "prompt" not in files[tmp_path / "none" / "dataset.yaml"]


def test_somebody_elses_readme_is_left_alone(tmp_path: Path) -> None:
    """The datasheet then has the language in its name."""
    sheet = "# mine (be): datasheet\n"
    assert freeze.readme(tmp_path, sheet, "be").name == "README.md"
    (tmp_path / "README.md").write_text(f"{sheet}old", encoding="utf-8")
    assert freeze.readme(tmp_path, sheet, "be").name == "README.md"
    (tmp_path / "README.md").write_text("# Our data\n", encoding="utf-8")
    assert freeze.readme(tmp_path, sheet, "be").name == "README.be.md"


@pytest.mark.parametrize("blind", [True, False])
def test_a_datasheet_tells_what_there_is(blind: bool) -> None:
    """Sources, funnel, models, review and limits; nobody's name, no server's address."""
    said = [{"reviewer": "Ганна", "verdict": "YES", "edited": "", "comment": ""}]
    items = [*ITEMS[:-1], make_item(7, answer="NO", review={"said": said, "answer_before": "YES"})]
    text = datasheet(
        name="mine",
        language="be",
        labels=LABELS,
        items=items,
        options={
            "sample": {"files": {"/home/me/news.jsonl": "abc"}, "seed": 4, "recipe": "r1"},
            "generate": {"generator": "openai:x@http://10.0.0.1/v1"},
            "validate": {"validator": "anthropic:y", "blind": blind, "prompt": "answer.be#1"},
            "probe": {"probe": blind},
        },
        report={
            "steps": {
                "sample": {"in": 9, "kept": 8, "dropped": 1, "dropped_why": {"length": 1}},
                "probe": {"in": 8, "kept": 5, "dropped": 3, "dropped_why": {"closed_book": 3}},
            },
            "question_only": {},
        },
        agreement=agreement([]),
        files={"be.jsonl": "123"},
    )
    assert text.startswith("# mine (be): datasheet\n")
    assert "| sample | 9 | 8 | 1 | length 1 |" in text
    assert "| news | news.jsonl | " in text
    assert "/home/me" not in text
    assert "10.0.0.1" not in text
    assert "Ганна" not in text
    assert "`openai:x`" in text
    assert ("first answered by itself, with prompt `answer.be#1`" in text) is blind
    assert ("3 items that both answered right were dropped" in text) is blind
    assert ("No model was asked the questions without their passages." in text) is not blind
    assert "Reviewers changed the answer of 1 and the wording of 0" in text
    assert "| all | 0 | undefined | undefined | – |" in text
    assert "7 of 8 items were seen by no person." in text
    assert "Not known: there are no items." in text


def test_a_source_that_gave_too_little_is_named(tmp_path: Path, capsys: Captured) -> None:
    """A set that comes out smaller than wanted says so, and of which source."""
    with reviewed_site(tmp_path, count=4) as made:
        asked = rows(tmp_path / "work", "review")
        ours = [row for row in asked if row["origin"]["group"] == "encyclopaedia"]
        kept = {row["answer"]: row["id"] for row in ours}

        def fill(_: int, row: Row) -> Row:
            fine = [answer for answer, item in kept.items() if item == row["item"]]
            return {"verdict": fine[0] if fine else "UNCLEAR"}

        assert made.build("accept", *back_from_both(made, fill)) == 0
        capsys.readouterr()
        assert made.build("freeze", "--to", str(tmp_path / "mine")) == 0
    said = capsys.readouterr().err
    assert "freeze: encyclopaedia: only 2 of 4 items" in said
    assert "freeze: news: only 0 of 2 items" in said


SPLITS = {"train": 0.8, "dev": 0.1, "test": 0.1}


def made(answers: list[tuple[str, str]]) -> list[DraftItem]:
    """Return an item for each source and answer."""
    items = []
    for number, (group, answer) in enumerate(answers):
        item = make_item(number, answer=answer)
        items.append(replace(item, origin=replace(item.origin, group=group)))
    return items


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from(["YES", "NO"])), max_size=60),
    st.integers(0, 40),
    st.integers(0, 5),
)
def test_each_split_is_half_and_half(answers: list[tuple[str, str]], size: int, seed: int) -> None:
    """As many yes as no, never more than wanted, none lost; what can be taken is taken."""
    items = made(answers)
    chosen = balanced(items, {"a": size, "b": size}, SPLITS, seed)
    assert [item.id for item in chosen] == [item.id for item in items]
    assert balanced(items, {"a": size, "b": size}, SPLITS, seed) == chosen
    kept = Counter(
        (item.origin.group, item.split, item.answer) for item in chosen if item.state == "kept"
    )
    for group in "ab":
        for split in SPLITS:
            assert kept[group, split, "YES"] == kept[group, split, "NO"]
        had = Counter(answer for one, answer in answers if one == group)
        got = sum(count for (one, _, _), count in kept.items() if one == group)
        assert got == 2 * min(had["YES"], had["NO"], size // 2)
    assert all(item.reason in ("balance", "surplus") for item in chosen if item.state == "dropped")


@settings(max_examples=25, deadline=None)
@given(st.integers(1, 120), st.integers(1, 120))
def test_splits_have_their_shares(first: int, second: int) -> None:
    """Over all sources together no split is off its share by more than a pair or so."""
    answers = [("a", word) for word in ("YES", "NO") for _ in range(first)]
    answers += [("b", word) for word in ("YES", "NO") for _ in range(second)]
    chosen = balanced(made(answers), {"a": 1000, "b": 1000}, SPLITS, 1)
    total = first + second
    for split, share in SPLITS.items():
        pairs = sum(item.split == split for item in chosen) / 2
        assert abs(pairs - share * total) < 1.5


def test_reviewed_items_are_taken_first() -> None:
    """Where some are too many, those that a person saw stay."""
    items = made([("a", "YES")] * 6 + [("a", "NO")] * 2)
    said = {"said": [{"reviewer": "x", "verdict": "YES", "edited": "", "comment": ""}]}
    items[4] = replace(items[4], review=said)
    items[5] = replace(items[5], review=said)
    chosen = balanced(items, {"a": 100}, {}, 1)
    kept = {item.id for item in chosen if item.state == "kept" and item.answer == "YES"}
    assert kept == {items[4].id, items[5].id}
    reasons = Counter(item.reason for item in chosen if item.state == "dropped")
    assert reasons == {"balance": 4}


def test_one_article_stands_once() -> None:
    """Two items of one address could come into two splits; the second goes."""
    items = made([("a", "YES"), ("b", "YES"), ("a", "NO"), ("b", "NO")])
    items = [replace(one, origin=replace(one.origin, url="https://x")) for one in items[:2]] + [
        *items[2:]
    ]
    chosen = balanced(items, {"a": 10, "b": 10}, {}, 1)
    assert chosen[1].reason == "same_article"
    assert Counter(item.state for item in chosen) == {"kept": 2, "dropped": 2}
