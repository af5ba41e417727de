"""Pages drawn at random by a MediaWiki API, politely, and kept as they come.

https://www.mediawiki.org/wiki/API:Etiquette asks for a user agent with a contact, for ``maxlag``,
and for requests in series. The server draws; what it drew is kept, so that a sample stays the same.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing
from dataclasses import asdict, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import httpx2

from cases.builder.article_sources import Source
from cases.builder.work_folder import Article, BuildError, Origin, Say, Values, sha256
from evaluators.models.base_urls import is_loopback
from evaluators.reading import parse_json
from evaluators.secrets import mask, one_line

CONTINUATIONS = 50  # parts of one batch
API: Mapping[str, str] = {"action": "query", "format": "json", "formatversion": "2"}
RIGHTS: Mapping[str, str] = {**API, "meta": "siteinfo", "siprop": "rightsinfo"}
QUERY: Mapping[str, str] = {
    **API,
    "generator": "random",
    "grnnamespace": "0",
    "grnfilterredir": "nonredirects",
    "grnlimit": "20",  # pages a request; MediaWiki gives the text of at most 50
    "prop": "revisions|info",
    "rvprop": "ids|content",
    "rvslots": "main",
    "inprop": "url",
}
ATTEMPTS = 6
FIRST_WAIT, LONGEST_WAIT = 1.0, 120.0  # seconds
MAXLAG = "5"  # seconds of replication lag at which a wiki asks to be left alone
MAX_REDIRECTS = 3
MAX_BYTES = 64 * 1024 * 1024
SECONDS = 30.0
BUSY = frozenset({"maxlag", "ratelimited", "readonly"})


class WikiError(BuildError):
    """A wiki's API could not be asked, or did not answer as one."""


class _BusyError(Exception):
    """The wiki asks to come back later; ``wait`` is in seconds, None where it does not say."""

    def __init__(self, what: str, response: httpx2.Response) -> None:
        super().__init__(what)
        after = response.headers.get("retry-after", "")
        self.wait = float(after) if after.isascii() and after.isdigit() else None


