"""What a provider's module is made of: an adapter, and checked access to the fields of a reply."""

import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from qagate.evaluators.core import CallError, Reply, Request, TransientError
from qagate.evaluators.text import Key

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")
MAX_TOKENS = (
    10**9
)  # of one reply; a broken server's larger number would spoil every sum
BATCHES_A_PAGE = 100
INCOMPLETE = (
    "incomplete"  # the finish of a reply that its API calls incomplete: no answer
)
MAY_BE_EMPTY = frozenset(
    {"length", "content_filter", INCOMPLETE}
)  # without text or tool call


def refuse_body(what: str) -> NoReturn:
    """Raise TransientError for a reply that cannot be read."""
    raise TransientError("bad_body", what)


class JsonObject(dict[str, object]):
    """An object in a reply. Its methods raise TransientError for a field of another type."""

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
        """Return a field that must be text or missing."""
        return None if self.get(key) is None else self.text(key)

    def details(self, key: str) -> "JsonObject":
        """Return a field that must be an object; empty if it is missing."""
        return JsonObject() if self.get(key) is None else self.mapping(key)

    def count(self, key: str) -> int:
        """Return a number of tokens, an integer below a billion; 0 if it is missing."""
        number = 0 if self.get(key) is None else self[key]
        if type(number) is not int or not 0 <= number < MAX_TOKENS:
            refuse_body(f"{key} is {str(number)[:40]!r}, not a number of tokens")
        return number

    def amount(self, key: str) -> float | None:
        """Return an amount of money, at least 0; None if it is missing."""
        value = self.get(key)
        if value is None:
            return None
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not (number and 0 <= value < MAX_TOKENS):  # type: ignore[operator]
            refuse_body(f"{key} is {str(value)[:40]!r}, not an amount")
        return float(value)  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStatus:
    """A provider's report on a batch."""

    is_over: bool
    done: int
    """Calls that have a reply."""
    failed: int
    refusal: str = ""
    """Why the provider took none of its calls; empty if it took them."""


class BatchApi(ABC):
    """One provider's batches through its SDK, whose exceptions pass."""

    def __init__(self, sdk: Any, batches: Any) -> None:
        self._sdk = sdk
        self._batches = batches  # the part of the SDK that knows them

    @abstractmethod
    def line(self, key: str, body: Mapping[str, object]) -> Mapping[str, object]:
        """Return a call as a line of a batch; its result carries the same ``key``."""

    async def upload(self, name: str, lines: Sequence[bytes]) -> str:
        """Upload the calls, if that is a step of its own; return the file's id."""
        return ""

    @abstractmethod
    async def create(self, name: str, file: str, lines: Sequence[bytes]) -> str:
        """Start a batch and return its id: from here on it is paid for.

        After a TransientError other than ``rate_limit`` it may have been created all the same.
        """

    async def newest(self) -> str:
        """Return the id of the newest batch; empty if there is none."""
        page = await self._batches.list(limit=1)
        return page.data[0].id if page.data else ""

    async def find(self, name: str, calls: int, after: str) -> list[str]:
        """Return the batches of so many ``calls`` that are newer than ``after``, newest first."""
        found = []
        async for batch in self._batches.list(limit=BATCHES_A_PAGE):
            if batch.id == after:
                break
            if self.may_be(batch, name, calls):
                found.append(batch.id)
        return found

    @abstractmethod
    def may_be(self, batch: Any, name: str, calls: int) -> bool:
        """Return whether a batch may be the one with this name and number of calls."""

    @abstractmethod
    async def status(self, batch: str) -> BatchStatus:
        """Return how far a batch is."""

    @abstractmethod
    def results(self, batch: str) -> AsyncIterator[bytes]:
        """Yield the result lines of a batch that is over, in pieces of any length."""

    @abstractmethod
    def read(self, line: JsonObject) -> tuple[str, JsonObject | CallError]:
        """Return a result line's key, and the reply's body or the error in place of one."""

    async def cancel(self, batch: str) -> None:
        """Stop a batch; calls that are done stay and are paid for."""
        await self._batches.cancel(batch)

    async def close(self) -> None:
        """Close the connections."""
        await self._sdk.close()


