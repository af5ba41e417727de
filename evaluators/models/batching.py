"""The batches of one model at its provider, by the provider's SDK.

OpenAI takes a file of calls and gives back two files; Anthropic takes all calls in one request and
gives back lines once they are over. A batch has no name at Anthropic: if the answer with its id was
lost, it is recognised by the number of its calls, and for certain by its results. Every error is
sorted and masked like that of a single call.
"""

from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import quote, urlsplit

import httpx2

from evaluators.core import CallError, FatalError, Reply, Request, TransientError
from evaluators.models import failures
from evaluators.models.adapter import BatchApi, Batching, BatchStatus, JsonObject, parse_body
from evaluators.models.api import (
    CONNECT_SECONDS,
    EVERYWHERE,
    MAX_BODY,
    NO_KEY,
    ApiModel,
    encode_json,
    proxy_of,
    verified,
)
from evaluators.models.spec import Spec
from evaluators.secrets import Key

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types.messages import MessageBatch
    from openai import AsyncOpenAI
    from openai.types import Batch


OVER = frozenset({"completed", "expired", "cancelled", "failed"})
LABEL = "qagate"
"""The metadata key of a batch's name."""


class OpenAIBatches(BatchApi):
    """Batches by OpenAI's SDK, also at servers that speak its protocol."""

    def __init__(self, sdk: "AsyncOpenAI", endpoint: str) -> None:
        super().__init__(sdk, sdk.batches)
        self._endpoint: Any = endpoint

    def line(self, key: str, body: Mapping[str, object]) -> Mapping[str, object]:
        """Return a call as a line of the file."""
        return {"custom_id": key, "method": "POST", "url": self._endpoint, "body": body}

    async def upload(self, name: str, lines: Sequence[bytes]) -> str:
        """Return the id of the uploaded file."""
        content = b"\n".join(lines) + b"\n"
        file = await self._sdk.files.create(file=(f"{name}.jsonl", content), purpose="batch")
        return str(file.id)

    async def create(self, name: str, file: str, lines: Sequence[bytes]) -> str:
        """Create a batch whose metadata hold its name; return its id."""
        batch = await self._batches.create(
            input_file_id=file,
            endpoint=self._endpoint,
            completion_window="24h",
            metadata={LABEL: name},
        )
        return str(batch.id)

    def may_be(self, batch: "Batch", name: str, calls: int) -> bool:
        """Return whether a batch has this name."""
        return (batch.metadata or {}).get(LABEL) == name

    async def status(self, batch: str) -> BatchStatus:
        """Return how far a batch is."""
        found = await self._batches.retrieve(batch)
        counts = found.request_counts
        return BatchStatus(
            is_over=found.status in OVER,
            done=counts.completed if counts else 0,
            failed=counts.failed if counts else 0,
            refusal=_refusal(found) if found.status == "failed" else "",
        )

    async def results(self, batch: str) -> AsyncIterator[bytes]:
        """Yield the contents of the files of replies and of errors."""
        found = await self._batches.retrieve(batch)
        for file in filter(None, (found.output_file_id, found.error_file_id)):
            async with self._sdk.files.with_streaming_response.content(file) as response:
                async for part in response.iter_bytes():
                    yield part
            yield b"\n"

    def read(self, line: JsonObject) -> tuple[str, JsonObject | CallError]:
        """Return a line's key, and the body of its reply or its error."""
        key = line.text("custom_id")
        if line.get("response") is not None:
            response = line.mapping("response")
            status, body = response.count("status_code"), response.mapping("body")
            if 200 <= status < 300:
                return key, body
            return key, failures.of_failed_call(status, body)
        problem = line.mapping("error")
        code = str(problem.get("code") or "batch_error")
        kind = "expired" if "expired" in code else "batch_error"
        return key, TransientError(kind, f"{code}: {problem.get('message')}")


def _refusal(batch: "Batch") -> str:
    problems = (batch.errors.data if batch.errors else None) or []
    said = [f"{one.code}: {one.message}" for one in problems[:3]]
    return "; ".join(said) or "it did not pass the provider's checks"


STATUSES: Mapping[str, int] = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The HTTP status by which the API answers a single call with this error."""
UNKNOWN = 500


class AnthropicBatches(BatchApi):
    """Batches by Anthropic's SDK."""

    def __init__(self, sdk: "AsyncAnthropic") -> None:
        super().__init__(sdk, sdk.messages.batches)

    def line(self, key: str, body: Mapping[str, object]) -> Mapping[str, object]:
        """Return a call as an entry of the request."""
        return {"custom_id": key, "params": body}

    async def create(self, name: str, file: str, lines: Sequence[bytes]) -> str:
        """Create a batch and return its id."""
        from anthropic.types.messages import MessageBatch

        # batches.create would search each of the 100,000 entries for names to change.
        batch = await self._sdk.post(
            "/v1/messages/batches",
            cast_to=MessageBatch,
            content=b'{"requests":[' + b",".join(lines) + b"]}",
            options={"headers": {"content-type": "application/json"}},
        )
        return str(batch.id)

    def may_be(self, batch: "MessageBatch", name: str, calls: int) -> bool:
        """Return whether a batch has so many calls."""
        counts = batch.request_counts
        ended = counts.succeeded + counts.errored + counts.canceled + counts.expired
        return counts.processing + ended == calls

    async def status(self, batch: str) -> BatchStatus:
        """Return how far a batch is."""
        found = await self._batches.retrieve(batch)
        counts = found.request_counts
        return BatchStatus(
            is_over=found.processing_status == "ended",
            done=counts.succeeded,
            failed=counts.errored + counts.canceled + counts.expired,
        )

    async def results(self, batch: str) -> AsyncIterator[bytes]:
        """Yield the file of results, from the server that took the batch.

        The SDK would go where ``results_url`` leads, which a gateway passes on as it is.
        """
        response: httpx2.Response = await self._sdk.get(
            f"/v1/messages/batches/{quote(batch, safe='')}/results",
            cast_to=httpx2.Response,
            options={"headers": {"accept": "application/binary"}},
            stream=True,
        )
        try:
            async for part in response.aiter_bytes():
                yield part
        finally:
            await response.aclose()

    def read(self, line: JsonObject) -> tuple[str, JsonObject | CallError]:
        """Return a line's key, and the message or why there is none."""
        key, result = line.text("custom_id"), line.mapping("result")
        kind = result.text("type")
        if kind == "succeeded":
            return key, result.mapping("message")
        if kind != "errored":
            return key, TransientError(kind, f"the call came back as {kind}")
        body = result.mapping("error")
        name = str(body.mapping("error").get("type"))
        return key, failures.of_failed_call(STATUSES.get(name, UNKNOWN), body)


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
        """Yield the key of each call that came back, and its reply or error.

        A line that cannot be read is skipped: nobody knows to which call it belongs.
        """
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
        if isinstance(content, CallError):
            return self._api.masked(content)
        try:
            return replace(self._api.read(content), batch=True)
        except CallError as error:
            return self._api.masked(error)

    def _opened(self) -> BatchApi:
        if self._batches is None:
            if self._key is None:
                variable = self._spec.api_key_env
                msg = f"{self._spec.text}: no API key; set the environment variable {variable}"
                raise FatalError(NO_KEY, msg)
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
            sorted_ = failures.of_response(response.status_code, response.headers, said)
        elif isinstance(error, CallError):
            sorted_ = error
        else:
            what = f"the connection broke: {type(error).__name__} {error}"
            sorted_ = TransientError("connection", what)
        return self._api.masked(sorted_)


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
