"""Small files in the publishers' forms, and downloads of them from a server of our own."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from cases.download.public_files import DownloadError, load_benchmarks
from reports.commands.download import main
from tests.support.loopback import Answer, Loopback, loopback

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
    with loopback(handler=lambda seen: files.get(seen.path, Answer(status=404))) as server:
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


def failure(server: FileServer, folder: Path, *options: str) -> str:
    with pytest.raises(DownloadError) as caught:
        get(server, folder, *options)
    message = str(caught.value)
    assert "\n" not in message
    assert not (folder / "boolq_dev.jsonl").exists()
    return message


def _evouna(*items: dict[str, object]) -> bytes:
    return json.dumps(items, indent=1).encode()


EVOUNA = _evouna(
    {
        "question": "what is the capital of norway", "golden_answer": "Oslo/Kristiania",
        "answer_fid": "Oslo", "judge_fid": True,
        "answer_gpt35": "It is Bergen.", "judge_gpt35": False,
        "answer_chatgpt": None, "judge_chatgpt": None,
        "answer_gpt4": "Kristiania", "judge_gpt4": True,
        "answer_newbing": "Hm", "judge_newbing": "nan",
        "improper": False,
    },
    {
        "question": "when is the next one", "golden_answer": "May",
        **{f"answer_{name}": "May" for name in ("fid", "gpt35", "chatgpt", "gpt4", "newbing")},
        **{f"judge_{name}": True for name in ("fid", "gpt35", "chatgpt", "gpt4", "newbing")},
        "improper": True,
    },
)  # fmt: skip
NQ301 = (
    b"id\tQuestion\tModel answer\tAcceptable?\tannotator1\tannotator2\tannotator3\n"
    b'1\twhere was it filmed\t"Lone" Pine\tYes\tYes\tNo\tYes\n'
    b"1\twhere was it filmed\tthe moon\tNo\tNo\tNo\t\n"
    b"2\twho is in no other file\tnobody\tYes\tYes\tYes\t\n"
    b"3\twhere is it\tin Ohio\tNo\tNo\t\t\n"
)
BEM = (
    b"id\tQuestion\tGold answers\tModel answer\tAcceptable?\tBEM probs per gold answer\n"
    b'1\twhere was it filmed\t"Lone Pine, California | California"\tx\tYes\t"[[0.1, 0.9]]"\n'
    b"2\twhere is it\tUtah\tx\tNo\t[[0.9]]\n"
)
MOHLER = (
    b",id,question,desired_answer,student_answer,score_me,score_other,score_avg\n"
    b'0,1.1,What is a stack?,"Last in, first out.",A pile.,4,3,3.5\n'
    b"1,1.1,What is a stack?,Last in first out.,#NAME?,5,2,3.5\n"
)
