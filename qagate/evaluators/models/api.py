"""Calls to one model over HTTP, one by one, or in batches by its provider's SDK."""

import asyncio
import re
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
)
from contextlib import suppress
from dataclasses import dataclass, field, replace
from ssl import SSLContext
from typing import TypeVar
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

import aiohttp
import httpx2
import msgspec
from multidict import CIMultiDict
from yarl import URL

from qagate.evaluators.core import (
    CallError,
    FatalError,
    Reply,
    Request,
    ToolCall,
    TransientError,
)
from qagate.evaluators.models import failures
from qagate.evaluators.models.adapter import (
    BatchApi,
    Batching,
    JsonObject,
    parse_body,
    refuse_body,
)
from qagate.evaluators.models.spec import Spec, no_key_sent
from qagate.evaluators.text import Key, mask, one_line

T = TypeVar("T")
CONNECT_SECONDS = 10.0
MAX_CONNECTIONS = 1024  # above any sensible --concurrency: the engine sets the limit
MAX_BODY = 5 * 1024 * 1024  # bytes
KEY_HEADERS = frozenset({"authorization", "x-api-key"})
EVERYWHERE = KEY_HEADERS | {"accept", "anthropic-version", "content-type", "user-agent"}
_RELEASE = re.compile(
    r"[-@:](\d{4}-\d\d(-\d\d)?|\d\d-\d{4}|\d{3,8})"
)  # a date, or as in -002
SDK_READS = "x-stainless-raw-response"  # tells the SDK what to return
FRAMING = frozenset(
    {
        "accept-encoding",
        "connection",
        "content-length",
        "host",
        "transfer-encoding",
        SDK_READS,
    }
)
encode_json = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where one model's requests go, with the headers and key that its SDK sends.

    Building each request with the SDK costs a third of a call's work, its client half of the rest.
    """

    session: aiohttp.ClientSession
    url: URL
    method: str
    proxy: URL | None = field(repr=False)
    headers: CIMultiDict[str] = field(repr=False)
    """Not the session's own: aiohttp shows those to a proxy, outside TLS."""

    async def post(
        self, content: Mapping[str, object]
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers and decoded body; TransientError for one that is too large."""
        url, data = self.url, None
        if self.method == "GET":
            url = url.update_query({key: str(value) for key, value in content.items()})
        else:
            data = encode_json(content)
        exchange = self.session.request(
            self.method,
            url,
            headers=self.headers,
            data=data,
            proxy=self.proxy,
            allow_redirects=False,
        )
        body = bytearray()
        async with exchange as response:
            # aiohttp decompresses part by part, so no part can be a bomb.
            async for part in response.content.iter_any():
                body += part
                if len(body) > MAX_BODY:
                    refuse_body(f"the reply is larger than {MAX_BODY:,} bytes")
        return response.status, response.headers, bytes(body)


def open_endpoint(spec: Spec, key: Key) -> Endpoint:
    """Return the endpoint of a model. Raises FatalError for an unusable proxy or certificates."""
    address, headers = spec.adapter.address(key, spec.base_url)
    url = URL(address, encoded=True).update_query(spec.query)
    proxy = proxy_of(spec)
    session = aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(
            limit=MAX_CONNECTIONS, ssl=verified() if url.scheme == "https" else True
        ),
        cookie_jar=aiohttp.DummyCookieJar(),
        # The whole call has a deadline, so reads need no timer of their own.
        timeout=aiohttp.ClientTimeout(
            total=None, sock_connect=min(CONNECT_SECONDS, spec.deadline)
        ),
    )
    # An SDK marks a header that it leaves out by an object. Headers that it takes from the
    # environment (organisation, project, custom ones) are for the provider's own host only.
    sent = CIMultiDict(
        (name, value)
        for name, value in headers.items()
        if isinstance(value, str)
        and (spec.is_own_host or name.casefold() in EVERYWHERE)
    )
    if spec.headers:
        for name in KEY_HEADERS:
            sent.popall(name, None)
        sent.update(zip(spec.headers, key.reveals(), strict=True))
    return Endpoint(
        session=session, url=url, method=spec.adapter.method, proxy=proxy, headers=sent
    )


def no_key(spec: Spec) -> FatalError:
    """Return the error of a call without a key."""
    why = f"{spec.text}: no API key; set the environment variable {spec.api_key_env}"
    return FatalError("no_key", why)


def verified() -> SSLContext:
    """Return the trusted certificates. Raises FatalError if they cannot be read."""
    try:
        return httpx2.create_ssl_context()
    except OSError as error:
        msg = f"SSL_CERT_FILE or SSL_CERT_DIR: the certificates cannot be read: {error}"
        raise FatalError(failures.ENVIRONMENT, msg) from None


def proxy_of(spec: Spec) -> URL | None:
    """Return the environment's proxy for a model, if any; FatalError for one that is not HTTP."""
    scheme, server, *_ = urlsplit(spec.base_url)
    known = getproxies()
    named = known.get(scheme) or known.get("all")
    if not named or spec.is_loopback or proxy_bypass(server):
        return None
    with suppress(ValueError):
        proxy = URL(named if "://" in named else f"http://{named}")
        if proxy.scheme in ("http", "https") and proxy.host:
            return proxy
    msg = f"{scheme.upper()}_PROXY or ALL_PROXY is not an HTTP proxy's URL; write http://HOST:PORT"
    raise FatalError(failures.ENVIRONMENT, msg)


class ApiModel:
    """The calls to one model through its provider's adapter. It never shows its key."""

    def __init__(self, spec: Spec, key: Key | None) -> None:
        self._spec = spec
        self._key = key
        self._adapter = spec.adapter
        # A connection works only in the event loop that opened it.
        self._endpoints = WeakKeyDictionary[asyncio.AbstractEventLoop, Endpoint]()

    async def complete(self, request: Request) -> Reply:
        """One attempt, without retries, within the Spec's deadline. Raises only CallErrors."""
        if self._key is None:
            raise no_key(self._spec)
        try:
            loop = asyncio.get_running_loop()
            endpoint = self._endpoints.get(loop)
            if endpoint is None:
                endpoint = self._endpoints[loop] = open_endpoint(self._spec, self._key)
            start = time.perf_counter()
            async with asyncio.timeout(self._spec.deadline):
                status, headers, body = await endpoint.post(self.body(request))
            if not 200 <= status < 300:
                raise failures.of_response(status, headers, body)
            reply = self.read(parse_body(body), headers)
        except Exception as error:  # noqa: BLE001 - HTTP libraries raise more than they document
            problem = self.masked(failures.of_exception(error))
        else:
            return replace(reply, seconds=time.perf_counter() - start)
        # Raised out here, so that it has no HTTP exception, with the key's header, as its context.
        raise problem

    async def close(self) -> None:
        """Close the connections of the running loop."""
        if endpoint := self._endpoints.pop(asyncio.get_running_loop(), None):
            await endpoint.session.close()

    def body(self, request: Request) -> Mapping[str, object]:
        """Return the body to send for a request."""
        return self._adapter.write(
            self._spec.name, request, self._spec.merged(request.parameters)
        )

    def read(self, content: JsonObject, headers: Mapping[str, str]) -> Reply:
        """Return the reply in a body, without the key. Raises a CallError if there is none."""
        if content.get("error") or content.get("type") == "error":
            raise failures.of_error_body(content, headers)
        reply = self._adapter.read(content)
        _check_model(reply.model, self._spec.name, self._spec.answers_as)
        return reply if self._key is None else _hidden(reply, self._key)

    def masked(self, error: CallError) -> CallError:
        """Return the error with the model's SPEC, in one line and without anything like a key."""
        advice = no_key_sent(self._spec, self._key) or failures.ADVICE["auth"]
        text = f"{self._spec.text}: {error}".replace(failures.ADVICE["auth"], advice)
        message = one_line(mask(text) if self._key is None else self._key.mask(text))
        if isinstance(error, TransientError):
            return TransientError(error.kind, message, error.retry_after)
        return type(error)(error.kind, message)


def _hidden(reply: Reply, key: Key) -> Reply:
    """Return the reply without the key, which a server may echo: replies are kept and shown."""
    calls = tuple(
        ToolCall(name=key.hide(call.name), arguments=key.hide(call.arguments))
        for call in reply.calls
    )
    return replace(
        reply,
        text=key.hide(reply.text),
        calls=calls,
        finish=key.hide(reply.finish),
        model=key.hide(reply.model),
    )


def _check_model(name: str, wanted: str, also: tuple[str, ...]) -> None:
    """Raise TransientError for another model than was asked, by its name without a release."""
    for known in (wanted, *also):
        short, long = sorted((_bare(name), _bare(known)), key=len)
        rest = long[len(short) :]
        is_longer = bool(short) and long.startswith(short)
        if known == "*" or (is_longer and (not rest or _RELEASE.fullmatch(rest))):
            return
    refuse_body(
        f"model {name[:80]!r} answered in place of {wanted!r}; "
        "if they are the same, put that name under answers_as in models.yaml"
    )


def _bare(name: str) -> str:
    # Without a gateway's prefix and the words for its newest release.
    last = name.casefold().rstrip("/").rpartition("/")[2]
    return last.removesuffix(":latest").removesuffix("-latest")


class BatchedModel(ApiModel):
    """The batches of one model. It raises CallErrors only, and shows its key nowhere."""

    def __init__(self, spec: Spec, key: Key | None) -> None:
        super().__init__(spec, key)
        self._batches: BatchApi | None = None

    @property
    def spec(self) -> str:
        """The SPEC that names the model."""
        return self._spec.text

    def parts(self, calls: Iterable[tuple[str, Request]]) -> Iterator[dict[str, bytes]]:
        """Yield the calls as lines of JSON, by key, as many at a time as fit into a batch."""
        batching, lines, size = self._batching(), dict[str, bytes](), 0
        for key, request in calls:
            line = encode_json(self._opened().line(key, self.body(request)))
            if lines and (
                len(lines) >= batching.calls or size + len(line) > batching.size
            ):
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
            return replace(self.read(content, {}), batch=True)
        except CallError as error:
            return self.masked(error)

    def _opened(self) -> BatchApi:
        if self._batches is None:
            if self._key is None:
                raise no_key(self._spec)
            client = _client(self._spec)
            self._batches = self._batching().open(
                self._key, self._spec.base_url, client
            )
        return self._batches

    def _batching(self) -> Batching:
        batching = self._spec.batching
        if batching is None:
            raise FatalError(
                "no_batches", f"{self._spec.text}: its provider has no batches"
            )
        return batching

    def _problem(self, error: Exception) -> CallError:
        if isinstance(
            error.__cause__, CallError
        ):  # our own check of where a request goes
            error = error.__cause__
        response = getattr(error, "response", None)
        if isinstance(response, httpx2.Response):
            said = response.content if response.is_closed else b""
            error = failures.of_response(response.status_code, response.headers, said)
        elif not isinstance(error, CallError):
            what = f"the connection broke: {type(error).__name__} {error}"
            error = TransientError("connection", what)
        return self.masked(error)


def _client(spec: Spec) -> httpx2.AsyncClient:
    """Return an HTTP client for the SDK: only the model's own host, no redirects, no cookies."""
    own = urlsplit(spec.base_url)

    async def check(request: httpx2.Request) -> None:
        if (request.url.scheme, request.url.netloc.decode("ascii")) != (
            own.scheme,
            own.netloc,
        ):
            kind = "redirect"
            what = f"the server leads to another host, {request.url.host}: not followed"
            raise FatalError(kind, what)
        if (
            not spec.is_own_host
        ):  # organisation and custom headers are for the provider alone
            for name in set(request.headers) - EVERYWHERE - FRAMING:
                del request.headers[name]

    proxy = proxy_of(spec)
    return httpx2.AsyncClient(
        proxy=None if proxy is None else str(proxy),
        verify=verified() if own.scheme == "https" else False,
        timeout=httpx2.Timeout(
            spec.deadline, connect=min(CONNECT_SECONDS, spec.deadline)
        ),
        trust_env=False,
        follow_redirects=False,
        event_hooks={"request": [check]},
    )


async def _lines(parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yield the lines that are not blank; a line that is too long is cut, and no JSON then."""
    rest, is_too_long = b"", False
    async for part in parts:
        *lines, rest = (rest + part).split(b"\n")
        for line in lines:
            if line.strip() and not is_too_long:
                yield line
            is_too_long = False
        if len(rest) > MAX_BODY:
            rest, is_too_long = b"", True
    if rest.strip() and not is_too_long:
        yield rest
