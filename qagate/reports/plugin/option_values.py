"""What the text of an option must look like: a value, or an error that says what is needed.

Each reader takes the option's name, for the error, and its text. All raise UsageError.
"""

import re
from collections.abc import Collection
from pathlib import Path

from qagate.cases.dataset import SliceFiles
from qagate.evaluators.core import UsageError
from qagate.evaluators.durations import seconds_of
from qagate.evaluators.text import shown

OFF = "off"


def read_whole(name: str, text: str, low: int = 1) -> int:
    """Return a whole number of at most nine digits, and of at least ``low``: 0 or 1."""
    pattern = "[0-9]{1,9}"
    if low:
        pattern = f"(?=0*[1-9]){pattern}"
    match = _read(name, text.strip(), pattern, f"a whole number of at least {low}")
    return int(match[0])


def read_amount(name: str, text: str) -> float:
    """Return a number above 0."""
    pattern = r"(?=[0.]*[1-9])(?:[0-9]{1,9}(?:\.[0-9]{1,9})?|\.[0-9]{1,9})"
    return float(_read(name, text.strip(), pattern, "a number above 0")[0])


def read_name(name: str, text: str) -> str:
    """Return a plain name, for instance of a release."""
    needed = "a name of letters, digits, '.', '_' and '-'"
    return _read(name, text, "[A-Za-z0-9_.-]{1,64}", needed)[0]


def read_seconds(name: str, text: str) -> float:
    """Return a time such as ``2h`` or ``90s`` in seconds."""
    seconds = seconds_of(text)
    if seconds is None:
        needed = "a time such as 2h, 30m, 90s or 0"
        raise UsageError(f"--{name}: {needed} is needed, got {shown(text)}")
    return seconds


def read_deadline(name: str, text: str) -> float:
    """Return a time above 0 in seconds."""
    seconds = seconds_of(text)
    if not seconds:
        needed = "a time above 0 such as 300, 5m or 2h"
        raise UsageError(f"--{name}: {needed} is needed, got {shown(text)}")
    return seconds


def read_limit(name: str, text: str) -> tuple[int, bool]:
    """Return how many items, and whether these are the first ones: ``first:N``."""
    match = _read(name, text, r"(\s*first\s*:)?([^:]*)", "N or first:N")
    first, number = match.groups()
    return read_whole(name, number), first is not None


def read_slice_files(name: str, texts: Collection[str], here: Path) -> SliceFiles:
    """Return files by data set and language, of texts such as ``simpleqa:bg=my.csv``."""
    needed = "DATASET:LANG=FILE, such as simpleqa:bg=my.csv,"
    files: dict[tuple[str, str], Path] = {}
    for text in texts:
        match = _read(name, text, "(([^:=]+):([^=]+))=((?s:.+))", needed)
        slice_name, dataset, language, file = match.groups()
        if (dataset, language) in files:
            raise UsageError(f"--{name}: {slice_name} is given twice; give it once")
        files[dataset, language] = here / file
    return files


def _read(name: str, text: str, pattern: str, needed: str) -> re.Match[str]:
    match = re.fullmatch(pattern, text)
    if match is None:
        raise UsageError(f"--{name}: {needed} is needed, got {shown(text)}")
    return match
