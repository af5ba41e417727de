"""A server of both batch APIs on 127.0.0.1, along with the single calls that it answers as well.

    with batch_server(looks=2) as server:
        spec = f"openai:any@{server.url}/v1"

A batch is over once it was looked at so often. What goes wrong is said by ``fault``: for a call and
the number of the batch that it is in, a word of FAULTS or none. ``step`` is called before each step
with its name, and may return an Answer in place of the server's own: "upload", "create" (what it
returns then is sent after the batch was made where its status is 0), "status", "list", "results".
Results come in another order than calls went in, and some come twice. What a proxy makes of the
file of results is said by ``change``, which is given the file's text and the number of its batch.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from tests.support.loopback import Answer, Handler, Loopback, Seen, loopback, plausible

Fault = Callable[[str, int], str]
Step = Callable[[str, Seen], Answer | None]
Change = Callable[[str, int], str]
FAULTS = ("error", "expired", "unreadable", "missing", "refused", "other model")
DAY = 86_400


@dataclass(slots=True, kw_only=True)
class Batch:
    """One batch as the server keeps it; ``lines`` are its calls by their ids."""

    id: str
    number: int
    lines: dict[str, Mapping[str, Any]]
    path: str
    metadata: Mapping[str, str] = field(default_factory=dict)
    looks: int = 0
    cancelled: bool = False
    refusal: str = ""
    created: float = field(default_factory=time.time)


class BatchServer:
    """What the server has: uploaded files, batches, and how often each call was submitted."""

    def __init__(
        self, handler: Handler, looks: int, fault: Fault, step: Step, change: Change
    ) -> None:
        self.files: dict[str, bytes] = {}
        self.batches: dict[str, Batch] = {}
        self.submitted: Counter[str] = Counter()
        self.direct: list[Seen] = []
        self.looks = looks
        self.fault = fault
        self.step = step
        self.change = change
        self.refusal = (
            ""  # with which a batch made from now on fails the server's checks
        )
        self.loopback: Loopback
        self._handler = handler
        self._seen_before = 0

    @property
    def url(self) -> str:
        return self.loopback.url

    @property
    def sizes(self) -> list[int]:
        """How many calls each batch has."""
        return [len(batch.lines) for batch in self.batches.values()]

    @property
    def repeats(self) -> int:
        """How many calls were submitted more than once, each time counted."""
        return sum(count - 1 for count in self.submitted.values())

    def handle(self, seen: Seen) -> Answer:
        path = seen.path.partition("?")[0]
        for method, pattern, name, answer in ROUTES:
            found = re.fullmatch(pattern, path)
            if found and seen.method == method:
                instead = self.step(name, seen)
                if instead is None:
                    return answer(self, seen, *found.groups())
                if not instead.status:  # it is done, and nobody hears of it
                    answer(self, seen, *found.groups())
                return replace(instead, status=instead.status or 200)
        self.direct.append(seen)
        return self._handler(seen)

    # OpenAI

    def upload(self, seen: Seen) -> Answer:
        content = seen.content.partition(b'name="file"')[2].partition(b"\r\n\r\n")[2]
        name = f"file-{len(self.files)}"
        self.files[name] = content.partition(b"\r\n--")[0]
        about = {
            "object": "file",
            "bytes": len(content),
            "created_at": int(time.time()),
        }
        return Answer(
            body={"id": name, **about, "filename": "f.jsonl", "purpose": "batch"}
        )

    def create(self, seen: Seen) -> Answer:
        lines = [
            json.loads(line)
            for line in self.files[seen.body["input_file_id"]].splitlines()
        ]
        calls = {line["custom_id"]: line["body"] for line in lines}
        path, about = seen.body["endpoint"], seen.body.get("metadata") or {}
        return Answer(body=self.shown(self._made(calls, path, about)))

    def _made(
        self, calls: dict[str, Mapping[str, Any]], path: str, about: Mapping[str, str]
    ) -> Batch:
        number = len(self.batches) + 1
        batch = Batch(
            id=f"batch_{number}", number=number, lines=calls, path=path, metadata=about
        )
        batch.refusal = self.refusal
        self.batches[batch.id] = batch
        if not batch.refusal:
            self.submitted.update(list(calls))
        return batch

    def shown(self, batch: Batch) -> dict[str, Any]:
        status = "completed" if self.is_over(batch) else "in_progress"
        status = (
            "cancelled" if batch.cancelled else "failed" if batch.refusal else status
        )
        failed = sum(bool(self.fault_of(batch, key)) for key in batch.lines)
        return {
            "id": batch.id,
            "object": "batch",
            "endpoint": "/v1/chat/completions",
            "completion_window": "24h",
            "input_file_id": "file-0",
            "created_at": int(batch.created),
            "status": status,
            "metadata": batch.metadata,
            "output_file_id": f"out-{batch.id}" if self.is_over(batch) else None,
            "error_file_id": f"err-{batch.id}" if self.is_over(batch) else None,
            "errors": {"data": [{"code": "bad", "message": batch.refusal}]},
            "request_counts": {
                "total": len(batch.lines),
                "completed": len(batch.lines) - failed if self.is_over(batch) else 0,
                "failed": failed if self.is_over(batch) else 0,
            },
        }

    def look(self, seen: Seen, name: str) -> Answer:
        batch = self.batches.get(name)
        if batch is None:
            return Answer(status=404, body={"error": {"message": f"no batch {name}"}})
        batch.looks += 1
        is_openai = "/messages/" not in seen.path
        return Answer(
            body=self.shown(batch) if is_openai else self.shown_message(seen, batch)
        )

    def list(self, seen: Seen) -> Answer:
        every = [self.shown(batch) for batch in reversed(self.batches.values())]
        return Answer(body={"object": "list", "data": every, "has_more": False})

    def content(self, seen: Seen, sort: str, name: str) -> Answer:
        lines = []
        for key, line in self._results(self.batches[name]):
            fault, body = line
            response = {"status_code": 200, "request_id": "r", "body": body}
            entry: dict[str, Any] = {"id": "x", "custom_id": key, "response": response}
            if fault == "expired":
                entry |= {
                    "response": None,
                    "error": {"code": "batch_expired", "message": "late"},
                }
            elif fault in ("error", "refused"):
                response |= {"status_code": 500 if fault == "error" else 400}
            is_error = fault in ("expired", "error", "refused")
            if is_error == (sort == "err"):
                lines.append("{broken" if fault == "unreadable" else json.dumps(entry))
        results = "\n".join(lines) + "\n" if lines else ""
        return Answer(body=self.change(results, self.batches[name].number))

    # Anthropic

    def create_messages(self, seen: Seen) -> Answer:
        calls = {one["custom_id"]: one["params"] for one in seen.body["requests"]}
        return Answer(
            body=self.shown_message(seen, self._made(calls, "/v1/messages", {}))
        )

    def shown_message(self, seen: Seen, batch: Batch) -> dict[str, Any]:
        over = self.is_over(batch)
        failed = sum(bool(self.fault_of(batch, key)) for key in batch.lines)
        at = datetime.fromtimestamp(batch.created, UTC).isoformat()
        url = f"https://api.example/v1/messages/batches/{batch.id}/results"  # as gateways do
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if over else "in_progress",
            "created_at": at,
            "expires_at": at,
            "results_url": url if over else None,
            "request_counts": {
                "processing": 0 if over else len(batch.lines),
                "succeeded": len(batch.lines) - failed if over else 0,
                "errored": failed if over else 0,
                "canceled": 0,
                "expired": 0,
            },
        }

    def list_messages(self, seen: Seen) -> Answer:
        every = [
            self.shown_message(seen, batch) for batch in reversed(self.batches.values())
        ]
        about = {"has_more": False, "first_id": None, "last_id": None}
        return Answer(body={"data": every, **about})

    def results(self, seen: Seen, name: str) -> Answer:
        lines = []
        for key, (fault, body) in self._results(self.batches[name]):
            result: dict[str, Any] = {"type": "succeeded", "message": body}
            if fault == "expired":
                result = {"type": "expired"}
            elif fault in ("error", "refused"):
                kind = "api_error" if fault == "error" else "invalid_request_error"
                said = {"type": "error", "error": {"type": kind, "message": "not now"}}
                result = {"type": "errored", "error": said}
            entry = json.dumps({"custom_id": key, "result": result})
            lines.append("{broken" if fault == "unreadable" else entry)
        results = "\n".join(lines) + "\n"
        return Answer(body=self.change(results, self.batches[name].number))

    # Both

    def cancel(self, seen: Seen, name: str) -> Answer:
        self.batches[name].cancelled = True
        return self.look(seen, name)

    def is_over(self, batch: Batch) -> bool:
        return batch.cancelled or batch.looks >= self.looks

    def fault_of(self, batch: Batch, key: str) -> str:
        """Return what goes wrong with a call; empty for nothing."""
        return self.fault(self._asked(batch, key).prompt, batch.number)

    def _asked(self, batch: Batch, key: str) -> Seen:
        return Seen(
            method="POST", path=batch.path, headers={}, body=batch.lines[key], at=0.0
        )

    def _results(self, batch: Batch) -> Iterator[tuple[str, tuple[str, Any]]]:
        """Yield each call's fault and body: the last comes first, and every third one twice."""
        for number, key in enumerate(reversed(batch.lines)):
            fault = self.fault_of(batch, key)
            if fault == "missing":
                continue
            body = self._handler(self._asked(batch, key)).body
            if fault in ("error", "refused"):
                body = {"error": {"message": "not now"}}
            if fault == "other model" and isinstance(body, dict):
                body = {**body, "model": "another"}
            for _ in range(1 + (number % 3 == 0)):
                yield key, (fault, body)


