"""``report.html`` in a real browser: no text of a model runs, and people can work with it."""

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from qagate.reports.render.writer import write
from tests.support.browsing import Browser, Opened, Tab, browser, needs_browser, opened
from tests.support.figures import some
from tests.support.hostile import HOSTILE, needs_kit
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of
from tests.support.samples import ended, full, record, report
from tests.support.tables import kept

__all__ = ["browser", "opened"]
NARROW = 390
"""Pixels of a screen on which any number of answers unfold, each below its row."""
pytestmark = [pytest.mark.untraced, needs_browser]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with 301 items, 21 of them hostile."""
    folder = tmp_path_factory.mktemp("page")
    write(full(40), folder)
    return folder / "report.html"


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report in two languages beside a baseline whose judge was another."""
    folder = tmp_path_factory.mktemp("compared")
    datasets = facts_dataset(graded_slice(), graded_slice("bg"))
    size = len(HOSTILE)
    old = [
        replace(one, answer=text, reason=text, judge="judge-2025")
        for language in ("en", "bg")
        for one, text in zip(answered("ci" * size, language), HOSTILE, strict=False)
    ]
    new = [replace(one, judge="judge-2026") for one in answered("ic" * (size // 2))]
    new += answered("nn" * (size // 2), "bg")
    write(run_of(new, datasets, baseline=run_of(old, datasets)), folder)
    return folder / "report.html"


@pytest.fixture
def tab(opened: Opened, path: Path) -> Tab:
    return opened(path)


def test_hostile_text_does_nothing(opened: Opened, path: Path) -> None:
    """No error, dialog or request; even markup that got in could load nothing, by the policy."""
    tab = opened(path, width=NARROW)
    tab.page.fill("#search", "simpleqa-en-10")
    assert tab.shown() == 22
    tab.page.eval_on_selector_all(
        "#items .open", "all => all.forEach(one => one.click())"
    )
    assert tab.page.locator(".detail").count() == 22
    assert tab.page.locator("iframe, img, form, base").count() == 0
    assert (tab.complaints, len(tab.requests)) == ([], 1)
    image = "<img src='https://x.invalid/p.png' onerror='document.title=1'>"
    tab.page.evaluate(f'document.body.insertAdjacentHTML("beforeend", "{image}")')
    tab.page.wait_for_function("document.images[0].complete")
    assert tab.page.title().startswith("Do not ship: ")
    assert any("Content Security Policy" in text for text in tab.complaints)


def test_fifty_items_are_shown_at_a_time(tab: Tab) -> None:
    """Next and Previous stop at the ends; neither a score nor a change is offered in vain."""
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
    assert page.locator("select[data-name=score]").count() == 0
    assert page.locator("#view").is_hidden()
    assert page.locator("#order option[value=change]").count() == 0


def test_search_and_filters_narrow_the_list_together(tab: Tab) -> None:
    """By words, fields and metadata, in any case and with any accents; Clear brings all back."""
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
    page.click("#clear")
    page.fill("#search", "Salvador Dalí")
    assert 0 < (shown := tab.shown()) < 50
    page.fill("#search", "SALVADOR DALI\u0301")
    assert tab.shown() == shown


MUSIC = {"topic": "music"}
IDS = "all => all.map(one => one.id.slice(14))"


def test_what_matters_comes_first(opened: Opened) -> None:
    """What broke, has no grade, failed; then the rest. The lowest score, the slowest, dearest."""
    old = answered("cccci")
    new = [
        *answered("ccici")[:4],
        ended(9, "en", "error", dataset="facts", key="facts-en-e"),
    ]
    tab = opened(run_of(new, baseline=run_of(old)))
    rows = tab.page.locator("#items .open")
    assert rows.evaluate_all(IDS) == ["i2", "e", "i0", "i1", "i3"]
    tab.page.select_option("#order", "row")
    assert rows.evaluate_all(IDS)[:4] == ["i0", "i1", "i2", "i3"]
    made = (record(1, score=0.5, seconds=1.0, cost=None), record(2, score=None, seconds=3.0),
            record(3, score=0.0, seconds=2.0, cost=0.5))  # fmt: skip
    tab = opened(report(made))
    for order, ids in (
        ("score", "312"),
        ("seconds", "231"),
        ("cost", "321"),
        ("", "123"),
    ):
        tab.page.select_option("#order", order)
        found = tab.page.locator("#items .open").evaluate_all(
            "all => all.map(one => one.id)"
        )
        assert found == [f"item-simpleqa-en-{one}" for one in ids], order


def test_the_address_keeps_search_and_the_open_item(
    opened: Opened, path: Path, tab: Tab
) -> None:
    """Whoever follows it sees the same list until Clear; a gate's link sets the filters."""
    page = tab.page
    tab.choose("language", "bg")
    page.fill("#search", "искър")
    page.select_option("#order", "seconds")
    page.locator("#items .open").nth(2).click()
    address = page.url.partition("#")[2]
    assert "language=bg" in address
    other = opened(path, f"#{address}")
    shown = (
        "() => [document.getElementById('items').innerText, search.value, order.value]"
    )
    assert other.page.evaluate(shown) == page.evaluate(shown)
    assert other.page.locator(".detail").count() == 1
    other.page.click("#clear")
    assert other.page.url.endswith("#items-title")
    page.goto(f"{page.url.partition('#')[0]}#items?language=nonsense&q=<b>&order=x")
    assert page.input_value("select[data-name=language]") == ""
    page.locator("a[href='#items?dataset=simpleqa&language=bg']").first.click()
    page.wait_for_selector("#items-title:focus")
    assert page.input_value("select[data-name=language]") == "bg"
    assert page.locator("#items .item:not(:has-text('simpleqa:bg'))").count() == 0
    assert (tab.complaints, other.complaints) == ([], [])


def test_words_that_differ_from_the_baseline_are_marked(opened: Opened) -> None:
    """In the table of flips and in the open item; text that looks like markup stays text."""
    (old,) = answered("c")
    new = replace(
        old, answer="the <b>river</b> Iskar", outcome="failed", grade="INCORRECT"
    )
    tab = opened(
        run_of([new], baseline=run_of([replace(old, answer="the river Iskar")]))
    )
    tab.page.locator("#items .open").click()
    for where in ("table.diff", ".detail"):
        assert tab.page.locator(f"{where} del").all_inner_texts() == ["river"]
        assert tab.page.locator(f"{where} ins").all_inner_texts() == ["<b>river</b>"]
    assert tab.complaints == []


MARKDOWN: str = kept(__file__, "markdown")
FORMATTED = kept(__file__, "formatted")


@pytest.mark.slow
def test_markdown_is_shown_formatted_and_does_nothing(opened: Opened) -> None:
    """Addresses are text; the text as it came is one click away, and plain text has no button."""
    deep = [
        f"{mark * 2000} x" for mark in ("> ", "- ", "`", "**a ", "[a](", "| ", "1. ")
    ]
    texts = [MARKDOWN, "snake_case_name, 2*3*4", *HOSTILE, *deep]
    tab = opened(
        report(tuple(record(n, answer=text) for n, text in enumerate(texts, 1))),
        width=NARROW,
    )
    for button in tab.page.locator("#items .open").all():
        button.click()
    first, second = (tab.page.locator(".detail").nth(n) for n in range(2))
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
    assert tab.page.title().endswith("– new")


def test_changed_items_are_a_view_ordered_and_grouped(
    opened: Opened, tmp_path: Path
) -> None:
    """The largest change first, losses before gains; before and now side by side, all linked."""
    old, new = answered("ccicic"), answered("ccciin")
    for place, metadata in (
        (0, {"topic": "<b>art</b>"}),
        (1, {}),
        (4, MUSIC),
        (2, MUSIC),
    ):
        new[place] = replace(new[place], metadata=metadata)
    tab = opened(run_of(new, baseline=run_of(old)))
    page, rows = tab.page, tab.page.locator("#items .open")
    page.select_option("#order", "change")
    assert rows.evaluate_all(IDS)[:3] == ["i3", "i5", "i2"]
    page.select_option("#view", "changed")
    assert rows.evaluate_all(IDS) == ["i3", "i5", "i2"]
    assert page.locator("#items thead th").all_inner_texts()[2:4] == ["Before", "Now"]
    assert page.locator("#items .item").first.locator("del").count() > 0
    page.select_option("#group", "grade")
    heads = page.locator("#items .group").all_inner_texts()
    assert heads == ["CORRECT: 1, of them 0 missed", "INCORRECT: 1, of them 1 missed",
                     "NOT_ATTEMPTED: 1, of them 1 missed"]  # fmt: skip
    other = opened(tmp_path / "report.html", f"#{page.url.partition('#')[2]}")
    groups = other.page.locator("#items .group")
    assert groups.all_inner_texts() == heads
    other.page.click("#clear")
    assert other.shown() == 6
    other.page.select_option("#group", "meta.topic")
    assert groups.all_inner_texts() == ["<b>art</b>: 1, of them 0 missed",
        "Art: 2, of them 2 missed", "music: 2, of them 1 missed",
        "none: 1, of them 0 missed"]  # fmt: skip
    assert (tab.complaints, other.complaints) == ([], [])


def test_an_item_unfolds_and_can_be_copied(tab: Tab) -> None:
    """Context, tokens, cost, time, judge and metadata in their languages; as plain text."""
    page = tab.page
    page.fill("#search", "boolq-be-2")
    page.locator("#items .open").first.click()
    text = page.inner_text(".detail")
    for word in (
        "A passage.",
        "120 tokens, $0.0004, 0.800 s",
        "topic",
        "Art",
        "openai:judge",
    ):
        assert word in text, word
    assert page.locator(".detail dd span[lang=be]").count() == 3
    page.locator(".detail .copy").first.click()
    assert page.inner_text(".detail .copy >> nth=0") == "Copied"
    assert page.evaluate("document.activeElement.className") == "copy"
    page.focus("#search")
    page.keyboard.press("Control+A")
    page.keyboard.press("Control+V")
    text = page.input_value("#search")
    assert text.startswith("Item: boolq-be-2")
    assert "Context: A passage." in text
    assert page.locator("textarea").count() == 0
    assert tab.complaints == []


def test_six_filters_are_shown_and_the_others_fold(
    opened: Opened, tmp_path: Path
) -> None:
    """An address that sets a folded one opens the fold."""
    made = [
        record(n, metadata={f"m{at}": str(n % 2) for at in range(9)})
        for n in range(1, 5)
    ]
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
    page.focus("#export")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.parentElement.id") == "more"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "open"
    page.keyboard.press("Enter")
    assert page.locator(".detail").count() == 1
    assert page.get_attribute("#items .open", "aria-expanded") == "true"
    page.keyboard.press("Space")
    assert page.locator(".detail").count() == 0
    page.focus("#next")
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "items-title"


@pytest.mark.slow
def test_an_address_leads_to_one_item(opened: Opened, path: Path) -> None:
    """On any page, unfolded, in view and in focus; an unknown one breaks nothing."""
    for key in ("simpleqa-hu-40", "simpleqa-en-1000"):
        tab = opened(path, f"#item-{key}")
        assert tab.page.locator(".detail").count() == 1
        assert tab.page.evaluate("document.activeElement.id") == f"item-{key}"
        assert 0 <= some(tab.page.locator("tr.target").bounding_box())["y"] < 900
        tab.page.fill("#search", "nothing like it")
        tab.page.evaluate(
            f"location.hash = '#item-{key}x'; location.hash = '#item-{key}'"
        )
        tab.page.wait_for_selector("tr.target")
        assert tab.complaints == []
    for address in ("#item-none", "#item-%E0%A4%A"):
        tab = opened(path, address)
        assert (tab.shown(), tab.complaints) == (50, [])


def test_names_and_states_are_there_for_a_screen_reader(tab: Tab) -> None:
    """Labels, headers, an announced count, links that stick, and no two landmarks of one name."""
    page = tab.page
    for role, name in (("searchbox", "Search"), ("combobox", "Language"), ("table", "Items"),
                       ("columnheader", "Reason")):  # fmt: skip
        assert page.get_by_role(role, name=name, exact=name == "Items").count() == 1  # type: ignore[arg-type]
    drawn = page.get_by_role("img", name="Bulgarian in simpleqa fails, 21%, limit 35%")
    assert drawn.count() >= 1
    assert page.get_by_role("rowheader").count() > 50
    assert page.get_by_role("status").inner_text() == "1–50 of 301 items"
    assert page.locator("svg:not([aria-hidden]):not([aria-label])").count() == 0
    page.locator("#origin").scroll_into_view_if_needed()
    assert page.locator("nav.contents").bounding_box()["y"] == 0  # type: ignore[index]
    names = page.evaluate(
        """() => [...document.querySelectorAll("section[aria-labelledby], nav, [role=region]")].map(
            (one) => one.getAttribute("aria-label")
                || document.getElementById(one.getAttribute("aria-labelledby")).innerText)"""
    )
    assert len(names) == len(set(names)) > 5


def test_without_script_the_page_still_answers(browser: Browser, path: Path) -> None:
    """Verdict, gates and slices are a document; the reader is told where the items are."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.locator(".first .word").inner_text().strip().startswith("FAIL")
    assert page.locator("h1").inner_text().startswith("Do not ship: ")
    assert page.locator("#controls").is_hidden()
    assert "results.csv" in page.locator("noscript p").inner_text()
    context.close()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["path", "compared"])
def test_it_fits_every_screen(
    opened: Opened, request: pytest.FixtureRequest, name: str
) -> None:
    """Wide tables scroll in their own box; the page itself never scrolls sideways."""
    tab = opened(request.getfixturevalue(name), width=NARROW)
    page = tab.page
    page.eval_on_selector_all(
        "details", "all => all.forEach(one => { one.open = true; })"
    )
    page.eval_on_selector_all("#items .open", "all => all.forEach(one => one.click())")
    for width in (320, 390, 1280):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") == width
    grounds = []
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)
        grounds.append(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    assert grounds[0] == "rgb(255, 255, 255)" != grounds[1]
    assert tab.complaints == []


def test_links_lead_from_the_comparison_to_the_items(
    opened: Opened, compared: Path
) -> None:
    """One item, or all of a flip; hostile answers of the baseline do nothing."""
    tab = opened(compared)
    page = tab.page
    page.locator("table.diff a").first.click()
    page.wait_for_selector("tr.target")
    classes = page.evaluate("document.activeElement.closest('tr').className")
    assert "target" in classes.split()
    assert "Answer before" in page.inner_text(".detail")
    page.locator("a[href='#items?flip=broke']").last.click()
    page.wait_for_selector("#items-title:focus")
    broke = tab.shown()
    assert broke > 8
    assert page.locator("#items .item", has_text="▼ broke").count() == broke
    assert tab.complaints == []


@pytest.mark.slow
def test_a_large_run_opens_and_stays_usable(opened: Opened) -> None:
    """Far larger than the published Czech set: opened, searched, turned, linked."""
    size = 20_000
    made = tuple(record(n, metadata={"topic": f"t{n % 9}"}) for n in range(1, size + 1))
    tab = opened(report(made))
    page = tab.page
    assert page.inner_text("#status") == f"1–50 of {size:,} items"
    page.fill("#search", f"simpleqa-en-{size}")
    assert page.inner_text("#status") == f"1–1 of 1 item ({size:,} in all)"
    page.fill("#search", "")
    page.click("#next")
    assert page.inner_text("#status") == f"51–100 of {size:,} items"
    page.evaluate(f"location.hash = '#item-simpleqa-en-{size}'")
    page.wait_for_selector(f".target #item-simpleqa-en-{size}")
    assert page.locator("#items tr").count() <= 53
    assert tab.complaints == []


def test_the_verdict_is_printed_on_one_sheet(opened: Opened, path: Path) -> None:
    """What to do, why, and a line to sign; no list, and no control."""
    tab = opened(path)
    tab.page.emulate_media(media="print")
    for name in ("main", "#controls", ".contents"):
        assert tab.page.locator(name).is_hidden()
    assert tab.page.locator(".sign").is_visible()
    sheets = re.findall(rb"/Type\s*/Page(?!s)", tab.page.pdf(format="A4"))
    assert len(sheets) == 1


def test_shapes_and_words_tell_states_apart(tab: Tab) -> None:
    """Nobody needs to see a colour: bars have patterns, marks shapes, verdicts words."""
    fill = "name => getComputedStyle(document.querySelector(name)).fill"
    assert "#hatch" in tab.page.evaluate(fill, ".stack .wrong")
    assert tab.page.locator("svg.drawn.FAIL path.point").count() >= 2
    assert tab.page.locator("svg.drawn.PASS circle.point").count() >= 2
    words = {
        text.strip() for text in tab.page.locator("td.verdict-word").all_inner_texts()
    }
    assert words == {"Fails", "Holds", "Undecided"}


def test_back_undoes_a_filter_a_page_and_an_opened_answer(tab: Tab) -> None:
    """One step each; the letters of a search are a step together."""
    page = tab.page
    tab.choose("language", "bg")
    page.locator("#search").press_sequentially("искър")
    found = page.inner_text("#status")
    page.locator("#items .open").first.click()
    page.go_back()
    page.wait_for_function("!document.querySelector('.detail')")
    assert page.inner_text("#status") == found
    page.go_back()
    page.wait_for_function("document.getElementById('search').value === ''")
    assert page.input_value("select[data-name=language]") == "bg"
    page.go_back()
    page.wait_for_function(
        "document.querySelector('[data-name=language]').value === ''"
    )
    page.click("#next")
    assert page.url.endswith("page=2")
    page.go_back()
    page.wait_for_function(
        "document.getElementById('place').textContent.startsWith('page 1')"
    )
    assert tab.complaints == []


def test_search_folds_accents_and_letters_with_a_stroke(opened: Opened) -> None:
    made = (
        record(1, question="Gdzie leży Łódź?"),
        record(2, question="Mi a reklamáció?"),
    )
    tab = opened(report(made))
    for typed in ("lodz", "ŁÓDŹ", "reklamacio", "REKLAMÁCIÓ"):
        tab.page.fill("#search", typed)
        assert tab.shown() == 1, typed


def test_arrow_keys_move_and_a_slash_searches(tab: Tab) -> None:
    page = tab.page
    focused = "document.activeElement.id"
    page.locator("#items .open").first.focus()
    first = page.evaluate(focused)
    page.keyboard.press("ArrowDown")
    assert page.evaluate(focused) != first
    page.keyboard.press("ArrowUp")
    assert page.evaluate(focused) == first
    page.keyboard.press("/")
    assert page.evaluate(focused) == "search"
    assert page.input_value("#search") == ""
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement === document.body")


def test_the_chosen_answer_stands_beside_the_list(tab: Tab) -> None:
    """One at a time, and a click anywhere on its row will do."""
    page = tab.page
    for place in (0, 2):
        page.locator("#items .item").nth(place).locator("td").first.click()
        assert page.locator("#chosen .detail").count() == 1
        assert page.locator("#items .open[aria-expanded=true]").count() == 1
    chosen = page.locator("#items tr.chosen .open").get_attribute("id")
    assert page.url.endswith(f"#{chosen}")
    left = some(page.locator("#items").bounding_box())
    assert some(page.locator("#chosen").bounding_box())["x"] >= left["width"]
    assert tab.complaints == []


def test_arrow_keys_read_on_once_an_answer_is_chosen(tab: Tab) -> None:
    """Each has its address; for Back they are one step together."""
    page = tab.page
    page.locator("#items .open").first.click()
    for _ in range(2):
        page.keyboard.press("ArrowDown")
        focused = page.evaluate("document.activeElement.id")
        assert page.url.endswith(f"#{focused}")
        assert page.locator("#items tr.chosen .open").get_attribute("id") == focused
    page.go_back()
    page.wait_for_function("!document.querySelector('.detail')")


def test_an_answer_follows_its_list_to_a_narrow_screen(tab: Tab) -> None:
    page = tab.page
    page.locator("#items .open").first.click()
    page.set_viewport_size({"width": NARROW, "height": 900})
    page.wait_for_selector("#items tr.detail")
    assert page.locator("#chosen .detail").count() == 0


def exported(tab: Tab) -> list[list[str]]:
    """Return the rows of the file that the page exports."""
    with tab.page.expect_download() as download:
        tab.page.click("#export")
    assert download.value.suggested_filename == "answers.csv"
    text = Path(download.value.path()).read_text(encoding="utf-8-sig")
    return list(csv.reader(io.StringIO(text, newline="")))


def test_what_is_shown_can_be_exported(tab: Tab) -> None:
    """The filtered items alone, as a file that a spreadsheet opens."""
    tab.page.fill("#search", "warszawa")
    head, *rows = exported(tab)
    assert head[:3] == ["key", "dataset", "language"]
    assert len(rows) == tab.shown()
    assert tab.complaints == []


def test_no_exported_cell_is_a_formula(tab: Tab) -> None:
    cells = [cell for row in exported(tab) for cell in row]
    assert not [cell for cell in cells if re.match(r"\s*[=+@]", cell)]


def test_a_price_can_be_typed_in(opened: Opened) -> None:
    """A gateway names tokens and no price; whoever knows it sees the cost at once."""
    tab = opened(report(cost=None, tokens=2_000_000))
    tab.page.fill("#price", "2.5")
    assert tab.page.inner_text("#priced") == "about $5.00"
    tab.page.fill("#price", "")
    assert tab.page.inner_text("#priced") == ""


def test_targets_are_large_enough_for_a_finger(opened: Opened, compared: Path) -> None:
    """24 pixels or more, on a phone."""
    tab = opened(compared, width=390)
    small = tab.page.evaluate(
        """() => [...document.querySelectorAll("a, button, summary, select, input")]
            .filter((one) => one.offsetParent && one.getBoundingClientRect().height < 24)
            .map((one) => one.outerHTML.slice(0, 80))"""
    )
    assert small == []


@pytest.mark.slow
def test_the_attacks_of_the_kit_are_inert(opened: Opened) -> None:
    """Nothing in question, answer, reason, votes or metadata runs (F22)."""
    lines = (needs_kit() / "attacks.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [str(value) for line in lines for value in json.loads(line).values()]
    made = tuple(
        record(
            n,
            question=text,
            answer=text,
            reason=text,
            expected=text,
            metadata={text: text},
        )
        for n, text in enumerate(texts, 1)
    )
    tab = opened(report(made), width=NARROW)
    for _ in range(1 + (len(texts) - 1) // 50):
        tab.page.eval_on_selector_all(
            "#items .open", "all => all.forEach(one => one.click())"
        )
        assert tab.page.locator(".detail").count() == tab.shown()
        tab.page.evaluate("document.getElementById('next').click()")
    assert tab.complaints == []
    assert len(tab.requests) == 1
