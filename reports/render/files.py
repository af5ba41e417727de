"""The report files: pure functions from a Report to text, in one table."""

from collections.abc import Callable, Collection, Iterable, Mapping

from reports.render import html, junit, markdown, run_json, tables
from reports.report import Report

LAST = "run.json"
RENDERERS: Mapping[str, Callable[[Report], str]] = {
    run_json.RECORDS: run_json.records,
    "results.csv": tables.results,
    "report.html": html.render,
    "summary.md": markdown.render,
    "gates.xml": junit.render,
    LAST: run_json.render,
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
    return _render(report, frozenset(RENDERERS))


def render_formats(report: Report, formats: Iterable[str]) -> dict[str, str]:
    """Return file name → text of the files of these formats, in the order to write them."""
    return _render(report, frozenset(name for word in formats for name in FORMATS[word]))


def _render(report: Report, wanted: Collection[str]) -> dict[str, str]:
    names = [name for name in RENDERERS if name in wanted and name != LAST]
    files = {name: RENDERERS[name](report) for name in names}
    letters = tables.graded(report) if "results.csv" in wanted else {}
    items = files.get(run_json.RECORDS)
    last = {LAST: run_json.render(report, items)} if LAST in wanted else {}
    return {**files, **letters, **last}
