"""Small files in the publishers' forms, and downloads of them from a server of our own."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from qagate.cases.extras.download.command import main
from qagate.cases.extras.download.public_files import DownloadError, load_benchmarks
from tests.support.loopback import Answer, Loopback, loopback
from tests.support.tables import kept

CASES = Path(__file__).parents[2] / "cases"
ROWS = [
    {
        "question": "is the sky blue",
        "title": "Sky",
        "answer": True,
        "passage": "Blue it is.",
    },
    {
        "question": "is it green",
        "title": "Sky",
        "answer": False,
        "passage": "Blue it is. " * 50,
    },
]
BOOLQ = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
SIMPLEQA = kept(__file__, "simpleqa").encode()
HUSIMPLEQA = kept(__file__, "husimpleqa").encode()


@dataclass(frozen=True, slots=True)
class FileServer:
    """What a server has by path; any other path is 404."""

    server: Loopback
    files: dict[str, Answer]

    def url(self, path: str = "/data") -> str:
        return f"{self.server.url}{path}"


@contextmanager
def file_server() -> Iterator[FileServer]:
    files: dict[str, Answer] = {}
    with loopback(
        handler=lambda seen: files.get(seen.path, Answer(status=404))
    ) as server:
        yield FileServer(server, files)


def raw(body: bytes, length: int | None = None) -> Answer:
    """Return an answer that claims this length, or none, before the line is cut."""
    head = f"content-length: {length}\r\n" if length else ""
    return Answer(action="raw", body=f"HTTP/1.1 200 OK\r\n{head}\r\n".encode() + body)


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def get(server: FileServer, folder: Path, *options: str, name: str = "boolq") -> Path:
    """Download from the server and return where the file is."""
    words = (name, "--to", str(folder), "--url", server.url(), *options)
    assert main(words) == 0
    return folder / load_benchmarks()[name].file


def failure(
    server: FileServer, folder: Path, *options: str, name: str = "boolq"
) -> str:
    with pytest.raises(DownloadError) as caught:
        get(server, folder, *options, name=name)
    message = str(caught.value)
    assert "\n" not in message
    assert not (folder / "boolq_dev.jsonl").exists()
    return message


EVOUNA = json.dumps(kept(__file__, "evouna"), indent=1).encode()
NQ301 = kept(__file__, "nq301").encode()
BEM = kept(__file__, "bem").encode()
MOHLER = kept(__file__, "mohler").encode()
