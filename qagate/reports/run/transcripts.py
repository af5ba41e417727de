"""What was sent and what came back, call by call: out of a ledger, or a report's own file of it.

``transcripts.jsonl.gz`` has a line for each call of a run, by the key that its records name, and
one for each long text, before the first call that names it. API keys in it are masked.
"""

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from qagate.evaluators.core import LedgerPlace, Reply, Request, UsageError
from qagate.evaluators.kept_requests import (
    encode,
    fresh_key,
    request_key,
    texts_named,
    whole,
)
from qagate.evaluators.ledger import Ledger, LedgerError
from qagate.evaluators.output import plural, write_whole
from qagate.evaluators.text import flat, may_hold_key
from qagate.evaluators.user_code import OtherProcess
from qagate.reports.run.clean import masked
from qagate.reports.run.record import Record, in_order
from qagate.reports.run.report_folder import TRANSCRIPTS
from qagate.reports.run.run_json import decode

_AT_ONCE = 500  # calls that are looked up with one query
_LONGEST = 64 * 1024 * 1024  # bytes: a longer line is none of ours
_LEVEL = 3  # of 9: half the time of 6 for a tenth more bytes
_GZIP = (
    31  # zlib's word for gzip's format; it writes no time and no name into the header
)
_ODD = (
    AttributeError,
    KeyError,
    TypeError,
    ValueError,
)  # of a line that is none of ours


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
    return list(
        dict.fromkeys(key for record in in_order(records) for key in record.calls)
    )


def of_ledger(ledger: Ledger) -> Source:
    """Return what a ledger has kept, its API keys masked."""

    def lines(keys: Sequence[str]) -> Iterator[Line]:
        known: set[str] = set()
        for start in range(0, len(keys), _AT_ONCE):
            some = keys[start : start + _AT_ONCE]
            try:
                replies = ledger.reply_texts(some)
                sent, texts, damaged = ledger.requests(some)
            except (
                LedgerError
            ):  # a database that is gone: the report does without the rest
                return
            for name in [name for name in texts if name not in known]:
                yield _line(False, name, f'{{"text":"{name}","content":{texts[name]}}}')
            known.update(texts)
            for key in some:
                if key in sent or key in replies or key in damaged:
                    asked, got = sent.get(key, "null"), replies.get(key, "null")
                    odd = ',"damaged":true' if key in damaged else ""
                    yield _line(
                        True,
                        key,
                        f'{{"call":"{key}","sent":{asked}{odd},"reply":{got}}}',
                    )

    return lines


def _line(is_call: bool, key: str, text: str) -> Line:
    return Line(
        is_call, key, encode(masked(json.loads(text))) if may_hold_key(text) else text
    )


def of_files(paths: Iterable[Path]) -> Source | None:
    """Return what these files have, None if none is there; it raises UsageError for damage."""
    found = [path for path in paths if path.is_file()]

    def lines(keys: Sequence[str]) -> Iterator[Line]:
        wanted, done = set(keys), set[str]()
        for path in found:
            calls = (
                names for one, names in _read(path) if one.is_call and one.key in wanted
            )
            named = {name for names in calls for name in names}
            for one, _ in _read(path):
                if (
                    one.key in (wanted if one.is_call else named)
                    and one.key not in done
                ):
                    done.add(one.key)
                    yield one

    return lines if found else None


def _read(path: Path) -> Iterator[tuple[Line, tuple[str, ...]]]:
    try:
        with gzip.open(path) as file:
            while raw := file.readline(_LONGEST):
                one = dict(json.loads(raw))
                key, text = str(one.get("call") or one["text"]), raw.decode().strip()
                named = tuple(texts_named(one["sent"])) if one.get("sent") else ()
                yield Line("call" in one, key, text), named
    except (OSError, EOFError, zlib.error, RecursionError, *_ODD) as error:
        raise UsageError(
            f"{path}: not readable as transcripts ({error}); restore the file from the run"
        ) from None


def packed(lines: Iterable[Line]) -> Iterator[bytes]:
    """Yield a file of these lines, compressed; the same lines are the same bytes."""
    packer = zlib.compressobj(_LEVEL, wbits=_GZIP)
    for line in lines:
        yield packer.compress(f"{line.json}\n".encode())
    yield packer.flush()


