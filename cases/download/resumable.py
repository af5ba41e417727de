"""Fetching a file over HTTPS: bounded, resumed where it stopped, never two versions glued."""

import json
import re
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import httpx2

from evaluators.core import QAError, UsageError
from evaluators.models.base_urls import is_loopback, normalise_url
from evaluators.reading import MAX_BYTES
from evaluators.secrets import mask, one_line

CONNECT_SECONDS = 10.0
READ_SECONDS = 30.0  # without a single byte
MAX_REDIRECTS = 5
WHOLE, PART, NO_SUCH_PART = 200, 206, 416
RANGE = re.compile(r"bytes (\d{1,15})-\d{1,15}/(\d{1,15}|\*)", re.ASCII)
LENGTH = re.compile(r"\d{1,15}", re.ASCII)
VERSIONS = ("etag", "last-modified")  # the headers that name a version, the surer one first
STATUSES: Mapping[int, str] = {
    401: "access is refused",
    403: "access is refused",
    404: "there is no such file",
    407: "the proxy wants a login; set it in HTTPS_PROXY",
    410: "the file is gone",
    429: "too many requests; try again later",
}

Watch = Callable[[int, int | None], None]
"""Called after each chunk with how many bytes there are, and how many there will be if known."""


class DownloadError(QAError):
    """A file could not be fetched, or is not what it must be."""


class TooLargeError(DownloadError):
    """A file is larger than what is fetched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """Where a file is. ``hint`` says what to do where it is not served; ``limit`` is in bytes."""

    url: str
    hint: str
    limit: int = MAX_BYTES

    def refuse(self, what: str, kind: type[DownloadError] = DownloadError) -> NoReturn:
        """Raise a DownloadError about this address."""
        raise kind(f"{without_query(self.url)}: {what}") from None

    def refuse_status(self, status: int) -> NoReturn:
        """Raise the DownloadError of a response that brings no file."""
        trouble = "the server is in trouble; try again later"
        what = trouble if status >= 500 else STATUSES.get(status, "not a file")
        self.refuse(f"status {status}: {what}; {self.hint}")

    def check_redirect(self, url: str) -> None:
        """Raise DownloadError for a redirect that leaves https or turns to this machine."""
        try:
            check_address(url)
        except UsageError as problem:
            self.refuse(f"redirect refused: {problem}")
        if is_loopback(url) and not is_loopback(self.url):
            self.refuse(f"redirect refused: {without_query(url)} is this machine")

    def check_size(self, size: int) -> None:
        """Raise TooLargeError for a file of so many bytes, or of more to come."""
        if size > self.limit:
            self.refuse(f"larger than {self.limit:,} bytes; {self.hint}", TooLargeError)


def _path_of(url: str) -> str:
    """Return an address without its query and fragment."""
    return re.split(r"[?#]", url, maxsplit=1)[0]


def without_query(url: str) -> str:
    """Return a URL for a message: no query, which may hold a secret, and no password."""
    return one_line(mask(_path_of(url)))


def check_address(url: str) -> None:
    """Raise UsageError for anything but https, or http to this machine, and for credentials."""
    normalise_url(_path_of(url))


@dataclass(frozen=True, slots=True)
class Partial:
    """A file that came in part, ``NAME.part``, with its URL and version in ``NAME.part.json``."""

    path: Path

    @classmethod
    def of(cls, target: Path) -> "Partial":
        """Return the partial file of a file that is to be fetched."""
        return cls(target.with_name(f"{target.name}.part"))

    @property
    def note(self) -> Path:
        """The file that holds URL and version."""
        return self.path.with_name(f"{self.path.name}.json")

    @property
    def size(self) -> int:
        """How many bytes have come; 0 where there is no file."""
        return self.path.stat().st_size if self.path.exists() else 0

    def begin(self, url: str, headers: Mapping[str, str]) -> None:
        """Note which version of the file comes now; one without a version cannot be resumed."""
        self.note.unlink(missing_ok=True)
        if version := version_of(headers):
            text = json.dumps({"url": url, "version": version})
            self.note.write_text(text, encoding="utf-8")

    def version(self, url: str) -> str:
        """Return the version that has come from this URL so far, ``""`` where it is not known."""
        try:
            note = json.loads(self.note.read_bytes())
        except (OSError, ValueError):  # an unreadable note is no note
            return ""
        if not isinstance(note, dict) or note.get("url") != url or not self.size:
            return ""
        version = note.get("version")
        return version if isinstance(version, str) and version.isascii() else ""

    def drop(self) -> None:
        """Delete what has come so far."""
        self.path.unlink(missing_ok=True)
        self.note.unlink(missing_ok=True)

    def finish(self, target: Path) -> None:
        """Put the file in its place."""
        self.path.replace(target)
        self.note.unlink(missing_ok=True)


def version_of(headers: Mapping[str, str]) -> str:
    """Return a response's strong ETag, or its date, for ``If-Range`` (RFC 9110, section 13.1.5)."""
    found = (headers.get(name, "") for name in VERSIONS)
    return next((value for value in found if value and not value.startswith("W/")), "")


