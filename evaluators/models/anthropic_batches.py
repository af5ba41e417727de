"""Anthropic's message batches: all calls in one request, results as lines once it is over.

A batch has no name there. If the answer with its id was lost, a batch is recognised by the number
of its calls, and for certain by its results.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx2

from evaluators.core import CallError, TransientError
from evaluators.models import failures
from evaluators.models.adapter import BatchApi, BatchStatus, JsonObject

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic
    from anthropic.types.messages import MessageBatch

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
