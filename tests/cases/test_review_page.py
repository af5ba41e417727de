"""The review form in a real browser: keys give verdicts, texts do nothing, answers come out."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from cases.review.form import write_sheet
from cases.review.reviews import read_sheets
from cases.review.sheet import Field, SheetItem
from tests.support.hostile import HOSTILE
from tests.support.reviewing import sheet, sheet_item

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine"),
]
ARGUMENTS = ("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")


def items() -> list[SheetItem]:
    """Return two Belarusian questions to edit, an English answer, and everything hostile."""
    hostile = [
        sheet_item(f"h{n}", fields=(Field(title=text, text=text),), reasons=(text,), edit=text)
        for n, text in enumerate(HOSTILE)
    ]
    return [
        sheet_item("a"),
        sheet_item("b"),
        sheet_item("c", "grade", language="en", edit=None),
        *hostile,
    ]


class Tab:
    """A page with everything it complained about or tried to fetch."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        page.on("request", lambda request: self.requests.append(request.url))

    def keys(self, *keys: str) -> None:
        """Press keys one by one."""
        for key in keys:
            self.page.keyboard.press(key)

    def save(self, path: Path) -> Path:
        """Press the button and keep the file."""
        with self.page.expect_download() as download:
            self.page.click("#export")
        download.value.save_as(path)
        return path


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One headless browser for the module."""
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The form of all items."""
    return write_sheet(sheet(*items()), tmp_path_factory.mktemp("form"))[0]


@pytest.fixture
def tab(browser: Browser, path: Path) -> Iterator[Tab]:
    """The form, opened for the first time on a phone."""
    page = browser.new_page(viewport={"width": 390, "height": 844})
    tab = Tab(page)
    page.goto(path.as_uri())
    yield tab
    page.close()


def test_verdicts_by_the_keyboard_come_back_as_reviews(tab: Tab, tmp_path: Path) -> None:
    """One key a verdict, E to edit, M to comment; the saved file reads back as what was said."""
    page = tab.page
    page.fill("#reviewer", "Ана Петрова")
    tab.keys("Escape", "e", "Control+End")
    page.keyboard.type(" (y)")
    tab.keys("Escape", "m")
    page.keyboard.type("n = не")
    tab.keys("Escape", "y")
    assert page.inner_text("#position").startswith("Пытанне 2 з ")
    tab.keys("n", "c")
    assert page.inner_text("#progress") == f"Праверана: 3 з {len(items())}"
    file = tab.save(tmp_path / "sheet.json")
    found = [(r.item, r.verdict, r.edited, r.comment) for r in read_sheets([file])]
    assert found == [
        ("a", "YES", "Ці a? (y)", "n = не"),
        ("b", "NO", "", ""),
        ("c", "CORRECT", "", ""),
    ]
    assert read_sheets([file], sheet(*items()).allowed)[0].reviewer == "Ана Петрова"
    assert page.inner_text("#status") == "Файл захаваны. Адпраўце яго назад."
    assert tab.complaints == []


def test_hostile_texts_do_nothing(tab: Tab) -> None:
    """Walked through to the end: no error, no dialog, no request, every verdict still works."""
    page = tab.page
    for _ in items():
        tab.keys("ArrowRight")
    assert page.is_disabled("#next")
    for _ in items():
        tab.keys("u")
    assert page.inner_text("#status").startswith("Усе пытанні ацэнены.")
    assert page.title() == "Праверка"
    assert tab.complaints == []
    assert tab.requests == [page.url]
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
    assert (page.input_value("#edit"), page.input_value("#comment")) == ("Ці так?", "добра")
    pressed = page.locator("#choices [aria-pressed=true]")
    assert pressed.inner_text().startswith("Моўныя памылкі")
    tab.keys("b")
    assert pressed.count() == 0
    assert page.inner_text("#progress").startswith("Праверана: 0 ")


def test_the_form_speaks_the_items_language(tab: Tab) -> None:
    """Words, verdicts and the page's language follow the item; one language may be chosen."""
    page = tab.page
    assert page.get_attribute("html", "lang") == "be"
    assert page.inner_text("label[for=comment]") == "Каментарый"
    assert page.inner_text("#rules-text").startswith("Судзіце толькі паводле таго")
    page.select_option("#language", "en")
    assert page.get_attribute("html", "lang") == "en"
    assert page.inner_text("#position") == "Item 1 of 1"
    assert page.inner_text("#choices button >> nth=0") == "CorrectC"
    assert page.is_hidden("#edit")
    tab.keys("e")
    assert page.evaluate("document.activeElement.id") != "edit"
    assert page.locator("#fields dd").get_attribute("lang") == "en"


@pytest.mark.parametrize(
    ("key", "code", "verdict"),
    [("н", "KeyY", "YES"), ("n", "KeyN", "NO"), ("Y", "KeyZ", "YES"), ("ф", "KeyQ", "")],
)
def test_a_keyboard_of_another_script_works(tab: Tab, key: str, code: str, verdict: str) -> None:
    """A Latin letter counts as it is; a letter of another script by the place of its key."""
    tab.page.evaluate(
        """([key, code]) => document.body.dispatchEvent(
            new KeyboardEvent("keydown", { key, code, bubbles: true }))""",
        [key, code],
    )
    tab.keys("ArrowLeft")
    pressed = tab.page.locator("#choices [aria-pressed=true]")
    found = [one.get_attribute("data-value") for one in pressed.all()]
    assert found == ([verdict] if verdict else [])


def test_nothing_is_saved_without_a_name(tab: Tab) -> None:
    """The form says so and goes to the field."""
    tab.keys("y")
    tab.page.click("#export")
    assert tab.page.inner_text("#status") == "Спачатку напішыце сваё імя."
    assert tab.page.evaluate("document.activeElement.id") == "reviewer"


def test_a_browser_that_keeps_nothing_still_serves(browser: Browser, path: Path) -> None:
    """Where storage is forbidden the form says that answers must be saved as a file."""
    page = browser.new_page()
    tab = Tab(page)
    page.add_init_script(
        "Object.defineProperty(window, 'localStorage', { get() { throw new Error('denied'); } })"
    )
    page.goto(path.as_uri())
    tab.keys("y")
    assert page.inner_text("#kept").startswith("Гэты браўзер нічога не захоўвае")
    assert page.inner_text("#progress").startswith("Праверана: 1 ")
    assert tab.complaints == []
    page.close()


@pytest.mark.parametrize("width", [320, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_form_fits_every_screen(browser: Browser, path: Path, width: int, scheme: str) -> None:
    """It never scrolls sideways, and every field and button has a name."""
    page = browser.new_page(viewport={"width": width, "height": 700}, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(path.as_uri())
    for _ in range(len(items())):
        assert page.evaluate("document.documentElement.scrollWidth") == width
        page.keyboard.press("ArrowRight")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")
    for role in ("textbox", "button", "progressbar", "combobox"):
        assert page.get_by_role(role).count() > 0
        for one in page.get_by_role(role).all():
            assert one.evaluate("e => (e.labels?.[0] ?? e).textContent || e.ariaLabelledByElements")
    page.close()


def test_without_script_the_reader_is_sent_to_the_twin(browser: Browser, path: Path) -> None:
    """The notice, in the items' language."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert "CSV" in page.inner_text("noscript p")
    assert page.is_hidden("#form")
    context.close()


def test_a_sheet_made_out_to_somebody_names_them(browser: Browser, tmp_path: Path) -> None:
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
