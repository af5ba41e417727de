"""What the linter knows of languages: alphabets and frequent words, read from YAML once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import cast

from evaluators.reading import load_yaml

FILE = Path(__file__).parent / "languages.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Respelling:
    """Another orthography of a language: how to notice it, its name, and what to do."""

    pattern: re.Pattern[str]
    name: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """One language. ``letters`` is its alphabet in small letters, empty where any may stand.

    ``strict`` says that even names are written in these letters; every long text has at least
    one letter of ``expected``, where there are any; ``stops`` are frequent words.
    """

    code: str
    script: str
    letters: frozenset[str]
    stops: frozenset[str]
    strict: bool = False
    expected: frozenset[str] = frozenset()
    respelling: Respelling | None = None


def language_of(code: str) -> Language | None:
    """Return what is known of a language; ``en-GB`` is ``en``, but ``be-tarask`` is not ``be``."""
    name, _, subtag = code.partition("-")
    return known().get(name if len(subtag) == 2 else code)


@cache
def known() -> Mapping[str, Language]:
    """Return every known language by its code."""
    data = cast("Mapping[str, Mapping[str, object]]", load_yaml(FILE))
    return {code: _language(code, entry) for code, entry in data.items()}


def _language(code: str, entry: Mapping[str, object]) -> Language:
    return Language(
        code=code,
        script=str(entry["script"]),
        letters=frozenset(str(entry["letters"])),
        stops=frozenset(str(entry["stops"]).split()),
        strict=entry.get("strict") == "true",
        expected=frozenset(str(entry.get("expected", ""))),
        respelling=_respelling(entry),
    )


def _respelling(entry: Mapping[str, object]) -> Respelling | None:
    if "respelt" not in entry:
        return None
    told = cast("Mapping[str, object]", entry["respelt"])
    patterns = cast("list[str]", told["patterns"])
    pattern = re.compile("|".join(patterns), re.IGNORECASE)
    return Respelling(pattern=pattern, name=str(told["name"]), hint=str(told["hint"]))