class Packer:
    """A process that makes a large run's file while this one counts and writes the rest."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / TRANSCRIPTS
        self._process = OtherProcess()
        self._made = self._process.start(_loaded)
        self.close = self._process.close

    def begin(self, place: LedgerPlace, keys: Sequence[str]) -> None:
        """Begin with the file of these calls out of a ledger."""
        self._made = self._process.start(partial(_pack, self._path, place, keys))

    def pieces(self, otherwise: Iterable[bytes]) -> Iterator[bytes]:
        """Wait for the file that was begun and yield it; ``otherwise`` where there is none."""
        if self._made.exception():
            yield from otherwise
        else:
            with self._path.open("rb") as file:
                yield from file


def _loaded() -> None:
    """Do nothing: the process that is to call it loads this module to find it."""


def _pack(path: Path, place: LedgerPlace, keys: Sequence[str]) -> None:
    with Ledger(place, read_only=True) as ledger:
        write_whole(path, packed(of_ledger(ledger)(keys)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SentCall:
    """One call as people read it: what a model was sent, and what came back."""

    key: str
    spec: str
    """The SPEC of the model."""
    reply: Reply | None
    """None where the call failed."""
    request: Request | None = None
    """None where none is kept."""
    is_damaged: bool = False
    """Whether the ledger's copy of the request is damaged."""
    is_exact: bool = False
    """Whether the key, the hash of all that was asked, fits the request."""


def calls_of(source: Source, keys: Sequence[str]) -> dict[str, SentCall]:
    """Return these calls by key, as far as they are kept. Raises UsageError for odd lines."""
    texts, calls, lost = dict[str, Any](), dict[str, Any](), {"content": "(not kept)"}
    for line in source(keys):
        (calls if line.is_call else texts)[line.key] = json.loads(line.json)
    found: dict[str, SentCall] = {}
    try:
        for key, one in ((key, calls[key]) for key in keys if key in calls):
            reply = one["reply"] and decode(Reply, one["reply"])
            call = SentCall(key=one["call"], spec=reply.model if reply else "", reply=reply,
                            is_damaged=bool(one.get("damaged")))  # fmt: skip
            if one["sent"] is not None:
                frame, fields = whole(
                    one["sent"], lambda name: texts.get(name, lost)["content"]
                )
                request = decode(Request, fields)
                asked = fresh_key(request_key(frame["model"], request), frame["fresh"])
                call = replace(
                    call, request=request, spec=str(frame["spec"]), is_damaged=False
                )
                call = replace(call, is_exact=asked == call.key)
            found[key] = call
        return found
    except _ODD as error:
        raise UsageError(
            f"{TRANSCRIPTS}: a call is not as it was written ({error}); restore the file"
        ) from None


_JSON = json.JSONEncoder(ensure_ascii=False, sort_keys=True, default=str)


def title(call: SentCall) -> str:
    """Return who was asked: the SPEC, the prompt's or rubric's version, and which time it was."""
    if (request := call.request) is None:
        return call.spec
    again = [f"repeat {request.repeat}"] if request.repeat > 1 else []
    again += [f"attempt {request.attempt + 1}"] if request.attempt else []
    return ", ".join([call.spec, *filter(None, [request.version]), *again])


def parts(call: SentCall) -> Iterator[tuple[str, str]]:
    """Yield the name and the exact text of each part, in the order in which they were said."""
    if call.request is None:
        why = "damaged" if call.is_damaged else "an earlier version kept only the reply"
        yield "sent", f"not kept ({why})"
    else:
        request, case = call.request, call.request.case
        if case:
            known = {
                name: part
                for name, part in flat(case).items()
                if name != "messages" and part
            }
            yield "case", _JSON.encode(known)
        for message in (*request.messages, *(case.messages if case else ())):
            yield message.role, message.content
        if tool := request.tool:
            yield (
                f"function {tool.name}",
                f"{tool.description}\n{_JSON.encode(tool.schema)}",
            )
        if request.parameters:
            yield "parameters", _JSON.encode(request.parameters)
        if not call.is_exact:
            yield (
                "note",
                "(this is not exactly what was sent: keys are masked, or it was altered)",
            )
    if (reply := call.reply) is None:
        yield "reply", "(none: the call failed)"
        return
    if reply.text or not reply.calls:
        yield "reply", reply.text
    for one in reply.calls:
        yield f"reply calls {one.name}", one.arguments
    tokens = (
        f"{reply.input_tokens:,} tokens in, {plural(reply.output_tokens, 'token')} out"
    )
    yield (
        "about",
        f"{reply.model}: finish {reply.finish}, {tokens}, {reply.seconds:.3f} s",
    )
