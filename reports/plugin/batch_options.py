"""The options of runs in batches: how long they are waited for, and what is asked directly."""

import re
from collections.abc import Mapping
from typing import Any

from evaluators.core import UsageError
from evaluators.text import shown

VALUES = (
    ("batch-wait", "TIME", "how long a run with --batch waits, as 2h, 30m, 90s or 0 (default: to "
     "the end); then exit 6, and the same command goes on"),
    ("batch-rest", "direct", "ask directly, at the full price, what came back from a batch without "
     "a reply (default: in the next batch)"),
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
_DIRECT = "direct"


def read_batch(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``batch_wait`` in seconds (None: to the end) and whether the rest is asked directly.

    Raises UsageError for another value, and for what does nothing or contradicts itself.
    """
    wait, rest = given.get("batch-wait"), given.get("batch-rest")
    for name in ("batch-wait", "batch-rest"):
        if name in given and "batch" not in given:
            raise UsageError(f"--{name}: does nothing without --batch; add it, or leave this out")
    if "batch" in given and "until-decided" in given:
        raise UsageError(
            "--batch: it asks all at once, and --until-decided a few at a time; leave one out"
        )
    if rest not in (None, _DIRECT):
        raise UsageError(f"--batch-rest: {_DIRECT} is needed, got {shown(rest)}")
    return {"batch_wait": None if wait is None else _time(wait), "batch_direct": rest == _DIRECT}


def _time(text: str) -> float:
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise UsageError(
            f"--batch-wait: a time such as 2h, 30m, 90s or 0 is needed, got {shown(text)}"
        )
    return float(found[1]) * _SECONDS[found[2]]
