"""Pages drawn at random by a MediaWiki API, politely: one request at a time, told who asks.

https://www.mediawiki.org/wiki/API:Etiquette asks for a user agent with a contact, for ``maxlag``,
and for requests in series. The server draws; what it drew is kept, so that a sample stays the same.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import httpx2

from cases.tools.builder.items import Article, Origin
from cases.tools.builder.page_cache import Draw, PageCache
from cases.tools.builder.sources import Say, Source, licence_of
from cases.tools.builder.wiki_http import Wiki, WikiError
from evaluators.core import UsageError
from evaluators.models.url import is_loopback, normalised

AT_ONCE = 20  # pages a request; MediaWiki gives the text of at most 50
CONTINUATIONS = 50  # parts of one batch
QUERY: Mapping[str, str] = {
    "action": "query",
    "format": "json",
    "formatversion": "2",
    "generator": "random",
    "grnnamespace": "0",
    "grnfilterredir": "nonredirects",
    "grnlimit": str(AT_ONCE),
    "prop": "revisions|info",
    "rvprop": "ids|content",
    "rvslots": "main",
    "inprop": "url",
}
RIGHTS: Mapping[str, str] = {
    "action": "query",
    "format": "json",
    "formatversion": "2",
    "meta": "siteinfo",
    "siprop": "rightsinfo",
}
Json = Mapping[str, object]


def check_address(where: str, contact: str) -> None:
    """Raise UsageError for an address that cannot be asked, or without a contact."""
    normalised(where)
    if not contact.strip() and not is_loopback(where):
        msg = f"{where}: a wiki wants to know who asks; give --contact with an address of yours"
        raise UsageError(msg)


def draw(source: Source, folder: Path, say: Say) -> Iterator[Article]:
    """Yield the pages drawn before, then new ones without end, each page once.

    Raises WikiError where the wiki does not answer as one.
    """
    cache = PageCache(folder, source.where)
    seen: set[str] = set()
    onward: Mapping[str, str] = {}
    for batch in cache.read():
        onward = batch.onward
        yield from _new(batch.articles, seen)
    with Wiki(source.where, source.contact) as wiki:
        licence = licence_of(source, _licence(wiki))
        while True:
            batch = _batch(wiki, replace(source, licence=licence), onward)
            cache.append(batch)
            onward = batch.onward
            fresh = list(_new(batch.articles, seen))
            say(f"sample: {httpx2.URL(source.where).host}: {len(seen)} pages drawn")
            if not fresh:
                return  # a wiki that has nothing new has been drawn as a whole
            yield from fresh


def _new(articles: tuple[Article, ...], seen: set[str]) -> Iterator[Article]:
    for article in articles:
        if article.origin.page not in seen:
            seen.add(article.origin.page)
            yield article


def _licence(wiki: Wiki) -> str:
    rights = _part(_part(wiki.ask(RIGHTS), "query"), "rightsinfo")
    return str(rights.get("text") or rights.get("url") or "")


@dataclass(slots=True)
class _Page:
    """One page as its parts come."""

    title: str
    url: str = ""
    revision: str = ""
    text: str = ""


def _batch(wiki: Wiki, source: Source, onward: Mapping[str, str]) -> Draw:
    """Ask until a batch is complete: a wiki may give the pages of one batch in several parts."""
    pages: dict[str, _Page] = {}
    for _ in range(CONTINUATIONS):
        answer = wiki.ask({**QUERY, **onward})
        _collect(answer, pages)
        onward = {key: str(value) for key, value in _part(answer, "continue").items()}
        if "batchcomplete" in answer or not onward:
            return Draw(articles=tuple(_articles(source, pages)), onward=onward)
    msg = f"{source.where}: one batch in more than {CONTINUATIONS} parts; try again later"
    raise WikiError(msg)


def _collect(answer: Json, pages: dict[str, _Page]) -> None:
    found = _part(answer, "query").get("pages", [])
    for entry in found if isinstance(found, list) else ():
        if not isinstance(entry, dict) or "pageid" not in entry:
            continue
        page = pages.setdefault(str(entry["pageid"]), _Page(title=str(entry.get("title", ""))))
        page.url = str(entry.get("canonicalurl") or entry.get("fullurl") or page.url)
        revisions = entry.get("revisions") or []
        if revisions:
            page.revision = str(revisions[0].get("revid", ""))
            page.text = str(_part(_part(revisions[0], "slots"), "main").get("content", ""))


def _articles(source: Source, pages: Mapping[str, _Page]) -> Iterator[Article]:
    for number, page in pages.items():
        if page.text:
            origin = Origin(
                group=source.group,
                source=source.where,
                page=number,
                title=page.title,
                url=page.url,
                licence=source.licence,
                revision=page.revision,
            )
            yield Article(origin=origin, text=page.text, markup="wiki")


def _part(value: object, key: str) -> Json:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}
