"""The review form in a real browser: keys give verdicts and ratings, texts do nothing."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import Page, expect

from qagate.cases.extras.review.page import write_sheet
from qagate.cases.extras.review.sheet import SheetItem
from qagate.command import main
from qagate.reports.extras.sequential.human_review import load_ratings
from tests.support.browsing import Browser, Tab, browser, needs_browser
from tests.support.figures import some
from tests.support.fixtures import Captured
from tests.support.hostile import HOSTILE
from tests.support.made_runs import answered, run_of, written
from tests.support.reviewing import read_sheets, sheet, sheet_item
from tests.support.tables import kept

__all__ = ["browser"]
pytestmark = [pytest.mark.slow, needs_browser]


def items() -> list[SheetItem]:
    """Return two Belarusian questions to edit, an English answer, and everything hostile."""
    texts = [(f"h{n}", text) for n, text in enumerate(HOSTILE)]
    hostile = [sheet_item(n, fields={x: x}, reasons=(x,), edit=x) for n, x in texts]
    english = sheet_item("c", "grade", language="en", edit=None)
    return [sheet_item("a"), sheet_item("b"), english, *hostile]


CRITERIA: str = kept(__file__, "criteria")


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose form of three answers by three criteria was issued."""
    folder = tmp_path_factory.mktemp("criteria")
    (folder / "criteria.yaml").write_text(CRITERIA, encoding="utf-8")
    path = written(run_of(answered("cin")), folder / "run")
    assert main(["review", str(path), "--criteria", str(folder / "criteria.yaml")]) == 0
    return path


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_sheet(sheet(*items()), tmp_path_factory.mktemp("form"))[0]


def opened(browser: Browser, path: Path) -> Iterator[Tab]:
    """Open a form for the first time on a phone; it must neither complain nor fetch."""
    tab = Tab(browser, path, width=390)
    tab.page.bring_to_front()  # a page behind another gets no focus
    yield tab
    assert tab.complaints == []
    assert set(tab.requests) == {path.as_uri()}
    tab.page.close()


@pytest.fixture
def tab(browser: Browser, path: Path) -> Iterator[Tab]:
    yield from opened(browser, path)


@pytest.fixture
def rating(browser: Browser, run: Path) -> Iterator[Tab]:
    yield from opened(browser, run / "criteria.html")


def press(tab: Tab, *keys: str) -> None:
    for key in keys:
        tab.page.keyboard.press(key)


def save(page: Page, path: Path) -> Path:
    with page.expect_download() as download:
        page.click("#export")
    download.value.save_as(path)
    return path


def test_verdicts_by_the_keyboard_come_back_as_reviews(
    tab: Tab, tmp_path: Path
) -> None:
    """One key a verdict, E to edit, M to comment; the saved file reads back as what was said."""
    page = tab.page
    page.fill("#reviewer", "Ана Петрова")
    press(tab, "Escape", "e", "Control+End")
    page.keyboard.type(" (y)")
    press(tab, "Escape", "m")
    page.keyboard.type("n = не")
    press(tab, "Escape", "y")
    expect(page.locator("#position")).to_contain_text("Пытанне 2 з ")
    press(tab, "n", "c")
    expect(page.locator("#progress")).to_have_text(f"Праверана: 3 з {len(items())}")
    file = save(page, tmp_path / "sheet.json")
    reviews = read_sheets([file], sheet(*items()))
    found = [(r.item, r.verdict, r.edited, r.comment) for r in reviews]
    assert found == [
        ("a", "YES", "Ці a? (y)", "n = не"),
        ("b", "NO", "", ""),
        ("c", "CORRECT", "", ""),
    ]
    assert reviews[0].reviewer == "Ана Петрова"
    expect(page.locator("#status")).to_have_text("Файл захаваны. Адпраўце яго назад.")


