"""Why a call brought no reply: exceptions, statuses and error bodies as CallErrors.

The class of a CallError says what the engine does: a TransientError is tried again, a
RefusedError concerns this request alone, and a FatalError ends the run, as every call would
fail. Its kind is what reports count by.

A status alone often says too little. Providers report a used-up quota, a filter or an
overlong prompt under statuses that mean other things too, so the words of the body are
searched first.
"""

import errno
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError

from qagate.evaluators.core import CallError, FatalError, RefusedError, TransientError
from qagate.evaluators.models.waits import reset_after, retry_after


@dataclass(frozen=True, slots=True)
class Failure:
    """What a failed call means."""

    error: type[CallError]
    kind: str


NO_CONNECTION = (
    aiohttp.ClientConnectorError,
    aiohttp.ConnectionTimeoutError,
    ConnectionRefusedError,
)
"""The exceptions of a server that could not be reached."""
OWN_LACK = "own_lack"
"""The kind of a call for which this machine had no socket or no memory left."""
OWN_LACKS = frozenset(
    {
        errno.EADDRNOTAVAIL,
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOBUFS,
        errno.ENOMEM,
    }
)
"""The system's numbers for it; the server is not to blame."""
ENVIRONMENT = "environment"
"""The kind of an unusable proxy or unusable certificates."""
STATUSES: Mapping[int, Failure] = {
    401: Failure(FatalError, "auth"),
    402: Failure(FatalError, "quota"),
    403: Failure(FatalError, "auth"),
    404: Failure(FatalError, "not_found"),
    405: Failure(FatalError, "not_found"),
    407: Failure(FatalError, "proxy"),
    408: Failure(TransientError, "timeout"),
    409: Failure(TransientError, "conflict"),
    410: Failure(FatalError, "not_found"),
    413: Failure(RefusedError, "too_large"),
    425: Failure(TransientError, "overloaded"),
    429: Failure(TransientError, "rate_limit"),
    503: Failure(TransientError, "overloaded"),
    529: Failure(TransientError, "overloaded"),
}
ADVICE: Mapping[str, str] = {
    "auth": "check the API key and its rights",
    "quota": "the account's credit or quota is used up",
    "not_found": "check the model's name and the base URL",
    "redirect": "redirects are not followed; write the final base URL",
}
"""What a person can do, by kind."""
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
"""A filter stopped the text. That concerns one item alone, whatever the status."""
CONTEXT = re.compile(
    r"context[_ ]length|context window|context size|prompt is too long|input is too long"
    r"|too many (?:input )?tokens",
    re.IGNORECASE,
)

UNSUPPORTED = re.compile(
    r"requires --jinja|role not supported|does not support tools|support tool use"
    r"|support the provided|not support function",
    re.IGNORECASE,
)
"""The server lacks what one request asked for, whatever the status: llama.cpp, OpenRouter."""


@dataclass(frozen=True, slots=True)
class WordRule:
    """Words of an error body that say more than its status."""

    statuses: tuple[int, ...]
    """Under which the words are searched."""
    pattern: re.Pattern[str]
    failure: Failure


WORD_RULES = (
    WordRule((400, 403, 429), QUOTA, Failure(FatalError, "quota")),
    WordRule((400, 403, 422), FILTERED, Failure(RefusedError, "filtered")),
    WordRule((400, 413, 422), CONTEXT, Failure(RefusedError, "context_length")),
    WordRule((404, 500, 501), UNSUPPORTED, Failure(RefusedError, "bad_request")),
    # One request has more tokens than a minute allows, so it always will.
    WordRule((429,), TOO_LARGE, Failure(RefusedError, "too_large")),
)
"""The first that matches decides."""
WORDS_UNDER_STATUS_200 = (
    (QUOTA, Failure(FatalError, "quota")),
    (CONTEXT, Failure(RefusedError, "context_length")),
    (OVERLOADED, Failure(TransientError, "overloaded")),
    (RATE_LIMITED, Failure(TransientError, "rate_limit")),
)
"""What an error in place of a reply means by its words; the first that matches decides."""
SEARCHED_LENGTH = 4000
"""Characters of an error body that are searched for words."""


