"""A small file server for tests: redirects, and every way to go wrong."""

import contextlib
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """How one path is answered."""

    body: bytes = b""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: int | None = None
    """The line ends after this many bytes of the body."""
    stall: bool = False
    """It stays open then."""
    claimed: bool = True
    """Whether there is a Content-Length."""


@dataclass(slots=True)
class FileServer:
    """What is served by path, and the paths that were asked for."""

    files: dict[str, Served] = field(default_factory=dict)
    seen: list[str] = field(default_factory=list)
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
            state.seen.append(self.path)
            served = state.files.get(self.path, Served(status=404))
            self.send_response(served.status)
            for name, value in served.headers.items():
                self.send_header(name, value)
            if served.claimed:
                self.send_header("Content-Length", str(len(served.body)))
            self.end_headers()
            self.wfile.write(served.body[: served.cut])
            self.close_connection = True
            if served.stall:
                state.closing.wait(20)

    return Handler


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
