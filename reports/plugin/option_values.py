"""Values of options: the text that was given, or an error that names the option and the text."""

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from cases.dataset import SliceFile
from evaluators.core import UsageError
from evaluators.text import shown

_NAME = re.compile(r"[A-Za-z0-9_.-]{1,64}")
_NUMBER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?|\.[0-9]{1,9}")


def read_name(name: str, text: str) -> str:
    """Return a name that may stand in files and keys."""
    if not _NAME.fullmatch(text):
        raise UsageError(
            f"--{name}: a name of letters, digits, '.', '_' and '-' is needed, got {shown(text)}"
        )
    return text


def read_whole(name: str, text: str, low: int = 1) -> int:
    """Return a whole number of at most nine digits."""
    text = text.strip()
    if not (text.isascii() and text.isdigit() and len(text) < 10) or int(text) < low:
        raise UsageError(f"--{name}: a whole number of at least {low} is needed, got {text!r}")
    return int(text)


def _number(name: str, text: str, fits: Callable[[float], bool], needed: str) -> float:
    text = text.strip()
    number = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not fits(number):
        raise UsageError(f"--{name}: {needed} is needed, got {text!r}")
    return number


read_amount = partial(_number, fits=lambda number: number > 0, needed="a number above 0")
read_share = partial(_number, fits=lambda number: 0 <= number <= 1, needed="a share from 0 to 1")


def read_labels(name: str, word: str) -> int | None:
    """Return how many labelled items a language measure the judge: None for all, 0 for none."""
    if word in ("on", "off"):
        return None if word == "on" else 0
    if not word.isdigit():
        raise UsageError(f"--{name}: on, off or a whole number is needed, got {word!r}")
    return read_whole(name, word)


def read_slice_files(name: str, given: Mapping[str, Any], here: Path) -> tuple[SliceFile, ...]:
    """Return the files that stand in place of slices' own."""
    found: dict[str, SliceFile] = {}
    for text in given.get(name, []):
        slice_, equals, path = text.partition("=")
        dataset, colon, language = slice_.partition(":")
        if not (equals and colon and dataset and language and path):
            raise UsageError(
                f"--{name}: DATASET:LANG=FILE is needed (such as simpleqa:bg=my.csv), got {text!r}"
            )
        if slice_ in found:
            raise UsageError(f"--{name}: {slice_} is given twice; give it once")
        found[slice_] = SliceFile(dataset=dataset, language=language, path=here / path)
    return tuple(found.values())
