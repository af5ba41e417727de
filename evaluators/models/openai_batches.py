"""OpenAI's batches: a file of calls, a batch made of it, and two files that come back."""

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evaluators.core import CallError, TransientError
from evaluators.models import failures
from evaluators.models.adapter import BatchStatus, JsonObject

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from openai.types import Batch

OVER = frozenset({"completed", "expired", "cancelled", "failed"})
LABEL = "qagate"
"""The metadata key of a batch's name."""
PAGE = 100


class OpenAIBatches:
    """Batches by OpenAI's SDK, also at servers that speak its protocol."""

    def __init__(self, sdk: "AsyncOpenAI", endpoint: str) -> None:
        self._sdk = sdk
        self._endpoint: Any = endpoint

    def line(self, key: str, body: Mapping[str, object]) -> Mapping[str, object]:
        """Return a call as a line of the file."""
        return {"custom_id": key, "method": "POST", "url": self._endpoint, "body": body}

    async def upload(self, name: str, lines: Sequence[bytes]) -> str:
        """Return the id of the uploaded file."""
        content = b"\n".join(lines) + b"\n"
        file = await self._sdk.files.create(file=(f"{name}.jsonl", content), purpose="batch")
        return file.id

    async def create(self, name: str, file: str, lines: Sequence[bytes]) -> str:
        """Create a batch whose metadata hold its name; return its id."""
        batch = await self._sdk.batches.create(
            input_file_id=file,
            endpoint=self._endpoint,
            completion_window="24h",
            metadata={LABEL: name},
        )
        return batch.id

    async def newest(self) -> str:
        """Return the id of the newest batch; empty if there is none."""
        page = await self._sdk.batches.list(limit=1)
        return page.data[0].id if page.data else ""

    async def find(self, name: str, calls: int, after: str) -> list[str]:
        """Return the ids of the batches with this name."""
        found = []
        async for batch in self._sdk.batches.list(limit=PAGE):
            if batch.id == after:
                break
            if (batch.metadata or {}).get(LABEL) == name:
                found.append(batch.id)
        return found

    async def status(self, batch: str) -> BatchStatus:
        """Return how far a batch is."""
        found = await self._sdk.batches.retrieve(batch)
        counts = found.request_counts
        return BatchStatus(
            is_over=found.status in OVER,
            done=counts.completed if counts else 0,
            failed=counts.failed if counts else 0,
            refusal=_refusal(found) if found.status == "failed" else "",
        )

    async def results(self, batch: str) -> AsyncIterator[bytes]:
        """Yield the contents of the files of replies and of errors."""
        found = await self._sdk.batches.retrieve(batch)
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

    async def cancel(self, batch: str) -> None:
        """Cancel a batch; what is done by then is paid for."""
        await self._sdk.batches.cancel(batch)

    async def close(self) -> None:
        """Close the connections."""
        await self._sdk.close()


def _refusal(batch: "Batch") -> str:
    problems = (batch.errors.data if batch.errors else None) or []
    said = [f"{one.code}: {one.message}" for one in problems[:3]]
    return "; ".join(said) or "it did not pass the provider's checks"
