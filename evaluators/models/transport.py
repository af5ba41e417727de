"""The HTTP client under both SDKs: bounded bodies, no redirects, one time-out for all."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from ssl import SSLContext
from typing import Any
from urllib.request import getproxies

import aiohttp
import httpx2
from httpx_aiohttp.httpx2 import AiohttpTransport

from evaluators.models.spec import Spec

CONNECT_SECONDS = 10.0
MAX_CONNECTIONS = 1024  # above any sensible --concurrency: the engine is what limits
MAX_BODY = 5 * 1024 * 1024
LIMITS = httpx2.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_CONNECTIONS)


class BodyTooLargeError(httpx2.TransportError):
    """A reply went on past MAX_BODY bytes."""


class BoundedClient(httpx2.AsyncClient):
    """An HTTP client that stops reading a reply, of whatever status, at MAX_BODY bytes."""

    async def send(
        self, request: httpx2.Request, *, stream: bool = False, **options: Any
    ) -> httpx2.Response:
        """Return the response with its body read (``stream`` is not offered)."""
        response = await super().send(request, stream=True, **options)
        try:
            body = await _read(response)
        finally:
            await response.aclose()
        headers = [(k, v) for k, v in response.headers.multi_items() if k not in _OF_THE_WIRE]
        return httpx2.Response(response.status_code, headers=headers, content=body, request=request)


_OF_THE_WIRE = frozenset({"content-encoding", "content-length", "transfer-encoding"})


async def _read(response: httpx2.Response) -> bytes:
    body = bytearray()
    async for part in response.aiter_bytes():
        body += part
        if len(body) > MAX_BODY:
            msg = f"the reply is larger than {MAX_BODY:,} bytes"
            raise BodyTooLargeError(msg)
    return bytes(body)


class Transport(AiohttpTransport):
    """aiohttp under the SDKs: measured at 128 calls in flight, two thirds of httpx2's own cost."""

    def __init__(self) -> None:
        verified = httpx2.create_ssl_context()  # once: reading the certificates takes long
        super().__init__(verify=verified, client=partial(_session, verified))

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request. Raises httpx2's errors alone, each of the kind that it is."""
        try:
            return await super().handle_async_request(request)
        except httpx2.TimeoutException as error:
            raise _told_apart(error) from None
        except aiohttp.ClientError as error:
            raise httpx2.RemoteProtocolError(str(error)) from None


def _told_apart(error: httpx2.TimeoutException) -> httpx2.TransportError:
    """Return what the adapter's error is: it calls every broken connection a ConnectTimeout."""
    cause = error.__cause__
    if isinstance(cause, aiohttp.ConnectionTimeoutError):
        return httpx2.ConnectTimeout(str(cause))
    if isinstance(cause, TimeoutError) or not isinstance(error, httpx2.ConnectTimeout):
        return error
    if isinstance(cause, aiohttp.ClientConnectorError):
        return httpx2.ConnectError(str(cause))
    return httpx2.NetworkError(str(cause))


def _session(verified: SSLContext) -> aiohttp.ClientSession:
    """Return a session without cookies, whose pool is not what limits."""
    connector = aiohttp.TCPConnector(limit=MAX_CONNECTIONS, ssl=verified)
    return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Where one model's requests go, with the headers (and key) that its SDK sends.

    They are taken from the SDK once: building each request anew was a third of a call's work.
    """

    client: BoundedClient
    url: httpx2.URL
    headers: httpx2.Headers

    async def post(self, content: Mapping[str, object]) -> httpx2.Response:
        """Send one request, whatever status comes back. Raises httpx2's errors."""
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        request = httpx2.Request(
            "POST",
            self.url,
            headers=self.headers,
            content=text.encode(),
            extensions={"timeout": self.client.timeout.as_dict()},
        )
        return await self.client.send(request)

    async def close(self) -> None:
        """Give the connections back."""
        await self.client.aclose()


def line(client: BoundedClient, url: str, headers: Mapping[str, object]) -> Line:
    """Return the line to a URL; an SDK marks a header that it leaves out by a value of its own."""
    sent = {name: value for name, value in headers.items() if isinstance(value, str)}
    return Line(client=client, url=httpx2.URL(url), headers=httpx2.Headers(sent))


def open_client(spec: Spec) -> BoundedClient:
    """Return a client for one model. Proxies of the environment serve all but loopback URLs."""
    proxied = not spec.is_loopback and bool(getproxies())
    return BoundedClient(
        # A whole call has a deadline of its own: a timer for each read would say less.
        timeout=httpx2.Timeout(None, connect=min(CONNECT_SECONDS, spec.deadline)),
        limits=LIMITS,
        # With a transport of its own a client does not look for proxies.
        transport=None if proxied else Transport(),
        follow_redirects=False,
        trust_env=not spec.is_loopback,
    )
