"""The pictures of the documents, written to ``.github``: ``python -m tests.benchmarks.pictures``.

Each is the top of a real run's page, of a release compared with one before it. Their recorded
answers are the bundled questions' own golds, or a refusal where a generator with a fixed seed says
so. A new release also refuses Polish questions that the old one knew: many of them, or some.
"""

import csv
import random
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from tests.benchmarks.common import ROOT
from tests.support.browsing import ARGUMENTS, CHROMIUM

REFUSALS = {
    "en": "I do not know.", "bg": "Не знам.", "pl": "Nie wiem.", "hu": "Nem tudom.",
    "be": "Не ведаю.",
}  # fmt: skip
RIGHT = 0.85
LOST = {"report": 0.24, "inconclusive": 0.11}
"""The share of the Polish questions that a new release refuses, by picture."""


def release(folder: Path, language: str, lost: float) -> Path:
    """Write the questions of a language with recorded answers; returns the file."""
    drawn = random.Random(language)
    bundled = (ROOT / f"cases/simpleqa/{language}.csv").read_text(encoding="utf-8-sig")
    rows = list(csv.DictReader(bundled.splitlines()))
    for row in rows:
        luck, loss = drawn.random(), drawn.random()
        known = luck < RIGHT and (language != "pl" or loss >= lost)
        if not row["Answers"].startswith(("FALSE", "UNANSWERABLE")):
            row["Predicted answers"] = row["Answers"] if known else REFUSALS[language]
    path = folder / f"{language}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


def run(folder: Path, name: str, lost: float, *options: str) -> Path:
    """Ask a release about all languages; returns the page of the run."""
    (folder / f"{name}-answers").mkdir()
    files = {one: release(folder / f"{name}-answers", one, lost) for one in REFUSALS}
    items = [f"--items=simpleqa:{language}={path}" for language, path in files.items()]
    words = (
        "-q",
        f"{ROOT / 'cases' / 'simpleqa'}",
        "-c",
        f"{ROOT / 'pyproject.toml'}",
        *items,
    )
    command = (sys.executable, "-m", "pytest", *words, f"--report-dir={name}", *options)
    subprocess.run(command, cwd=folder, check=False)
    return folder / name / "report.html"


def main() -> None:
    """Run both releases, and take the pictures."""
    with tempfile.TemporaryDirectory() as place, sync_playwright() as engine:
        folder = Path(place)
        run(folder, "last-release", 0.0)
        pages = {
            name: run(folder, name, lost, "--baseline=last-release")
            for name, lost in LOST.items()
        }
        browser = engine.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        tab = browser.new_page(viewport={"width": 1280, "height": 760})
        for name, page in pages.items():
            tab.goto(page.as_uri())
            tab.screenshot(path=ROOT / ".github" / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
