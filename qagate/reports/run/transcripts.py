"""What was sent and what came back, call by call: out of a ledger, or a report's own file of it.

``transcripts.jsonl.gz`` has a line for each call of a run, by the key that its records name,
and one for each long text, before the first call that names it. API keys in it are masked.
``sent_calls.py`` makes of these lines what people read.
"""

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from qagate.evaluators.core import UsageError
from qagate.evaluators.kept_requests import encode, texts_named
from qagate.evaluators.ledger import Ledger, LedgerError
from qagate.evaluators.ledger.kept import only_of
from qagate.evaluators.ledger.place import LedgerPlace
from qagate.evaluators.output import write_whole
from qagate.evaluators.text import may_hold_key
from qagate.evaluators.user_code import OtherProcess
from qagate.reports.run.clean import masked
from qagate.reports.run.record import Record, in_order
from qagate.reports.run.report_folder import TRANSCRIPTS

CALLS_PER_QUERY = 500
"""Calls that are looked up in a ledger with one query."""
MAX_LINE_BYTES = 64 * 1024 * 1024
"""A longer line is none of ours."""
COMPRESSION_LEVEL = 3
"""Of 9: half the time of 6 for a tenth more bytes."""
GZIP_FORMAT = 31
"""The ``wbits`` of zlib for gzip's format; it writes no time and no name into the header."""
ODD_LINE = (AttributeError, KeyError, TypeError, ValueError)
"""What reading a line raises that is none of ours."""


class Line(NamedTuple):
    """A line of the file: a long text under its digest, or a call under its key.

    ``json`` is ``{"text": digest, "content": …}`` or ``{"call": key, "sent": …, "reply": …}``, null
    where nothing is kept or came, with ``"damaged": true`` where the ledger's request is damaged.
    """

    is_call: bool
    key: str
    json: str


Source = Callable[[Sequence[str]], Iterator[Line]]
"""Yields the lines of the calls with these keys, each once; nothing for what is not kept."""


def keys_of(records: Iterable[Record]) -> list[str]:
    """Return the keys of all calls for these records, each once, in the records' order."""
    keys: dict[str, None] = {}
    for record in in_order(records):
        for key in record.calls:
            keys[key] = None
    return list(keys)


# Out of a ledger


def of_ledger(ledger: Ledger, run_id: str = "") -> Source:
    """Return what a ledger has kept, its API keys masked.

    Of several replies to one call, that of the run with this id is shown, else the newest.
    """
    return partial(_lines_of_ledger, ledger, run_id)


def _lines_of_ledger(
    ledger: Ledger, run_id: str, keys: Sequence[str]
) -> Iterator[Line]:
    """Yield the lines of these calls, each long text before the first call that names it.

    What the ledger returns is JSON already and goes into the lines as it is.
    """
    texts_so_far: set[str] = set()
    for start in range(0, len(keys), CALLS_PER_QUERY):
        keys_of_query = keys[start : start + CALLS_PER_QUERY]
        try:
            replies = ledger.reply_texts(keys_of_query)
            if run_id:
                replies |= ledger.reply_texts(keys_of_query, only_of(run_id))
            requests, texts, damaged = ledger.requests(keys_of_query)
        except LedgerError:
            return  # a database that is gone: the report does without the rest
        for digest, content in texts.items():
            if digest not in texts_so_far:
                text = f'{{"text":"{digest}","content":{content}}}'
                yield Line(is_call=False, key=digest, json=_masked_json(text))
        texts_so_far.update(texts)
        for key in keys_of_query:
            if key not in requests and key not in replies and key not in damaged:
                continue
            sent = requests.get(key, "null")
            reply = replies.get(key, "null")
            mark = ',"damaged":true' if key in damaged else ""
            text = f'{{"call":"{key}","sent":{sent}{mark},"reply":{reply}}}'
            yield Line(is_call=True, key=key, json=_masked_json(text))


def _masked_json(text: str) -> str:
    if not may_hold_key(text):
        return text
    return encode(masked(json.loads(text)))


# Out of files


def of_files(paths: Iterable[Path]) -> Source | None:
    """Return what these files have, None if none is there; it raises UsageError for damage."""
    files = [path for path in paths if path.is_file()]
    if not files:
        return None
    return partial(_lines_of_files, files)


def _lines_of_files(files: Sequence[Path], keys: Sequence[str]) -> Iterator[Line]:
    """Yield the lines of these calls, and of the texts that they name.

    Each file is read twice, as a text stands before the calls that name it.
    """
    wanted_calls = set(keys)
    keys_so_far: set[str] = set()
    for path in files:
        wanted_texts: set[str] = set()
        for line, digests in _read(path):
            if line.is_call and line.key in wanted_calls:
                wanted_texts.update(digests)
        for line, _ in _read(path):
            wanted = wanted_calls if line.is_call else wanted_texts
            if line.key in wanted and line.key not in keys_so_far:
                keys_so_far.add(line.key)
                yield line


def _read(path: Path) -> Iterator[tuple[Line, tuple[str, ...]]]:
    """Yield the lines of a file, each with the digests of the texts that it names."""
    try:
        with gzip.open(path) as file:
            while raw := file.readline(MAX_LINE_BYTES):
                data = dict(json.loads(raw))
                line = Line(
                    is_call="call" in data,
                    key=str(data.get("call") or data["text"]),
                    json=raw.decode().strip(),
                )
                sent = data.get("sent")
                yield line, tuple(texts_named(sent)) if sent else ()
    except (OSError, EOFError, zlib.error, RecursionError, *ODD_LINE) as error:
        raise UsageError(
            f"{path}: not readable as transcripts ({error}); restore the file from the run"
        ) from None


# The file


def packed(lines: Iterable[Line]) -> Iterator[bytes]:
    """Yield a file of these lines, compressed; the same lines are the same bytes."""
    packer = zlib.compressobj(COMPRESSION_LEVEL, wbits=GZIP_FORMAT)
    for line in lines:
        yield packer.compress(f"{line.json}\n".encode())
    yield packer.flush()


class Packer:
    """A process that makes a large run's file while this one counts and writes the rest."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / TRANSCRIPTS
        self._process = OtherProcess()
        self._work = self._process.start(_load_module)
        self.close = self._process.close

    def begin(self, place: LedgerPlace, run_id: str, keys: Sequence[str]) -> None:
        """Begin with the file of these calls of a run, out of a ledger."""
        work = partial(_pack, self._path, place, run_id, keys)
        self._work = self._process.start(work)

    def pieces(self, otherwise: Iterable[bytes]) -> Iterator[bytes]:
        """Wait for the file that was begun and yield it; ``otherwise`` where there is none."""
        if self._work.exception():
            yield from otherwise
            return
        with self._path.open("rb") as file:
            yield from file


def _load_module() -> None:
    """Do nothing: the process that is to call it loads this module to find it."""


def _pack(path: Path, place: LedgerPlace, run_id: str, keys: Sequence[str]) -> None:
    with Ledger(place, read_only=True) as ledger:
        write_whole(path, packed(of_ledger(ledger, run_id)(keys)))
