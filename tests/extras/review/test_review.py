"""The sheet that goes out, what comes back, how far people agree, and what they decide for good."""

import asyncio
import csv
import io
import json
import re
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.cases.dataset import PlannedItem, Slice
from qagate.cases.extras.review import sheet as sheets
from qagate.cases.extras.review.page import form_page, write_sheet
from qagate.cases.extras.review.reviews import Review, agreement, settle
from qagate.cases.tasks import make_tasks
from qagate.evaluators.adjudications import (
    AdjudicatedJudge,
    Adjudication,
    answer_digest,
)
from qagate.evaluators.core import (
    CallError,
    Case,
    JudgeError,
    Model,
    QAError,
    Reply,
    Request,
    ToolCall,
    UsageError,
    Verdict,
)
from qagate.evaluators.extras.lexical.judge import LexicalJudge
from qagate.evaluators.judges.members import single_judges
from qagate.evaluators.judges.rubric_judge import RubricJudge
from qagate.evaluators.kinds import kind_of
from qagate.evaluators.output import cell, unguarded
from tests.support.figures import some
from tests.support.hostile import HOSTILE
from tests.support.judging import judges
from tests.support.reviewing import (
    filled_in,
    read_sheets,
    review,
    saved,
    sheet,
    sheet_item,
)
from tests.support.scripted import Scripted, complete, make_case, make_rubric
from tests.support.tables import tabled

SETS = ("grade", "rating", "yes_no", "question")
BLOCK = re.compile(
    r'<script type="application/json" id="data">(.*?)</script>', re.DOTALL
)
LANGUAGES = sorted(path.stem for path in (sheets.FOLDER / "texts").glob("*.yaml"))


def data_of(page: str) -> dict[str, list[dict[str, object]]]:
    """Return the form's data as a browser reads it: up to the first end of a script."""
    found = BLOCK.search(page)
    assert found
    loaded: dict[str, list[dict[str, object]]] = json.loads(found[1])
    return loaded


@pytest.mark.parametrize("name", SETS)
def test_every_choice_has_a_key_of_its_own_and_a_label_in_every_language(
    name: str,
) -> None:
    """No reviewer meets a verdict without words; digits label ratings themselves."""
    keys = sheets.verdict_question(name).keys
    assert len(set(keys.values())) == len(keys)
    assert all(re.fullmatch("[a-df-ln-z0-9]", key) for key in keys.values()), (
        "E, M have a meaning"
    )
    for language in LANGUAGES:
        verdicts = sheets.texts_in(language)["verdicts"]
        assert all(value in verdicts or value.isdigit() for value in keys)


def test_every_language_says_everything_that_english_says() -> None:
    """The same keys, and the same places for numbers, in every language. The field to edit bears
    the question's name, so that nobody takes it for the passage. A language without texts is served
    in English; its name never becomes a path."""
    english = sheets.texts_in("en")
    assert all(
        sheets.texts_in(other) == english for other in ("xx", "", "../en", "__proto__")
    )
    assert {"be", "bg", "en", "hu", "pl"} <= set(LANGUAGES)
    for language in LANGUAGES:
        one = sheets.texts_in(language)
        for name in ("form", "titles", "verdicts", "reasons"):
            assert one[name].keys() == english[name].keys()
        assert one["form"]["edit"].startswith(one["titles"]["question"])
        assert not one["form"]["edit"].startswith(one["titles"]["context"])
        assert set(one["rules"]) == set(SETS)
        for key, text in one["form"].items():
            assert re.findall(r"\{\w+\}", text) == re.findall(
                r"\{\w+\}", english["form"][key]
            )


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_rules_name_verdicts_as_the_form_does(language: str) -> None:
    """Every verdict but a rating and "unclear" has its rule, under the label of its button."""
    texts = sheets.texts_in(language)
    for name in SETS:
        quoted = re.findall('[„«"]([^“”»"„«]+)[“”»"]', texts["rules"][name])
        assert set(quoted) <= set(texts["verdicts"].values())
        values = {
            value for value in sheets.verdict_question(name).keys if not value.isdigit()
        }
        wanted = values if name == "question" else values - {sheets.UNCLEAR}
        assert {texts["verdicts"][value] for value in wanted} == set(quoted)


def test_a_sheet_is_known_by_its_items() -> None:
    """Items and the text to edit make the digest."""
    made = {
        sheet(*some).digest
        for some in ([sheet_item("a")], [sheet_item("a", edit="x")], [])
    }
    assert len(made) == 3
    assert sheet(sheet_item("a")).allowed == {
        "a": ("YES", "NO", "UNCLEAR", "BAD_LANGUAGE")
    }


