"""The work folder is read strictly; people decide; the final choice is balanced by seed."""

import asyncio
import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qagate.cases.config import load_dataset
from qagate.cases.extras.builder import freeze
from qagate.cases.extras.builder.command import read_options
from qagate.cases.extras.builder.freeze import balanced, datasheet
from qagate.cases.extras.builder.recipe import load_recipe
from qagate.cases.extras.builder.steps import ModelCalls, StepCalls, check_finished
from qagate.cases.extras.builder.validation import (
    CONTESTED,
    accepted,
    agreed,
    assigned,
    reviewers_of,
    sheet_of,
)
from qagate.cases.extras.builder.work_folder import (
    BuildError,
    DraftItem,
    WorkFolder,
    drop_failed,
    from_row,
    locked,
    to_row,
)
from qagate.cases.extras.review.reviews import Review, agreement
from qagate.cases.loading import load_cases
from qagate.evaluators.core import Model, Reply, StoppedError, UsageError
from qagate.evaluators.models.spec import Prices, build
from qagate.evaluators.output import write_texts
from tests.support.building import make_item, recipe, rows
from tests.support.building_site import (
    TWO,
    Site,
    agreeing,
    answers_of,
    back_from_both,
    reviewed_site,
    sent_back,
)
from tests.support.fixtures import Captured
from tests.support.loopback import loopback, plausible
from tests.support.reviewing import Row, sheet_rows
from tests.support.scripted import ask_for
from tests.support.tables import kept, tabled

BE = Path(__file__).parents[3] / "qagate/cases/extras/builder/recipes/boolq.be.yaml"
TWO_ITEMS = [
    make_item(1),
    make_item(2, state="dropped", reason="length", batch=("a", "b")),
]


def published(path: Path) -> WorkFolder:
    folder = WorkFolder(path)
    folder.publish("sample", TWO_ITEMS, {"seed": 1}, "")
    return folder


@pytest.mark.parametrize(
    "row",
    ["[]", "{", '{"id": "x"}', '{"id": "x", "origin": {}}', "state", '{"unknown": 1}'],
)
def test_a_row_that_is_none_is_named(tmp_path: Path, row: str) -> None:
    """File and line are in the message."""
    if row == "state":
        row = json.dumps({**to_row(TWO_ITEMS[0]), "state": "odd"})
    (tmp_path / "check.jsonl").write_text(
        f"{{}}\n{json.dumps(to_row(ITEMS[0]))}\n{row}\n", "utf-8"
    )
    with pytest.raises(UsageError, match=r"check\.jsonl:3: "):
        WorkFolder(tmp_path).read("check")


def test_rows_of_the_work_folder() -> None:
    """Ids are ASCII and follow the article; a fault of the whole command leaves nothing out."""
    origin = TWO_ITEMS[0].origin
    assert origin.item_id("be") == replace(
        origin, source="/elsewhere/news.jsonl"
    ).item_id("be")
    assert origin.item_id("be").isascii()
    assert origin.item_id("be") != replace(origin, page="x").item_id("be")
    assert from_row(to_row(TWO_ITEMS[1])) == TWO_ITEMS[1]
    late = make_item(1, state="pending", reason="timeout")
    keyless = make_item(2, state="pending", reason="auth")
    assert drop_failed([late]) == [late]
    dropped, kept, waiting = drop_failed([late, make_item(3), keyless])
    assert (dropped.state, dropped.reason) == ("dropped", "failed_timeout")
    assert kept.state == "kept"
    assert waiting == keyless


def test_a_step_that_leaves_nothing_ends_the_build() -> None:
    """What dropped them all is said; one item that is left goes on, and so does no item at all."""
    check_finished("check", TWO_ITEMS)
    check_finished("check", [])
    with pytest.raises(
        BuildError, match=r"check: 1 in, 0 kept, 1 dropped \(length 1\): none"
    ):
        check_finished("check", TWO_ITEMS[1:])


