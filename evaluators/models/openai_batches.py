"""OpenAI's batches: a file of calls, a batch made of it, and two files that come back."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evaluators.core import CallError, TransientError
from evaluators.models import failures
from evaluators.models.adapter import BatchApi, BatchStatus, JsonObject

if TYPE_CHECKING:
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