def test_hostile_texts_do_nothing(tab: Tab) -> None:
    """Walked through to the end: no error, no dialog, no request, every verdict still works."""
    page = tab.page
    for _ in items():
        press(tab, "ArrowRight")
    assert page.is_disabled("#next")
    for _ in items():
        press(tab, "u")
    expect(page.locator("#status")).to_contain_text("Усе пытанні ацэнены.")
    assert page.title() == "Праверка"
    assert page.locator("img, iframe, form, a, base").count() == 0


def test_the_form_resumes_where_it_was_left(tab: Tab) -> None:
    """Name, verdict, edit and comment stand there again; the same key takes a verdict back."""
    page = tab.page
    page.fill("#reviewer", "Іван")
    page.fill("#edit", "Ці так?")
    page.fill("#comment", "добра")
    page.click("#choices button[data-value=BAD_LANGUAGE]")
    page.reload()
    assert page.input_value("#reviewer") == "Іван"
    assert (page.input_value("#edit"), page.input_value("#comment")) == (
        "Ці так?",
        "добра",
    )
    pressed = page.locator("#choices [aria-pressed=true]")
    assert pressed.inner_text().startswith("Моўныя памылкі")
    press(tab, "b")
    assert pressed.count() == 0
    expect(page.locator("#progress")).to_contain_text("Праверана: 0 ")


def test_the_form_speaks_the_items_language(tab: Tab) -> None:
    """Words, verdicts and the page's language follow the item; one language may be chosen."""
    page = tab.page
    assert page.get_attribute("html", "lang") == "be"
    expect(page.locator("label[for=comment]")).to_have_text("Каментарый")
    expect(page.locator("#rules-text")).to_contain_text("Судзіце толькі паводле таго")
    page.select_option("#language", "en")
    assert page.get_attribute("html", "lang") == "en"
    expect(page.locator("#position")).to_have_text("Item 1 of 1")
    expect(page.locator("#choices button >> nth=0")).to_have_text("CorrectC")
    assert page.is_hidden("#edit")
    press(tab, "e")
    assert page.evaluate("document.activeElement.id") != "edit"
    assert page.locator("#fields dd").get_attribute("lang") == "en"


@pytest.mark.parametrize(
    ("key", "code", "verdict"),
    [
        ("н", "KeyY", "YES"),
        ("n", "KeyN", "NO"),
        ("Y", "KeyZ", "YES"),
        ("ф", "KeyQ", ""),
    ],
)
def test_a_keyboard_of_another_script_works(
    tab: Tab, key: str, code: str, verdict: str
) -> None:
    """A Latin letter counts as it is; a letter of another script by the place of its key."""
    tab.page.evaluate(
        """([key, code]) => document.body.dispatchEvent(
            new KeyboardEvent("keydown", { key, code, bubbles: true }))""",
        [key, code],
    )
    press(tab, "ArrowLeft")
    pressed = tab.page.locator("#choices [aria-pressed=true]")
    found = [one.get_attribute("data-value") for one in pressed.all()]
    assert found == ([verdict] if verdict else [])


def test_nothing_is_saved_without_a_name(tab: Tab) -> None:
    """The form asks for a name; where storage is forbidden it says to save a file."""
    press(tab, "y")
    tab.page.click("#export")
    assert tab.page.inner_text("#status") == "Спачатку напішыце сваё імя."
    assert tab.page.evaluate("document.activeElement.id") == "reviewer"
    page = tab.page
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('denied'); } })"
    )
    page.reload()
    press(tab, "y")
    expect(page.locator("#kept")).to_contain_text("Гэты браўзер нічога не захоўвае")
    expect(page.locator("#progress")).to_contain_text("Праверана: 1 ")


