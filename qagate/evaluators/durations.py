"""Times as people write them: ``2h``, ``90s``."""

import re

SECONDS_PER_UNIT = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
DURATION = r"([0-9]{1,6}(?:\.[0-9]{1,3})?)([smhd]?)"


def seconds_of(text: str) -> float | None:
    """Return a time in seconds, also without its unit; None for a text that is none."""
    match = re.fullmatch(DURATION, text.strip())
    if match is None:
        return None
    number, unit = match.groups()
    return float(number) * SECONDS_PER_UNIT[unit]
