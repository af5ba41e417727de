"""What comes back from reviewers: read exactly, settled item by item, and how far they agree."""

import csv
import io
import json
import re
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases.review.form import csv_twin
from cases.review.reviews import (
    AGREED,
    CONFLICT,
    UNREVIEWED,
    Review,
    agreement,
    read_sheets,
    settle,
)
from cases.review.sheet import Duty, Sheet, assign, draw, sheets_for
from evaluators.core import UsageError
from evaluators.output import unguarded
from tests.support.reviewing import review, saved, sheet, sheet_item
from tests.support.tables import tabled

SHEET = sheet(sheet_item("a"), sheet_item("b"), sheet_item("c"))


def filled(path: Path, rows: dict[str, dict[str, str]], of: Sheet = SHEET) -> Path:
    """Fill in the CSV twin as a spreadsheet would save it."""
    lines = list(csv.DictReader(io.StringIO(csv_twin(of)[1:], newline="")))
    for line in lines:
        line.update(rows.get(line["item"], {}))
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, list(lines[0]))
    writer.writeheader()
    writer.writerows(lines)
    path.write_text(out.getvalue(), encoding="utf-8-sig")
    return path


def rows_of(reviews: tuple[Review, ...]) -> list[tuple[str, str, str, str, str]]:
    return [(r.item, r.reviewer, r.verdict, r.edited, r.comment) for r in reviews]


def test_the_twin_comes_back_as_it_was_filled_in(tmp_path: Path) -> None:
    """Any letter case, BOM or not; rows left empty say nothing; a guard is taken off."""
    rows = {
        "a": {"verdict": "yes", "reviewer": " Ана  Петрова "},
        "b": {"verdict": "BAD_LANGUAGE", "edited": "'=Ці?", "comment": "so", "reviewer": "Іван"},
    }
    path = filled(tmp_path / "sheet.csv", rows)
    expected = [("a", "Ана Петрова", "YES", "", ""), ("b", "Іван", "BAD_LANGUAGE", "=Ці?", "so")]
    assert rows_of(read_sheets([path])) == expected
    assert rows_of(read_sheets([path], SHEET.allowed)) == expected


def test_form_and_twin_of_one_person_count_once(tmp_path: Path) -> None:
    """Sent twice is said once; the comment alone is kept as well."""
    twin = filled(tmp_path / "a.csv", {"a": {"verdict": "NO", "reviewer": "ана"}})
    form = saved(tmp_path / "a.json", "Ана", {"a": "NO", "b": "YES"})
    assert rows_of(read_sheets([form, twin], SHEET.allowed)) == [
        ("a", "Ана", "NO", "", ""),
        ("b", "Ана", "YES", "", ""),
    ]
    other = saved(tmp_path / "b.json", "Ана", {"a": "YES"})
    with pytest.raises(UsageError, match=r"a\.csv:2: row 1: 'ана' said otherwise .*b\.json"):
        read_sheets([other, twin])


@tabled("cells", "message")
def test_a_wrong_cell_is_named(cells: dict[str, str], message: str, tmp_path: Path) -> None:
    """By file, row and column."""
    path = filled(tmp_path / "sheet.csv", {"a": cells})
    with pytest.raises(UsageError, match=message):
        read_sheets([path], SHEET.allowed)


@tabled("form", "message")
def test_a_broken_export_is_refused(form: object, message: str, tmp_path: Path) -> None:
    """Nothing is guessed; the place is named."""
    row = {"item": "a", "verdict": "YES", "edited": "", "comment": ""}
    if isinstance(form, dict):
        rows = form.get("rows", [{**row, **form}])
        form = {"sheet": "x", "reviewer": "A", "rows": rows}
    path = tmp_path / "x.json"
    path.write_text(form if isinstance(form, str) else json.dumps(form), encoding="utf-8")
    with pytest.raises(UsageError, match=re.escape(message)):
        read_sheets([path])


