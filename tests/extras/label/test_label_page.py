"""The page of labels in a real browser: one key a label, more until each class has enough."""

import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import Page, expect

from qagate.cases.extras.review.page import form_page
from qagate.evaluators.core import CORRECT, INCORRECT
from tests.support.browsing import Browser, Tab, browser, needs_browser
from tests.support.labelling import LabelProject, rated_records
from tests.support.made_runs import answered

__all__ = ["browser"]
pytestmark = [pytest.mark.slow, needs_browser]
LETTERS = "c" * 34 + "i" * 4
"""The judge's grades: four answers are INCORRECT."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("label")
    page = folder / "label.html"
    page.write_text(form_page(LabelProject(folder).sheet(answered(LETTERS))), "utf-8")
    return page


@pytest.fixture
def tab(browser: Browser, path: Path) -> Iterator[Tab]:
    """The page on a phone; it must neither complain nor fetch."""
    tab = Tab(browser, path, width=390)
    tab.page.bring_to_front()
    yield tab
    assert tab.complaints == []
    assert set(tab.requests) == {path.as_uri()}
    tab.page.close()


def answer_in(page: Page) -> str:
    return page.locator("#fields dd").last.inner_text()


def label(page: Page, number: int, *, right: str = "c", wrong: str = "i") -> None:
    """Label so many answers by what they begin with."""
    for _ in range(number):
        page.keyboard.press(right if answer_in(page)[0] == "c" else wrong)


def save(page: Page, path: Path) -> Path:
    with page.expect_download() as download:
        page.click("#export")
    download.value.save_as(path)
    return path


def test_the_page_says_how_many_labels_are_needed(tab: Tab) -> None:
    page = tab.page
    assert page.title() == "Label answers"
    expect(page.locator("#progress")).to_have_text(
        "0 of 34 labels; still needed: 30 × Correct, 4 × Incorrect"
    )
    label(page, 10)
    expect(page.locator("#progress")).to_contain_text("10 of 34 labels")


def test_keys_alone_lead_to_the_end_and_to_the_file(tab: Tab, tmp_path: Path) -> None:
    page = tab.page
    page.fill("#reviewer", "Anna")
    page.keyboard.press("Escape")
    label(page, 34)
    expect(page.locator("#progress")).to_have_text(
        "34 of 34 labels: enough of each class"
    )
    expect(page.locator("#status")).to_contain_text("nothing more to label")
    expect(page.locator("#command")).to_have_text("Then: qagate label r1 --accept FILE")
    saved = json.loads(save(page, tmp_path / "anna.json").read_text("utf-8"))
    assert Counter(row["verdict"] for row in saved["rows"]) == {
        CORRECT: 30,
        INCORRECT: 4,
    }


def test_spare_answers_are_shown_until_each_class_has_enough(tab: Tab) -> None:
    """The first right answer is called incorrect: one more that may be correct follows."""
    page = tab.page
    while answer_in(page)[0] != "c":
        page.keyboard.press("i")
    page.keyboard.press("i")
    while page.locator("#position").inner_text() != "Item 35 of 35":
        label(page, 1)
    assert answer_in(page)[0] == "c"
    label(page, 1)
    expect(page.locator("#status")).to_contain_text("nothing more to label")


def test_no_answer_is_left_where_a_class_stays_short(tab: Tab) -> None:
    """All spare answers are asked, and then the page says what is still needed."""
    page = tab.page
    for _ in range(38):
        page.keyboard.press("i")
    expect(page.locator("#progress")).to_have_text(
        "4 of 34 labels; still needed: 30 × Correct"
    )
    expect(page.locator("#status")).to_contain_text("nothing more to label")


def test_the_page_goes_on_where_it_was_left(tab: Tab) -> None:
    page = tab.page
    label(page, 5)
    page.reload()
    expect(page.locator("#position")).to_have_text("Item 6 of 34")
    expect(page.locator("#progress")).to_contain_text("5 of 34 labels")
    assert page.get_attribute("#rules", "open") is None


def test_the_page_goes_on_with_a_saved_file(
    tab: Tab, browser: Browser, path: Path, tmp_path: Path
) -> None:
    """On another device, whose storage is empty; answers of another page are left out."""
    page = tab.page
    page.fill("#reviewer", "Anna")
    page.keyboard.press("Escape")
    label(page, 7)
    file = save(page, tmp_path / "anna.json")
    saved = json.loads(file.read_text("utf-8"))
    saved["rows"].append({"item": "other", "verdict": CORRECT})
    file.write_text(json.dumps(saved), encoding="utf-8")
    other = Tab(browser, path, width=390)
    other.page.set_input_files("#load", file)
    expect(other.page.locator("#progress")).to_contain_text("7 of 34 labels")
    expect(other.page.locator("#status")).to_have_text(
        "Read from the file: 7 of 8 answers."
    )
    assert other.page.input_value("#reviewer") == "Anna"
    assert other.complaints == []
    other.page.close()


@pytest.mark.parametrize("text", ["no JSON", "[]", '{"rows": 1}'])
def test_a_file_of_another_kind_is_refused(tab: Tab, tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text, encoding="utf-8")
    tab.page.set_input_files("#load", tmp_path / "x.json")
    expect(tab.page.locator("#status")).to_contain_text("did not save this file")


def test_rules_close_once_they_were_read(tab: Tab) -> None:
    """Then question, answer and verdicts fit on the screen of a phone."""
    page = tab.page
    assert page.get_attribute("#rules", "open") is not None
    label(page, 1)
    assert page.get_attribute("#rules", "open") is None
    last = page.locator("#choices button").last.bounding_box()
    assert last is not None
    assert last["y"] + last["height"] < 900


@pytest.mark.parametrize("width", [320, 390, 1280])
def test_it_fits_screens(browser: Browser, path: Path, width: int) -> None:
    page = Tab(browser, path, width=width).page
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.close()


def test_ratings_are_given_by_digits(browser: Browser, tmp_path: Path) -> None:
    """The sides of the bar are goals, by the ratings that count for them."""
    project = LabelProject(tmp_path, "rated")
    page_file = tmp_path / "label.html"
    page_file.write_text(form_page(project.sheet(rated_records([8, 6, 10]))), "utf-8")
    tab = Tab(browser, page_file, width=390)
    progress = tab.page.locator("#progress")
    expect(progress).to_have_text("0 of 2 labels; still needed: 1 × 7-9, 1 × 5-6")
    tab.page.keyboard.press("8")
    expect(progress).to_have_text("1 of 2 labels; still needed: 1 × 5-6")
    tab.page.keyboard.press("0")
    tab.page.keyboard.press("5")
    expect(progress).to_have_text("2 of 2 labels: enough of each class")
    assert tab.complaints == []
    tab.page.close()