@dataclass(frozen=True, slots=True, kw_only=True)
class Batching:
    """The limits of a provider's batches."""

    calls: int
    """The most calls in one batch."""
    size: int
    """The most bytes in one batch."""
    open: "Callable[[Key, str, httpx2.AsyncClient], BatchApi]"
    """Returns the batches for a key and a base URL, over this HTTP client."""
    price: float = 0.5
    """A call's price as a share of its price outside a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAdapter:
    """How one provider's API is called; a new provider is a module that defines one."""

    sdk: str
    """The package that knows the provider's URLs and headers."""
    base_url: str
    """The provider's own server."""
    api_key_env: str
    """The variable with the key for the provider's own server."""
    address: Callable[[Key, str], tuple[str, Mapping[str, object]]]
    """Returns the URL and headers of all requests, for a key and a base URL."""
    write: Callable[[str, Request, Mapping[str, object]], Mapping[str, object]]
    """Returns the body of a request to the model of this name, with these parameters."""
    read: Callable[[JsonObject], Reply]
    """Returns the reply in a body. Raises TransientError if there is none."""
    defaults: Mapping[str, object] = field(default_factory=dict)
    """Parameters that every request must have."""
    families: tuple[str, ...] = ()
    """How the names of the provider's models begin."""
    adds_v1: bool = False
    """Whether the SDK adds ``/v1``, so that a base URL must not end in it."""
    max_tokens_as: str = "max_tokens"
    """The API's name for ``max_tokens``."""
    method: str = "POST"
    """With GET the body is sent as the query."""
    batching: Batching | None = None
    """None if the API has no batches."""


def parse_body(content: bytes) -> JsonObject:
    """Return the one JSON object of a body; duplicate keys and NaN are not JSON."""
    try:
        value = _DECODER.decode(
            content.decode(json.detect_encoding(content), "surrogatepass")
        )
    except (ValueError, RecursionError):
        start = content[:80].decode("utf-8", "replace")
        refuse_body(
            f"the body is not JSON: {start!r}" if start.strip() else "the body is empty"
        )
    return _typed(value, JsonObject, "the body")


def as_text(value: object) -> str:
    """Return a text unchanged and any other value as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def sdk_client(sdk: str, key: Key, base_url: str, client: "httpx2.AsyncClient") -> Any:
    """Return a provider's SDK, given as MODULE:CLASS; it sends each request once."""
    module, _, name = sdk.partition(":")
    made = getattr(import_module(module), name)
    return made(
        api_key=key.reveal(), base_url=base_url, http_client=client, max_retries=0
    )


def sdk_address(
    sdk: str, path: str, key: Key, base_url: str
) -> tuple[str, Mapping[str, object]]:
    """Return the URL and headers that a provider's SDK would use for a path."""
    import httpx2  # noqa: PLC0415  # a fifth of a second

    # With a transport given it reads no certificates and proxies, which would take long.
    offline = httpx2.AsyncClient(transport=httpx2.AsyncBaseTransport())
    client = sdk_client(sdk, key, base_url, offline)
    url = f"{str(client.base_url).rstrip('/')}/{path}"
    return url, {**client.default_headers, **client.auth_headers}


_JSON_TYPES: Mapping[type, str] = {
    JsonObject: "an object",
    list: "a list",
    str: "text",
    bool: "true or false",
    type(None): "missing or null",
}


def _typed(value: object, kind: type[T], key: str) -> T:
    if not isinstance(value, kind):
        refuse_body(
            f"{key} is {_JSON_TYPES.get(type(value), 'a number')}, not {_JSON_TYPES[kind]}"
        )
    return value


def _unique(pairs: list[tuple[str, object]]) -> JsonObject:
    found = JsonObject(pairs)
    if len(found) != len(pairs):
        raise ValueError("duplicate key")
    return found


def _no_constant(name: str) -> NoReturn:
    raise ValueError(name)


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
