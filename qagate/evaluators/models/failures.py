"""Why a call brought no reply: exceptions, statuses and error bodies as CallErrors."""

import json
import math
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from itertools import product

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError

from qagate.evaluators.core import CallError, FatalError, RefusedError, TransientError

ENVIRONMENT = "environment"  # the kind of an unusable proxy or unusable certificates

NETWORK: tuple[tuple[tuple[type[Exception], ...], str, str], ...] = (
    (
        (
            aiohttp.ClientConnectorError,
            aiohttp.ConnectionTimeoutError,
            ConnectionRefusedError,
        ),
        "unreachable",
        "no connection",
    ),
    ((TimeoutError,), "timeout", "no reply in time"),
    ((aiohttp.ClientError, OSError), "connection", "the connection broke"),
)
"""Network exceptions with their kind and words; the first match counts."""

SortAndKind = tuple[type[CallError], str]
"""Which CallError it is, and its kind."""

STATUSES: Mapping[int, SortAndKind] = {
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
FILTERED = re.compile(
    r"content[_ ](?:filter|policy|management|moderation)|responsible[_ ]?ai|moderation_blocked"
    r"|safety (?:filter|policy|system)|flagged (?:as|by|for)|usage polic(?:y|ies)",
    re.IGNORECASE,
)
"""Says that a filter stopped the text, whose item it concerns alone."""
CONTEXT = re.compile(
    r"context[_ ]length|context window|context size|prompt is too long|input is too long"
    r"|too many (?:input )?tokens",
    re.IGNORECASE,
)
BY_WORDS: tuple[tuple[tuple[int, ...], re.Pattern[str], SortAndKind], ...] = (
    ((400, 403, 429), QUOTA, (FatalError, "quota")),
    ((400, 403, 422), FILTERED, (RefusedError, "filtered")),
    ((400, 413, 422), CONTEXT, (RefusedError, "context_length")),
    # More tokens than a minute allows, so always too many.
    ((429,), TOO_LARGE, (RefusedError, "too_large")),
)
"""Statuses with words that say more than the status; the first match counts."""
ERROR_BODY = TransientError, "error_body"
BY_WORDS_ALONE: tuple[tuple[re.Pattern[str], SortAndKind], ...] = (
    (QUOTA, (FatalError, "quota")),
    (CONTEXT, (RefusedError, "context_length")),
    (OVERLOADED, (TransientError, "overloaded")),
    (RATE_LIMITED, (TransientError, "rate_limit")),
)
"""Words of an error under status 200; the first match counts."""
RESETS: Mapping[str, str] = {
    "x-ratelimit-reset-requests": "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-tokens": "x-ratelimit-remaining-tokens",
    "anthropic-ratelimit-requests-reset": "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-tokens-reset": "anthropic-ratelimit-tokens-remaining",
    "anthropic-ratelimit-input-tokens-reset": "anthropic-ratelimit-input-tokens-remaining",
    "anthropic-ratelimit-output-tokens-reset": "anthropic-ratelimit-output-tokens-remaining",
}
"""Headers that say when a whole limit is free again, and the headers with the rest of it."""
PASSED_ON = "llm_provider-"  # LiteLLM's prefix for the provider's own headers
MAX_RESET_S = 90.0  # a longer one is of a daily limit, which is partly free long before
DURATION = re.compile(
    r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?"
)
SEARCHED_LENGTH = 4000  # characters of an error body that are searched for words


def of_exception(error: Exception) -> CallError:
    """Return the CallError for an exception of a call; its text is not masked yet."""
    if isinstance(error, CallError):
        return error
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ContentEncodingError):
            return TransientError(
                "bad_body", f"the body cannot be decoded: {cause.message}"
            )
        cause = cause.__cause__
    # As text, the error of an unreadable response would start with a 400.
    words = (
        error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    )
    name = f"{type(error).__name__} {words}".strip()
    for types, kind, what in NETWORK:
        if isinstance(error, types):
            return TransientError(
                kind, what if kind == "timeout" else f"{what}: {name}"
            )
    # Anything else comes from the request itself, and would come again.
    return RefusedError("bad_request", f"cannot be sent: {name}")


