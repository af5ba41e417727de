"""The pictures of the documents, written to ``.github``: ``python -m tests.benchmarks.pictures``.

Each is the first screen of a release over the bundled questions, compared with one before it. No
model is asked: answers and judge are scripted (``tests/support/signing_runs.py``). A new release
gets Polish questions wrong that the old one knew: a fourth of them, or some.
"""

import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from qagate.reports.render import html
from tests.benchmarks.common import ROOT
from tests.support.browsing import ARGUMENTS, CHROMIUM
from tests.support.signing_runs import FAILING, OLD, OPEN, signing_run

RELEASES = {"report": FAILING, "inconclusive": OPEN}
"""The new release by the name of its picture."""
SIZE = {"width": 1280, "height": 860}


def main() -> None:
    """Compare both releases with the old one, and take the pictures."""
    old = signing_run(OLD)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as engine:
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        tab = browser.new_page(viewport=SIZE, color_scheme="light")  # type: ignore[arg-type]
        for name, release in RELEASES.items():
            page = Path(place) / f"{name}.html"
            page.write_text(html.render(signing_run(release, old)), encoding="utf-8")
            tab.goto(page.as_uri())
            tab.screenshot(path=ROOT / ".github" / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
