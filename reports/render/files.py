"""The report files: pure functions from a Report to text, in one table."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

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


def render_all(report: Report) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of all files of a run, in the order to write them.

    Records come first and ``run.json`` last: it is never newer than what it vouches for.
    """
    return render_formats(report, FORMATS)


def render_formats(report: Report, formats: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and the text of each file of these formats, in the order to write them.

    No text is kept here: those of 50,000 items take 100 MB together.
    """
    wanted = frozenset(name for word in formats for name in FORMATS[word])
    plain_keys = find_plain(report.records) if wanted & OF_ITEMS.keys() else frozenset()
    digest = ""
    for name in (name for name in OF_ITEMS if name in wanted):
        text = OF_ITEMS[name](report, plain_keys)
        if name == run_json.RECORDS:
            digest = run_json.digest(text)
        yield name, text
        del text  # not to be held while the next one is made
    yield from ((name, f(report)) for name, f in OF_FIGURES.items() if name in wanted)
    if "results.csv" in wanted:
        yield from tables.graded(report).items()
    if LAST in wanted:
        yield LAST, run_json.render(report, digest)
