"""How providers take batches: OpenAI a file of calls, Anthropic all calls in one request.

OpenAI's batches come back as two files; Anthropic's as lines once they are over. A batch has no
name at Anthropic: if the answer with its id was lost, it is recognised by the number of its calls,
and for certain by its results.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx2

from evaluators.core import CallError, TransientError
from evaluators.models import failures
from evaluators.models.adapter import BatchApi, BatchStatus, JsonObject

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