@pytest.mark.parametrize("text", HOSTILE)
def test_no_text_leaves_its_place_in_the_page(text: str) -> None:
    """Script, markup and template signs reach the reader as text, hidden characters written out."""
    made = sheet(sheet_item("a", fields={text: text}, reasons=(text,), edit=text))
    page = form_page(made)
    (item,) = data_of(page)["items"]
    assert item["fields"] == [
        {"title": sheets.visible(text), "text": sheets.visible(text)}
    ]
    assert (item["note"], item["edit"]) == (sheets.visible(text), sheets.visible(text))
    assert page == form_page(made)
    assert page.count("<script") == 2
    assert "\u202e" not in page
    assert page.encode()


def test_the_page_runs_only_its_own_script() -> None:
    """Hashes alone, no address; what is hidden is written out, what is too long is cut."""
    page = form_page(sheet(sheet_item("a")))
    assert "default-src 'none'; script-src 'sha256-" in page.replace("&#39;", "'")
    assert "http" not in page.replace("http-equiv", "")
    assert '<html lang="be">' in page
    assert "unsafe" not in page
    assert sheets.visible("a\r\nb\u200b\ud800\r") == "a\nb\\u200b\\ud800\\u000d"
    assert "sk-test" not in sheets.visible("sk-test-0a1b2c3d4e5f6071")


def test_the_twin_has_the_same_items() -> None:
    """A row an item, columns of items that lack a text empty."""
    shown = [{"answer": text} for text in HOSTILE]
    items = [sheet_item(f"i{n}", fields=one, edit=None) for n, one in enumerate(shown)]
    text = sheets.csv_twin(sheet(*items, sheet_item("last"), reviewer="Ана"))
    header = "item,language,shown: answer,shown: question,why,rules,to_edit,choices"
    assert text.startswith('\ufeff"' + header.replace(",", '","'))
    rows = list(csv.DictReader(io.StringIO(text[1:], newline="")))
    assert [row["item"] for row in rows] == [*(item.id for item in items), "last"]
    assert (rows[-1]["shown: answer"], rows[-1]["to_edit"]) == ("", "Ці last?")
    assert {row["reviewer"] for row in rows} == {"Ана"}


@tabled("text")
def test_a_guarded_cell_reads_back_as_it_was(text: str) -> None:
    """The guard is taken off again, and a quote of the writer's own is not."""
    assert unguarded(cell(text)) == text


def test_reasons_are_told_in_the_items_language() -> None:
    """In the form and in its twin, with the rules; a reason of the sheet's own as it stands. A
    sheet that edits nothing has no such column."""
    assert "to_edit" not in sheets.csv_twin(sheet(sheet_item("a", edit=None)))
    made = sheet(sheet_item("a", reasons=("sample", "наша ўласная")))
    told = "выпадковая выбарка для кантролю; наша ўласная"
    assert data_of(form_page(made))["items"][0]["note"] == told
    assert f',"{told}",' in sheets.csv_twin(made)
    rules = sheets.texts_in("be")["rules"]["question"]
    assert data_of(form_page(made))["items"][0]["rules"] == rules
    assert rules in sheets.csv_twin(made)


def test_both_files_are_written_or_the_reason_is_said(tmp_path: Path) -> None:
    """A folder is made where there is none; a file in the way is named."""
    paths = write_sheet(sheet(sheet_item("a")), tmp_path / "new")
    assert sorted((tmp_path / "new").iterdir()) == [*reversed(paths)]
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with pytest.raises(QAError, match=r"sheet\.html: cannot be written"):
        write_sheet(sheet(sheet_item("a")), tmp_path / "file")


SHEET = sheet(sheet_item("a"), sheet_item("b"), sheet_item("c"))


def filled(path: Path, rows: dict[str, dict[str, str]]) -> Path:
    path.write_text(sheets.csv_twin(SHEET)[1:], encoding="utf-8")
    return filled_in(path, lambda _, row: rows.get(row["item"], {}), path)


def rows_of(reviews: tuple[Review, ...]) -> list[tuple[str, str, str, str, str]]:
    return [(r.item, r.reviewer, r.verdict, r.edited, r.comment) for r in reviews]


def test_the_twin_comes_back_as_it_was_filled_in(tmp_path: Path) -> None:
    """Any letter case, BOM or not; rows left empty say nothing; a guard is taken off."""
    rows = {
        "a": {"verdict": "yes", "reviewer": " Ана  Петрова "},
        "b": {
            "verdict": "BAD_LANGUAGE",
            "edited": "'=Ці?",
            "comment": "so",
            "reviewer": "Іван",
        },
    }
    path = filled(tmp_path / "sheet.csv", rows)
    expected = [
        ("a", "Ана Петрова", "YES", "", ""),
        ("b", "Іван", "BAD_LANGUAGE", "=Ці?", "so"),
    ]
    assert rows_of(read_sheets([path], SHEET)) == expected


