"""Times as people write them: ``2h``, ``90s``."""

import math
import re

SECONDS_PER_UNIT = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION = r"([0-9]{1,6}(?:\.[0-9]{1,3})?)([smhd]?)"


def rough_text(seconds: float) -> str:
    """Return a time in whole days, hours, minutes or seconds, rounded up, such as ``3 h``."""
    for unit in ("d", "h", "m"):
        in_unit = seconds / SECONDS_PER_UNIT[unit]
        if in_unit >= 1:
            return f"{math.ceil(in_unit)} {unit}"
    return f"{math.ceil(seconds)} s"


def seconds_of(text: str) -> float | None:
    """Return a time in seconds, also without its unit; None for a text that is none."""
    match = re.fullmatch(DURATION, text.strip())
    if match is None:
        return None
    number, unit = match.groups()
    return float(number) * SECONDS_PER_UNIT[unit]
