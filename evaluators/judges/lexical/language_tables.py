"""What the judge knows of each language: word lists and phrases, read from YAML once."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, cast

from evaluators.judges.lexical.folding import FOLDER, fold, read
from evaluators.reading import load_yaml

_BASE = "en"  # models answer in English to questions in any language
_DAYS = 31  # ordinals up to it are days of a month
_ROWS = ("months", "units", "evasions")  # lists of rows of words; all other lists are phrases


class Phrases:
    """Word sequences to look for, by first word, so that a search is one walk."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self._by_first: dict[str, list[tuple[str, ...]]] = {}
        for phrase in phrases:
            words = read(phrase).words
            self._by_first.setdefault(words[0], []).append(words)

    def find(self, words: tuple[str, ...]) -> int | None:
        """Return the index of the first word of the first phrase found, or None."""
        return next((start for start, _ in self.spans(words)), None)

    def spans(self, words: tuple[str, ...]) -> Iterator[tuple[int, int]]:
        """Yield where the phrases are, in order: first word, and the place after the last."""
        for index, word in enumerate(words):
            for phrase in self._by_first.get(word, ()):
                if words[index : index + len(phrase)] == phrase:
                    yield index, index + len(phrase)

    def places(self, words: tuple[str, ...]) -> set[int]:
        """Return the places of all words that are part of a phrase."""
        return {place for span in self.spans(words) for place in range(*span)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """A unit of a kind such as length: (value + shift) * factor is in that kind's base unit."""

    kind: str
    factor: float
    shift: float


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The data of a language joined with that of English."""

    data: tuple[Mapping[str, Any], ...]

    def words(self, key: str) -> frozenset[str]:
        """Return the folded words of a list."""
        return self._words[key]

    def any_of(self, key: str, words: Iterable[str]) -> bool:
        """Say whether one of the words is in a list."""
        return not self._words[key].isdisjoint(words)

    def phrases(self, key: str) -> Phrases:
        """Return the phrases of a list, ready for search."""
        return self._phrases[key]

    def has_phrase(self, key: str, words: tuple[str, ...]) -> bool:
        """Say whether a phrase of a list is among the words."""
        return self._phrases[key].find(words) is not None

    @cached_property
    def _words(self) -> dict[str, frozenset[str]]:
        keys = {key for data in self.data for key, value in data.items() if isinstance(value, str)}
        lists = {
            key: frozenset(word for data in self.data for word in fold(data.get(key, "")).split())
            for key in keys
        }
        joiners = fold(self.data[0]["joiners"]).split()
        return {**lists, "articles": lists["articles"].difference(joiners)}  # "a" is "and" in Czech

    @cached_property
    def _phrases(self) -> dict[str, Phrases]:
        keys = {key for data in self.data for key, value in data.items() if isinstance(value, list)}
        return {
            key: Phrases(phrase for data in self.data for phrase in data.get(key, []))
            for key in keys.difference(_ROWS)
        }

    @cached_property
    def evasions(self) -> tuple[tuple[frozenset[str], ...], ...]:
        """Rows of groups of words: a clause with a word of each group of a row declines."""
        rows = (row.split("+") for data in self.data for row in data.get("evasions", []))
        return tuple(tuple(frozenset(fold(group).split()) for group in row) for row in rows)

    @cached_property
    def first_person(self) -> frozenset[str]:
        """Words of the speaker for himself, in the language alone: "i" is "and" in others."""
        return frozenset(fold(self.data[0].get("first_person", "")).split())

    @cached_property
    def first_person_endings(self) -> tuple[str, ...]:
        """Endings of verbs that say the same, where the language has such."""
        return tuple(fold(self.data[0].get("first_person_endings", "")).split())

    @cached_property
    def endings(self) -> frozenset[str]:
        """What may differ at the end of two forms of one word, nothing included."""
        return self.words("endings") | {""}

    @cached_property
    def decimal(self) -> str:
        """The decimal mark of the language itself."""
        return str(self.data[0].get("decimal", "."))

    @property
    def family_first(self) -> bool:
        """Whether the family name comes before the given ones."""
        return bool(self.data[0].get("family_first"))

    @cached_property
    def numbers(self) -> Mapping[str, float]:
        """Number words below the scales, ordinals among them."""
        return {**self._figures("ordinals"), **self._figures("numbers")}

    @cached_property
    def scales(self) -> Mapping[str, float]:
        """Words that multiply what is before them."""
        return self._figures("scales")

    @cached_property
    def days(self) -> Mapping[str, float]:
        """Days of a month in words: ordinals."""
        return {word: day for word, day in self._figures("ordinals").items() if day <= _DAYS}

    @cached_property
    def decade_names(self) -> Mapping[str, float]:
        """Words for a decade, "nineties", with the first of its years in its century."""
        return self._figures("decade_names")

    @cached_property
    def number_parts(self) -> tuple[tuple[str, int], ...]:
        """Parts of number words that grow together, with their values; mostly none."""
        parts = self.data[0].get("number_parts", {})
        return tuple(
            (word, int(value)) for value, row in parts.items() for word in fold(row).split()
        )

    @cached_property
    def ordinals(self) -> frozenset[str]:
        """Number words that give a place in a row, and no count."""
        return frozenset(self._figures("ordinals")) - frozenset(self._figures("numbers"))

    def _figures(self, key: str) -> dict[str, float]:
        rows = [row for data in reversed(self.data) for row in data.get(key, {}).items()]
        return {word: float(value) for value, row in rows for word in fold(row).split()}

    @cached_property
    def months(self) -> Mapping[str, int]:
        """Month names with their number, inflected forms included."""
        numbers: dict[str, int] = {}
        for data in self.data:
            for number, row in enumerate(data.get("months", []), start=1):
                for name in fold(row).split():
                    endings = self.endings if len(name) > 4 else {""}
                    numbers |= dict.fromkeys((name + ending for ending in endings), number)
        return numbers

    @cached_property
    def nicknames(self) -> Mapping[str, frozenset[str]]:
        """Given names with their short and full forms."""
        names: dict[str, frozenset[str]] = {}
        data = cast("Mapping[str, list[str]]", load_yaml(FOLDER / "nicknames.yaml"))
        for row in data["nicknames"]:
            forms = frozenset(fold(row).split())
            names |= {form: names.get(form, frozenset()) | forms for form in forms}
        return names

    @cached_property
    def units(self) -> Mapping[str, str]:
        """Unit words with the first form of their row; rows that share a word are one unit."""
        units: dict[str, str] = {}
        for data in self.data:
            for row in data.get("units", []):
                forms = fold(row).split()
                first = next((units[form] for form in forms if form in units), forms[0])
                units = dict.fromkeys(forms, first) | units  # "Ft" is money in Hungarian
        return units

    @cached_property
    def conversions(self) -> Mapping[str, Conversion]:
        """The units that can be turned into each other."""
        data = cast("Mapping[str, Mapping[str, str]]", load_yaml(FOLDER / "measures.yaml"))
        conversions = {}
        for kind, rows in data.items():
            for word, line in rows.items():
                factor, shift = [*map(float, line.split()), 0.0][:2]
                if unit := self.units.get(word):
                    conversions[unit] = Conversion(kind=kind, factor=factor, shift=shift)
        return conversions


@cache
def _reasons() -> Mapping[str, Mapping[str, str]]:
    return cast("Mapping[str, Mapping[str, str]]", load_yaml(FOLDER / "reasons.yaml"))


def reason_in(language: str, reason: str) -> str:
    """Return a reason of the rules in a language; in English where it has no words for it."""
    return _reasons().get(reason, {}).get(language, reason)


@cache
def has_tables(language: str) -> bool:
    """Return whether there are word lists of this very language."""
    return (FOLDER / f"{language}.yaml").is_file()


@cache
def tables(language: str) -> Tables:
    """Return a language's data with English behind it; a language without a file has them all."""
    known = sorted(path.stem for path in FOLDER.glob("??.yaml"))
    names = dict.fromkeys([*([language] if has_tables(language) else known), _BASE])
    return Tables(data=tuple(_data(name) for name in names))


@cache
def _data(language: str) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", load_yaml(FOLDER / f"{language}.yaml"))