@tabled("old", "new", "message")
def test_a_recipe_is_read_strictly(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    """A mistake in a language's file is named with its key, before anything is done."""
    path = tmp_path / "boolq.be.yaml"
    text = BE.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    if not message:
        assert load_recipe(path).labels["YES"] == "Можа"
        return
    with pytest.raises(UsageError, match=message.replace("{", r"\{")):
        load_recipe(path)


def test_what_a_recipe_leaves_out_is_the_bundled_ones(tmp_path: Path) -> None:
    """A recipe of three lines has all of its language; without forms of questions it is refused."""
    path = tmp_path / "mine.yaml"
    path.write_text("language: be\nquestion: {shortest: 15}\n", encoding="utf-8")
    with pytest.raises(UsageError, match="give patterns of yes/no questions"):
        load_recipe(path)
    path.write_text(
        "language: be\nbuild: {seed: 7, splits: {dev: 0.2, test: 0.8}}\n", "utf-8"
    )
    mine, bundled = load_recipe(path), load_recipe(BE)
    assert (mine.build.seed, mine.build.splits) == (7, {"dev": 0.2, "test": 0.8})
    assert replace(mine, path=BE, build=bundled.build) == bundled


def test_the_budget_holds_for_all_steps_together(tmp_path: Path) -> None:
    """Money spent in one step is missing in the next."""
    said: list[str] = []

    async def one(model: Model, calls: StepCalls) -> Reply | Exception:
        (found,) = await calls.ask_all(
            "one", [lambda ask: ask(model, ask_for(f"{len(said)}"))]
        )
        await asyncio.sleep(0)
        return found

    with loopback(handler=plausible()) as server:
        made = build("openai", "x", f"{server.url}/v1", "openai:x")
        spec = replace(
            made, prices=Prices(input=0, output=1000), parameters={"max_tokens": 5}
        )
        words = ["boolq", "--language", "be", "--ledger", str(tmp_path / "ledger")]
        calls = ModelCalls(
            read_options([*words, "--max-cost", "0.008"]), [spec], said.append
        )
        assert isinstance(calls.run("first", spec, one), Reply)
        assert isinstance(calls.run("second", spec, one), StoppedError)
        assert server.count == 1
    assert any("1 requests sent for $0.0050" in line for line in said)


def test_a_folder_that_cannot_be_had(tmp_path: Path) -> None:
    """The message names the folder and its obstacle, of any kind; one command at a time has it."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(BuildError, match=r"file.*cannot be written"):
        WorkFolder(tmp_path / "file" / "work").write_json("report.json", {})
    with (
        pytest.raises(BuildError, match="cannot be written"),
        locked(tmp_path / "file"),
    ):
        pass
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "lock").write_bytes(b"no database" * 200)
    with pytest.raises(BuildError, match="no lock"), locked(tmp_path / "work"):
        pass
    with locked(tmp_path):
        second = locked(tmp_path)
        with pytest.raises(BuildError, match="another command is at work there"):
            second.__enter__()
    with locked(tmp_path):
        pass


ASKED = {"asked": ["Ганна", "Янка"]}
QUESTION = "Ці праўда, што возера абмялела?"


def said(*verdicts: str, edits: tuple[str, ...] = ()) -> list[Review]:
    names = ("Ганна", "Янка", "Алесь")
    edits = (*edits, "", "", "")
    return [
        Review(
            item="be-0001", reviewer=name, verdict=verdict, edited=edited, comment="хм"
        )
        for name, verdict, edited in zip(names, verdicts, edits, strict=False)
    ]


def one_item(**changes: Any) -> Any:
    return make_item(1, question=QUESTION, answer="YES", review=ASKED, **changes)


@tabled("verdicts", "unreviewed", "state", "reason", "answer")
def test_verdicts(
    verdicts: str, *, unreviewed: bool, state: str, reason: str, answer: str
) -> None:
    """Confirmed and corrected items stay; a dispute waits for a third, and ends with him. With
    --unreviewed what is there counts, but one person alone turns no answer round."""
    (item,) = accepted([one_item()], said(*verdicts.split()), unreviewed=unreviewed)
    assert (item.state, item.reason, item.answer) == (state, reason, answer)
    assert item.review.get("answer_before", answer) == (
        "YES" if answer == "NO" else answer
    )


def test_an_edit_takes_the_place_of_the_question() -> None:
    """One who edits is enough, two wordings are a dispute; a share is drawn from each source."""
    (item,) = accepted(
        [one_item()], said("YES", "YES", edits=("Ці так?", "")), unreviewed=False
    )
    assert (item.question, item.review["question_before"]) == ("Ці так?", QUESTION)
    edits = ("Ці гэта так?", "Ці гэта праўда?")
    (item,) = accepted([one_item()], said("YES", "YES", edits=edits), unreviewed=False)
    assert (item.state, item.reason) == ("pending", "conflict")
    assert sheet_of("be", [item]).items[0].reasons == edits


def test_a_share_is_drawn_from_every_source_and_answer() -> None:
    """Half of the items are asked about, a quarter of those of two people."""
    items = [
        make_item(number, answer=("YES", "NO")[number % 2]) for number in range(40)
    ]
    values = {"share": 0.5, "reviewers": ["a", "b", "c"], "overlap": 0.25, "seed": 3}
    asked = assigned(items, values)
    seen = [item for item in asked if reviewers_of(item)]
    assert len(seen) == 20
    assert sum(len(reviewers_of(item)) == 2 for item in seen) == 5
    assert sum(item.answer == "YES" for item in seen) == 10
    assert assigned(items, values) == asked
    assert not any(reviewers_of(item) for item in assigned(items, {"share": 0.0}))


def test_what_models_disagree_on_goes_to_people() -> None:
    """All of it, however small the share, and the sheet says so; what nobody sees is dropped."""
    items = [make_item(n, answer="NO", validator={CONTESTED: n < 3}) for n in range(20)]
    asked = assigned(
        items, {"share": 0.1, "reviewers": ["Ганна"], "overlap": None, "seed": 0}
    )
    seen = [reviewers_of(one) for one in asked]
    assert all(seen[:3])
    assert max(map(len, seen)) == 1, "one alone sees no item twice"
    assert [one.reasons for one in sheet_of("be", asked[2:4]).items] == [
        (CONTESTED,),
        (),
    ]
    left = accepted(asked, [], unreviewed=True)
    assert [item.reason for item in left] == [CONTESTED] * 3 + [""] * 17


def test_agreement_is_counted_among_those_who_saw_it() -> None:
    """Who decides disputes is left out; an edited question keeps the type that it had."""
    (item,) = accepted([one_item()], said("YES", "NO", "NO"), unreviewed=False)
    (pair,) = agreed([item], recipe())[0].pairs
    assert (pair.first, pair.second) == ("Ганна", "Янка")
    (item,) = accepted(
        [one_item()], said("YES", "YES", edits=("Ці 5?", "")), unreviewed=False
    )
    other = replace(
        item, id="be-0002", review={**item.review, "question_before": "Ці не так?"}
    )
    assert [one.group for one in agreed([item, other], recipe())] == [
        "",
        "denial",
        "other",
    ]


@tabled("language", "question", "kind")
def test_questions_have_types(language: str, question: str, kind: str) -> None:
    """The first pattern of the language's recipe that is found."""
    assert recipe(language).type_of(question) == kind


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
    (
        reviewed.path / "work" / "accept.jsonl"
    ).unlink()  # the others begin from the sheets


def refused(made: Site, capsys: Captured, *words: str) -> str:
    capsys.readouterr()
    assert made.build(*words) == 4
    (line,) = capsys.readouterr().err.strip().splitlines()[-1:]
    return line


@tabled("words", "message")
def test_wrong_words(
    reviewed: Site, capsys: Captured, words: list[str], message: str
) -> None:
    """All that is wrong is said before anything is written."""
    assert message in refused(reviewed, capsys, *words)
    assert not (reviewed.path / "work" / "freeze.jsonl").exists()


def test_wrong_sheets_and_names_are_told(
    reviewed: Site, tmp_path: Path, capsys: Captured
) -> None:
    """Reviewers have to be named; a verdict of another sheet's item is noticed with its row."""
    made = Site(tmp_path, reviewed.generator, reviewed.validator)
    made.recipe()
    assert "name who reviews" in refused(made, capsys, "review")
    sheet = reviewed.path / "work" / "review" / "be-1.csv"
    odd = {"item": "be-x", "verdict": "YES"}
    back = sent_back(sheet, reviewed.path / "odd.csv", lambda *_: odd)
    assert "'be-x' is no item of the sheet" in refused(
        reviewed, capsys, "accept", str(back)
    )


def test_sheets_show_no_answer(reviewed: Site) -> None:
    """Reviewers judge blind: neither form nor CSV tells what was generated."""
    sheets = reviewed.path / "work" / "review"
    for row in sheet_rows(sheets / "be-1.csv"):
        assert "YES | NO | UNCLEAR | BAD_LANGUAGE" in row["choices"]
        assert not {"answer", "shown: answer", "expected"} & set(row)
    page = (sheets / "be-1.html").read_text("utf-8")
    assert "Ганна" in page
    assert (
        '"answer"'
        not in page.partition('<script type="application/json"')[2].partition("]")[0]
    )


def test_sheets_are_written_again_and_settings_remembered(
    reviewed: Site, capsys: Captured
) -> None:
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
        assert (
            made.build("accept", *back_from_both(made, lambda *_: {"verdict": "YES"}))
            == 1
        )
        disputes, third = (
            tmp_path / "work/review/be-disputes.csv",
            tmp_path / "third.csv",
        )
        sent_back(disputes, third, lambda *_: {"verdict": "YES", "reviewer": "Алесь"})
        assert made.build("accept", str(third)) == 0
        assert made.build("freeze", "--to", str(tmp_path / "mine")) == 1
    assert "no item is left" in capsys.readouterr().err
    assert not (tmp_path / "mine").exists()


LABELS = {"YES": "Так", "NO": "Не"}
ITEMS = [
    make_item(
        number,
        question=f"Ці праўда, што гэта {number}?",
        answer=("YES", "NO")[number % 2],
        split=("train", "test")[number // 2 % 2],
        generator={
            "model": "openai:x@http://10.0.0.1/v1",
            "returned": "x-1",
            "prompt": "g#1",
        },
        validator={"model": "anthropic:y", "prompt": "v#1"},
    )
    for number in range(8)
]


SHARES = {"majority": 0.52, "first word": 0.595}


def freeze_into(folder: Path, items: list[DraftItem] = ITEMS) -> Path:
    """Write the data files and what else is needed; returns the main file."""
    data = freeze.data_files(folder, recipe(), items)
    write_texts(freeze.changed(data).items())
    write_texts(
        freeze.missing_files(folder, recipe(), SHARES, ["train", "test"]).items()
    )
    return next(iter(data))


def test_a_new_folder_becomes_a_dataset(tmp_path: Path) -> None:
    """Settings, prompt and test module come next to the data, and are never written over."""
    folder = tmp_path / "mine"
    main = freeze_into(folder)
    before = main.stat().st_mtime_ns
    freeze_into(folder)
    assert main.stat().st_mtime_ns == before
    with pytest.raises(
        UsageError, match=r"be\.jsonl: is there already, with other content"
    ):
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
    items = [
        *ITEMS[:-1],
        make_item(7, answer="NO", review={"said": said, "answer_before": "YES"}),
    ]
    told = kept(__file__, "datasheet")
    told["options"]["validate"]["blind"] = told["options"]["probe"]["probe"] = blind
    text = datasheet(
        name="mine",
        language="be",
        labels=LABELS,
        items=items,
        options=told["options"],
        report=told["report"],
        agreement=agreement([]),
        files={"be.jsonl": "123"},
    )
    assert text.startswith("# mine (be): datasheet\n")
    assert [part for part in told["has"] if part not in text] == []
    assert [part for part in ("/home/me", "10.0.0.1", "Ганна") if part in text] == []
    assert ("first answered by itself, with prompt `answer.be#1`" in text) is blind
    assert ("3 items that both answered right were dropped" in text) is blind
    assert (
        "No model was asked the questions without their passages." in text
    ) is not blind


def test_a_source_that_gave_too_little_is_named(
    tmp_path: Path, capsys: Captured
) -> None:
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
    items = []
    for number, (group, answer) in enumerate(answers):
        item = make_item(number, answer=answer)
        items.append(replace(item, origin=replace(item.origin, group=group)))
    return items


@settings(max_examples=50, deadline=None)
@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.sampled_from(["YES", "NO"])), max_size=60
    ),
    st.integers(0, 40),
    st.integers(0, 5),
)
def test_each_split_is_half_and_half(
    answers: list[tuple[str, str]], size: int, seed: int
) -> None:
    """As many yes as no, never more than wanted, none lost; what can be taken is taken."""
    items = made(answers)
    chosen = balanced(items, {"a": size, "b": size}, SPLITS, seed)
    assert [item.id for item in chosen] == [item.id for item in items]
    assert balanced(items, {"a": size, "b": size}, SPLITS, seed) == chosen
    kept = Counter(
        (item.origin.group, item.split, item.answer)
        for item in chosen
        if item.state == "kept"
    )
    for group in "ab":
        for split in SPLITS:
            assert kept[group, split, "YES"] == kept[group, split, "NO"]
        had = Counter(answer for one, answer in answers if one == group)
        got = sum(count for (one, _, _), count in kept.items() if one == group)
        assert got == 2 * min(had["YES"], had["NO"], size // 2)
    assert all(
        item.reason in ("balance", "surplus")
        for item in chosen
        if item.state == "dropped"
    )


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


def test_which_items_are_taken() -> None:
    """Reviewed ones first, and of one article one."""
    items = made([("a", "YES")] * 6 + [("a", "NO")] * 2)
    said = {"said": [{"reviewer": "x", "verdict": "YES", "edited": "", "comment": ""}]}
    items[4] = replace(items[4], review=said)
    items[5] = replace(items[5], review=said)
    chosen = balanced(items, {"a": 100}, {}, 1)
    kept = {item.id for item in chosen if item.state == "kept" and item.answer == "YES"}
    assert kept == {items[4].id, items[5].id}
    assert Counter(item.reason for item in chosen if item.state == "dropped") == {
        "balance": 4
    }
    items = made([("a", "YES"), ("b", "YES"), ("a", "NO"), ("b", "NO")])
    items[:2] = [
        replace(one, origin=replace(one.origin, url="https://x")) for one in items[:2]
    ]
    chosen = balanced(items, {"a": 10, "b": 10}, {}, 1)
    assert chosen[1].reason == "same_article"
    assert Counter(item.state for item in chosen) == {"kept": 2, "dropped": 2}