Route = tuple[str, str, str, Callable[..., Answer]]
ROUTES: tuple[Route, ...] = (
    ("POST", "/v1/files", "upload", BatchServer.upload),
    ("POST", "/v1/batches", "create", BatchServer.create),
    ("GET", "/v1/batches", "list", BatchServer.list),
    ("GET", "/v1/batches/([^/]+)", "status", BatchServer.look),
    ("POST", "/v1/batches/([^/]+)/cancel", "cancel", BatchServer.cancel),
    ("GET", "/v1/files/(out|err)-([^/]+)/content", "results", BatchServer.content),
    ("POST", "/v1/messages/batches", "create", BatchServer.create_messages),
    ("GET", "/v1/messages/batches", "list", BatchServer.list_messages),
    ("GET", "/v1/messages/batches/([^/]+)", "status", BatchServer.look),
    ("POST", "/v1/messages/batches/([^/]+)/cancel", "cancel", BatchServer.cancel),
    ("GET", "/v1/messages/batches/([^/]+)/results", "results", BatchServer.results),
)


@contextmanager
def batch_server(
    handler: Handler | None = None,
    *,
    looks: int = 2,
    fault: Fault = lambda prompt, number: "",
    step: Step = lambda name, seen: None,
    change: Change = lambda results, number: results,
) -> Iterator[BatchServer]:
    """Run a server for a block; ``handler`` answers each call, in a batch or alone."""
    server = BatchServer(handler or plausible(), looks, fault, step, change)
    with loopback(handler=server.handle) as running:
        server.loopback = running
        yield server
