"""The HTTP client under both SDKs: bounded bodies, no redirects, one time-out for all."""

from typing import Any
from urllib.request import getproxies

import httpx2

from evaluators.models.spec import Spec

CONNECT_SECONDS = 10.0
MAX_CONNECTIONS = 1024  # above any sensible --concurrency: the engine is what limits
MAX_BODY = 5 * 1024 * 1024
POOLS = 16
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


class Pools(httpx2.AsyncBaseTransport):
    """Several small connection pools, taken in turn.

    A pool looks at each of its connections before every request. With a hundred calls in flight
    that was measured to be half of all the work; sixteen pools have a sixteenth of it.
    """

    def __init__(self) -> None:
        verified = httpx2.create_ssl_context()  # one for all: reading the certificates takes long
        self._pools = [
            httpx2.AsyncHTTPTransport(limits=LIMITS, verify=verified) for _ in range(POOLS)
        ]
        self._turn = 0

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request through the next pool."""
        self._turn = (self._turn + 1) % POOLS
        return await self._pools[self._turn].handle_async_request(request)

    async def aclose(self) -> None:
        """Close all pools."""
        for pool in self._pools:
            await pool.aclose()


def open_client(spec: Spec) -> BoundedClient:
    """Return a client for one model. Proxies of the environment serve all but loopback URLs."""
    proxied = not spec.is_loopback and bool(getproxies())
    return BoundedClient(
        timeout=httpx2.Timeout(spec.deadline, connect=min(CONNECT_SECONDS, spec.deadline)),
        limits=LIMITS,
        # With a transport of its own a client does not look for proxies.
        transport=None if proxied else Pools(),
        follow_redirects=False,
        trust_env=not spec.is_loopback,
    )
