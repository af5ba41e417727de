"""What a provider's module is made of: its adapter, and the reading of replies without trust.

Every field of a reply has its type, or the body is bad.
"""

import json
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NoReturn, Protocol, TypeVar

from evaluators.core import CallError, Reply, Request, TransientError
from evaluators.secrets import Key

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")
MAX_TOKENS = 10**9  # of one reply: more is a broken server, and would break every sum

INCOMPLETE = "incomplete"
"""The finish of a reply that its API calls incomplete: what is left of it is no answer."""

MAY_BE_EMPTY = frozenset({"length", "content_filter", INCOMPLETE})
"""The finishes of a reply that may hold neither text nor a tool call."""


def refuse_body(what: str) -> NoReturn:
    """Raise the error of a reply that cannot be read."""
    kind = "bad_body"
    raise TransientError(kind, what)


class JsonObject(dict[str, object]):
    """An object of a reply. Its methods raise TransientError if a field has another type."""

    def mapping(self, key: str) -> "JsonObject":
        """Return a field that must be an object."""
        return _typed(self.get(key), JsonObject, key)

    def mappings(self, key: str) -> "list[JsonObject]":
        """Return a field that must be a list of objects."""
        entries = _typed(self.get(key), list, key)
        return [_typed(entry, JsonObject, f"an entry of {key}") for entry in entries]

    def text(self, key: str) -> str:
        """Return a field that must be text."""
        return _typed(self.get(key), str, key)

    def text_or_none(self, key: str) -> str | None:
        """Return a field that must be text if it is there."""
        return None if self.get(key) is None else self.text(key)

    def usage(self) -> "JsonObject":
        """Return the token counts of a reply; empty if the server gives none."""
        return self.details("usage")

    def details(self, key: str) -> "JsonObject":
        """Return a field that must be an object if it is there; empty if it is not."""
        return JsonObject() if self.get(key) is None else self.mapping(key)

    def count(self, key: str) -> int:
        """Return a number of tokens: 0 if it is missing, otherwise an integer below a billion."""
        value = self.get(key)
        number = 0 if value is None else value
        if type(number) is not int or not 0 <= number < MAX_TOKENS:
            refuse_body(f"{key} is {str(number)[:40]!r}, not a number of tokens")
        return number

    def amount(self, key: str) -> float | None:
        """Return an amount of money, from 0; None if it is missing."""
        value = self.get(key)
        if value is None:
            return None
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (number and 0 <= value < MAX_TOKENS):  # type: ignore[operator]
            refuse_body(f"{key} is {str(value)[:40]!r}, not an amount")
        return float(value)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStatus:
    """What a provider says of a batch: whether it is over, and how many of its calls are done.

    ``refusal`` is why the provider took none of it; empty for a batch that was worked on.
    """

    is_over: bool
    done: int
    failed: int
    refusal: str = ""


class BatchApi(Protocol):
    """One provider's batches through its SDK. Whatever the SDK raises comes through."""

    def line(self, key: str, body: Mapping[str, object]) -> Mapping[str, object]:
        """Return a call as a batch holds it; ``key`` tells its result from the others."""

    async def upload(self, name: str, lines: Sequence[bytes]) -> str:
        """Bring the calls to the provider, if that is a step of its own; return the file's id."""

    async def create(self, name: str, file: str, lines: Sequence[bytes]) -> str:
        """Begin a batch and return its id: from here on it is paid for."""

    async def find(self, name: str, calls: int, since: float) -> list[str]:
        """Return the ids of the batches that may be this one, the newest first.

        ``calls`` is how many it holds, ``since`` when it was begun, in seconds since 1970.
        """

    async def status(self, batch: str) -> BatchStatus:
        """Return what became of a batch so far."""

    def results(self, batch: str) -> AsyncIterator[bytes]:
        """Yield the bytes of the result lines of a batch that is over, in pieces of any length."""

    def read(self, line: JsonObject) -> tuple[str, JsonObject | CallError]:
        """Return a result line's key, and the reply's body or why there is none."""

    async def cancel(self, batch: str) -> None:
        """Ask for nothing more of a batch; what is done stays and is paid for."""

    async def close(self) -> None:
        """Close the connections."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """A provider's batches: most ``calls`` and ``size`` (bytes) of one, ``price`` as a share.

    ``open`` returns them for a key and a base URL, over this HTTP client.
    """

    calls: int
    size: int
    open: "Callable[[Key, str, httpx2.AsyncClient], BatchApi]"
    price: float = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAdapter:
    """How one provider's API is called; a new provider is a module that defines one.

    ``sdk`` is the package that knows the provider's URLs and headers. ``base_url`` and
    ``api_key_env`` are the provider's own server and the variable that holds its key; ``defaults``
    are parameters that every request must have. ``adds_v1`` says that the SDK writes ``/v1``
    itself, so that a base URL must not end in it. Its models' names begin with one of ``families``.
    ``max_tokens_as`` is the API's word for ``max_tokens``; the body of a ``method`` of GET is its
    query.

    ``address`` returns the URL and the headers of all requests, for a key and a base URL.
    ``write`` returns the body of a request to the model of this name, with these parameters.
    ``read`` returns the reply that a body holds, or raises TransientError. ``batching`` is None
    where the API has no batches.
    """

    sdk: str
    base_url: str
    api_key_env: str
    address: Callable[[Key, str], tuple[str, Mapping[str, object]]]
    write: Callable[[str, Request, Mapping[str, object]], Mapping[str, object]]
    read: Callable[[JsonObject], Reply]
    defaults: Mapping[str, object] = field(default_factory=dict)
    families: tuple[str, ...] = ()
    adds_v1: bool = False
    max_tokens_as: str = "max_tokens"
    method: str = "POST"
    batching: Batching | None = None


def parse_body(content: bytes) -> JsonObject:
    """Return the one JSON object of a body; duplicate keys and NaN are not JSON."""
    try:
        value = _DECODER.decode(content.decode(json.detect_encoding(content), "surrogatepass"))
    except (ValueError, RecursionError):
        start = content[:80].decode("utf-8", "replace")
        refuse_body(f"the body is not JSON: {start!r}" if start.strip() else "the body is empty")
    return _typed(value, JsonObject, "the body")


def sendable(text: str) -> str:
    """Return the text with lone surrogates replaced: no HTTP body can hold them."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def as_text(value: object) -> str:
    """Return a text as it is, and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def offline_client() -> "httpx2.AsyncClient":
    """Return the client for an SDK that is asked for its URL and headers only; it sends nothing."""
    import httpx2  # noqa: PLC0415  # a fifth of a second

    # A transport of its own keeps it from reading certificates and proxies, which takes long.
    return httpx2.AsyncClient(transport=httpx2.AsyncBaseTransport())


_JSON_TYPES: Mapping[type, str] = {
    JsonObject: "an object",
    list: "a list",
    str: "text",
    bool: "true or false",
    type(None): "missing or null",
}


def _typed(value: object, kind: type[T], key: str) -> T:
    if not isinstance(value, kind):
        refuse_body(f"{key} is {_JSON_TYPES.get(type(value), 'a number')}, not {_JSON_TYPES[kind]}")
    return value


def _unique(pairs: list[tuple[str, object]]) -> JsonObject:
    found = JsonObject(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
