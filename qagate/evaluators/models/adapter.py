"""What a module for one provider consists of.

The module defines a ProviderAdapter: the provider's address, a function that writes the
body of a request, and one that reads the body of a reply. Neither sends anything;
``api.py`` sends, for all providers alike.

Nothing in a reply is trusted. ``parse_body`` returns a JsonObject, and each access to a
field says which type it must have. Where the answer itself is of another type, the reply is
unreadable: a TransientError of kind ``bad_body``, so that the call is tried again. What
stands beside the answer (token counts, the model's name, the finish) costs no reply: it is
unknown where it cannot be read.

A provider that takes calls in batches also subclasses BatchApi. ``openai.py`` and
``anthropic.py`` are the examples.
"""

import json
import re
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from qagate.evaluators.core import CallError, Reply, Request, TransientError
from qagate.evaluators.finishes import CUT, FILTERED, THOUGHT
from qagate.evaluators.text import Key

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")
MAX_NUMBER = 10**9
"""Counts and amounts of one reply stay below it: a larger one is a server's mistake, and
would spoil every sum."""
BATCHES_A_PAGE = 100
_DIGITS = re.compile(r"[0-9]{1,9}")


THOUGHT_PARTS = frozenset({"thinking", "redacted_thinking", "reasoning"})
"""The types of parts that hold what a model thinks, and nothing that it answers."""


def finish_of_parts(
    finish: str,
    *,
    has_answer: bool,
    has_refusal: bool = False,
    has_thoughts: bool = False,
) -> str:
    """Return why a reply ended, where what it holds says so: a refusal, or thoughts alone."""
    if has_answer or finish in CUT:
        return finish
    if has_refusal:
        return FILTERED
    return THOUGHT if has_thoughts else finish


def refuse_body(problem: str) -> NoReturn:
    """Raise TransientError for a reply that cannot be read."""
    raise TransientError("bad_body", problem)


class JsonObject(dict[str, object]):
    """An object in a reply. Its methods raise TransientError for a field of another type.

    A field that is null counts as missing.
    """

    def mapping(self, key: str) -> "JsonObject":
        """Return a field that must be an object."""
        return _checked(self.get(key), JsonObject, key)

    def mappings(self, key: str) -> "list[JsonObject]":
        """Return a field that must be a list of objects."""
        entries = _checked(self.get(key), list, key)
        return [_checked(entry, JsonObject, f"an entry of {key}") for entry in entries]

    def text(self, key: str) -> str:
        """Return a field that must be text."""
        return _checked(self.get(key), str, key)

    def text_or_none(self, key: str) -> str | None:
        """Return a field that must be text or missing."""
        if self.get(key) is None:
            return None
        return self.text(key)

    def text_if_any(self, key: str) -> str:
        """Return a field if it is text; empty for any other value. Raises nothing."""
        value = self.get(key)
        return value if isinstance(value, str) else ""

    def details(self, key: str) -> "JsonObject":
        """Return a field if it is an object; empty for any other value. Raises nothing."""
        value = self.get(key)
        return value if isinstance(value, JsonObject) else JsonObject()

    def tokens(self, key: str) -> int:
        """Return a number of tokens, also from ``9.0`` or ``"9"``; 0 where it is unknown.

        Raises nothing: a reply is not thrown away for a count beside it.
        """
        number = self.get(key)
        if isinstance(number, str) and _DIGITS.fullmatch(number):
            number = int(number)
        if isinstance(number, float) and number.is_integer():
            number = int(number)
        if type(number) is not int or not 0 <= number < MAX_NUMBER:
            return 0
        return number

    def count(self, key: str) -> int:
        """Return a number of tokens, an integer below a billion; 0 if it is missing."""
        number = self.get(key)
        if number is None:
            return 0
        # ``isinstance`` would let True pass for 1.
        if type(number) is not int or not 0 <= number < MAX_NUMBER:
            refuse_body(f"{key} is {str(number)[:40]!r}, not a number of tokens")
        return number

    def amount(self, key: str) -> float | None:
        """Return an amount of money, from 0 to below a billion; None if it is missing."""
        value = self.get(key)
        if value is None:
            return None
        problem = f"{key} is {str(value)[:40]!r}, not an amount"
        if isinstance(value, bool) or not isinstance(value, int | float):
            refuse_body(problem)
        if not 0 <= value < MAX_NUMBER:
            refuse_body(problem)
        return float(value)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchStatus:
    """A provider's report on a batch."""

    is_over: bool
    """Whether nothing in it will change any more."""
    done: int
    """Calls that have a reply."""
    failed: int
    """Calls that came to nothing."""
    refusal: str = ""
    """Why the provider took none of its calls; empty if it took them."""


