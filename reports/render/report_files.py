"""The report files: pure functions from a Report to text, in two tables."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING

from reports.render import csv_files, html, junit, markdown
from reports.run import run_json
from reports.run.report import Report
from reports.run.transcripts import TRANSCRIPTS, Source, keys_of, packed

if TYPE_CHECKING:
    from hashlib import _Hash as Hash

LAST = "run.json"
OF_ITEMS: Mapping[str, Callable[["Files"], Iterable[str]]] = {
    run_json.RECORDS: lambda files: run_json.records(files.report),
    "results.csv": lambda files: csv_files.results(files.report),
    "report.html": lambda files: (html.render(files.report, files.transcripts),),
}
"""The files that hold every item, as pieces of text."""

OF_FIGURES: Mapping[str, Callable[[Report], str]] = {
    "summary.md": markdown.render,
    "gates.xml": junit.render,
}
FORMATS: Mapping[str, tuple[str, ...]] = {
    "html": ("report.html",),
    "md": ("summary.md",),
    "junit": ("gates.xml",),
    "csv": ("results.csv",),
    "json": (run_json.RECORDS, TRANSCRIPTS, LAST),
}
"""The files behind each word for a format; ``csv`` has one more for each graded slice."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files of a report in these formats. Each pass over it renders them anew.

    A pass yields the name of a file and the pieces of its text, to be read before the next name:
    of 50,000 items the records and the table, 48 MB, are never held whole. Records come first and
    ``run.json`` last: it is never newer than what it vouches for. Without ``transcripts`` there is
    no file of them.
    """

    report: Report
    formats: Iterable[str] = tuple(FORMATS)
    transcripts: Source | None = None

    def __iter__(self) -> Iterator[tuple[str, Iterable[str | bytes]]]:
        report = self.report
        wanted = frozenset(name for word in self.formats for name in FORMATS[word])
        vouched = sha256()
        for name in (name for name in OF_ITEMS if name in wanted):
            pieces = OF_ITEMS[name](self)
            yield name, _digested(pieces, vouched) if name == run_json.RECORDS else pieces
        if TRANSCRIPTS in wanted and self.transcripts and (keys := keys_of(report.records)):
            yield TRANSCRIPTS, packed(self.transcripts(keys))
        yield from ((name, (f(report),)) for name, f in OF_FIGURES.items() if name in wanted)
        if "results.csv" in wanted:
            yield from ((name, (text,)) for name, text in csv_files.graded(report).items())
        if LAST in wanted:
            yield LAST, (run_json.render(report, vouched.hexdigest()),)


def _digested(pieces: Iterable[str], digest: "Hash") -> Iterator[str]:
    for piece in pieces:
        digest.update(piece.encode())
        yield piece
