"""The HTTP client under both SDKs: bounded bodies, no redirects, one time-out for all."""

from typing import Any

import httpx2

from evaluators.models.spec import Spec

CONNECT_SECONDS = 10.0
MAX_CONNECTIONS = 1024  # above any sensible --concurrency: the engine is what limits
MAX_BODY = 5 * 1024 * 1024


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


def open_client(spec: Spec) -> BoundedClient:
    """Return a client for one model. Proxies of the environment serve all but loopback URLs."""
    return BoundedClient(
        timeout=httpx2.Timeout(spec.deadline, connect=min(CONNECT_SECONDS, spec.deadline)),
        limits=httpx2.Limits(
            max_connections=MAX_CONNECTIONS, max_keepalive_connections=MAX_CONNECTIONS
        ),
        follow_redirects=False,
        trust_env=not spec.is_loopback,
    )
