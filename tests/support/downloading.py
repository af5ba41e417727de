"""Small files in the publishers' forms, and downloads of them from a server of our own."""

import hashlib
import json
from pathlib import Path

import pytest

from cases.tools.download.benchmarks import load_benchmarks
from cases.tools.download.resumable import DownloadError
from reports.commands.download import main
from tests.support.file_server import FileServer

CASES = Path(__file__).parents[2] / "cases"
ROWS = [
    {"question": "is the sky blue", "title": "Sky", "answer": True, "passage": "Blue it is."},
    {"question": "is it green", "title": "Sky", "answer": False, "passage": "Blue it is. " * 50},
]
BOOLQ = "".join(json.dumps(row) + "\n" for row in ROWS).encode()
SIMPLEQA = (
    b"metadata,problem,answer\n"
    b"\"{'topic': 'Art', 'answer_type': 'Person'}\",Who painted it?,Vermeer\n"
)
HUSIMPLEQA = "".join(
    json.dumps({"qid": f"q{n}", "question": f"Mi az {n}?", "answer": "Ez", "hu_specific_dim": "L"})
    + "\n"
    for n in range(3)
).encode()
HALF = len(BOOLQ) // 2
ETAG = {"ETag": '"v1"'}
NEW = BOOLQ.replace(b"blue", b"grey")


def sha256(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()


def quiet(done: int, total: int | None) -> None:
    pass


def get(server: FileServer, folder: Path, *options: str, name: str = "boolq") -> Path:
    """Download from the server and return where the file is."""
    words = (name, "--to", str(folder), "--url", server.url(), *options)
    assert main(words) == 0
    return folder / load_benchmarks()[name].file


def failure(server: FileServer, folder: Path, *options: str) -> str:
    with pytest.raises(DownloadError) as caught:
        get(server, folder, *options)
    message = str(caught.value)
    assert "\n" not in message
    assert not (folder / "boolq_dev.jsonl").exists()
    return message


def ranges(server: FileServer) -> list[str | None]:
    return [headers.get("range") for _, headers in server.seen]
