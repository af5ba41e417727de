"""What the judge knows of each language: word lists and phrases, read from YAML once."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from typing import cast

from evaluators.judges.lexical.folding import FOLDER, fold, read
from evaluators.strict_yaml import load

_BASE = "en"  # models answer in English to questions in any language
_PHRASES = (
    "refusals unsure hedges more less excluding inclusive orders year_questions reversals choices"
    " concessions dismissals one_side other_side provisional turns mistakes weighing"
)


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
        """Yield where phrases stand, in order: the first word, and the place after the last."""
        for index, word in enumerate(words):
            for phrase in self._by_first.get(word, ()):
                if words[index : index + len(phrase)] == phrase:
                    yield index, index + len(phrase)


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """A unit: its kind, and (value + shift) * factor in the base unit of that kind."""

    kind: str
    factor: float
    shift: float


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The joined data of a language and English."""

    data: tuple[Mapping[str, object], ...]

    def words(self, key: str) -> frozenset[str]:
        """Return the folded words of a list, empty where no language has it."""
        return self._words[key]

    def phrases(self, key: str) -> Phrases:
        """Return the phrases of a list, ready for search."""
        return self._phrases[key]

    @cached_property
    def _words(self) -> dict[str, frozenset[str]]:
        keys = {key for data in self.data for key, value in data.items() if isinstance(value, str)}
        found = {key: frozenset(self._joined(key)) for key in keys}
        own = fold(cast("str", self.data[0]["joiners"])).split()  # an English article may be "and"
        return {**found, "articles": found["articles"].difference(own)}

    def _joined(self, key: str) -> Iterable[str]:
        for data in self.data:
            yield from fold(cast("str", data.get(key, ""))).split()

    @cached_property
    def _phrases(self) -> dict[str, Phrases]:
        return {
            key: Phrases(p for data in self.data for p in cast("list[str]", data.get(key, [])))
            for key in _PHRASES.split()
        }

    @cached_property
    def endings(self) -> frozenset[str]:
        """What may differ at the end of two forms of one word, nothing included."""
        return self.words("endings") | {""}

    @cached_property
    def decimal(self) -> str:
        """The decimal mark of the language itself."""
        return cast("str", self.data[0].get("decimal", "."))

    @property
    def family_first(self) -> bool:
        """Whether the family name stands before the given ones."""
        return bool(self.data[0].get("family_first"))

    @cached_property
    def numbers(self) -> Mapping[str, float]:
        """Number words below the scales."""
        return self._figures("numbers")

    @cached_property
    def scales(self) -> Mapping[str, float]:
        """Words that multiply what stands before them."""
        return self._figures("scales")

    @cached_property
    def days(self) -> Mapping[str, float]:
        """Days of a month in words: ordinals."""
        return self._figures("days")

    def _figures(self, key: str) -> dict[str, float]:
        tables = (cast("Mapping[str, str]", data.get(key, {})) for data in self.data)
        return {fold(word): float(value) for table in tables for word, value in table.items()}

    @cached_property
    def months(self) -> Mapping[str, int]:
        """Month names with their number, inflected forms included."""
        found: dict[str, int] = {}
        for data in self.data:
            rows = cast("list[str]", data.get("months", []))
            for number, row in enumerate(rows, start=1):
                for name in fold(row).split():
                    found |= dict.fromkeys((name + end for end in self._month_ends(name)), number)
        return found

    def _month_ends(self, name: str) -> frozenset[str]:
        return self.endings if len(name) > 4 else frozenset({""})

    @cached_property
    def nicknames(self) -> Mapping[str, frozenset[str]]:
        """Given names with their short and full forms."""
        found: dict[str, frozenset[str]] = {}
        for row in cast("Mapping[str, list[str]]", load(FOLDER / "nicknames.yaml"))["nicknames"]:
            forms = frozenset(fold(row).split())
            found |= {form: found.get(form, frozenset()) | forms for form in forms}
        return found

    @cached_property
    def units(self) -> Mapping[str, str]:
        """Unit words with the first form of their row; rows that share a word are one unit."""
        found: dict[str, str] = {}
        for data in self.data:
            for row in cast("list[str]", data.get("units", [])):
                forms = fold(row).split()
                first = next((found[form] for form in forms if form in found), forms[0])
                found = dict.fromkeys(forms, first) | found  # "Ft" is money in Hungarian
        return found

    @cached_property
    def measures(self) -> Mapping[str, Measure]:
        """The units that can be turned into each other."""
        data = cast("Mapping[str, Mapping[str, str]]", load(FOLDER / "measures.yaml"))
        found = {}
        for kind, rows in data.items():
            for word, line in rows.items():
                factor, shift = [*map(float, line.split()), 0.0][:2]
                if word in self.units:
                    found[self.units[word]] = Measure(kind=kind, factor=factor, shift=shift)
        return found


@cache
def tables(language: str) -> Tables:
    """Return a language's data with English behind it; a language without a file has them all."""
    known = sorted(path.stem for path in FOLDER.glob("??.yaml"))
    chosen = [language] if language in known else known
    names = dict.fromkeys([*chosen, _BASE])
    return Tables(data=tuple(_data(name) for name in names))


@cache
def _data(language: str) -> Mapping[str, object]:
    return cast("Mapping[str, object]", load(FOLDER / f"{language}.yaml"))
