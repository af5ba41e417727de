"""``report.html`` in a real browser: no text of a model runs, and people can work with it."""

from dataclasses import replace
from pathlib import Path

import pytest

from reports.render.writer import write
from tests.support.browsing import Browser, Opened, Tab, browser, needs_browser, opened
from tests.support.hostile import HOSTILE
from tests.support.made_runs import answered, run_of
from tests.support.samples import ended, full, record, report
from tests.support.tables import kept

__all__ = ["browser", "opened"]
pytestmark = needs_browser


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with 301 items, 21 of them hostile."""
    folder = tmp_path_factory.mktemp("page")
    write(full(40), folder)
    return folder / "report.html"


@pytest.fixture
def tab(opened: Opened, path: Path) -> Tab:
    """The report, freshly opened."""
    return opened(path)


def test_hostile_text_does_nothing(tab: Tab) -> None:
    """No script error, no blocked attempt, no dialog, no request but for the file itself."""
    tab.page.fill("#search", "simpleqa-en-10")
    assert tab.shown() == 22
    tab.page.eval_on_selector_all("#items .open", "all => all.forEach(one => one.click())")
    assert tab.page.locator("#items .detail").count() == 22
    assert tab.page.title() == "FAIL – openai:new – evaluation report"
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
    assert tab.page.title() == "FAIL – openai:new – evaluation report"
    assert any("Content Security Policy" in text for text in tab.complaints)


def test_fifty_items_are_shown_at_a_time(tab: Tab) -> None:
    """Next and Previous walk through all of them and stop at the ends."""
    page = tab.page
    assert tab.shown() == 50
    assert page.inner_text("#status") == "1–50 of 301 items"
    assert page.is_disabled("#previous")
    for _ in range(6):
        page.click("#next")
    assert page.inner_text("#status") == "301–301 of 301 items"
    assert page.inner_text("#place") == "page 7 of 7"
    assert tab.shown() == 1
    assert page.is_disabled("#next")
    page.click("#previous")
    assert tab.shown() == 50


def test_search_and_filters_narrow_the_list_together(tab: Tab) -> None:
    """By words, dataset, language, outcome, grade, error and metadata; Clear brings all back."""
    page = tab.page
    page.fill("#search", "МАРИЦА рила")
    assert tab.shown() == 12
    assert page.inner_text("#status") == "1–12 of 12 items (301 in all)"
    tab.choose("language", "pl")
    assert tab.shown() == 0
    page.click("#clear")
    assert tab.shown() == 50
    tab.choose("outcome", "error")
    assert page.inner_text("#status") == "1–23 of 23 items (301 in all)"
    tab.choose("dataset", "eba")
    assert tab.shown() == 0
    for name, value, found in (
        ("grade", "rating 7", 40),
        ("kind", "stopped", 5),
        ("kind", "model: timeout", 23),
        ("meta.note", "-1+1", 1),
    ):
        page.click("#clear")
        tab.choose(name, value)
        assert tab.shown() == found, name


def test_search_reads_letters_as_people_do(tab: Tab) -> None:
    """Case and the way in which accents are written make no difference."""
    tab.page.fill("#search", "Salvador Dalí")
    found = tab.shown()
    assert 0 < found < 50
    tab.page.fill("#search", "SALVADOR DALI\u0301")
    assert tab.shown() == found


def test_a_score_is_a_filter_only_where_it_says_more_than_the_grade(tab: Tab) -> None:
    """Here each rating is its own score."""
    assert tab.page.locator("select[data-name=score]").count() == 0


def test_what_matters_comes_first(opened: Opened) -> None:
    """What broke, what has no grade, what failed; then the rest, in the order of the data."""
    old = answered("cccci")
    new = [*answered("ccici")[:4], ended(9, "en", "error", dataset="facts", key="facts-en-e")]
    tab = opened(run_of(new, baseline=run_of(old)))
    rows = tab.page.locator("#items .open").evaluate_all("all => all.map(one => one.id.slice(14))")
    assert rows == ["i2", "e", "i0", "i1", "i3"]
    tab.page.select_option("#order", "row")
    rows = tab.page.locator("#items .open").evaluate_all("all => all.map(one => one.id.slice(14))")
    assert sorted(rows[:4]) == rows[:4] == ["i0", "i1", "i2", "i3"]


def test_the_address_keeps_search_filters_and_the_open_item(
    opened: Opened, path: Path, tab: Tab
) -> None:
    """Whoever follows it sees the same list, and Clear takes all out of it again."""
    page = tab.page
    tab.choose("language", "bg")
    page.fill("#search", "искър")
    page.select_option("#order", "seconds")
    page.locator("#items .open").nth(2).click()
    address = page.url.partition("#")[2]
    assert "language=bg" in address
    other = opened(path, f"#{address}")
    shown = "() => [document.getElementById('items').innerText, search.value, order.value]"
    assert other.page.evaluate(shown) == page.evaluate(shown)
    assert other.page.locator("#items .detail").count() == 1
    other.page.click("#clear")
    assert other.page.url.endswith("#items-title")
    page.goto(f"{page.url.partition('#')[0]}#items?language=nonsense&q=<b>&order=x")
    assert page.input_value("select[data-name=language]") == ""
    assert (tab.complaints, other.complaints) == ([], [])


def test_a_gate_leads_to_its_items(tab: Tab) -> None:
    """By a link that sets the filters."""
    tab.page.locator("a[href='#items?dataset=simpleqa&language=bg']").first.click()
    tab.page.wait_for_selector("#items-title:focus")
    assert tab.page.input_value("select[data-name=language]") == "bg"
    assert tab.page.locator("#items .item:not(:has-text('simpleqa:bg'))").count() == 0


def test_words_that_differ_from_the_baseline_are_marked(opened: Opened) -> None:
    """In the table of flips and in the open item; text that looks like markup stays text."""
    (old,) = answered("c")
    new = replace(old, answer="the <b>river</b> Iskar", outcome="failed", grade="INCORRECT")
    then = replace(old, answer="the river Iskar")
    tab = opened(run_of([new], baseline=run_of([then])))
    table = tab.page.locator("table.diff")
    assert table.locator("del").all_inner_texts() == ["river"]
    assert table.locator("ins").all_inner_texts() == ["<b>river</b>"]
    tab.page.locator("#items .open").click()
    assert tab.page.locator(".detail del").all_inner_texts() == ["river"]
    assert tab.page.locator(".detail ins").all_inner_texts() == ["<b>river</b>"]
    assert tab.complaints == []


MARKDOWN: str = kept(__file__, "markdown")
FORMATTED = {
    "strong": ["Rivers", "longest", "368"],
    "em": ["Iskar"],
    "code": ["<b>"],
    "li li": ["two"],
    "ol li": ["three"],
    "blockquote blockquote": ["twice"],
    "td": ['<img src=x onerror="document.title=1">', "368"],
    "pre": ["<script>document.title = 1</script>\n"],
    "a, img, script": [],
}


def test_markdown_is_shown_formatted_and_does_nothing(opened: Opened) -> None:
    """Addresses are text; the text as it came is one click away, and plain text has no button."""
    deep = [f"{mark * 2000} x" for mark in ("> ", "- ", "`", "**a ", "[a](", "| ", "1. ")]
    texts = [MARKDOWN, "snake_case_name, 2*3*4", *HOSTILE, *deep]
    tab = opened(report(tuple(record(n, answer=text) for n, text in enumerate(texts, 1))))
    for button in tab.page.locator("#items .open").all():
        button.click()
    first, second = (tab.page.locator("#items .detail").nth(n) for n in range(2))
    for name, found in FORMATTED.items():
        assert first.locator(f".rich :is({name})").all_inner_texts() == found, name
    assert "here (https://x.invalid/p.png)" in first.locator(".rich").inner_text()
    first.get_by_role("button", name="Raw text").click()
    assert first.locator(".rich").is_hidden()
    assert "# Rivers\nThe **longest** is" in first.inner_text()
    first.get_by_role("button", name="Formatted").click()
    assert first.locator(".rich").is_visible()
    assert second.locator(".rich").count() == 0
    assert tab.page.locator(".detail :is(img, iframe, script, [onerror])").count() == 0
    assert (tab.complaints, len(tab.requests)) == ([], 1)
    assert "evaluation report" in tab.page.title()


def test_sections_stay_within_reach(tab: Tab) -> None:
    """Their links stick to the top, and no two landmarks have one name."""
    tab.page.locator("#origin").scroll_into_view_if_needed()
    assert tab.page.locator("nav.contents").bounding_box()["y"] == 0  # type: ignore[index]
    names = tab.page.evaluate(
        """() => [...document.querySelectorAll("section[aria-labelledby], nav, [role=region]")].map(
            (one) => one.getAttribute("aria-label")
                || document.getElementById(one.getAttribute("aria-labelledby")).innerText)"""
    )
    assert len(names) == len(set(names)) > 5


def test_items_can_be_ordered(opened: Opened) -> None:
    """The lowest score, the slowest, the dearest first; what has none comes last."""
    made = (record(1, score=0.5, seconds=1.0, cost=None), record(2, score=None, seconds=3.0),
            record(3, score=0.0, seconds=2.0, cost=0.5))  # fmt: skip
    tab = opened(report(made))
    for order, ids in (("score", "312"), ("seconds", "231"), ("cost", "321"), ("", "123")):
        tab.page.select_option("#order", order)
        rows = tab.page.locator("#items .open").evaluate_all("all => all.map(one => one.id)")
        assert rows == [f"item-simpleqa-en-{one}" for one in ids], order


def test_changed_items_are_a_view_ordered_and_grouped(opened: Opened, tmp_path: Path) -> None:
    """The largest change first, losses before gains; before and now side by side, all linked."""
    old, new = answered("ccicic"), answered("ccciin")
    new[0] = replace(new[0], metadata={"topic": "<b>art</b>"})
    new[1] = replace(new[1], metadata={})
    new[4] = replace(new[4], metadata={"topic": "music"})
    new[2] = replace(new[2], metadata={"topic": "music"})
    tab = opened(run_of(new, baseline=run_of(old)))
    page = tab.page
    page.select_option("#order", "change")
    ids = "all => all.map(one => one.id.slice(14))"
    assert page.locator("#items .open").evaluate_all(ids)[:3] == ["i3", "i5", "i2"]
    page.select_option("#view", "changed")
    assert page.locator("#items .open").evaluate_all(ids) == ["i3", "i5", "i2"]
    assert page.locator("#items thead th").all_inner_texts()[2:4] == ["Before", "Now"]
    assert page.locator("#items .item").first.locator("del").count() > 0
    page.select_option("#group", "grade")
    heads = page.locator("#items .group").all_inner_texts()
    assert heads == ["CORRECT: 1, of them 0 missed", "INCORRECT: 1, of them 1 missed",
                     "NOT_ATTEMPTED: 1, of them 1 missed"]  # fmt: skip
    other = opened(tmp_path / "report.html", f"#{page.url.partition('#')[2]}")
    assert other.page.locator("#items .group").all_inner_texts() == heads
    other.page.click("#clear")
    assert other.shown() == 6
    other.page.select_option("#group", "meta.topic")
    assert other.page.locator("#items .group").all_inner_texts() == [
        "<b>art</b>: 1, of them 0 missed",
        "Art: 2, of them 2 missed",
        "music: 2, of them 1 missed",
        "none: 1, of them 0 missed",
    ]
    assert (tab.complaints, other.complaints) == ([], [])


def test_without_a_baseline_nothing_offers_a_change(tab: Tab) -> None:
    """Neither the view nor the order."""
    assert tab.page.locator("#view").is_hidden()
    assert tab.page.locator("#order option[value=change]").count() == 0


def test_an_item_can_be_copied(tab: Tab) -> None:
    """As plain text, from a page that was opened as a file."""
    tab.page.fill("#search", "boolq-be-2")
    tab.page.locator("#items .open").first.click()
    tab.page.locator("#items .copy").first.click()
    assert tab.page.inner_text("#items .copy >> nth=0") == "Copied"
    assert tab.page.evaluate("document.activeElement.className") == "copy"
    tab.page.focus("#search")
    tab.page.keyboard.press("Control+A")
    tab.page.keyboard.press("Control+V")
    text = tab.page.input_value("#search")
    assert text.startswith("Item: boolq-be-2")
    assert "Context: A passage." in text
    assert tab.page.locator("textarea").count() == 0
    assert tab.complaints == []


def test_six_filters_are_shown_and_the_others_fold(opened: Opened, tmp_path: Path) -> None:
    """An address that sets a folded one opens the fold."""
    made = [record(n, metadata={f"m{at}": str(n % 2) for at in range(9)}) for n in range(1, 5)]
    tab = opened(report(tuple(made)))
    assert tab.page.locator("#controls select[data-name]:visible").count() == 6
    folded = tab.page.locator("#more select").count()
    assert tab.page.inner_text("#more summary") == f"more filters ({folded})"
    tab.choose("meta.m8", "1")
    assert tab.shown() == 2
    other = opened(tmp_path / "report.html", "#items?meta.m8=1")
    assert other.page.locator("select[data-name='meta.m8']").is_visible()
    assert other.shown() == 2


def test_the_keyboard_reaches_and_works_everything(tab: Tab) -> None:
    """From the search field: type, go to a filter, open an item and close it, turn the page."""
    page = tab.page
    page.focus("#search")
    page.keyboard.type("warszawa")
    assert tab.shown() == 40
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.dataset.name") == "dataset"
    page.keyboard.press("j")
    assert tab.shown() == 0
    page.click("#clear")
    page.focus("#clear")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.parentElement.id") == "more"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "open"
    page.keyboard.press("Enter")
    assert page.locator("#items .detail").count() == 1
    assert page.get_attribute("#items .open", "aria-expanded") == "true"
    page.keyboard.press("Space")
    assert page.locator("#items .detail").count() == 0
    page.focus("#next")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "items-title"


def test_an_item_unfolds_to_all_that_is_known(tab: Tab) -> None:
    """Context, tokens, cost, time, judge and metadata; texts say their language."""
    tab.page.fill("#search", "boolq-be-2")
    tab.page.locator("#items .open").first.click()
    text = tab.page.inner_text("#items .detail")
    for word in ("A passage.", "120 tokens, $0.0004, 0.800 s", "topic", "Art", "openai:judge"):
        assert word in text, word
    assert tab.page.locator("#items .detail dd span[lang=be]").count() == 4


@pytest.mark.parametrize("key", ["simpleqa-hu-40", "simpleqa-en-1000"])
def test_an_address_leads_to_one_item(opened: Opened, path: Path, key: str) -> None:
    """It is there on whatever page, unfolded, in view and in focus; so after a click."""
    tab = opened(path, f"#item-{key}")
    assert tab.page.locator("#items .detail").count() == 1
    assert tab.page.evaluate("document.activeElement.id") == f"item-{key}"
    box = tab.page.locator("tr.target").bounding_box()
    assert box is not None
    assert 0 <= box["y"] < 900
    tab.page.fill("#search", "nothing like it")
    tab.page.evaluate(f"location.hash = '#item-{key}x'; location.hash = '#item-{key}'")
    tab.page.wait_for_selector("tr.target")
    assert tab.complaints == []


def test_an_unknown_address_leads_nowhere(opened: Opened, path: Path) -> None:
    """Neither an item that is not there nor one that cannot be read breaks the page."""
    for address in ("#item-none", "#item-%E0%A4%A", "#gates"):
        tab = opened(path, address)
        assert tab.shown() == 50
        assert tab.complaints == []
        tab.page.close()


def test_names_and_states_are_there_for_a_screen_reader(tab: Tab) -> None:
    """Controls have labels, the list is a table with headers, its count is announced."""
    page = tab.page
    assert page.get_by_role("searchbox", name="Search").count() == 1
    assert page.get_by_role("combobox", name="Language").count() == 1
    assert page.get_by_role("table", name="Items", exact=True).count() == 1
    assert page.get_by_role("columnheader", name="Expected").count() == 1
    assert page.get_by_role("rowheader").count() > 50
    assert page.get_by_role("status").inner_text() == "1–50 of 301 items"
    assert page.get_by_role("img", name="interval 0.100 to 0.320, bar >= 0.35").count() == 1
    unnamed = page.locator("svg:not([aria-hidden]):not([aria-label])").count()
    assert unnamed == 0


def test_without_script_the_page_still_answers(browser: Browser, path: Path) -> None:
    """Verdict, gates and slices are a document; the reader is told where the items are."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.locator(".verdict .word").inner_text() == "FAIL"
    assert page.locator("#controls").is_hidden()
    assert "results.csv" in page.locator("noscript p").inner_text()
    context.close()