def fetch(source: Source, part: Partial, watch: Watch, read_seconds: float = READ_SECONDS) -> None:
    """Fetch a file into ``part``; one of the same version that came in part is resumed.

    ``read_seconds`` is how long no byte may come. Raises DownloadError, and OSError where the file
    cannot be written; what has come so far stays for the next time.
    """
    client = httpx2.Client(
        timeout=httpx2.Timeout(read_seconds, connect=min(CONNECT_SECONDS, read_seconds)),
        # A compressed body has other byte positions than the file.
        headers={"accept-encoding": "identity"},
        trust_env=not is_loopback(source.url),
    )
    try:
        with client, closing(_open(client, source, part)) as response:
            _receive(response, source, part, watch)
    except TooLargeError:
        part.drop()
        raise
    except httpx2.InvalidURL as error:
        source.refuse(f"not an address ({error}); {source.hint}")
    except (httpx2.ConnectTimeout, httpx2.ConnectError, httpx2.ProxyError) as error:
        reason = one_line(mask(str(error))) or "no answer"
        advice = "check the network and HTTPS_PROXY, then try again"
        source.refuse(f"cannot be reached ({reason}); {advice}")
    except httpx2.HTTPError as error:
        silent = isinstance(error, httpx2.TimeoutException)
        kept = part.size if part.version(source.url) else 0
        source.refuse(
            f"{'no data in time' if silent else 'the line broke'}; {kept:,} bytes are kept: "
            "run the same command again to go on"
        )


def _open(client: httpx2.Client, source: Source, part: Partial) -> httpx2.Response:
    """Return the open response: the rest of what has come where the server has just that."""
    version = part.version(source.url)
    if version:
        rest = {"range": f"bytes={part.size}-", "if-range": version}
        response = _send(client, source, rest)
        if response.status_code == WHOLE or _is_rest(response, part.size, version):
            return response
        response.close()
    part.drop()
    response = _send(client, source, {})
    if response.status_code != WHOLE:
        response.close()
        source.refuse_status(response.status_code)
    return response


def _is_rest(response: httpx2.Response, start: int, version: str) -> bool:
    """Return whether a response is the rest of this version: some servers ignore If-Range."""
    found = RANGE.fullmatch(response.headers.get("content-range", ""))
    return (
        response.status_code == PART
        and found is not None
        and int(found[1]) == start
        and version_of(response.headers) in ("", version)
    )


def _send(client: httpx2.Client, source: Source, headers: Mapping[str, str]) -> httpx2.Response:
    """Return the open response after redirects: a file, a part of it, or no such part."""
    request = client.build_request("GET", source.url, headers=headers)
    for _ in range(MAX_REDIRECTS + 1):
        response = client.send(request, stream=True)
        if response.status_code in (WHOLE, PART, NO_SUCH_PART):
            return response
        response.close()
        if not response.has_redirect_location:
            source.refuse_status(response.status_code)
        if response.next_request is None:
            source.refuse(f"redirects to no address; {source.hint}")
        request = response.next_request
        source.check_redirect(str(request.url))
    return source.refuse(f"more than {MAX_REDIRECTS} redirects; {source.hint}")


def _receive(response: httpx2.Response, source: Source, part: Partial, watch: Watch) -> None:
    if response.headers.get("content-encoding", "identity") != "identity":
        source.refuse(f"sent compressed although asked not to; {source.hint}")
    if response.status_code == PART:
        start, found = part.size, RANGE.fullmatch(response.headers["content-range"])
        size = found[2] if found else ""
    else:
        start, size = 0, response.headers.get("content-length", "")
        part.begin(source.url, response.headers)
    total = int(size) if LENGTH.fullmatch(size) else None
    source.check_size(total or 0)
    with part.path.open("r+b" if start else "wb") as file:
        file.seek(start)
        for chunk in response.iter_raw():
            source.check_size(file.tell() + len(chunk))
            file.write(chunk)
            watch(file.tell(), total)
    if total not in (None, part.size):
        part.drop()
        source.refuse(f"not the {total:,} bytes that were announced; try again")
