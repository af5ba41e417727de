"""The report files: pure functions from a Report to text, in one table."""

from collections.abc import Callable, Mapping

from reports.render import html, junit, markdown, run_json, tables
from reports.report import Report

RENDERERS: Mapping[str, Callable[[Report], str]] = {
    run_json.RECORDS: run_json.records,
    "results.csv": tables.results,
    "report.html": html.render,
    "summary.md": markdown.render,
    "gates.xml": junit.render,
    "run.json": run_json.render,
}


def render_all(report: Report) -> dict[str, str]:
    """Return file name → text of all files of a run, in the order to write them.

    Records come first and ``run.json`` last: it is never newer than what it vouches for.
    """
    files = {name: render(report) for name, render in RENDERERS.items()}
    last = files.pop("run.json")
    return {**files, **tables.graded(report), "run.json": last}
