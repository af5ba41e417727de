"""The report files: pure functions from a Report to text, in one table."""

from collections.abc import Callable, Collection, Iterable, Mapping

from reports.render import html, junit, markdown, run_json, tables
from reports.render.plain import find_plain
from reports.report import Report

LAST = "run.json"
OF_ITEMS: Mapping[str, Callable[[Report, Collection[str]], str]] = {
    run_json.RECORDS: run_json.records,
    "results.csv": tables.results,
    "report.html": html.render,
}
"""The files that hold every item; they need to know as well which items are plain."""

OF_FIGURES: Mapping[str, Callable[[Report], str]] = {
    "summary.md": markdown.render,
    "gates.xml": junit.render,
}
FORMATS: Mapping[str, tuple[str, ...]] = {
    "html": ("report.html",),
    "md": ("summary.md",),
    "junit": ("gates.xml",),
    "csv": ("results.csv",),
    "json": (run_json.RECORDS, LAST),
}
"""The files behind each word for a format; ``csv`` has one more for each graded slice."""


def render_all(report: Report) -> dict[str, str]:
    """Return file name → text of all files of a run, in the order to write them.

    Records come first and ``run.json`` last: it is never newer than what it vouches for.
    """
    return render_formats(report, FORMATS)


def render_formats(report: Report, formats: Iterable[str]) -> dict[str, str]:
    """Return file name → text of the files of these formats, in the order to write them."""
    return _render(report, frozenset(name for word in formats for name in FORMATS[word]))


def _render(report: Report, wanted: frozenset[str]) -> dict[str, str]:
    plain_keys = find_plain(report.records) if wanted & OF_ITEMS.keys() else frozenset()
    files = {name: f(report, plain_keys) for name, f in OF_ITEMS.items() if name in wanted}
    files |= {name: f(report) for name, f in OF_FIGURES.items() if name in wanted}
    letters = tables.graded(report) if "results.csv" in wanted else {}
    items = files.get(run_json.RECORDS)
    last = {LAST: run_json.render(report, items)} if LAST in wanted else {}
    return {**files, **letters, **last}
