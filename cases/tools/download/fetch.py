"""Fetching a file over HTTPS: bounded, resumed where it stopped, never two versions glued."""

import re
from collections.abc import Iterator, Mapping
from contextlib import closing

import httpx2

from cases.tools.download.partial import Partial, version_of
from cases.tools.download.source import Source, TooLargeError
from cases.tools.download.terminal import Watch
from evaluators.models.secrets import mask, one_line
from evaluators.models.url import is_loopback

CONNECT_SECONDS = 10.0
READ_SECONDS = 30.0  # without a single byte
MAX_REDIRECTS = 5
WHOLE, PART, NO_SUCH_PART = 200, 206, 416
RANGE = re.compile(r"bytes (\d{1,15})-\d{1,15}/(\d{1,15}|\*)", re.ASCII)
LENGTH = re.compile(r"\d{1,15}", re.ASCII)


def fetch(source: Source, part: Partial, watch: Watch, patience: float = READ_SECONDS) -> None:
    """Fetch a file into ``part``, going on where an earlier fetch of the same version stopped.

    ``patience`` is in seconds without a byte. Raises DownloadError, and OSError where the file
    cannot be written; what has come so far stays for the next time.
    """
    try:
        with (
            _client(source.url, patience) as client,
            closing(_opened(client, source, part)) as response,
        ):
            _receive(response, source, part, watch)
    except TooLargeError:
        part.drop()
        raise
    except httpx2.InvalidURL as error:
        source.refuse(f"not an address ({error}); {source.hint}")
    except httpx2.HTTPError as error:
        source.refuse(_broken(error, part.size if part.version(source.url) else 0))


def _client(url: str, patience: float) -> httpx2.Client:
    return httpx2.Client(
        timeout=httpx2.Timeout(patience, connect=min(CONNECT_SECONDS, patience)),
        # A compressed body has other byte positions than the file.
        headers={"accept-encoding": "identity"},
        trust_env=not is_loopback(url),
    )


def _broken(error: httpx2.HTTPError, kept: int) -> str:
    if isinstance(error, httpx2.ConnectTimeout | httpx2.ConnectError | httpx2.ProxyError):
        reason = one_line(mask(str(error))) or "no answer"
        return f"cannot be reached ({reason}); check the network and HTTPS_PROXY, then try again"
    what = "no data in time" if isinstance(error, httpx2.TimeoutException) else "the line broke"
    return f"{what}; {kept:,} bytes are kept: run the same command again to go on"


def _opened(client: httpx2.Client, source: Source, part: Partial) -> httpx2.Response:
    """Return the open response: the rest of what has come where the server has just that."""
    version = part.version(source.url)
    if version:
        rest = {"range": f"bytes={part.size}-", "if-range": version}
        response = _answered(client, source, rest)
        if response.status_code == WHOLE or _goes_on(response, part.size, version):
            return response
        response.close()
    part.drop()
    response = _answered(client, source, {})
    if response.status_code != WHOLE:
        response.close()
        source.refuse_status(response.status_code)
    return response


def _goes_on(response: httpx2.Response, start: int, version: str) -> bool:
    """Return whether a response is the rest of this version: some servers ignore If-Range."""
    found = RANGE.fullmatch(response.headers.get("content-range", ""))
    return (
        response.status_code == PART
        and found is not None
        and int(found[1]) == start
        and version_of(response.headers) in ("", version)
    )


def _answered(client: httpx2.Client, source: Source, headers: Mapping[str, str]) -> httpx2.Response:
    """Return the open response after redirects: a file, a part of it, or no such part."""
    request = client.build_request("GET", source.url, headers=headers)
    for _ in range(MAX_REDIRECTS + 1):
        response = client.send(request, stream=True)
        if response.status_code in (WHOLE, PART, NO_SUCH_PART):
            return response
        response.close()
        if not response.has_redirect_location:
            source.refuse_status(response.status_code)
        request = _next(response, source)
    return source.refuse(f"more than {MAX_REDIRECTS} redirects; {source.hint}")


def _next(response: httpx2.Response, source: Source) -> httpx2.Request:
    """Return the redirected request, if it may be sent."""
    request = response.next_request
    if request is None:
        source.refuse(f"redirects to no address; {source.hint}")
    source.check_redirect(str(request.url))
    return request


def _receive(response: httpx2.Response, source: Source, part: Partial, watch: Watch) -> None:
    if response.headers.get("content-encoding", "identity") != "identity":
        source.refuse(f"sent compressed although asked not to; {source.hint}")
    start = part.size if response.status_code == PART else 0
    total = _total(response)
    source.check_size(total or 0)
    if not start:
        part.begin(source.url, response.headers)
    with part.path.open("r+b" if start else "wb") as file:
        file.seek(start)
        for chunk in _bounded(response, source, start):
            file.write(chunk)
            watch(file.tell(), total)
    if total not in (None, part.size):
        part.drop()
        source.refuse(f"not the {total:,} bytes that were announced; try again")


def _total(response: httpx2.Response) -> int | None:
    """Return how many bytes the whole file has, if the response says so."""
    if response.status_code == PART:
        found = RANGE.fullmatch(response.headers["content-range"])
        return int(found[2]) if found and found[2] != "*" else None
    length = response.headers.get("content-length", "")
    return int(length) if LENGTH.fullmatch(length) else None


def _bounded(response: httpx2.Response, source: Source, start: int) -> Iterator[bytes]:
    """Yield the chunks of a body; raises TooLargeError before the one that is too much."""
    done = start
    for chunk in response.iter_raw():
        done += len(chunk)
        source.check_size(done)
        yield chunk