def of_exception(error: Exception) -> CallError:
    """Return the CallError for an exception of a call; its text is not masked yet."""
    if isinstance(error, CallError):
        return error
    decoding_error = _decoding_error(error)
    if decoding_error is not None:
        message = f"the body cannot be decoded: {decoding_error.message}"
        return TransientError("bad_body", message)
    if isinstance(error, OSError) and error.errno in OWN_LACKS:
        message = f"this machine can open no more connections: {_description(error)}"
        return TransientError(OWN_LACK, message)
    # From the narrow class to the wide one: some of these are also TimeoutErrors or OSErrors.
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        message = (
            "its certificate is not trusted; name the file with the certificates of your "
            f"network in SSL_CERT_FILE ({error.certificate_error})"
        )
        return FatalError(ENVIRONMENT, message)
    if isinstance(error, NO_CONNECTION):
        return TransientError("unreachable", f"no connection: {_description(error)}")
    if isinstance(error, TimeoutError):
        return TransientError("timeout", "no reply in time")
    if isinstance(error, aiohttp.ClientError | OSError):
        message = f"the connection broke: {_description(error)}"
        return TransientError("connection", message)
    # Anything else comes from the request itself, and would come again.
    return RefusedError("bad_request", f"cannot be sent: {_description(error)}")


def _decoding_error(error: BaseException) -> ContentEncodingError | None:
    """Return the cause of an exception that is a body which cannot be unpacked."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ContentEncodingError):
            return cause
        cause = cause.__cause__
    return None


def _description(error: Exception) -> str:
    text = str(error)
    if isinstance(error, aiohttp.ClientResponseError):
        text = error.message  # its text would begin with a 400 that no server sent
    return f"{type(error).__name__} {text}".strip()


def of_response(status: int, headers: Mapping[str, str], body: bytes) -> CallError:
    """Return the CallError for a response with another status than 2xx."""
    message, words = message_of(body)
    failure = _failure_of(status, words)
    meaning = failure.kind
    if failure.kind in ADVICE:
        meaning = f"{failure.kind}; {ADVICE[failure.kind]}"
    return _call_error(failure, f"HTTP {status} ({meaning}): {message}", headers)


def _failure_of(status: int, words: str) -> Failure:
    """Return what a status means; the words of the body may say it more exactly."""
    for rule in WORD_RULES:
        if status in rule.statuses and rule.pattern.search(words):
            return rule.failure
    if status in STATUSES:
        return STATUSES[status]
    if status < 400:
        return Failure(FatalError, "redirect")
    if status < 500:
        return Failure(RefusedError, "bad_request")
    return Failure(TransientError, "server")


def of_error_body(body: Mapping[str, object], headers: Mapping[str, str]) -> CallError:
    """Return the CallError for an error object under status 200."""
    message, words = message_of(json.dumps(body).encode())
    failure = _failure_of_words(words)
    return _call_error(failure, f"an error in place of a reply: {message}", headers)


def _failure_of_words(words: str) -> Failure:
    for pattern, failure in WORDS_UNDER_STATUS_200:
        if pattern.search(words):
            return failure
    return Failure(TransientError, "error_body")


def _call_error(
    failure: Failure, message: str, headers: Mapping[str, str]
) -> CallError:
    """Return the error of a failure; one that is tried again says how long to wait, if known."""
    if not issubclass(failure.error, TransientError):
        return failure.error(failure.kind, message)
    if headers.get("x-should-retry", "").strip().casefold() == "false":
        message = f"{message} (not to be tried again, says the server)"
        return RefusedError(failure.kind, message)
    wait = retry_after(headers)
    if wait is None and failure.kind == "rate_limit":
        wait = reset_after(headers)
    return failure.error(failure.kind, message, wait)


def message_of(content: bytes) -> tuple[str, str]:
    """Return the message of an error body, and its words (code, type, message) to search."""
    text = content[: 4 * SEARCHED_LENGTH].decode("utf-8", "replace")
    try:
        value = json.loads(content)
    except (ValueError, RecursionError):
        message = "an HTML page" if text.lstrip().startswith("<") else text
        return message, text[:SEARCHED_LENGTH]
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], dict):
        value = value[0]  # as Gemini's OpenAI-compatible endpoint has it
    error = value.get("error", value) if isinstance(value, dict) else value
    if not isinstance(error, dict):
        return str(error), str(error)[:SEARCHED_LENGTH]
    message = str(error.get("message") or error.get("detail") or text)
    words = f"{error.get('code')} {error.get('type')} {message}"
    return message, words[:SEARCHED_LENGTH]
