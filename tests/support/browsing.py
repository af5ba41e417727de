"""A real browser for tests of pages, with all that it complained about."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("playwright.sync_api")
from playwright.sync_api import Browser, sync_playwright

from qagate.reports.render import html
from qagate.reports.run.report import Report

__all__ = ["Browser", "Opened", "Tab", "browser", "needs_browser", "opened"]

CHROMIUM = shutil.which("chromium")
ARGUMENTS = (*("--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync"),
             *("--disable-background-networking", "--disable-component-update"))  # fmt: skip
needs_browser = pytest.mark.skipif(
    CHROMIUM is None, reason="no chromium on this machine"
)


class Tab:
    """A report in the browser, with everything it complained about or tried to fetch."""

    def __init__(
        self,
        browser: Browser,
        path: Path,
        address: str = "",
        width: int = 1280,
        scheme: str = "",
    ) -> None:
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page = page = browser.new_page(
            viewport={"width": width, "height": 900},
            color_scheme="dark" if scheme == "dark" else "light",
        )
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("console", lambda message: self.complaints.append(message.text))
        page.on("dialog", lambda dialog: self.complaints.append(dialog.message))
        page.on("request", lambda request: self.requests.append(request.url))
        page.goto(path.as_uri() + address)

    def shown(self) -> int:
        return int(self.page.locator("#items .item").count())

    def choose(self, name: str, value: str) -> None:
        """Choose a value of a filter, unfolding the rarer ones."""
        folded = self.page.locator(f"#more:not([open]) select[data-name='{name}']")
        if folded.count():
            self.page.click("#more summary")
        self.page.select_option(f"select[data-name='{name}']", value)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        yield browser
        browser.close()


Opened = Callable[..., Tab]
"""Opens the page of a report, or at a path, with the words of ``Tab``; closed with the test."""


@pytest.fixture
def opened(browser: Browser, tmp_path: Path) -> Iterator[Opened]:
    tabs: list[Tab] = []

    def open_(page: Path | Report, *words: str, **options: object) -> Tab:
        path = page if isinstance(page, Path) else tmp_path / "report.html"
        if isinstance(page, Report):
            path.write_text(html.render(page), encoding="utf-8")
        tabs.append(Tab(browser, path, *words, **options))  # type: ignore[arg-type]
        return tabs[-1]

    yield open_
    for tab in tabs:
        tab.page.close()
