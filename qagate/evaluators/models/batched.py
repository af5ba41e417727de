"""Calls to one model in batches, through its provider's SDK.

A batch is a file of requests that the provider works off within a day at a lower price.
BatchedModel writes the same bodies as ApiModel and reads the same replies; sending,
finding and fetching a batch is the BatchApi of the provider. Which calls go into a batch,
and how long to wait for it, is not decided here.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar
from urllib.parse import urlsplit

import httpx2

from qagate.evaluators.core import (
    CallError,
    FatalError,
    Reply,
    Request,
    TransientError,
)
from qagate.evaluators.models import failures
from qagate.evaluators.models.adapter import (
    BatchApi,
    Batching,
    JsonObject,
    parse_body,
)
from qagate.evaluators.models.api import ApiModel
from qagate.evaluators.models.endpoint import (
    CONNECT_SECONDS,
    MAX_BODY_BYTES,
    SENT_ANYWHERE,
    encode_json,
    proxy_of,
    trusted_certificates,
)
from qagate.evaluators.models.keys import no_key
from qagate.evaluators.models.spec import Spec
from qagate.evaluators.text import Key

T = TypeVar("T")
SDK_READS = "x-stainless-raw-response"
"""Tells the SDK's own code what to return; the server ignores it."""
HTTP_HEADERS = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "host",
        "transfer-encoding",
        SDK_READS,
    }
)
"""Headers without which HTTP or the SDK does not work."""


class BatchedModel(ApiModel):
    """The batches of one model. It raises CallErrors only, and shows its key nowhere."""

    def __init__(self, spec: Spec, key: Key | None) -> None:
        super().__init__(spec, key)
        self._batches: BatchApi | None = None

    @property
    def spec(self) -> str:
        """The SPEC that names the model."""
        return self._spec.text

    def lines_by_batch(
        self, calls: Iterable[tuple[str, Request]]
    ) -> Iterator[dict[str, bytes]]:
        """Yield the calls, which come with their keys, as lines of JSON by key.

        Each dictionary holds as many calls as fit into one batch of the provider.
        """
        batching = self._batching()
        api = self._open_batches()
        lines: dict[str, bytes] = {}
        size = 0
        for key, request in calls:
            line = encode_json(api.line(key, self.body(request)))
            is_full = len(lines) >= batching.calls or size + len(line) > batching.size
            if lines and is_full:
                yield lines
                lines = {}
                size = 0
            lines[key] = line
            size += len(line) + 1  # the line break
        yield lines

    async def call_api(self, ask: Callable[[BatchApi], Awaitable[T]]) -> T:
        """Return what ``ask`` gets from the provider's API, e.g. ``lambda api: api.newest()``."""
        try:
            return await ask(self._open_batches())
        except Exception as error:  # noqa: BLE001 - SDKs raise more than they document
            problem = self._call_error(error)
        # Raised out here, it has no SDK's exception as its context: that would hold the key.
        raise problem

    async def results(self, batch: str) -> AsyncIterator[tuple[str, Reply | CallError]]:
        """Yield the key of each call that came back, with its reply or its error.

        Lines that cannot be read are left out, so their calls seem not to have come back.
        """
        api = self._open_batches()
        try:
            async for line in _lines(api.results(batch)):
                try:
                    key, content = api.read(parse_body(line))
                except TransientError:
                    continue
                yield key, self._reply(content)
        except Exception as error:  # noqa: BLE001 - SDKs raise more than they document
            problem = self._call_error(error)
        else:
            return
        raise problem

    async def close(self) -> None:
        """Close the connections."""
        batches = self._batches
        self._batches = None
        if batches is not None:
            await batches.close()

    def _reply(self, content: JsonObject | CallError) -> Reply | CallError:
        """Return the reply in a body, or the error that stands in its place."""
        if isinstance(content, CallError):
            return self.explained(content)
        try:
            return replace(self.read(content, {}), batch=True)
        except CallError as error:
            return self.explained(error)

    def _open_batches(self) -> BatchApi:
        if self._batches is not None:
            return self._batches
        if self._key is None:
            raise no_key(self._spec)
        client = _http_client(self._spec)
        self._batches = self._batching().open(self._key, self._spec.base_url, client)
        return self._batches

    def _batching(self) -> Batching:
        batching = self._spec.batching
        if batching is None:
            raise FatalError(
                "no_batches", f"{self._spec.text}: its provider has no batches"
            )
        return batching

    def _call_error(self, error: Exception) -> CallError:
        """Return the CallError for an exception that came out of an SDK."""
        if isinstance(error.__cause__, CallError):
            # Raised by our check of where a request goes; the SDK wrapped it.
            return self.explained(error.__cause__)
        if isinstance(error, CallError):
            return self.explained(error)
        response = getattr(error, "response", None)
        if isinstance(response, httpx2.Response):
            body = response.content if response.is_closed else b""
            status = response.status_code
            return self.explained(failures.of_response(status, response.headers, body))
        message = f"the connection broke: {type(error).__name__} {error}"
        return self.explained(TransientError("connection", message))


def _http_client(spec: Spec) -> httpx2.AsyncClient:
    """Return an HTTP client for an SDK that reaches the model's own host alone.

    It follows no redirects, and reads nothing from the environment but the proxy.
    """
    model_url = urlsplit(spec.base_url)

    async def refuse_other_host(request: httpx2.Request) -> None:
        host = request.url.netloc.decode("ascii")
        if (request.url.scheme, host) != (model_url.scheme, model_url.netloc):
            raise FatalError(
                "redirect",
                f"the server leads to another host, {request.url.host}: not followed",
            )

    async def drop_provider_headers(request: httpx2.Request) -> None:
        """Remove what an SDK adds for its provider alone, as organisation and custom headers.

        What is in SENT_ANYWHERE stays, the API key among it.
        """
        if spec.is_at_provider:
            return
        for name in set(request.headers) - SENT_ANYWHERE - HTTP_HEADERS:
            del request.headers[name]

    proxy = proxy_of(spec)
    return httpx2.AsyncClient(
        proxy=None if proxy is None else str(proxy),
        verify=trusted_certificates() if model_url.scheme == "https" else False,
        timeout=httpx2.Timeout(
            spec.deadline, connect=min(CONNECT_SECONDS, spec.deadline)
        ),
        trust_env=False,
        follow_redirects=False,
        event_hooks={"request": [refuse_other_host, drop_provider_headers]},
    )


async def _lines(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines of a stream that are not blank.

    Only the part of a line that has come so far is held. If it exceeds MAX_BODY_BYTES, the
    line is dropped.
    """
    rest = b""
    is_dropping = False
    async for part in parts:
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            if is_dropping:
                is_dropping = False  # with this line its end has come
            elif line.strip():
                yield line
        if len(rest) > MAX_BODY_BYTES:
            rest = b""
            is_dropping = True
    if rest.strip() and not is_dropping:
        yield rest
