"""The words that verdicts are read by, from ``labels.yaml``: all languages at once."""

import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from evaluators.core import GRADES, UsageError
from evaluators.reading import Map, load_yaml

LABELS_FILE = Path(__file__).parents[1] / "labels.yaml"
_KINDS = (
    "markers",
    "colon_markers",
    "leads",
    "copulas",
    "blockers",
    "corrections",
    "hedges",
    "because",
    "conjunctions",
    "fields",
    "empty_answers",
)
_LOOK_ALIKES = str.maketrans("АВЕЅІЈКМНОРСТХΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABESIJKMHOPCTXABEZHIKMNOPTYX")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """Phrases as ``phrase_key`` writes them; ``letters`` and ``hints`` by the exact character."""

    labels: Mapping[str, str]
    letters: Mapping[str, str]
    hints: Mapping[str, str]
    markers: frozenset[str]
    colon_markers: frozenset[str]
    leads: frozenset[str]
    copulas: frozenset[str]
    blockers: frozenset[str]
    corrections: frozenset[str]
    hedges: frozenset[str]
    because: frozenset[str]
    conjunctions: frozenset[str]
    fields: frozenset[str]
    empty_answers: frozenset[str]


@lru_cache(4096)
def word_key(word: str) -> str:
    """Return a word in capitals, with Cyrillic and Greek look-alikes of Latin capitals as Latin.

    Labels are four letters or longer, so that one that a model wrote with a letter of the wrong
    script still has one reading; single letters are never read by this key.
    """
    return unicodedata.normalize("NFC", word).upper().translate(_LOOK_ALIKES)


def phrase_key(words: Iterable[str]) -> str:
    """Return the key of several words, however they were joined."""
    return " ".join(word_key(word) for word in words)


@cache
def lexicon() -> Lexicon:
    """Return the words of all languages. Raises UsageError for a wrong file."""
    return read_lexicon(LABELS_FILE)


def read_lexicon(path: Path) -> Lexicon:
    """Return the words of a labels file; a label may not stand for two grades."""
    data = load_yaml(path)
    if not isinstance(data, Map) or not {"letters", "hints"} <= data.keys():
        msg = f"{path}:1: want a mapping with 'letters', 'hints' and one key a language"
        raise UsageError(msg)
    languages = [data[key] for key in data if key not in ("letters", "hints")]
    return Lexicon(
        labels=_by_grade(path, languages, folded),
        letters=_by_grade(path, [data["letters"]], str),
        hints=_by_grade(path, [data["hints"]], str),
        **{kind: frozenset(map(folded, _words(path, languages, kind))) for kind in _KINDS},
    )


def folded(entry: str) -> str:
    """Return the phrase key of a text, whatever stands between its words."""
    spaced = (character if character.isalnum() else " " for character in entry)
    return phrase_key("".join(spaced).split())


def _words(path: Path, blocks: Iterable[object], kind: str) -> Iterator[str]:
    for block in blocks:
        words = block.get(kind, []) if isinstance(block, Map) else None
        if not isinstance(words, list):
            msg = f"{path}: key {kind!r}: want a list of words in each block, got {words!r:.60}"
            raise UsageError(msg)
        yield from map(str, words)


def _by_grade(path: Path, blocks: list[object], key: Callable[[str], str]) -> Mapping[str, str]:
    table: dict[str, str] = {}
    for grade in GRADES:
        for word in _words(path, blocks, grade):
            if table.setdefault(key(word), grade) != grade:
                msg = f"{path}: {word!r} stands for {table[key(word)]} and for {grade}; keep one"
                raise UsageError(msg)
    return table