def test_form_and_twin_of_one_person_count_once(tmp_path: Path) -> None:
    """Sent twice is said once; the comment alone is kept as well."""
    twin = filled(tmp_path / "a.csv", {"a": {"verdict": "NO", "reviewer": "ана"}})
    form = saved(tmp_path / "a.json", "Ана", {"a": "no", "b": "YES"})
    expected = [("a", "Ана", "NO", "", ""), ("b", "Ана", "YES", "", "")]
    assert rows_of(read_sheets([form, twin], SHEET)) == expected
    other = saved(tmp_path / "b.json", "Ана", {"a": "YES"})
    with pytest.raises(
        UsageError, match=r"a\.csv:2: row 1: 'ана' said otherwise .*b\.json"
    ):
        read_sheets([other, twin], SHEET)


@tabled("cells", "message")
def test_a_wrong_cell_is_named(
    cells: dict[str, str], message: str, tmp_path: Path
) -> None:
    """By file, row and column."""
    path = filled(tmp_path / "sheet.csv", {"a": cells})
    with pytest.raises(UsageError, match=message):
        read_sheets([path], SHEET)


@tabled("form", "message")
def test_a_broken_export_is_refused(form: object, message: str, tmp_path: Path) -> None:
    """Nothing is guessed; the place is named."""
    row = {"item": "a", "verdict": "YES", "edited": "", "comment": ""}
    if isinstance(form, dict):
        rows = form.get("rows", [{**row, **form}])
        form = {"sheet": "x", "reviewer": "A", "rows": rows}
    path = tmp_path / "x.json"
    path.write_text(
        form if isinstance(form, str) else json.dumps(form), encoding="utf-8"
    )
    with pytest.raises(UsageError, match=re.escape(message)):
        read_sheets([path], SHEET)


def test_other_files_are_refused(tmp_path: Path) -> None:
    """Another suffix, and a table that lacks a column."""
    with pytest.raises(UsageError, match=r"ends in \.json"):
        read_sheets([tmp_path / "x.xlsx"], SHEET)
    (tmp_path / "x.csv").write_text("item,verdict\na,YES\n", encoding="utf-8")
    with pytest.raises(UsageError, match=r"x\.csv:1: no column 'edited'"):
        read_sheets([tmp_path / "x.csv"], SHEET)


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=30)


