"""Articles from files: MediaWiki dumps, tables (CSV, JSON, JSONL) and folders of text."""

import bz2
import gzip
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from cases.builder.work_folder import Article, Origin, Say, sha256
from cases.tables import Table, read_table
from evaluators.core import UsageError
from evaluators.models.base_urls import is_loopback, normalise_url
from evaluators.reading import read_text
from evaluators.text import hint

if TYPE_CHECKING:
    from mwxml import Dump, Page

DUMPS = (".xml", ".xml.bz2", ".xml.gz")
TABLES = (".jsonl", ".csv", ".json")
OPENERS: Mapping[str, Callable[..., Any]] = {".bz2": bz2.open, ".gz": gzip.open}
EVERY = 20_000  # pages of a dump between two lines of progress
COLUMNS = {
    "text": ("text", "paragraph", "passage", "content", "body", "article"),
    "title": ("title", "headline", "name"),
    "url": ("url", "link"),
    "licence": ("licence", "license"),
    "revision": ("revision", "revid", "date", "published"),
    "page": ("id", "page", "pageid"),
}
"""The names under which each value is found in a table; the first that the file has counts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One source of a group as the user named it.

    ``licence`` is that of its articles where the source itself names none. ``contact`` is how the
    operator of a wiki can reach the user.
    """

    group: str
    where: str
    licence: str = ""
    contact: str = ""

    @property
    def is_api(self) -> bool:
        """Whether it is a wiki's API, which draws its pages itself."""
        return self.where.startswith(("http://", "https://"))

    @property
    def path(self) -> Path:
        """The file or folder."""
        return Path(self.where)

    def check(self) -> None:
        """Raise UsageError for a file, folder or address that cannot hold articles."""
        if self.is_api:
            normalise_url(self.where)
            if not self.contact.strip() and not is_loopback(self.where):
                raise UsageError(
                    f"{self.where}: a wiki wants to know who asks; "
                    "give --contact with an address of yours"
                )
        elif not self.path.exists():
            raise UsageError(
                f"--source {self.group}={self.where}: no such file; give a file, folder or address"
            )
        elif not self.path.is_dir() and not self.where.endswith((*DUMPS, *TABLES)):
            known = ", ".join((*DUMPS, *TABLES))
            raise UsageError(
                f"--source {self.group}={self.where}: want a folder of .txt or a file in {known}"
            )

    def licence_or(self, named: str) -> str:
        """Return an article's licence: the one it names, else the source's. Raises UsageError."""
        licence = named or self.licence
        if not licence:
            raise UsageError(f"{self.where}: names no licence; say --licence {self.group}=LICENCE")
        return licence


def read_articles(source: Source, say: Say) -> Iterable[Article]:
    """Return the articles of a file or folder one by one.

    Raises UsageError where the source is not what its name says.
    """
    if source.where.endswith(DUMPS):
        return _read_dump(source, say)
    return _read_folder(source) if source.path.is_dir() else _read_table(source)


def _read_table(source: Source) -> Iterator[Article]:
    table = read_table(source.path)
    column = _column(table, "text")
    if not column:
        wanted = ", ".join(COLUMNS["text"])
        near = hint("text", table.names.values())
        raise UsageError(f"{source.where}: no column of text; name it one of {wanted} ({near})")
    for record in table.records:
        text = record.values.get(column)
        if not isinstance(text, str):
            raise table.problem(record, column, "text is needed")
        found = {
            value: str(record.values.get(_column(table, value)) or "")
            for value in ("title", "url", "licence", "revision", "page")
        }
        found["licence"] = source.licence_or(found["licence"])
        # An article without an id is identified by its content.
        found["page"] = found["page"] or sha256("\x1f".join((found["title"], text)))[:16]
        yield Article(origin=Origin(group=source.group, source=source.where, **found), text=text)


def _column(table: Table, value: str) -> str:
    return next((name for name in COLUMNS[value] if name in table.names), "")


def _read_folder(source: Source) -> Iterator[Article]:
    """Yield the ``.txt`` files of a folder and of those inside it, each an article."""
    files = sorted(source.path.rglob("*.txt"))
    if not files:
        raise UsageError(f"{source.where}: no .txt file in this folder")
    licence = source.licence_or("")
    for path in files:
        origin = Origin(
            group=source.group,
            source=source.where,
            page=path.relative_to(source.path).as_posix(),
            title=path.stem,
            licence=licence,
        )
        yield Article(origin=origin, text=read_text(path))


def _read_dump(source: Source, say: Say) -> Iterator[Article]:
    """Yield the articles of a dump, streamed: namespace 0, no redirects, the last revision."""
    import mwxml  # noqa: PLC0415  # only dumps need it
    from mwxml.errors import MalformedXML  # noqa: PLC0415

    broken = (AssertionError, MalformedXML, SyntaxError, OSError, EOFError, ValueError)
    licence = source.licence_or("")
    try:
        opened = OPENERS.get(source.path.suffix, Path.open)
        with opened(source.path, "rb") as file:
            dump = mwxml.Dump.from_file(file)
            for count, page in enumerate(dump.pages, 1):
                if count % EVERY == 0:
                    say(f"sample: {source.path.name}: {count:,} pages looked at")
                if article := _dump_article(source, dump, page, licence):
                    yield article
    except broken as error:
        what = f"{error}".splitlines()[0][:120] if f"{error}" else type(error).__name__
        raise UsageError(
            f"{source.where}: not a whole MediaWiki dump ({what}); fetch it again"
        ) from None


def _dump_article(source: Source, dump: "Dump", page: "Page", licence: str) -> Article | None:
    if page.namespace != 0 or page.redirect:
        return None
    last = None
    for revision in page:
        last = revision
    if last is None or not last.text:
        return None
    title = str(page.title)
    # The wiki's base is the address of its main page.
    folder, slash, _ = str(dump.site_info.base or "").rpartition("/")
    origin = Origin(
        group=source.group,
        source=source.where,
        page=str(page.id),
        title=title,
        url=f"{folder}/{quote(title.replace(' ', '_'))}" if slash else "",
        licence=licence,
        revision=str(last.id),
    )
    return Article(origin=origin, text=str(last.text), markup="wiki")