class Wiki(AbstractContextManager["Wiki"]):
    """One wiki's API: one request after the other, and no redirect to another host."""

    def __init__(
        self, address: str, contact: str, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self._address = address
        self._sleep = sleep
        self._client = httpx2.Client(
            timeout=httpx2.Timeout(SECONDS, connect=10.0),
            headers={"user-agent": user_agent(contact)},
            trust_env=not is_loopback(address),
        )

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def ask(self, query: Mapping[str, str]) -> Values:
        """Return the JSON object of an answer.

        Waits where the wiki is busy, as long as it asks for. Raises WikiError when it stays so,
        answers an error, sends no JSON, or redirects to another host.
        """
        wait = FIRST_WAIT
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return self._once({**query, "maxlag": MAXLAG})
            except (_BusyError, httpx2.TransportError) as error:
                requested = getattr(error, "wait", None)
                if attempt == ATTEMPTS or (requested or 0) > LONGEST_WAIT:
                    what = one_line(mask(f"{error}")) or type(error).__name__
                    raise WikiError(
                        f"{self._address}: {what}; what has come is kept: try later"
                    ) from None
                self._sleep(wait if requested is None else requested)
                wait *= 2
        raise AssertionError  # pragma: no cover - the last attempt returns or raises

    def _once(self, query: Mapping[str, str]) -> Values:
        response, body = self._send(query)
        status = response.status_code
        if status == httpx2.codes.TOO_MANY_REQUESTS or status >= 500:
            raise _BusyError(what=f"status {status}", response=response)
        if status != httpx2.codes.OK:
            raise self._refused(what=f"status {status}")
        try:
            answer = parse_json(body.decode("utf-8"))
        except ValueError as error:
            raise self._refused(what=f"{error}") from None
        if not isinstance(answer, dict):
            raise self._refused(what="no JSON object")
        if isinstance(refused := answer.get("error"), dict):
            what = f"{refused.get('code')}: {refused.get('info')}"
            if refused.get("code") in BUSY:
                raise _BusyError(what, response)
            raise self._refused(what)
        return answer

    def _send(self, query: Mapping[str, str]) -> tuple[httpx2.Response, bytes]:
        """Return the answer and its body, after at most three redirects on the same server."""
        request = self._client.build_request("GET", self._address, params=query)
        here = _origin(request.url)
        for _ in range(MAX_REDIRECTS + 1):
            with closing(self._client.send(request, stream=True)) as response:
                following = response.next_request
                if not response.has_redirect_location:
                    body = bytearray()
                    for part in response.iter_bytes():
                        body += part
                        if len(body) > MAX_BYTES:
                            raise self._refused(what=f"an answer of more than {MAX_BYTES:,} bytes")
                    return response, bytes(body)
            if following is None or _origin(following.url) != here:
                what = "redirects to another host; give the address of the API itself"
                raise self._refused(what=what)
            request = following
        raise self._refused(what=f"more than {MAX_REDIRECTS} redirects")

    def _refused(self, what: str) -> WikiError:
        return WikiError(f"{self._address}: {one_line(mask(what))}; is it the address of api.php?")


def user_agent(contact: str) -> str:
    """Return how requests name this program and whom to write to."""
    try:
        number = version("qagate")
    except PackageNotFoundError:
        number = "0"
    who = f" ({one_line(contact)})" if contact.strip() else ""
    return f"qagate/{number}{who} httpx2/{httpx2.__version__}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """One whole batch of pages, and the parameters that ask for the next one."""

    articles: tuple[Article, ...]
    onward: Mapping[str, str]


def cached_batches(path: Path) -> list[Batch]:
    """Return the batches of a source so far; a last line that was cut by a kill is taken off."""
    if not path.is_file():
        return []
    whole, _, rest = path.read_bytes().rpartition(b"\n")
    if rest:
        with path.open("r+b") as file:
            file.truncate(len(whole) + 1 if whole else 0)
    return [_read_batch(json.loads(line)) for line in whole.splitlines() if line]


def _read_batch(row: Values) -> Batch:
    articles = (
        Article(origin=Origin(**one["origin"]), text=str(one["text"]), markup="wiki")
        for one in row["articles"]
    )
    return Batch(articles=tuple(articles), onward=row["onward"])


def keep_batch(path: Path, batch: Batch) -> None:
    """Append a batch as one JSON line and return once it is on the disk."""
    with path.open("ab") as file:
        file.write(f"{json.dumps(asdict(batch))}\n".encode("ascii"))
        file.flush()
        os.fsync(file.fileno())


def draw_pages(source: Source, folder: Path, say: Say) -> Iterator[Article]:
    """Yield the pages drawn before, then new ones without end, each page once.

    Raises WikiError where the wiki does not answer as one.
    """
    cache = folder / f"pages-{sha256(source.where)[:12]}.jsonl"
    seen: set[str] = set()
    onward: Mapping[str, str] = {}
    for batch in cached_batches(cache):
        onward = batch.onward
        yield from _unseen(batch.articles, seen)
    with Wiki(source.where, source.contact) as wiki:
        rights = _part(_part(wiki.ask(RIGHTS), "query"), "rightsinfo")
        named = str(rights.get("text") or rights.get("url") or "")
        licensed = replace(source, licence=source.licence_or(named))
        while True:
            batch = _ask_batch(wiki, licensed, onward)
            keep_batch(cache, batch)
            onward = batch.onward
            fresh = list(_unseen(batch.articles, seen))
            say(f"sample: {httpx2.URL(source.where).host}: {len(seen)} pages drawn")
            if not fresh:
                return  # a wiki that has nothing new has been drawn as a whole
            yield from fresh


def _unseen(articles: tuple[Article, ...], seen: set[str]) -> Iterator[Article]:
    for article in articles:
        if article.origin.page not in seen:
            seen.add(article.origin.page)
            yield article


def _ask_batch(wiki: Wiki, source: Source, onward: Mapping[str, str]) -> Batch:
    """Ask until a batch is complete: a wiki may give the pages of one batch in several parts."""
    pages: dict[str, Article] = {}
    for _ in range(CONTINUATIONS):
        answer = wiki.ask({**QUERY, **onward})
        found = _part(answer, "query").get("pages")
        for entry in found if isinstance(found, list) else ():
            if isinstance(entry, dict) and "pageid" in entry:
                page = str(entry["pageid"])
                pages[page] = _merged(source, page, entry, pages.get(page))
        onward = {key: str(value) for key, value in _part(answer, "continue").items()}
        if "batchcomplete" in answer or not onward:
            articles = tuple(article for article in pages.values() if article.text)
            return Batch(articles=articles, onward=onward)
    raise WikiError(
        f"{source.where}: one batch in more than {CONTINUATIONS} parts; try again later"
    )


def _merged(source: Source, page: str, entry: Values, before: Article | None) -> Article:
    """Return a page with what one more part of its batch says of it."""
    if before is None:
        title = str(entry.get("title", ""))
        origin = Origin(
            group=source.group, source=source.where, page=page, title=title, licence=source.licence
        )
        before = Article(origin=origin, text="", markup="wiki")
    url = str(entry.get("canonicalurl") or entry.get("fullurl") or before.origin.url)
    origin = replace(before.origin, url=url)
    if not (revisions := entry.get("revisions")):
        return replace(before, origin=origin)
    origin = replace(origin, revision=str(revisions[0].get("revid", "")))
    text = str(_part(_part(revisions[0], "slots"), "main").get("content", ""))
    return replace(before, origin=origin, text=text)


def _part(value: object, key: str) -> Values:
    found = value.get(key) if isinstance(value, dict) else None
    return found if isinstance(found, dict) else {}


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    """Return scheme, host and port: whoever leaves https for http has left the server."""
    return url.scheme, url.host, url.port