@settings(max_examples=30)
@given(
    verdicts=st.lists(
        st.sampled_from(("YES", "NO", "UNCLEAR")), min_size=3, max_size=3
    ),
    edits=st.lists(TEXT, min_size=3, max_size=3),
)
def test_both_ways_back_say_the_same(
    verdicts: list[str], edits: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """No matter what was typed, the export and the twin read as the same reviews."""
    folder = tmp_path_factory.mktemp("ways")
    given = dict(zip("abc", verdicts, strict=True))
    texts = dict(zip("abc", (edit.strip() for edit in edits), strict=True))
    plain = {item: text for item, text in texts.items() if unguarded(text) == text}
    rows = {
        item: {"verdict": verdict, "edited": plain.get(item, ""), "reviewer": "A"}
        for item, verdict in given.items()
    }
    form = saved(folder / "x.json", "A", given, plain)
    twin = filled(folder / "x.csv", rows)
    assert rows_of(read_sheets([form], SHEET)) == rows_of(read_sheets([twin], SHEET))


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
    """Two who differ are a conflict until a third agrees with one; a comment is no verdict."""
    assert not settle(["q"], [review("q", "A", "", comment="hm")])["q"].reviews
    found = settle(["q"], reviews_of({"q": letters}))["q"]
    assert (bool(found.verdict), bool(found.reviews)) == (
        state == "agreed",
        state != "unreviewed",
    )
    assert found.verdict == verdict
    if verdict:
        names = [one.reviewer for one in found.agreed]
        agreed = [
            name for name, said in zip(NAMES, letters, strict=True) if said == "Y"
        ]
        assert names == sorted(agreed, key=str.casefold)


def test_edits_are_settled_among_those_whose_verdict_stands() -> None:
    """One edit is applied; two that differ are a conflict; the loser's edit is not looked at."""
    one = [review("q", "A", "Y", "new", "why"), review("q", "B", "Y", comment="why")]
    settled = settle(["q"], one)["q"]
    assert (settled.verdict, settled.edited, len(settled.agreed)) == ("Y", "new", 2)
    assert (settled.edited, settle(["q"], [])["q"].edited) == ("new", "")
    two = [*one, review("q", "C", "Y", "other")]
    assert settle(["q"], two)["q"].verdict == ""
    assert settle(["q"], [*one, review("q", "C", "N", "other")])["q"].edited == "new"


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
def test_agreement_is_bounded_and_perfect_only_without_a_difference(
    tables: list[str],
) -> None:
    """Raw agreement is a share, each figure lies in its interval, alpha 1 means no difference."""
    (every,) = agreement(
        reviews_of({f"q{n}": letters for n, letters in enumerate(tables)})
    )
    seen = [[v for v in letters if v != "."] for letters in tables]
    pairs = [one == two for unit in seen for one, two in combinations(unit, 2)]
    assert every.items == sum(len(unit) > 1 for unit in seen)
    assert every.raw.value == (
        pytest.approx(sum(pairs) / len(pairs)) if pairs else None
    )
    if every.alpha.value is not None:
        assert (every.alpha.value > 1 - 1e-9) == all(pairs)
    for figure in (every.raw, *(pair.kappa for pair in every.pairs)):
        if figure.interval is not None:
            low, high = figure.interval
            assert low - 1e-9 <= some(figure.value) <= high + 1e-9


def test_agreement_by_group_and_of_ratings() -> None:
    """A line a group, by name; ratings one step apart agree far beyond labels that differ."""
    table = {"a": "YY", "b": "YN", "c": "NN", "d": "NN"}
    found = agreement(reviews_of(table), {"a": "why", "b": "why", "c": "how"})
    assert [(one.group, one.items) for one in found] == [
        ("", 4),
        ("how", 1),
        ("why", 2),
    ]
    scores = {f"q{n}": (str(n), str(min(n + 1, 10))) for n in range(1, 11)}
    rated = [
        review(i, n, v)
        for i, two in scores.items()
        for n, v in zip("AB", two, strict=True)
    ]
    (every,) = agreement(rated)
    assert every.raw.value == pytest.approx(0.1)
    assert min(some(every.alpha.value), some(every.pairs[0].kappa.value)) > 0.9
    (same,) = agreement([review("q", "A", "7"), review("q", "B", "7")])
    assert (same.alpha.value, same.pairs[0].kappa.value) == (None, None)


def test_the_overlap_is_drawn_from_every_group_in_proportion() -> None:
    """A fifth of forty items: eight are seen by two, six news and two others; or all there are."""
    assert sheets.draw(GROUPS, 99, 0) == set(GROUPS)
    assert sheets.draw({}, 3, 0) == set()
    given = sheets.assign(GROUPS, NAMES, 0.2)
    times = {item: sum(item in some for some in given.values()) for item in GROUPS}
    shared = [item for item, count in times.items() if count == 2]
    assert (
        sorted(GROUPS[item] for item in shared) == ["encyclopaedia"] * 2 + ["news"] * 6
    )
    assert set(times.values()) == {1, 2}
    assert given == sheets.assign(GROUPS, NAMES, 0.2)
    assert given != sheets.assign(GROUPS, NAMES, 0.2, 1)


@given(
    size=st.integers(0, 40),
    people=st.integers(2, 5),
    overlap=st.floats(0, 1),
    seed=st.integers(0, 9),
)
def test_items_are_shared_out_evenly(
    size: int, people: int, overlap: float, seed: int
) -> None:
    """For any numbers."""
    groups = {f"q{n}": str(n % 3) for n in range(size)}
    given = sheets.assign(groups, tuple("abcde"[:people]), overlap, seed)
    loads = [len(items) for items in given.values()]
    assert max(loads) - min(loads) <= 1
    assert sum(loads) == size + round(overlap * size)
    assert set().union(*given.values()) == set(groups)


@tabled("values", "message")
def test_a_duty_that_nobody_could_do_is_refused(
    values: dict[str, object], message: str
) -> None:
    """In one line."""
    with pytest.raises(UsageError, match=message):
        sheets.assign({}, **{"overlap": 0.2, **values})  # type: ignore[arg-type]


CASE = make_case()
KEY = answer_digest(CASE, "Sofia, perhaps")
RUBRIC = make_rubric()
MODEL = Scripted(lambda request: Reply(text="x"))


def decided(
    label: str = "CORRECT", digest: str = KEY, name: str = "Ана"
) -> Adjudication:
    return Adjudication(
        item="d-bg-q1",
        digest=digest,
        label=label,
        name=name,
        reason="so: it's",
        date="2026-11-21",
    )


async def never(model: Model, request: Request) -> Reply:
    raise AssertionError("no call may be made")


def judged(judge: AdjudicatedJudge, answer: str, case: Case = CASE) -> Verdict:
    return asyncio.run(judge.judge(case, answer, never))


def adjudicated(
    *given: Adjudication, labels: Sequence[str] = ("CORRECT",)
) -> AdjudicatedJudge:
    kept = {one.digest: one for one in given}
    return AdjudicatedJudge(behind=LexicalJudge(), adjudications=kept, labels=labels)


def test_a_person_decides_before_the_judge() -> None:
    """The reason says who gave the verdict, when and why, and what the judge says."""
    verdict = judged(adjudicated(decided()), "Sofia, perhaps")
    assert (verdict.grade, verdict.adjudicated_by) == ("CORRECT", "Ана")
    assert verdict.reason.startswith(
        "adjudicated by Ана, 2026-11-21: so: it's; lexical: "
    )


def test_a_person_decides_for_that_answer_alone() -> None:
    other = judged(adjudicated(decided()), "Варна")
    assert (other.grade, other.adjudicated_by) == ("INCORRECT", "")


def test_a_person_decides_for_that_item_alone() -> None:
    changed = make_case(digest="changed")
    verdict = judged(adjudicated(decided()), "Sofia, perhaps", changed)
    assert verdict.adjudicated_by == ""


def test_a_person_may_give_a_rating() -> None:
    verdict = judged(adjudicated(decided("7"), labels=("7",)), "Sofia, perhaps")
    assert (verdict.grade, verdict.rating) == (None, 7)


def test_a_verdict_that_the_item_cannot_have_is_an_error() -> None:
    """The judge does not step in for it: the file has to be corrected."""
    judge = adjudicated(decided("7"))
    with pytest.raises(JudgeError, match="Ана gave '7' where CORRECT fit") as raised:
        judged(judge, "Sofia, perhaps")
    assert raised.value.kind == "adjudication"


def adjudicated_model(reply: Reply | None) -> tuple[Scripted, Verdict]:
    """Return a judge's model and a person's verdict before it; None: the call fails."""

    def handler(request: Request) -> Reply:
        if reply is None:
            raise CallError("server", "down")
        return reply

    model = Scripted(handler)
    judge = AdjudicatedJudge(
        behind=RubricJudge(model=model, rubric=RUBRIC),
        adjudications={KEY: decided()},
        labels=("CORRECT",),
    )
    return model, asyncio.run(judge.judge(CASE, "Sofia, perhaps", complete))


def test_the_judge_grades_what_a_person_judged() -> None:
    """A4: its grade stands beside the person's, so that two runs can be compared by it."""
    call = ToolCall(name="grade", arguments='{"reason": "r", "grade": "INCORRECT"}')
    model, verdict = adjudicated_model(Reply(calls=(call,)))
    assert len(model.requests) == 1
    assert (verdict.grade, verdict.judge_grade) == ("CORRECT", "INCORRECT")


def test_a_person_decides_where_the_judge_cannot_be_asked() -> None:
    _, verdict = adjudicated_model(None)
    assert (verdict.grade, verdict.judge_grade) == ("CORRECT", None)
    assert verdict.reason == "adjudicated by Ана, 2026-11-21: so: it's"


def test_a_person_decides_where_the_judge_is_unreadable() -> None:
    _, verdict = adjudicated_model(Reply(text="?"))
    assert (verdict.grade, verdict.judge_grade) == ("CORRECT", None)


def test_the_judge_behind_people_is_one_that_may_be_asked() -> None:
    behind = RubricJudge(model=MODEL, rubric=RUBRIC)
    judge = AdjudicatedJudge(behind=behind, adjudications={}, labels=())
    assert list(single_judges(judge)) == [behind]


@tabled("kind", "label", "fits")
def test_each_kind_takes_its_verdicts(
    kind: str, label: str | None, fits: list[str] | None
) -> None:
    """A judge that is itself tested is never overridden, and nothing changes without verdicts."""
    own = {
        "kind": kind_of(kind),
        "path": Path("x"),
        "rubric": RUBRIC,
        "yes": "Да",
        "no": "Не",
    }
    slice_ = Slice(dataset="d", language="bg", **own)  # type: ignore[arg-type]
    item = PlannedItem(key="k", slice=slice_, case=make_case(label=label), repeat=1)
    judge = make_tasks([item], None, judges("lexical"), {KEY: decided()})["k"].judge
    assert ([*judge.labels] if isinstance(judge, AdjudicatedJudge) else None) == fits
    assert not isinstance(
        make_tasks([item], None, judges("lexical"))["k"].judge, AdjudicatedJudge
    )
