"""HTTP by aiohttp: bounded bodies, no redirects, no cookies, no time-out but for connecting."""

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from ssl import SSLContext
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
from multidict import CIMultiDict
from yarl import URL

from evaluators.models.spec import Spec

CONNECT_SECONDS = 10.0
MAX_CONNECTIONS = 1024  # above any sensible --concurrency: the engine is what limits
MAX_BODY = 5 * 1024 * 1024
PROXY_SCHEMES = ("http", "https")

_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


class BodyTooLargeError(Exception):
    """A reply went on past MAX_BODY bytes."""


class SettingError(Exception):
    """The environment names a proxy, or certificates, that cannot be used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Response:
    """An answer of whatever status, its body read and decoded. Header names have no case."""

    status: int
    headers: Mapping[str, str]
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where one model's requests go, with the headers (and key) that its SDK sends.

    They are taken from the SDK once: building each request anew was a third of a call's work, and
    the SDK's own HTTP client half of the rest.
    """

    session: aiohttp.ClientSession
    url: URL
    proxy: URL | None = field(repr=False)
    # Not the session's own headers: aiohttp shows those to the proxy, outside of TLS.
    headers: CIMultiDict[str] = field(repr=False)

    async def post(self, content: Mapping[str, object]) -> Response:
        """Send one request, whatever status comes back. Raises aiohttp's errors."""
        exchange = self.session.post(
            self.url,
            headers=self.headers,
            data=_encode(content).encode(),
            allow_redirects=False,
            proxy=self.proxy,
        )
        async with exchange as response:
            body = await _read(response.content)
        return Response(status=response.status, headers=response.headers, content=body)

    async def close(self) -> None:
        """Give the connections back."""
        await self.session.close()


async def _read(content: aiohttp.StreamReader) -> bytes:
    """Return the decoded body: aiohttp decodes a part at a time, so that no part is a bomb."""
    body = bytearray()
    async for part in content.iter_any():
        body += part
        if len(body) > MAX_BODY:
            msg = f"the reply is larger than {MAX_BODY:,} bytes"
            raise BodyTooLargeError(msg)
    return bytes(body)


def client_of_sdk() -> httpx2.AsyncClient:
    """Return the client that an SDK must have to tell its URL and headers; it sends nothing."""
    # A transport of its own keeps it from reading certificates and proxies, which takes long.
    return httpx2.AsyncClient(transport=httpx2.AsyncBaseTransport())


def line(spec: Spec, url: str, headers: Mapping[str, object]) -> Endpoint:
    """Return the line to a URL; an SDK marks a header that it leaves out by a value of its own.

    Raises SettingError.
    """
    target = URL(url, encoded=True)
    proxy = _proxy(spec)
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=MAX_CONNECTIONS,
            ssl=_verified() if target.scheme == "https" else True,
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        # A whole call has a deadline of its own: a timer for each read would say less.
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=min(CONNECT_SECONDS, spec.deadline)),
    )
    sent = ((name, value) for name, value in headers.items() if isinstance(value, str))
    return Endpoint(session=session, url=target, proxy=proxy, headers=CIMultiDict(sent))


def _verified() -> SSLContext:
    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        msg = f"SSL_CERT_FILE or SSL_CERT_DIR: the certificates cannot be read: {error}"
        raise SettingError(msg) from None


def _proxy(spec: Spec) -> URL | None:
    """Return the environment's proxy for a model; there is none for a loopback URL.

    Looked up here and once: aiohttp would do so for each call, and also send what .netrc holds.
    """
    scheme, server, *_ = urlsplit(spec.base_url)
    known = getproxies()
    named = known.get(scheme) or known.get("all")
    if not named or spec.is_loopback or proxy_bypass(server):
        return None
    with suppress(ValueError):
        proxy = URL(named if "://" in named else f"http://{named}")
        if proxy.scheme in PROXY_SCHEMES and proxy.host:
            return proxy
    msg = f"{scheme.upper()}_PROXY or ALL_PROXY is not an HTTP proxy's URL; write http://HOST:PORT"
    raise SettingError(msg)
