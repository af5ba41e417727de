"""A small file server for tests: ranges, versions, redirects, and every way to go wrong."""

import contextlib
import re
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """How one path is answered.

    ``cut`` ends the line after so many bytes of the body; ``stall`` then keeps it open instead.
    ``ranges`` false ignores Range; ``careless`` honours it without looking at If-Range.
    ``claimed`` is the Content-Length where it is not the truth, None for none at all.
    """

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    ranges: bool = True
    careless: bool = False
    cut: int | None = None
    stall: bool = False
    claimed: int | None = -1


@dataclass(slots=True)
class FileServer:
    """What is served by path, and which requests have come: path and headers in lower case."""

    files: dict[str, Served] = field(default_factory=dict)
    seen: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)
    port: int = 0

    def url(self, path: str = "/data") -> str:
        return f"http://127.0.0.1:{self.port}{path}"


def handler_of(state: FileServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_GET(self) -> None:
            headers = {name.lower(): value for name, value in self.headers.items()}
            state.seen.append((self.path, headers))
            served = state.files.get(self.path, Served(status=404))
            start = asked_start(served, headers)
            self._head(served, start)
            body = served.body[start or 0 :]
            self.wfile.write(body if served.cut is None else body[: served.cut])
            self.close_connection = True
            if served.stall:
                state.closing.wait(20)

        def _head(self, served: Served, start: int | None) -> None:
            status, headers = head_of(served, start)
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()

    return Handler


def asked_start(served: Served, headers: Mapping[str, str]) -> int | None:
    """Return from which byte on the client is served a part, None where it gets the whole."""
    found = re.fullmatch(r"bytes=(\d+)-", headers.get("range", ""))
    versions = (served.headers.get("ETag"), served.headers.get("Last-Modified"))
    same = served.careless or headers.get("if-range") in versions
    return int(found[1]) if found and served.ranges and same else None


def head_of(served: Served, start: int | None) -> tuple[int, dict[str, str]]:
    """Return status and headers of the whole, of a part, or of a part that is not there."""
    size = len(served.body)
    headers = dict(served.headers)
    status, length = served.status, size
    if start is not None and start < size:
        status, length = 206, size - start
        headers["Content-Range"] = f"bytes {start}-{size - 1}/{size}"
    elif start is not None:
        status, length = 416, 0
        headers["Content-Range"] = f"bytes */{size}"
    if served.claimed is not None:
        headers["Content-Length"] = str(length if served.claimed < 0 else served.claimed)
    return status, headers


@contextlib.contextmanager
def file_server() -> Iterator[FileServer]:
    """Run a server for a block."""
    state = FileServer()
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler_of(state))
    server.daemon_threads = True
    state.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        state.closing.set()
        server.shutdown()
        server.server_close()
        thread.join(10)