def of_response(status: int, headers: Mapping[str, str], body: bytes) -> CallError:
    """Return the CallError for a response with another status than 2xx."""
    message, words = message_of(body)
    sort, kind = _sort_and_kind(status, words)
    advice = f"; {ADVICE[kind]}" if kind in ADVICE else ""
    return _error(sort, kind, f"HTTP {status} ({kind}{advice}): {message}", headers)


def _sort_and_kind(status: int, words: str) -> SortAndKind:
    """Return what a status means; the words of the body may say it more exactly."""
    for statuses, pattern, sort_and_kind in BY_WORDS:
        if status in statuses and pattern.search(words):
            return sort_and_kind
    if status in STATUSES:
        return STATUSES[status]
    if status < 400:
        return FatalError, "redirect"
    if status < 500:
        return RefusedError, "bad_request"
    return TransientError, "server"


def of_error_body(body: Mapping[str, object], headers: Mapping[str, str]) -> CallError:
    """Return the CallError for an error object under status 200."""
    said, words = message_of(json.dumps(body).encode())
    found = next(
        (sort for pattern, sort in BY_WORDS_ALONE if pattern.search(words)), ERROR_BODY
    )
    return _error(*found, f"an error in place of a reply: {said}", headers)


def _error(
    sort: type[CallError], kind: str, message: str, headers: Mapping[str, str]
) -> CallError:
    if not issubclass(sort, TransientError):
        return sort(kind, message)
    if headers.get("x-should-retry", "").strip().casefold() == "false":
        return RefusedError(kind, f"{message} (not to be tried again, says the server)")
    announced = retry_after(headers)
    if announced is None and kind == "rate_limit":
        announced = reset_after(headers)
    return sort(kind, message, announced)


def message_of(content: bytes) -> tuple[str, str]:
    """Return the provider's message, and the words (code, type, message) to classify it by."""
    text = content[: 4 * SEARCHED_LENGTH].decode("utf-8", "replace")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        return ("an HTML page" if text.lstrip().startswith("<") else text), text[
            :SEARCHED_LENGTH
        ]
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        value = value[0]  # as Gemini's OpenAI-compatible endpoint has it
    inner = value.get("error", value) if isinstance(value, dict) else value
    if not isinstance(inner, dict):
        return str(inner), str(inner)[:SEARCHED_LENGTH]
    said = next((inner[key] for key in ("message", "detail") if inner.get(key)), text)
    words = [inner.get("code"), inner.get("type"), said]
    return str(said), " ".join(str(word) for word in words)[:SEARCHED_LENGTH]


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds the server asks to wait; None if it does not say so readably."""
    for before in ("", PASSED_ON):
        milliseconds = _number(headers.get(f"{before}retry-after-ms", ""))
        if milliseconds is not None:
            return milliseconds / 1000
        seconds = _wait(headers.get(f"{before}retry-after", ""), headers)
        if seconds is not None:
            return seconds
    return None


def reset_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until all exhausted limits, or else the first one, are free, if known."""
    known, used_up = list[float](), list[float]()
    for before, (reset, remaining) in product(("", PASSED_ON), RESETS.items()):
        seconds = _wait(headers.get(before + reset, ""), headers)
        if seconds is not None:
            known.append(seconds)
            used_up += (
                [seconds] if _number(headers.get(before + remaining, "")) == 0 else []
            )
    wait = max(used_up) if used_up else min(known, default=None)
    return None if wait is None or wait > MAX_RESET_S else wait


def _wait(text: str, headers: Mapping[str, str]) -> float | None:
    """Return the seconds in a number, in a duration, or until a moment; None for anything else."""
    text = text.strip()
    if text and (found := DURATION.fullmatch(text)):
        hours, minutes, seconds, milliseconds = (
            float(part or 0) for part in found.groups()
        )
        return hours * 3600 + minutes * 60 + seconds + milliseconds / 1000
    number, end = _number(text), _moment(text)
    if number is not None or end is None:
        return number
    begin = _moment(headers.get("date", ""))  # the server's clock, as ours may be wrong
    left = end - (time.time() if begin is None else begin)
    return left if left >= 0 else None


def _number(text: str) -> float | None:
    number = (
        float(text) if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text.strip()) else math.inf
    )
    return number if math.isfinite(number) else None


def _moment(text: str) -> float | None:
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        with suppress(ValueError, OverflowError, OSError):
            moment = read(text)
            return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    return None
