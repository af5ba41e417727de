"""``report.html`` on every screen, on paper, and with as many items as people have."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from cases.dataset import Threshold
from reports.render.writer import write
from reports.run.report import Decision
from tests.support.browsing import Opened, Tab, browser, needs_browser, opened
from tests.support.hostile import HOSTILE, needs_kit
from tests.support.made_runs import answered, facts_dataset, graded_slice, run_of
from tests.support.samples import full, gate, record, report

__all__ = ["browser", "opened"]
pytestmark = needs_browser


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with every section, whose texts are long and hostile."""
    folder = tmp_path_factory.mktemp("page")
    write(full(12), folder)
    return folder / "report.html"


@pytest.fixture(scope="module")
def beside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report beside a baseline and in two languages, whose judge is another one now."""
    folder = tmp_path_factory.mktemp("beside")
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
def large(opened: Opened, request: pytest.FixtureRequest) -> Tab:
    """A page with as many items as the test asks for."""
    made = tuple(record(n, metadata={"topic": f"t{n % 9}"}) for n in range(1, request.param + 1))
    return opened(report(made))


@pytest.mark.parametrize("width", [320, 390, 1280])
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["path", "beside"])
def test_the_page_fits_every_screen(
    opened: Opened, request: pytest.FixtureRequest, name: str, width: int, scheme: str
) -> None:
    """Wide tables scroll in their own box; the page itself never scrolls sideways."""
    tab = opened(request.getfixturevalue(name), width=width, scheme=scheme)
    tab.page.eval_on_selector_all("details", "all => all.forEach(one => { one.open = true; })")
    tab.page.eval_on_selector_all("#items .open", "all => all.forEach(one => one.click())")
    assert tab.page.evaluate("document.documentElement.scrollWidth") == width
    style = "getComputedStyle(document.body).backgroundColor"
    assert (tab.page.evaluate(style) != "rgb(255, 255, 255)") == (scheme == "dark")
    assert tab.complaints == []


def test_gates_of_a_slice_stand_side_by_side(opened: Opened) -> None:
    """On a desktop a slice takes one low row, so that the items are not far down."""
    gates = tuple(
        gate("PASS", language=f"l{n}", threshold=Threshold(measure=name, min=0.1))
        for n in range(20)
        for name in ("correct", "f_score", "accuracy")
    )
    tab = opened(report(decision=Decision(gates=gates, code=0, line="-")))
    tops = ".map((one) => Math.round(one.getBoundingClientRect().top + scrollY))"
    found = tab.page.evaluate(f"[...document.querySelectorAll('.gate')]{tops}")
    assert len(found) == 60
    assert len(set(found)) == 20
    first, last = min(found), max(found)
    assert last - first <= 19 * 62
    (items,) = tab.page.evaluate(f"[document.getElementById('items-title')]{tops}")
    (judge,) = tab.page.evaluate(f"[document.getElementById('judge')]{tops}")
    assert last < items < judge


def test_links_lead_from_the_comparison_to_the_items(opened: Opened, beside: Path) -> None:
    """One item, or all of a flip; hostile answers of the baseline do nothing."""
    tab = opened(beside)
    page = tab.page
    page.locator("#comparison ~ h3 ~ .scroll a").first.click()
    page.wait_for_selector("tr.target")
    assert page.evaluate("document.activeElement.closest('tr').className").endswith("target")
    assert "Answer before" in page.inner_text("#items .detail")
    page.locator("a[href='#items?flip=broke']").last.click()
    page.wait_for_selector("#items-title:focus")
    broke = tab.shown()
    assert broke > 8
    assert page.locator("#items .item", has_text="▼ broke").count() == broke
    assert page.locator(".alarm").count() == 4
    assert tab.complaints == []


@pytest.mark.parametrize("large", [4326, 20_000], indirect=True)
def test_a_large_run_opens_and_stays_usable(large: Tab, request: pytest.FixtureRequest) -> None:
    """The published Czech set, and one far larger: opened, searched, filtered, turned, linked."""
    page = large.page
    size = request.node.callspec.params["large"]
    assert page.inner_text("#status") == f"1–50 of {size:,} items"
    page.fill("#search", f"simpleqa-en-{size}")
    assert page.inner_text("#status") == f"1–1 of 1 item ({size:,} in all)"
    page.fill("#search", "")
    page.click("#next")
    assert page.inner_text("#status") == f"51–100 of {size:,} items"
    page.evaluate(f"location.hash = '#item-simpleqa-en-{size}'")
    page.wait_for_selector(f".target #item-simpleqa-en-{size}")
    assert page.locator("#items tr").count() <= 53
    assert large.complaints == []


def test_print_shows_texts_whole_and_no_controls(opened: Opened, path: Path) -> None:
    """On paper nothing scrolls, is cut short by a line limit or waits for a click."""
    tab = opened(path)
    tab.page.locator("#items .open").first.click()
    tab.page.emulate_media(media="print")
    for name in ("#controls", "#pages", ".contents"):
        assert tab.page.locator(name).is_hidden()
    overflow = "name => getComputedStyle(document.querySelector(name)).overflow"
    for name in (".detail dd", ".scroll", "pre"):
        assert tab.page.evaluate(overflow, name) == "visible"
    assert (
        tab.page.evaluate("getComputedStyle(document.querySelector('.clamp')).display") == "block"
    )
    assert len(tab.page.pdf()) > 10_000


def test_colour_is_never_alone(opened: Opened, path: Path) -> None:
    """Bars have patterns and numbers, marks have shapes, states are words."""
    tab = opened(path)
    fill = "name => getComputedStyle(document.querySelector(name)).fill"
    assert "#hatch" in tab.page.evaluate(fill, ".stack .wrong")
    assert tab.page.locator("svg.plot.FAIL path.point").count() >= 2
    assert tab.page.locator("svg.plot.PASS circle.point").count() >= 2
    assert all(text.strip() for text in tab.page.locator(".badge").all_inner_texts())


def test_the_attacks_of_the_kit_are_inert(opened: Opened) -> None:
    """Whatever stands in question, answer, reason, votes or metadata, nothing runs (F22)."""
    lines = (needs_kit() / "attacks.jsonl").read_text(encoding="utf-8").splitlines()
    texts = [str(value) for line in lines for value in json.loads(line).values()]
    made = tuple(
        record(n, question=text, answer=text, reason=text, expected=text, metadata={text: text})
        for n, text in enumerate(texts, 1)
    )
    tab = opened(report(made))
    for _ in range(1 + (len(texts) - 1) // 50):
        tab.page.eval_on_selector_all("#items .open", "all => all.forEach(one => one.click())")
        assert tab.page.locator("#items .detail").count() == tab.shown()
        tab.page.evaluate("document.getElementById('next').click()")
    assert tab.complaints == []
    assert len(tab.requests) == 1
