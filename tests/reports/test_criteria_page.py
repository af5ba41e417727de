"""The form by criteria in a real browser: every question has its own scale, by key or by touch."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api")

from playwright.sync_api import Page

from reports.__main__ import main
from reports.review.ratings import load_ratings
from tests.support.browsing import Browser, Tab, browser, needs_browser
from tests.support.made_runs import answered, run_of, written

__all__ = ["browser"]
pytestmark = [pytest.mark.slow, needs_browser]

CRITERIA = """\
- name: accuracy
  question: How accurate is the answer?
  low: wrong throughout
  high: wholly right
- name: style
  question: "Is it <b>well</b> written?"
  scale: 1..5
- name: length
  question: Is it as long as it should be?
  scale: 0..4
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run whose form of three answers by three criteria was issued."""
    folder = tmp_path_factory.mktemp("criteria")
    (folder / "criteria.yaml").write_text(CRITERIA, encoding="utf-8")
    path = written(run_of(answered("cin")), folder / "run")
    assert main(["review", str(path), "--criteria", str(folder / "criteria.yaml")]) == 0
    return path


@pytest.fixture
def tab(browser: Browser, run: Path) -> Iterator[Tab]:
    """The form, opened for the first time on a phone."""
    tab = Tab(browser, run / "criteria.html", width=390)
    yield tab
    assert tab.complaints == []
    assert set(tab.requests) == {(run / "criteria.html").as_uri()}
    tab.page.close()


def given(page: Page) -> dict[str, str]:
    """Return what each question of the item shown was given."""
    groups = page.locator("#choices fieldset").all()
    pressed = [one.locator("[aria-pressed=true]") for one in groups]
    return {
        group.locator("legend").inner_text().split("\n")[0]: one.inner_text()
        for group, one in zip(groups, pressed, strict=True)
        if one.count()
    }


def save(page: Page, path: Path) -> Path:
    with page.expect_download() as download:
        page.click("#export")
    download.value.save_as(path)
    return path


def current(page: Page) -> str:
    return page.locator("[aria-current=true] legend").inner_text().split("\n")[0]


def test_digits_rate_question_after_question(
    tab: Tab, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Item after item; what the form saves is accepted, and kept with the comment."""
    page = tab.page
    page.fill("#reviewer", "Anna")
    page.keyboard.press("Escape")
    for key in "737":
        page.keyboard.press(key)
    assert page.inner_text("#position") == "Item 1 of 3"  # there is no 7 from 0 to 4
    page.keyboard.press("0")
    assert page.inner_text("#position") == "Item 2 of 3"
    assert page.inner_text("#progress") == "1 of 3 reviewed"
    page.keyboard.press("m")
    page.keyboard.type("too long: 4")
    page.keyboard.press("Escape")
    for key in "154222":
        page.keyboard.press(key)
    assert page.inner_text("#status").startswith("Every item has a verdict.")
    file = save(page, tmp_path / "anna.json")
    words = ["review", "--accept", str(file), "--sheet", str(run / "sheet.json")]
    assert main([*words, "--to", str(tmp_path / "r.jsonl")]) == 0
    assert "Anna rated 3 of 3 answers in full, 0 in part, 0 not at all" in capsys.readouterr().out
    found = load_ratings(tmp_path / "r.jsonl")
    assert [(one.item[-2:], one.criterion, one.rating) for one in found] == [
        *(("i0", "accuracy", 7), ("i0", "style", 3), ("i0", "length", 0)),
        *(("i1", "accuracy", 1), ("i1", "style", 5), ("i1", "length", 4)),
        *(("i2", "accuracy", 2), ("i2", "style", 2), ("i2", "length", 2)),
    ]
    assert [one.comment for one in found] == ["", "", "", "too long: 4", *[""] * 5]


def test_questions_and_their_ends_stand_as_given(tab: Tab) -> None:
    """One text of the answer, three questions with as many points as each scale has."""
    page = tab.page
    assert page.locator("#fields dd").count() == 3  # question, expected and answer
    legends = page.locator("legend").all_inner_texts()
    assert legends[0] == "How accurate is the answer?\n1 = wrong throughout · 7 = wholly right"
    assert legends[1] == "Is it <b>well</b> written?"
    groups = page.locator("#choices fieldset").all()
    assert [one.locator("button").count() for one in groups] == [7, 5, 5]
    assert groups[2].locator("button").all_inner_texts() == [*"01234"]
    assert page.is_hidden("#rules")
    assert page.is_hidden("#note")
    assert page.is_hidden("#rubric")


def test_touch_and_arrows_choose_the_question(tab: Tab) -> None:
    """A tap rates its own question; the next key goes to the first that is open."""
    page = tab.page
    page.locator("#choices fieldset >> nth=1").locator("button[data-value='5']").click()
    assert given(page) == {"Is it <b>well</b> written?": "5"}
    assert current(page) == "How accurate is the answer?"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    assert current(page) == "Is it as long as it should be?"
    page.keyboard.press("4")
    assert current(page) == "How accurate is the answer?"
    page.keyboard.press("ArrowDown")
    page.keyboard.press("5")  # the same again takes it back
    assert len(given(page)) == 1
    page.locator("#choices fieldset >> nth=2").locator("button >> nth=0").focus()
    assert current(page) == "Is it as long as it should be?"
    assert page.inner_text("#progress") == "0 of 3 reviewed"
    page.reload()
    assert given(page)["Is it as long as it should be?"].endswith("4")
    assert page.inner_text("#position") == "Item 1 of 3"


def test_part_of_an_item_is_sent_and_said(
    tab: Tab, run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The item stays open in the form, and is counted as rated in part."""
    page = tab.page
    page.fill("#reviewer", "Jan")
    page.keyboard.press("Escape")
    page.keyboard.press("6")
    file = save(page, tmp_path / "jan.json")
    assert len(json.loads(file.read_text("utf-8"))["rows"]) == 1
    words = ["review", "--accept", str(file), "--sheet", str(run / "sheet.json")]
    assert main([*words, "--to", str(tmp_path / "r.jsonl")]) == 0
    out = capsys.readouterr().out
    assert "Jan rated 0 of 3 answers in full, 1 in part, 2 not at all" in out
    assert "incomplete: facts-en-i0: no rating by Jan for length, style" in out


@pytest.mark.parametrize("width", [320, 1280])
def test_the_form_fits_every_screen(browser: Browser, run: Path, width: int) -> None:
    """It never scrolls sideways, and a finger finds every point."""
    tab = Tab(browser, run / "criteria.html", width=width, scheme="dark")
    assert tab.page.evaluate("document.documentElement.scrollWidth") == width
    for one in tab.page.locator("#choices button").all():
        box = one.bounding_box()
        assert box is not None
        assert min(box["width"], box["height"]) >= 44
    tab.page.close()
