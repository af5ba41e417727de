"""``compare.html`` in a real browser."""

from pathlib import Path

import pytest

from qagate.reports.extras.side_by_side.counting import count_runs
from qagate.reports.extras.side_by_side.rendering import files_of
from tests.extras.side_by_side.test_files import GRADES, NAMES, graded_run
from tests.support.browsing import Opened, browser, needs_browser, opened

__all__ = ["browser", "opened"]
pytestmark = [pytest.mark.untraced, pytest.mark.slow, needs_browser]


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of four runs in two languages; one run has a hostile name."""
    pairs = zip(GRADES, NAMES, strict=False)
    runs = count_runs([graded_run(letters, name) for letters, name in pairs])
    folder = tmp_path_factory.mktemp("compared")
    for name, pieces in files_of(runs):
        (folder / name).write_text("".join(pieces), encoding="utf-8")
    return folder / "compare.html"


def test_it_fits_every_screen_and_asks_for_nothing(opened: Opened, path: Path) -> None:
    """No scroll sideways from 320 px, no line in the console, one request: the page's own."""
    tab = opened(path)
    for width in (320, 390, 1440):
        tab.page.set_viewport_size({"width": width, "height": 900})
        assert tab.page.evaluate("document.documentElement.scrollWidth") == width
    assert tab.complaints == []
    assert len(tab.requests) == 1


def test_no_text_of_a_panel_runs_out_of_it(opened: Opened, path: Path) -> None:
    tab = opened(path, width=320)
    outside = tab.page.evaluate(
        """() => [...document.querySelectorAll(".panel text")].filter((text) => {
            const own = text.getBoundingClientRect();
            const all = text.closest(".panel").getBoundingClientRect();
            return own.left < all.left - 1 || own.right > all.right + 1;
        }).map((text) => text.textContent)"""
    )
    assert outside == []


def test_a_drawing_opens_alone(opened: Opened, path: Path) -> None:
    for drawing in sorted(path.parent.glob("*.svg")):
        tab = opened(drawing)
        assert tab.page.locator("svg.panel").count() == 3
        assert tab.complaints == []
