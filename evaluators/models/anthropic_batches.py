"""Anthropic's message batches: all calls in one request, results as lines once it is over.

A batch has no name there. One whose id was never heard is known by the number of its calls, and for
certain by its results.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from evaluators.core import CallError, TransientError
from evaluators.models import failures
from evaluators.models.adapter import BatchStatus, JsonObject

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

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
"""The status with which the API answers a single call that ends so."""
UNKNOWN = 500
SKEW = 600.0  # seconds that the provider's clock may be off
PAGE = 100


class AnthropicBatches:
    """Batches by Anthropic's SDK."""

    def __init__(self, sdk: "AsyncAnthropic") -> None:
        self._sdk = sdk

    def line(self, key: str, body: Mapping[str, object]) -> Mapping[str, object]:
        """Return a call as an entry of the request."""
        return {"custom_id": key, "params": body}

    async def upload(self, name: str, lines: Sequence[bytes]) -> str:
        """Return nothing: calls go with the batch itself."""
        return ""

    async def create(self, name: str, file: str, lines: Sequence[bytes]) -> str:
        """Begin a batch and return its id."""
        from anthropic.types.messages import MessageBatch

        # Not by batches.create, which looks into each of the 100,000 entries for what to rename.
        batch = await self._sdk.post(
            "/v1/messages/batches",
            cast_to=MessageBatch,
            content=b'{"requests":[' + b",".join(lines) + b"]}",
            options={"headers": {"content-type": "application/json"}},
        )
        return batch.id

    async def find(self, name: str, calls: int, since: float) -> list[str]:
        """Return the ids of the batches with so many calls that were begun since then."""
        found = []
        earliest = datetime.fromtimestamp(since - SKEW, UTC)
        async for batch in self._sdk.messages.batches.list(limit=PAGE):
            if batch.created_at < earliest:
                break
            counts = batch.request_counts
            ended = counts.succeeded + counts.errored + counts.canceled + counts.expired
            if counts.processing + ended == calls:
                found.append(batch.id)
        return found

    async def status(self, batch: str) -> BatchStatus:
        """Return what became of a batch so far."""
        found = await self._sdk.messages.batches.retrieve(batch)
        counts = found.request_counts
        return BatchStatus(
            is_over=found.processing_status == "ended",
            done=counts.succeeded,
            failed=counts.errored + counts.canceled + counts.expired,
        )

    async def results(self, batch: str) -> AsyncIterator[bytes]:
        """Yield the file of results."""
        opening = self._sdk.messages.batches.with_streaming_response.results(batch)
        async with opening as response:
            async for part in response.iter_bytes():
                yield part

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

    async def cancel(self, batch: str) -> None:
        """Ask for nothing more of a batch."""
        await self._sdk.messages.batches.cancel(batch)

    async def close(self) -> None:
        """Close the connections."""
        await self._sdk.close()
