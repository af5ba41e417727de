"""The options of runs in batches: whether to use them, and how long to wait for them."""

import re
from collections.abc import Mapping
from typing import Any

from evaluators.core import UsageError
from evaluators.text import shown

VALUES = (
    ("batch-wait", "TIME", "how long a run with --batch waits, as 2h, 30m, 90s or 0 (default: to "
     "the end); then exit 6, and the same command goes on"),
)  # fmt: skip
FLAGS = (
    (
        "batch",
        "give calls to the providers' batch APIs: at half the price, within a day; all answers "
        "first, then all judgements",
    ),
)
_TIME = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,3})?)([smhd]?)")
_SECONDS: Mapping[str, float] = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}


def read_batch(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``batch_wait`` in seconds, None to wait to the end.

    Raises UsageError for a value that is no time and for options that contradict each other.
    """
    wait = given.get("batch-wait")
    if wait is not None and "batch" not in given:
        raise UsageError("--batch-wait: does nothing without --batch; add it, or leave this out")
    if "batch" in given and "until-decided" in given:
        raise UsageError(
            "--batch: it asks all at once, and --until-decided a few at a time; leave one out"
        )
    return {"batch_wait": None if wait is None else _time(wait)}


def _time(text: str) -> float:
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            f"--batch-wait: a time such as 2h, 30m, 90s or 0 is needed, got {shown(text)}"
        )
    return float(found[1]) * _SECONDS[found[2]]