def test_other_files_are_refused(tmp_path: Path) -> None:
    """Another suffix, and a table that lacks a column."""
    with pytest.raises(UsageError, match=r"ends in \.json"):
        read_sheets([tmp_path / "x.xlsx"])
    (tmp_path / "x.csv").write_text("item,verdict\na,YES\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"x\.csv:1: no column 'edited'"):
        read_sheets([tmp_path / "x.csv"])


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=30)


@settings(max_examples=30)
@given(
    verdicts=st.lists(st.sampled_from(("YES", "NO", "UNCLEAR")), min_size=3, max_size=3),
    edits=st.lists(TEXT, min_size=3, max_size=3),
)
def test_both_ways_back_say_the_same(
    verdicts: list[str], edits: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever was typed, the export and the twin read as the same reviews."""
    folder = tmp_path_factory.mktemp("ways")
    given = dict(zip("abc", verdicts, strict=True))
    texts = dict(zip("abc", (edit.strip() for edit in edits), strict=True))
    plain = {item: text for item, text in texts.items() if unguarded(text) == text}
    rows = {
        item: {"verdict": verdict, "edited": plain.get(item, ""), "reviewer": "A"}
        for item, verdict in given.items()
    }
    form = saved(folder / "x.json", "A", given, plain)
    assert rows_of(read_sheets([form])) == rows_of(read_sheets([filled(folder / "x.csv", rows)]))


NAMES = ("Ана", "Boris", "Csilla")
GROUPS = {f"q{n}": ("news" if n % 4 else "encyclopaedia") for n in range(40)}


def reviews_of(table: dict[str, str]) -> list[Review]:
    """Return a review for each letter: a verdict of the reviewer at its place, ``.`` for none."""
    return [
        review(item, name, letter)
        for item, letters in table.items()
        for name, letter in zip(NAMES, letters, strict=False)
        if letter != "."
    ]


@tabled("letters", "state", "verdict")
def test_more_than_half_decide(letters: str, state: str, verdict: str) -> None:
    """Two who differ are a conflict; a third settles it by agreeing with one of them.

    A comment alone is no verdict.
    """
    assert settle(["q"], [review("q", "A", "", comment="hm")])["q"].state == UNREVIEWED
    found = settle(["q"], reviews_of({"q": letters}))["q"]
    assert (found.state, found.verdict) == (state, verdict)
    if state == AGREED:
        assert found.names == tuple(
            sorted((n for n, v in zip(NAMES, letters, strict=True) if v == "Y"), key=str.casefold)
        )


def test_edits_are_settled_among_those_whose_verdict_stands() -> None:
    """One edit is applied; two that differ are a conflict; the loser's edit is not looked at."""
    one = [review("q", "A", "Y", "new", "why"), review("q", "B", "Y", comment="why")]
    settled = settle(["q"], one)["q"]
    assert (settled.state, settled.edited, settled.comments) == (AGREED, "new", ("why",))
    assert (settled.edited, settle(["q"], [])["q"].edited) == ("new", "")
    two = [*one, review("q", "C", "Y", "other")]
    assert settle(["q"], two)["q"].state == CONFLICT
    lost = [*one, review("q", "C", "N", "other")]
    assert settle(["q"], lost)["q"].edited == "new"


VERDICTS = st.lists(st.text("YNU.", min_size=3, max_size=3), min_size=1, max_size=8)


@settings(max_examples=30)
@given(VERDICTS)
def test_settling_depends_on_nobodys_order(tables: list[str]) -> None:
    """Whoever is read first: the same outcomes, one an item, in the order of the items."""
    table = {f"q{n}": letters for n, letters in enumerate(tables)}
    reviews = reviews_of(table)
    found = settle(table, reviews)
    assert list(found) == list(table)
    assert found == settle(table, reversed(reviews))
    for item, letters in table.items():
        votes = [letter for letter in letters if letter != "."]
        stands = [v for v in set(votes) if 2 * votes.count(v) > len(votes)]
        assert [found[item].verdict] == (stands or [""])


@settings(max_examples=30)
@given(VERDICTS)
def test_agreement_is_bounded_and_perfect_only_without_a_difference(tables: list[str]) -> None:
    """Raw agreement is a share, each figure lies in its interval, alpha 1 means no difference."""
    table = {f"q{n}": letters for n, letters in enumerate(tables)}
    (every,) = agreement(reviews_of(table))
    seen = [[v for v in letters if v != "."] for letters in tables]
    pairs = [one == two for unit in seen for one, two in combinations(unit, 2)]
    assert every.items == sum(len(unit) > 1 for unit in seen)
    assert every.raw.value == (pytest.approx(sum(pairs) / len(pairs)) if pairs else None)
    if every.alpha.value is not None:
        assert (every.alpha.value > 1 - 1e-9) == all(pairs)
    for figure in (every.raw, *(pair.kappa for pair in every.pairs)):
        if figure.low is not None and figure.value is not None and figure.high is not None:
            assert figure.low - 1e-9 <= figure.value <= figure.high + 1e-9


def test_agreement_by_group_and_of_ratings() -> None:
    """A line a group, by name; ratings one step apart agree far beyond labels that differ."""
    table = {"a": "YY", "b": "YN", "c": "NN", "d": "NN"}
    found = agreement(reviews_of(table), {"a": "why", "b": "why", "c": "how"})
    assert [(one.group, one.items) for one in found] == [("", 4), ("how", 1), ("why", 2)]
    scores = {f"q{n}": (str(n), str(min(n + 1, 10))) for n in range(1, 11)}
    rated = [review(i, n, v) for i, two in scores.items() for n, v in zip("AB", two, strict=True)]
    (every,) = agreement(rated)
    assert every.raw.value == pytest.approx(0.1)
    assert every.alpha.value is not None
    assert every.alpha.value > 0.9
    assert every.pairs[0].kappa.value is not None
    assert every.pairs[0].kappa.value > 0.9
    (same,) = agreement([review("q", "A", "7"), review("q", "B", "7")])
    assert (same.alpha.value, same.pairs[0].kappa.value) == (None, None)


def test_the_overlap_is_drawn_from_every_group_in_proportion() -> None:
    """A fifth of forty items: eight are seen by two, six news and two others; or all there are."""
    assert draw(GROUPS, 99, 0) == set(GROUPS)
    assert draw({}, 3, 0) == set()
    given = assign(GROUPS, Duty(reviewers=NAMES))
    times = {item: sum(item in some for some in given.values()) for item in GROUPS}
    shared = [item for item, count in times.items() if count == 2]
    assert sorted(GROUPS[item] for item in shared) == ["encyclopaedia"] * 2 + ["news"] * 6
    assert set(times.values()) == {1, 2}
    assert given == assign(GROUPS, Duty(reviewers=NAMES))
    assert given != assign(GROUPS, Duty(reviewers=NAMES, seed=1))


@given(
    size=st.integers(0, 40),
    people=st.integers(2, 5),
    overlap=st.floats(0, 1),
    seed=st.integers(0, 9),
)
def test_items_are_shared_out_evenly(size: int, people: int, overlap: float, seed: int) -> None:
    """Whatever the numbers are."""
    groups = {f"q{n}": str(n % 3) for n in range(size)}
    names = tuple("abcde"[:people])
    given = assign(groups, Duty(reviewers=names, overlap=overlap, seed=seed))
    loads = [len(items) for items in given.values()]
    assert max(loads) - min(loads) <= 1
    assert sum(loads) == size + round(overlap * size)
    assert set().union(*given.values()) == set(groups)


def test_each_reviewer_gets_a_sheet_of_their_own() -> None:
    """Made out to them, with their items in the order of the whole."""
    whole = sheet(*(sheet_item(item) for item in GROUPS))
    given = assign(GROUPS, Duty(reviewers=NAMES, overlap=1))
    sheets = sheets_for(whole, given)
    assert [(one.name, one.reviewer) for one in sheets] == [
        (f"sheet-{n}", name) for n, name in enumerate(NAMES, 1)
    ]
    assert [tuple(item.id for item in one.items) for one in sheets] == list(given.values())


@tabled("values", "message")
def test_a_duty_that_nobody_could_do_is_refused(values: dict[str, object], message: str) -> None:
    """In one line."""
    with pytest.raises(UsageError, match=message):
        Duty(**values)  # type: ignore[arg-type]