class BatchApi(ABC):
    """One provider's batches through its SDK.

    Exceptions of the SDK pass through; ``BatchedModel`` turns them into CallErrors.
    """

    def __init__(self, sdk: Any, batches: Any) -> None:
        self._sdk = sdk
        self._batches = batches
        """The part of the SDK that knows batches."""

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
        if not page.data:
            return ""
        batch_id: str = page.data[0].id
        return batch_id

    async def find(self, name: str, calls: int, after: str) -> list[str]:
        """Return the ids of the batches that may be the one with this name.

        Only those that are newer than the batch ``after`` are looked at; the newest comes
        first. ``calls`` is the number of calls in the batch that is searched.
        """
        ids = []
        async for batch in self._batches.list(limit=BATCHES_A_PAGE):
            if batch.id == after:
                break
            if self.may_be(batch, name, calls):
                ids.append(batch.id)
        return ids

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
    """Returns the BatchApi for a key and a base URL, over this HTTP client."""
    price: float = 0.5
    """A call's price as a share of its price outside a batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderAdapter:
    """How one provider's API is called."""

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
    sdk: str = ""
    """A package that ``address`` needs and that takes a while to import; empty if none does.
    It is imported before the first call."""
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
    """Return the one JSON object of a body.

    Raises TransientError for anything else, also for an object that holds a key twice and
    for NaN and Infinity: Python's decoder would read all of these, but they are not JSON.
    """
    try:
        text = content.decode(json.detect_encoding(content), "surrogatepass")
        value = _STRICT_DECODER.decode(text)
    except (ValueError, RecursionError):
        start = content[:80].decode("utf-8", "replace")
        if not start.strip():
            refuse_body("the body is empty")
        refuse_body(f"the body is not JSON: {start!r}")
    return _checked(value, JsonObject, "the body")


def as_text(value: object) -> str:
    """Return a text unchanged and any other value as JSON."""
    if isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def sdk_client(sdk: str, key: Key, base_url: str, client: "httpx2.AsyncClient") -> Any:
    """Return a client of a provider's SDK; it sends each request once.

    ``sdk`` is MODULE:CLASS.
    """
    module_name, _, class_name = sdk.partition(":")
    client_class = getattr(import_module(module_name), class_name)
    return client_class(
        api_key=key.reveal(),
        base_url=base_url,
        http_client=client,
        max_retries=0,
    )


def sdk_address(
    sdk: str, path: str, key: Key, base_url: str
) -> tuple[str, Mapping[str, object]]:
    """Return the URL and headers that a provider's SDK would use for a path."""
    import httpx2  # noqa: PLC0415  # a fifth of a second

    # Without a transport the client would read certificates and proxies, which is slow.
    offline = httpx2.AsyncClient(transport=httpx2.AsyncBaseTransport())
    client = sdk_client(sdk, key, base_url, offline)
    url = f"{str(client.base_url).rstrip('/')}/{path}"
    return url, {**client.default_headers, **client.auth_headers}


_TYPE_NAMES: Mapping[type, str] = {
    JsonObject: "an object",
    list: "a list",
    str: "text",
    bool: "true or false",
    type(None): "missing or null",
}


def _checked(value: object, expected: type[T], name: str) -> T:
    """Return the value. Raises TransientError if it is of another type."""
    if isinstance(value, expected):
        return value
    actual = _TYPE_NAMES.get(type(value), "a number")
    refuse_body(f"{name} is {actual}, not {_TYPE_NAMES[expected]}")


def _object_of(pairs: list[tuple[str, object]]) -> JsonObject:
    """Return the object with these fields. Raises ValueError for a key that comes twice."""
    fields = JsonObject(pairs)
    if len(fields) != len(pairs):
        raise ValueError("duplicate key")
    return fields


def _refuse_constant(name: str) -> NoReturn:
    """Raise ValueError for NaN or Infinity, which Python's decoder would read."""
    raise ValueError(name)


_STRICT_DECODER = json.JSONDecoder(
    object_pairs_hook=_object_of, parse_constant=_refuse_constant
)
