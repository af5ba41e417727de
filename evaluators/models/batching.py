"""The batches of one model by its provider's SDK; errors are sorted and masked as a call's."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from dataclasses import replace
from typing import TypeVar
from urllib.parse import urlsplit

import httpx2

from evaluators.core import CallError, FatalError, Reply, Request, TransientError
from evaluators.models import failures
from evaluators.models.adapter import BatchApi, Batching, JsonObject, parse_body
from evaluators.models.api import (
    CONNECT_SECONDS,
    EVERYWHERE,
    MAX_BODY,
    ApiModel,
    encode_json,
    no_key,
    proxy_of,
    verified,
)
from evaluators.models.spec import Spec
from evaluators.text import Key

T = TypeVar("T")
NO_BATCHES = "no_batches"
SDK_READS = "x-stainless-raw-response"  # tells the SDK what to return
FRAMING = frozenset(
    {"accept-encoding", "connection", "content-length", "host", "transfer-encoding", SDK_READS}
)


class BatchedModel:
    """The batches of one model. It raises CallErrors only, and shows its key nowhere."""

    def __init__(self, spec: Spec, key: Key | None) -> None:
        self._spec = spec
        self._key = key
        self._api = ApiModel(spec, key)
        self._batches: BatchApi | None = None

    @property
    def spec(self) -> str:
        """The SPEC that names the model."""
        return self._spec.text

    def parts(self, calls: Iterable[tuple[str, Request]]) -> Iterator[dict[str, bytes]]:
        """Yield the calls as lines of JSON, by key, as many at a time as fit into a batch."""
        batching, lines, size = self._batching(), dict[str, bytes](), 0
        for key, request in calls:
            line = encode_json(self._opened().line(key, self._api.body(request))).encode()
            if lines and (len(lines) >= batching.calls or size + len(line) > batching.size):
                yield lines
                lines, size = {}, 0
            lines[key] = line
            size += len(line) + 1
        yield lines

    async def asked(self, ask: Callable[[BatchApi], Awaitable[T]]) -> T:
        """Return what the provider's API says, for instance to ``lambda api: api.newest()``."""
        try:
            return await ask(self._opened())
        except Exception as error:  # noqa: BLE001 - SDKs raise more than they document
            problem = self._problem(error)
        raise problem  # out here, so that no exception that holds the key's header hangs on it

    async def results(self, batch: str) -> AsyncIterator[tuple[str, Reply | CallError]]:
        """Yield the key and the reply or error of each call that came back in a readable line."""
        api = self._opened()
        try:
            async for line in _lines(api.results(batch)):
                try:
                    key, content = api.read(parse_body(line))
                except TransientError:
                    continue
                yield key, self._reply(content)
        except Exception as error:  # noqa: BLE001 - SDKs raise more than they document
            problem = self._problem(error)
        else:
            return
        raise problem

    async def close(self) -> None:
        """Close the connections."""
        batches, self._batches = self._batches, None
        if batches is not None:
            await batches.close()

    def _reply(self, content: JsonObject | CallError) -> Reply | CallError:
        try:
            if isinstance(content, CallError):
                raise content
            return replace(self._api.read(content, {}), batch=True)
        except CallError as error:
            return self._api.masked(error)

    def _opened(self) -> BatchApi:
        if self._batches is None:
            if self._key is None:
                raise no_key(self._spec)
            client = _client(self._spec)
            self._batches = self._batching().open(self._key, self._spec.base_url, client)
        return self._batches

    def _batching(self) -> Batching:
        batching = self._spec.batching
        if batching is None:
            raise FatalError(NO_BATCHES, f"{self._spec.text}: its provider has no batches")
        return batching

    def _problem(self, error: Exception) -> CallError:
        if isinstance(error.__cause__, CallError):  # our own check of where a request goes
            error = error.__cause__
        response = getattr(error, "response", None)
        if isinstance(response, httpx2.Response):
            said = response.content if response.is_closed else b""
            error = failures.of_response(response.status_code, response.headers, said)
        elif not isinstance(error, CallError):
            what = f"the connection broke: {type(error).__name__} {error}"
            error = TransientError("connection", what)
        return self._api.masked(error)


def _client(spec: Spec) -> httpx2.AsyncClient:
    """Return an HTTP client for the SDK: only the model's own host, no redirects, no cookies."""
    own = urlsplit(spec.base_url)

    async def check(request: httpx2.Request) -> None:
        if (request.url.scheme, request.url.netloc.decode("ascii")) != (own.scheme, own.netloc):
            kind = "redirect"
            what = f"the server leads to another host, {request.url.host}: not followed"
            raise FatalError(kind, what)
        if not spec.is_own_host:  # organisation and custom headers are for the provider alone
            for name in set(request.headers) - EVERYWHERE - FRAMING:
                del request.headers[name]

    proxy = proxy_of(spec)
    return httpx2.AsyncClient(
        proxy=None if proxy is None else str(proxy),
        verify=verified() if own.scheme == "https" else False,
        timeout=httpx2.Timeout(spec.deadline, connect=min(CONNECT_SECONDS, spec.deadline)),
        trust_env=False,
        follow_redirects=False,
        event_hooks={"request": [check]},
    )


async def _lines(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines that are not blank; a line that is too long is cut, and no JSON then."""
    rest = bytearray()
    is_too_long = False
    async for part in parts:
        *ended, last = part.split(b"\n")
        for piece in ended:
            line = bytes(rest) + piece
            rest.clear()
            if line.strip() and not is_too_long:
                yield line
            is_too_long = False
        rest += last
        if len(rest) > MAX_BODY:
            rest.clear()
            is_too_long = True
    if rest.strip() and not is_too_long:
        yield bytes(rest)
