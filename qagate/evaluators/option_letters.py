"""The letters of options: which stand in a language, and which place each has."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import cast

from qagate.evaluators.reading import load_yaml

FILE = Path(__file__).with_name("option_letters.yaml")
MOST_OPTIONS = 10


def letters_of(language: str) -> str:
    """Return the ten letters under which options are shown in a language, in their order."""
    alphabets = _alphabets()
    return alphabets.get(language, alphabets[""])


def place_of(letter: str) -> int | None:
    """Return the place of an option's capital letter, from 0; None for any other text."""
    if len(letter) != 1:
        return None
    for alphabet in _alphabets().values():
        if letter in alphabet:
            return alphabet.index(letter)
    return None


@cache
def _alphabets() -> Mapping[str, str]:
    """Return the alphabets by language, the Latin one without a name."""
    data = cast("Mapping[str, str]", load_yaml(FILE))
    languages = cast("Mapping[str, str]", data["languages"])
    return {"": data["latin"], **languages}
