"""``report.html`` in a real browser: no text of a model runs, and people can work with it."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from reports.writer import write
from tests.samples import full, record, report

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = shutil.which("chromium")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
ITEMS = "#items > li:not([hidden])"


class Tab:
    """A page of the browser with everything it complained about or tried to fetch."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.complaints: list[str] = []
        self.requests: list[str] = []
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        page.on("request", lambda request: self.requests.append(request.url))

    def shown(self) -> int:
        """Return how many items are listed."""
        return int(self.page.locator(ITEMS).count())


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One headless browser for the module."""
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with 301 items, 21 of them hostile."""
    folder = tmp_path_factory.mktemp("page")
    write(full(40), folder)
    return folder / "report.html"


@pytest.fixture
def tab(browser: Browser, path: Path) -> Iterator[Tab]:
    """The report, freshly opened."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    tab = Tab(page)
    page.goto(path.as_uri())
    yield tab
    page.close()


def test_hostile_text_does_nothing(tab: Tab) -> None:
    """No script error, no blocked attempt, no dialog, no request but for the file itself."""
    tab.page.fill("#search", "simpleqa-en-10")
    for summary in tab.page.locator(f"{ITEMS} summary").all():
        summary.click()
    tab.page.locator(f"{ITEMS} dd").first.hover()
    assert tab.page.title() == "FAIL – evaluation report"
    assert tab.complaints == []
    assert len(tab.requests) == 1
    assert tab.page.locator("iframe, img, form, base").count() == 0


def test_the_policy_is_enforced(tab: Tab) -> None:
    """Even markup that got in could run nothing and load nothing: the policy is really there."""
    tab.page.evaluate(
        """() => {
            document.body.insertAdjacentHTML("beforeend",
                "<img src='https://x.invalid/p.png' onerror='document.title=1'>");
        }"""
    )
    tab.page.wait_for_function("document.images[0].complete")
    assert tab.page.title() == "FAIL – evaluation report"
    assert any("Content Security Policy" in text for text in tab.complaints)


def test_a_hundred_items_are_shown_at_a_time(tab: Tab) -> None:
    """Next and Previous walk through all of them and stop at the ends."""
    page = tab.page
    assert tab.shown() == 100
    assert page.inner_text("#status") == "1–100 of 301 items"
    assert page.is_disabled("#previous")
    for _ in range(3):
        page.click("#next")
    assert page.inner_text("#status") == "301–301 of 301 items"
    assert tab.shown() == 1
    assert page.is_disabled("#next")
    page.click("#previous")
    assert tab.shown() == 100


def test_search_and_filters_narrow_the_list_together(tab: Tab) -> None:
    """By words, dataset, language, outcome and grade; Clear brings all back."""
    page = tab.page
    page.fill("#search", "МАРИЦА рила")
    bulgarian = tab.shown()
    assert bulgarian == 12
    assert page.inner_text("#status") == "1–12 of 12 items (301 in all)"
    page.select_option("select[data-filter=language]", "pl")
    assert tab.shown() == 0
    page.click("#clear")
    assert tab.shown() == 100
    page.select_option("select[data-filter=outcome]", "error")
    assert page.inner_text("#status") == "1–23 of 23 items (301 in all)"
    page.select_option("select[data-filter=dataset]", "eba")
    assert tab.shown() == 0
    page.click("#clear")
    page.select_option("select[data-filter=grade]", "rating 7")
    assert tab.shown() == 40


def test_the_keyboard_reaches_and_works_everything(tab: Tab) -> None:
    """From the search field: type, go to a filter, choose, open an item, turn the page."""
    page = tab.page
    page.focus("#search")
    page.keyboard.type("warszawa")
    assert tab.shown() == 40
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.filter") == "dataset"
    page.focus(f"{ITEMS} summary")
    page.keyboard.press("Enter")
    assert page.locator(f"{ITEMS} details[open]").count() == 1
    page.click("#clear")
    page.focus("#next")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "items-title"


@pytest.mark.parametrize("width", [320, 400, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_every_screen(browser: Browser, path: Path, width: int, scheme: str) -> None:
    """Wide tables scroll in their own box; the page itself never scrolls sideways."""
    page = browser.new_page(viewport={"width": width, "height": 800}, color_scheme=scheme)  # type: ignore[arg-type]
    page.goto(path.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == width
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor") != "rgb(255, 255, 255)"
    assert dark == (scheme == "dark")
    page.close()


def test_without_script_every_item_is_listed(browser: Browser, path: Path) -> None:
    """The page is a document first."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.locator("#items > li").count() == 301
    assert page.locator("#items > li").last.is_visible()
    assert page.locator("#controls").is_hidden()
    assert page.locator("noscript p").is_visible()
    context.close()


def test_a_large_run_opens(browser: Browser, tmp_path: Path) -> None:
    """Three thousand items: opened, filtered and turned within the browser's own time limit."""
    write(report(tuple(record(n) for n in range(1, 3001))), tmp_path)
    page = browser.new_page()
    page.goto((tmp_path / "report.html").as_uri())
    page.fill("#search", "simpleqa-en-2999")
    assert page.inner_text("#status") == "1–1 of 1 items (3000 in all)"
    page.close()


def test_print_shows_texts_whole_and_no_controls(tab: Tab) -> None:
    """On paper nothing scrolls."""
    tab.page.emulate_media(media="print")
    assert tab.page.locator("#controls").is_hidden()
    assert tab.page.locator("#pages").is_hidden()
    overflow = "getComputedStyle(document.querySelector('.item dd')).overflow"
    assert tab.page.evaluate(overflow) == "visible"
