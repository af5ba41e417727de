"""Files of articles: CSV, JSON and JSONL by the names of their columns, and folders of text."""

from collections.abc import Iterator
from hashlib import sha256

from cases.problems import hint
from cases.readers import read_table
from cases.tables import Record, Table
from cases.tools.builder.items import Article, Origin
from cases.tools.builder.sources import Source, licence_of
from evaluators.core import UsageError
from evaluators.files import read_text

COLUMNS = {
    "text": ("text", "paragraph", "passage", "content", "body", "article"),
    "title": ("title", "headline", "name"),
    "url": ("url", "link"),
    "licence": ("licence", "license"),
    "revision": ("revision", "revid", "date", "published"),
    "page": ("id", "page", "pageid"),
}
"""By which names each value is found, the first that the file has."""


def read_rows(source: Source) -> Iterator[Article]:
    """Yield the articles of a CSV, JSON or JSONL file.

    Raises UsageError for a file without a column of text, and for a row whose text is none.
    """
    table = read_table(source.path)
    column = _column(table, "text")
    if not column:
        wanted = ", ".join(COLUMNS["text"])
        near = hint("text", table.names.values())
        msg = f"{source.where}: no column of text; name it one of {wanted} ({near})"
        raise UsageError(msg)
    for record in table.records:
        text = record.values.get(column)
        if not isinstance(text, str):
            raise table.problem(record, column, "text is needed")
        yield Article(origin=_origin(source, table, record, text), text=text)


def read_folder(source: Source) -> Iterator[Article]:
    """Yield the ``.txt`` files of a folder and of those inside it, each an article.

    Raises UsageError where there is none, or where one is not UTF-8.
    """
    files = sorted(source.path.rglob("*.txt"))
    if not files:
        msg = f"{source.where}: no .txt file in this folder"
        raise UsageError(msg)
    licence = licence_of(source, "")
    for path in files:
        origin = Origin(
            group=source.group,
            source=source.where,
            page=path.relative_to(source.path).as_posix(),
            title=path.stem,
            licence=licence,
        )
        yield Article(origin=origin, text=read_text(path))


def _column(table: Table, value: str) -> str:
    return next((name for name in COLUMNS[value] if name in table.names), "")


def _origin(source: Source, table: Table, record: Record, text: str) -> Origin:
    found = {
        value: str(record.values.get(_column(table, value)) or "")
        for value in COLUMNS
        if value != "text"
    }
    # Without an id of its own an article is known by what it says.
    own = sha256("\x1f".join((found["title"], text)).encode("utf-8", "surrogatepass"))
    return Origin(
        group=source.group,
        source=source.where,
        page=found["page"] or own.hexdigest()[:16],
        title=found["title"],
        url=found["url"],
        licence=licence_of(source, found["licence"]),
        revision=found["revision"],
    )