@pytest.mark.parametrize("width", [320, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_they_fit_screens(
    browser: Browser, path: Path, run: Path, width: int, scheme: str
) -> None:
    """They never scroll sideways, fields and buttons have names, and a finger finds every point."""
    page = Tab(browser, path, width=width, scheme=scheme).page
    for _ in range(len(items())):
        assert page.evaluate("document.documentElement.scrollWidth") == width
        page.keyboard.press("ArrowRight")
    dark = (
        page.evaluate("getComputedStyle(document.body).backgroundColor")
        != "rgb(255, 255, 255)"
    )
    assert dark == (scheme == "dark")
    for role in ("textbox", "button", "progressbar", "combobox"):
        assert page.get_by_role(role).count() > 0
        for one in page.get_by_role(role).all():
            assert one.evaluate(
                "e => (e.labels?.[0] ?? e).textContent || e.ariaLabelledByElements"
            )
    page.goto((run / "criteria.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == width
    for one in page.locator("#choices button").all():
        box = some(one.bounding_box())
        assert min(box["width"], box["height"]) >= 44
    page.close()


def test_without_script_the_reader_is_sent_to_the_twin(
    browser: Browser, path: Path
) -> None:
    """The notice, in the items' language."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert "CSV" in page.inner_text("noscript p")
    assert page.is_hidden("#form")
    context.close()


def test_a_sheet_made_out_to_somebody_names_them(
    browser: Browser, tmp_path: Path
) -> None:
    """Its file is named after the sheet and the reviewer."""
    path, _ = write_sheet(sheet(sheet_item("a"), reviewer="Ана П."), tmp_path)
    page = browser.new_page()
    page.goto(path.as_uri())
    assert page.input_value("#reviewer") == "Ана П."
    page.keyboard.press("y")
    with page.expect_download() as download:
        page.click("#export")
    assert download.value.suggested_filename == "sheet.Ана-П.json"
    saved = json.loads(download.value.path().read_text(encoding="utf-8"))
    assert (saved["reviewer"], len(saved["rows"])) == ("Ана П.", 1)
    page.close()


def expect_given(page: Page, **points: str) -> None:
    """Wait until these questions of the item, by a word of theirs, and no others are rated."""
    expect(page.locator("#choices [aria-pressed=true]")).to_have_count(len(points))
    for word, point in points.items():
        group = page.locator("#choices fieldset").filter(has_text=word)
        expect(group.locator("[aria-pressed=true]")).to_contain_text(point)


def expect_current(page: Page, word: str) -> None:
    """Wait until the question with a word is the one that keys rate."""
    expect(page.locator("[aria-current=true] legend")).to_contain_text(word)


def test_digits_rate_in_turn(
    rating: Tab, run: Path, tmp_path: Path, capsys: Captured
) -> None:
    """Item after item; what the form saves is accepted, and kept with the comment."""
    page = rating.page
    page.fill("#reviewer", "Anna")
    press(rating, "Escape", *"737")
    expect(page.locator("#position")).to_have_text(
        "Item 1 of 3"
    )  # there is no 7 from 0 to 4
    page.keyboard.press("0")
    expect(page.locator("#position")).to_have_text("Item 2 of 3")
    expect(page.locator("#progress")).to_have_text("1 of 3 reviewed")
    page.keyboard.press("m")
    page.keyboard.type("too long: 4")
    press(rating, "Escape", *"154222")
    expect(page.locator("#status")).to_contain_text("Every item has a verdict.")
    assert accepted(save(page, tmp_path / "anna.json"), run, tmp_path) == 0
    assert (
        "Anna rated 3 of 3 answers in full, 0 in part, 0 not at all"
        in capsys.readouterr().out
    )
    found = load_ratings(tmp_path / "r.jsonl")
    assert [(one.item[-2:], one.criterion, one.rating) for one in found] == [
        *(("i0", "accuracy", 7), ("i0", "style", 3), ("i0", "length", 0)),
        *(("i1", "accuracy", 1), ("i1", "style", 5), ("i1", "length", 4)),
        *(("i2", "accuracy", 2), ("i2", "style", 2), ("i2", "length", 2)),
    ]
    assert [one.comment for one in found] == ["", "", "", "too long: 4", *[""] * 5]


def test_questions_and_their_ends_stand_as_given(rating: Tab) -> None:
    """One text of the answer, three questions with as many points as each scale has."""
    page = rating.page
    assert page.locator("#fields dd").count() == 3  # question, expected and answer
    legends = page.locator("legend").all_inner_texts()
    assert (
        legends[0]
        == "How accurate is the answer?\n1 = wrong throughout · 7 = wholly right"
    )
    assert legends[1] == "Is it <b>well</b> written?"
    groups = page.locator("#choices fieldset").all()
    assert [one.locator("button").count() for one in groups] == [7, 5, 5]
    assert groups[2].locator("button").all_inner_texts() == [*"01234"]
    assert page.is_hidden("#rules")
    assert page.is_hidden("#note")
    assert page.is_hidden("#rubric")


def test_touch_and_arrows_choose_the_question(rating: Tab) -> None:
    """A tap rates its own question; the next key goes to the first that is open."""
    page = rating.page
    page.locator("#choices fieldset >> nth=1").locator("button[data-value='5']").click()
    expect_given(page, written="5")
    expect_current(page, "accurate")
    press(rating, "ArrowDown", "ArrowDown")
    expect_current(page, "long")
    press(rating, "4")
    expect_given(page, written="5", long="4")
    expect_current(page, "accurate")
    press(rating, "ArrowDown")
    expect_current(page, "written")
    press(rating, "5")  # the same again takes it back
    expect_given(page, long="4")
    page.locator("#choices fieldset >> nth=2").locator("button >> nth=0").focus()
    expect_current(page, "long")
    expect(page.locator("#progress")).to_have_text("0 of 3 reviewed")
    page.reload()
    expect_given(page, long="4")
    expect(page.locator("#position")).to_have_text("Item 1 of 3")


def test_part_of_an_item_is_sent(
    rating: Tab, run: Path, tmp_path: Path, capsys: Captured
) -> None:
    """The item stays open in the form, and is counted as rated in part."""
    rating.page.fill("#reviewer", "Jan")
    press(rating, "Escape", "6")
    file = save(rating.page, tmp_path / "jan.json")
    assert len(json.loads(file.read_text("utf-8"))["rows"]) == 1
    assert accepted(file, run, tmp_path) == 0
    out = capsys.readouterr().out
    assert "Jan rated 0 of 3 answers in full, 1 in part, 2 not at all" in out
    assert "incomplete: facts-en-i0: no rating by Jan for length, style" in out


def accepted(file: Path, run: Path, folder: Path) -> int:
    """Return how the command ends that takes a saved form."""
    words = ["review", "--accept", str(file), "--sheet", str(run / "sheet.json")]
    return main([*words, "--to", str(folder / "r.jsonl")])


def test_both_answers_of_a_pair_are_judged_on_one_screen(
    browser: Browser, tmp_path: Path
) -> None:
    """The keys go from the first answer to the second, and then to the next pair."""
    same = {"language": "en", "edit": None}
    answers = [
        sheet_item(
            one, "grade", **same, pair=one[0], fields={"question": "Q?", "answer": one}
        )
        for one in ("p1", "p2", "q1", "q2")
    ]
    for tab in opened(browser, write_sheet(sheet(*answers), tmp_path)[0]):
        page = tab.page
        names = ["Answer to be judged 1", "Answer to be judged 2"]
        assert page.locator("#fields dt").all_text_contents()[1:] == names
        assert page.locator("#choices legend").all_text_contents() == names
        page.keyboard.press("c")
        expect(page.locator("#position")).to_have_text("Item 1 of 2")
        page.keyboard.press("i")
        expect(page.locator("#position")).to_have_text("Item 2 of 2")
        kept = page.evaluate("Object.values(localStorage)[0]")
        said = {id_: one["verdict"] for id_, one in json.loads(kept)["answers"]}
        assert said == {"p1": "CORRECT", "p2": "INCORRECT"}
