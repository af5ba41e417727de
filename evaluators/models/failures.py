"""Why a call brought no reply: exceptions, statuses and error bodies, sorted into core's tree."""

import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import NoReturn

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError

from evaluators.core import CallError, FatalError, RefusedError, TransientError
from evaluators.models.transport import BodyTooLargeError, Response, SettingError


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """What went wrong, before it is worded for the user. ``retry_after`` is in seconds."""

    sort: type[CallError]
    kind: str
    what: str
    retry_after: float | None = None

    def error(self, message: str) -> CallError:
        """Return the exception to raise."""
        if issubclass(self.sort, TransientError):
            return self.sort(self.kind, message, self.retry_after)
        return self.sort(self.kind, message)


class FailedError(Exception):
    """Carries a Failure from where a body is read to where errors are worded."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.what)
        self.failure = failure


def bad_body(what: str) -> Failure:
    """Return the Failure of a reply that cannot be read."""
    return Failure(sort=TransientError, kind="bad_body", what=what)


def refuse_body(what: str) -> NoReturn:
    """Raise the failure of a reply that cannot be read."""
    raise FailedError(bad_body(what))


NETWORK: tuple[tuple[tuple[type[Exception], ...], str, str], ...] = (
    (
        (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, ConnectionRefusedError),
        "unreachable",
        "no connection",
    ),
    ((TimeoutError,), "timeout", "no reply in time"),
    ((aiohttp.ClientError, OSError), "connection", "the connection broke"),
)
"""Exceptions of the network with their kind and words; the first that fits counts."""

STATUSES: Mapping[int, tuple[type[CallError], str]] = {
    401: (FatalError, "auth"),
    402: (FatalError, "quota"),
    403: (FatalError, "auth"),
    404: (FatalError, "not_found"),
    405: (FatalError, "not_found"),
    407: (FatalError, "proxy"),
    408: (TransientError, "timeout"),
    409: (TransientError, "conflict"),
    410: (FatalError, "not_found"),
    413: (RefusedError, "too_large"),
    425: (TransientError, "overloaded"),
    429: (TransientError, "rate_limit"),
    503: (TransientError, "overloaded"),
    529: (TransientError, "overloaded"),
}
ADVICE: Mapping[str, str] = {
    "auth": "check the API key and its rights",
    "quota": "the account's credit or quota is used up",
    "not_found": "check the model's name and the base URL",
    "redirect": "redirects are not followed; write the final base URL",
}
QUOTA = re.compile(
    r"insufficient_quota|billing|credit balance|exceeded your current quota"
    r"|insufficient (?:funds|credits?)",
    re.IGNORECASE,
)
OVERLOADED = re.compile(
    r"overload|over capacity|at capacity|service[_ ]unavailable|temporarily unavailable",
    re.IGNORECASE,
)
RATE_LIMITED = re.compile(r"rate[_ ]limit|too many requests", re.IGNORECASE)
TOO_LARGE = re.compile(r"request too large|reduce the length", re.IGNORECASE)
CONTEXT = re.compile(
    r"context[_ ]length|context window|context size|prompt is too long|input is too long"
    r"|too many (?:input )?tokens",
    re.IGNORECASE,
)
LOOKED_AT = 4000  # characters of an error body in which words are sought


def of_exception(error: Exception) -> Failure:
    """Return the Failure behind whatever a call raised."""
    if isinstance(error, FailedError):
        return error.failure
    if isinstance(error, SettingError):
        return Failure(sort=FatalError, kind="environment", what=str(error))
    if isinstance(error, BodyTooLargeError):
        return bad_body(str(error))
    for cause in _causes(error):
        if isinstance(cause, ContentEncodingError):
            return bad_body(f"the body cannot be decoded: {cause.message}")
    for types, kind, what in NETWORK:
        if isinstance(error, types):
            said = what if kind == "timeout" else f"{what}: {_named(error)}"
            return Failure(sort=TransientError, kind=kind, what=said)
    # Whatever else was raised came from the request itself, and would come again.
    return Failure(sort=RefusedError, kind="bad_request", what=f"cannot be sent: {_named(error)}")


def of_response(response: Response) -> Failure:
    """Return the Failure that a response of another status than 2xx stands for."""
    said, words = message_of(response.content)
    sort, kind = _sorted(response.status, words)
    advice = f"; {ADVICE[kind]}" if kind in ADVICE else ""
    return Failure(
        sort=sort,
        kind=kind,
        what=f"HTTP {response.status} ({kind}{advice}): {said}",
        retry_after=retry_after(response.headers),
    )


def of_error_body(body: Mapping[str, object], headers: Mapping[str, str]) -> Failure:
    """Return the Failure of an error object that came under status 200."""
    said, words = message_of(json.dumps(body).encode())
    sort, kind = _sorted_words(words)
    return Failure(
        sort=sort,
        kind=kind,
        what=f"an error in place of a reply: {said}",
        retry_after=retry_after(headers),
    )


def _sorted_words(words: str) -> tuple[type[CallError], str]:
    if QUOTA.search(words):
        return FatalError, "quota"
    if CONTEXT.search(words):
        return RefusedError, "context_length"
    if OVERLOADED.search(words):
        return TransientError, "overloaded"
    return TransientError, "rate_limit" if RATE_LIMITED.search(words) else "error_body"


def _sorted(status: int, words: str) -> tuple[type[CallError], str]:
    if status in (400, 403, 429) and QUOTA.search(words):
        return FatalError, "quota"
    if status in (400, 413, 422) and CONTEXT.search(words):
        return RefusedError, "context_length"
    if status == 429 and TOO_LARGE.search(words):
        return RefusedError, "too_large"  # more tokens than a whole minute has: it stays so
    if status in STATUSES:
        return STATUSES[status]
    if status < 400:
        return FatalError, "redirect"
    return (TransientError, "server") if status >= 500 else (RefusedError, "bad_request")


def message_of(content: bytes) -> tuple[str, str]:
    """Return the provider's message, and the words (message, code, type) to sort it by."""
    text = content[: 4 * LOOKED_AT].decode("utf-8", "replace")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return ("an HTML page" if text.lstrip().startswith("<") else text), text[:LOOKED_AT]
    inner = value.get("error", value) if isinstance(value, dict) else value
    if not isinstance(inner, dict):
        return str(inner), str(inner)[:LOOKED_AT]
    said = next((inner[key] for key in ("message", "detail") if inner.get(key)), text)
    words = [inner.get("code"), inner.get("type"), said]
    return str(said), " ".join(str(word) for word in words)[:LOOKED_AT]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return how many seconds the server asks to wait, None where it does not say so readably."""
    milliseconds = _number(headers.get("retry-after-ms", ""))
    if milliseconds is not None:
        return milliseconds / 1000
    value = headers.get("retry-after", "")
    seconds = _number(value)
    return _until(value, headers.get("date", "")) if seconds is None else seconds


def _number(text: str) -> float | None:
    if not re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text.strip()):
        return None
    number = float(text)
    return number if math.isfinite(number) else None


def _until(text: str, now: str) -> float | None:
    """Count from the server's own ``Date`` where it gives one: our clock may be wrong."""
    moment = _moment(text)
    if moment is None:
        return None
    start = _moment(now)
    seconds = moment - (time.time() if start is None else start)
    return seconds if seconds >= 0 else None


def _moment(text: str) -> float | None:
    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError, OSError):
        return None


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    while error is not None:
        yield error
        error = error.__cause__


def _named(error: Exception) -> str:
    return f"{type(error).__name__} {_said(error)}".strip()


def _said(error: Exception) -> str:
    """Return an error's words; those of a response that cannot be read would start with a 400."""
    return error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
