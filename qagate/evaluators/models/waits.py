"""How long a server asks to wait, as its response headers say.

``Retry-After`` is plain advice. Rate limits are told otherwise: for each limit there is a
header that says when the whole of it is free again, and one that says how much is left.
A wait is given as a number of seconds, as a duration such as 6m0s, or as a moment.
"""

import math
import re
import time
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

REMAINING: Mapping[str, str] = {
    "x-ratelimit-reset-requests": "x-ratelimit-remaining-requests",
    "x-ratelimit-reset-tokens": "x-ratelimit-remaining-tokens",
    "anthropic-ratelimit-requests-reset": "anthropic-ratelimit-requests-remaining",
    "anthropic-ratelimit-tokens-reset": "anthropic-ratelimit-tokens-remaining",
    "anthropic-ratelimit-input-tokens-reset": "anthropic-ratelimit-input-tokens-remaining",
    "anthropic-ratelimit-output-tokens-reset": "anthropic-ratelimit-output-tokens-remaining",
}
"""By the header that says when a limit is free again: the one that says what is left of it."""
PREFIXES = ("", "llm_provider-")
"""The second is LiteLLM's, for the headers that it passes on from the provider."""
MAX_RESET_SECONDS = 90.0
"""A longer wait is for a daily limit, which is partly free long before."""
DURATION = re.compile(
    r"(?:(\d+)h)?(?:(\d+)m(?!s))?(?:(\d+(?:\.\d+)?)s)?(?:(\d+(?:\.\d+)?)ms)?"
)
NUMBER = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that the server asks to wait; None if it does not say so readably."""
    for prefix in PREFIXES:
        milliseconds = _number(headers.get(f"{prefix}retry-after-ms", ""))
        if milliseconds is not None:
            return milliseconds / 1000
        seconds = _seconds(headers.get(f"{prefix}retry-after", ""), headers)
        if seconds is not None:
            return seconds
    return None


def reset_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds until the server's rate limits are free again.

    That is when all exhausted limits are free or, if none is said to be exhausted, when the
    first limit is. None if no header says so, or if it takes longer than MAX_RESET_SECONDS.
    """
    waits = []
    waits_if_exhausted = []
    for prefix in PREFIXES:
        for reset_header, remaining_header in REMAINING.items():
            wait = _seconds(headers.get(prefix + reset_header, ""), headers)
            if wait is None:
                continue
            waits.append(wait)
            if _number(headers.get(prefix + remaining_header, "")) == 0:
                waits_if_exhausted.append(wait)
    if not waits:
        return None
    wait = max(waits_if_exhausted) if waits_if_exhausted else min(waits)
    if wait > MAX_RESET_SECONDS:
        return None
    return wait


def _seconds(text: str, headers: Mapping[str, str]) -> float | None:
    """Return the seconds in a duration, in a number, or until a moment.

    None for anything else, and for a moment that is over.
    """
    text = text.strip()
    seconds = _duration(text)
    if seconds is None:
        seconds = _number(text)
    if seconds is None:
        seconds = _until_moment(text, headers)
    return seconds


def _duration(text: str) -> float | None:
    """Return the seconds in a duration such as 6m0s; None for anything else."""
    duration = DURATION.fullmatch(text)
    if duration is None or not text:  # every unit may be left out: "" matches
        return None
    hours, minutes, seconds, milliseconds = duration.groups(default="0")
    total = (
        float(hours) * 3600
        + float(minutes) * 60
        + float(seconds)
        + float(milliseconds) / 1000
    )
    if math.isinf(total):
        return None  # it has more digits than a float can hold
    return total


def _until_moment(text: str, headers: Mapping[str, str]) -> float | None:
    """Return the seconds until a moment; None if it is over, or if the text is none."""
    end = _moment(text)
    if end is None:
        return None
    # From the moment at which the server answered, by its own clock: ours may be wrong.
    begin = _moment(headers.get("date", ""))
    if begin is None:
        begin = time.time()
    if end < begin:
        return None
    return end - begin


def _number(text: str) -> float | None:
    if not NUMBER.fullmatch(text.strip()):
        return None
    number = float(text)
    if math.isinf(number):
        return None  # it has more digits than a float can hold
    return number


def _moment(text: str) -> float | None:
    """Return a moment in ISO 8601 or in HTTP's form, in seconds since 1970; None for neither."""
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = parse(text)
            if moment.tzinfo is None:
                moment = moment.replace(tzinfo=UTC)
            return moment.timestamp()
        except (ValueError, OverflowError, OSError):
            continue
    return None
