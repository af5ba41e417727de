"""Prompts and replies on the page: of the items that matter, as far as there is room."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from evaluators.ledger import Ledger
from reports.render import html, words
from reports.render.html import sent_block, shower
from reports.render.writer import write
from reports.run.record import Record
from reports.run.transcripts import Source, of_ledger
from tests.reports.test_transcripts import LONG, fill
from tests.support.browsing import Browser, Tab, browser, needs_browser
from tests.support.hostile import HOSTILE
from tests.support.pages import Page
from tests.support.samples import report

__all__ = ["browser"]
ODD = [text for text in HOSTILE if "sk-" not in text]


def failed(records: Sequence[Record], *numbers: int) -> tuple[Record, ...]:
    """Return these records, those at some places failed."""
    miss = {"outcome": "failed", "grade": "INCORRECT"}
    return tuple(
        replace(one, **miss) if at in numbers else one  # type: ignore[arg-type]
        for at, one in enumerate(records)
    )


@pytest.fixture(scope="module", autouse=True)  # before a browser has its loop
def kept(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, tuple[Record, ...]]:
    """A ledger with a call for each hostile text, and the records that name them."""
    path = tmp_path_factory.mktemp("kept") / "l"
    return path, fill(path, ODD)


@pytest.fixture
def records(kept: tuple[Path, tuple[Record, ...]]) -> tuple[Record, ...]:
    return kept[1]


@pytest.fixture
def source(kept: tuple[Path, tuple[Record, ...]]) -> Iterator[Source]:
    with Ledger(kept[0], read_only=True) as ledger:
        yield of_ledger(ledger)


def test_what_matters_most_is_on_the_page(source: Source, records: tuple[Record, ...]) -> None:
    """An item's calls are there all or not at all, texts once, nothing that HTML acts on."""
    records = failed(records, 3)
    made = report(records)
    block = sent_block(words.urgent(made), source, shower(40_000))
    assert next(iter(block["items"])) == records[3].key
    assert len(block["items"]) == len(block["calls"]) == len(records)
    assert sum(text == LONG for text in block["texts"]) == 1
    title, parts = block["calls"][block["items"][records[3].key][0]]
    assert title == "openai:scripted, answer@1#c"
    assert [name for name, _ in parts] == ["system", "user", "reply", "reply calls grade", "about"]
    page = Page(html.render(report(records), transcripts=source))
    (shown,) = [word for word in page.words if word.startswith('{"texts"')]
    assert not set("<>&\u202e\x00") & set(shown)


def test_there_is_an_end_to_the_room(
    source: Source, records: tuple[Record, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What does not fit is left out, the items that matter least first."""
    records = failed(records, 3)
    monkeypatch.setattr(html, "_BUDGET", len(LONG) + 400)
    block = sent_block(words.urgent(report(records)), source, shower(40_000))
    assert 1 <= len(block["items"]) < len(records)
    assert records[3].key in block["items"]
    assert sum(map(len, block["texts"])) <= len(LONG) + 400
    assert sent_block(records, None, str) == {"texts": [], "calls": [], "items": {}}


@needs_browser
def test_an_open_item_shows_what_was_sent_or_the_command_that_does(
    source: Source,
    records: tuple[Record, ...],
    tmp_path: Path,
    browser: Browser,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its prompts and replies behind a line each; nothing in them runs."""
    records = failed(records, 0)
    monkeypatch.setattr(html, "_ITEMS", len(records) - 1)
    write(report(records), tmp_path / "run", source)
    tab = Tab(browser, tmp_path / "run" / "report.html")
    tab.page.locator("#items .open").first.click()
    tab.page.locator(".call summary").first.click()
    assert tab.page.locator(".call pre").nth(1).inner_text() == ODD[0]
    assert LONG.strip() in tab.page.locator(".call pre").first.inner_text()
    tab.page.locator("#items .open").last.click()
    command = f"qagate show {records[-1].key} RUN"
    assert command in tab.page.locator(".detail").last.inner_text()
    tab.page.eval_on_selector_all(
        ".open[aria-expanded=false]", "all => all.forEach(o => o.click())"
    )
    assert (tab.page.title(), tab.complaints) == ("PASS – openai:new – evaluation report", [])
    tab.page.close()
