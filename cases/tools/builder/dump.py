"""A MediaWiki XML dump as articles, streamed: the file is never in memory as a whole."""

import bz2
import gzip
from collections.abc import Iterator
from contextlib import closing
from io import BufferedReader
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from cases.tools.builder.items import Article, Origin
from cases.tools.builder.sources import Say, Source, licence_of
from evaluators.core import UsageError

if TYPE_CHECKING:
    from mwxml import Dump, Page

EVERY = 20_000  # pages between two lines of progress


def read_dump(source: Source, say: Say) -> Iterator[Article]:
    """Yield the articles of a dump: namespace 0, no redirects, the last revision of each.

    Raises UsageError for a file that is cut or is no dump.
    """
    import mwxml  # noqa: PLC0415  # only dumps need it
    from mwxml.errors import MalformedXML  # noqa: PLC0415

    broken = (AssertionError, MalformedXML, SyntaxError, OSError, EOFError, ValueError)
    licence = licence_of(source, "")
    try:
        with closing(_open(source.path)) as file:
            dump = mwxml.Dump.from_file(file)
            for count, page in enumerate(dump.pages, 1):
                if count % EVERY == 0:
                    say(f"sample: {source.path.name}: {count:,} pages looked at")
                article = _article(source, dump, page, licence)
                if article is not None:
                    yield article
    except broken as error:
        what = f"{error}".splitlines()[0][:120] if f"{error}" else type(error).__name__
        msg = f"{source.where}: not a whole MediaWiki dump ({what}); fetch it again"
        raise UsageError(msg) from None


def _open(path: Path) -> bz2.BZ2File | gzip.GzipFile | BufferedReader:
    if path.suffix == ".bz2":
        return bz2.open(path)
    return gzip.open(path) if path.suffix == ".gz" else path.open("rb")


def _article(source: Source, dump: "Dump", page: "Page", licence: str) -> Article | None:
    if page.namespace != 0 or page.redirect:
        return None
    last = None
    for revision in page:
        last = revision
    if last is None or not last.text:
        return None
    title = str(page.title)
    origin = Origin(
        group=source.group,
        source=source.where,
        page=str(page.id),
        title=title,
        url=_url(str(dump.site_info.base or ""), title),
        licence=licence,
        revision=str(last.id),
    )
    return Article(origin=origin, text=str(last.text), markup="wiki")


def _url(base: str, title: str) -> str:
    """Return a page's address; ``base`` is that of the wiki's main page."""
    folder, slash, _ = base.rpartition("/")
    return f"{folder}/{quote(title.replace(' ', '_'))}" if slash else ""
