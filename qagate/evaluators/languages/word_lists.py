"""What the judge knows of a language: its words from YAML, and CLDR's data through babel."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar, cast

from qagate.evaluators.reading import Seq, load_settings, load_yaml, project_settings
from qagate.evaluators.text import shown, without_invisible

FOLDER = Path(__file__).parent
LIMIT = 32_000
"""Characters of an answer that are read."""
_EXPANSION = 18  # characters that one can become in NFKC
_STACK = re.compile(r"[^\w\s\x00-\x7f]{32,}")
_MARKS = re.compile("[\u0300-\u036f]")
_APOSTROPHE = re.compile(r"(?<=\w)'s\b|(?<=\w)'(?=\w)")
_CAMEL = re.compile(r"(?<=[a-z]{2})(?=[A-Z][a-z])")
VOWELS = frozenset("aeiouy")
_WORD = re.compile(
    r"([\u3040-\u30ff\u3400-\u9fff]|[^\W\d_\u3040-\u30ff\u3400-\u9fff]+|\d+)"
)


class Text(NamedTuple):
    """A folded text as words and what stands between them."""

    words: tuple[str, ...]
    """Runs of letters and runs of digits; a Chinese or Japanese character is a word."""
    gaps: tuple[str, ...]
    """``gaps[i]`` is before ``words[i]``; there is one gap more than words."""


def within_limit(text: str) -> str:
    """Return the beginning of a text that is read: at most 32,000 characters, in NFKC too."""
    cut = text[:LIMIT]
    grown = not cut.isascii() and len(unicodedata.normalize("NFKC", cut)) > LIMIT
    return cut[: LIMIT // _EXPANSION] if grown else cut


def _compatible(text: str) -> str:
    """Return the text in compatibility form (NFKC), without case and invisible characters."""
    # Normalising sorts the marks on one letter in quadratic time: towers of them are cut.
    short = _STACK.sub(lambda tower: tower[0][:32], without_invisible(text))
    return unicodedata.normalize("NFKC", short).casefold()


def plain(text: str) -> str:
    """Return the text in compatibility form without case, outer marks and doubled spaces."""
    return " ".join(_compatible(text).split()).strip(" .,;:!?\"'*`“”„«»")


def fold(text: str) -> str:
    """Return the text as answers are compared: no case, no diacritics, Cyrillic in Latin letters.

    An apostrophe inside a word goes, a final ``'s`` as a whole; ``camelCase`` becomes two words.
    """
    text = _CAMEL.sub(" ", text)
    if not text.isascii():
        in_latin = _compatible(text).translate(_letters())
        text = _MARKS.sub("", unicodedata.normalize("NFKD", in_latin))
    return _APOSTROPHE.sub("", text.casefold())


def read(text: str) -> Text:
    """Return the folded text with its words."""
    parts = _WORD.split(fold(text))
    return Text(tuple(parts[1::2]), tuple(parts[0::2]))


def without(text: Text, dropped: frozenset[str]) -> Text:
    """Return the text without these words; unchanged if none would be left.

    A word stays where it is part of something longer, as in "A." or "3a". The gaps before and
    after a word that goes become one.
    """
    words: list[str] = []
    gaps = [text.gaps[0]]
    for word, gap_after in zip(text.words, text.gaps[1:], strict=True):
        gap_before = gaps[-1]
        is_marked = gap_after.startswith((".", "-", "+"))  # "A."
        is_glued = bool(words) and not gap_before  # "3a"
        if word in dropped and not is_marked and not is_glued:
            gaps[-1] = gap_before + gap_after
        else:
            words.append(word)
            gaps.append(gap_after)
    if not words:
        return text
    return Text(tuple(words), tuple(gaps))


@cache
def sound(word: str) -> str:
    """Return a folded word without spelling habits and inner vowels, as two scripts may share."""
    if word[:1] == "u" and word[1:2] in VOWELS:
        word = "v" + word[1:]
    for spelling, spoken in table("letters")["sounds"].items():
        word = word.replace(spelling, spoken)
    first = "a" if word[:1] in VOWELS else word[:1]
    rest = "".join(letter for letter in word[1:] if letter not in VOWELS)
    return re.sub(r"(.)\1+", r"\1", first + rest)


@cache
def table(name: str) -> Mapping[str, Any]:
    """Return one of this folder's YAML files."""
    return cast("Mapping[str, Any]", load_yaml(FOLDER / f"{name}.yaml"))


@cache
def _letters() -> dict[int, str]:
    """Return what letters become: ł is l, ж is zh; each kind of apostrophe is the ASCII one."""
    letters = table("letters")
    apostrophes = dict.fromkeys(letters["apostrophes"], "'")
    return str.maketrans({**apostrophes, **letters["latin"], **letters["cyrillic"]})


Value = TypeVar("Value")
Locale = Mapping[str, Any]  # CLDR's data of a language
WordFile = Mapping[str, Any]
"""A word list: words in one text, phrases in a list, numbers in a table, each under its key."""

_BASE = "en"  # models answer in English to questions in any language
_FAMILY_FIRST = frozenset({"hu", "ja", "ko", "vi", "zh"})
_UNITS = re.compile(
    "(area|digital|duration|energy|frequency|length|mass|power|speed|temperature|volume)-"
    "|concentr-perc|angle-degree"
)
_LETTERS = frozenset(
    "mgtlwv"
)  # letters that are units: metre, gram, tonne, litre, watt, volt
_LIGHT = ("contrasts", "joiners", "function", "alternatives")
_INFLECTED = 4  # letters from which a word may take an ending
_ENDING = 6  # letters of an ending


class Phrases:
    """Word sequences to look for, by first word, so that a search is one walk."""

    def __init__(self, phrases: Iterable[str]) -> None:
        self._by_first: dict[str, list[tuple[str, ...]]] = {}
        for words in filter(None, (read(phrase).words for phrase in phrases)):
            self._by_first.setdefault(words[0], []).append(words)

    def spans(self, words: tuple[str, ...]) -> Iterator[tuple[int, int]]:
        """Yield where the phrases are, in order: first word, and the place after the last."""
        for index, word in enumerate(words):
            for phrase in self._by_first.get(word, ()):
                if words[index : index + len(phrase)] == phrase:
                    yield index, index + len(phrase)


class Inflected(Generic[Value]):
    """Words with a value each, found in every form that the endings of a language make."""

    def __init__(self, values: Mapping[str, Value], endings: frozenset[str]) -> None:
        self._values, self._endings = values, endings
        long = {
            word: value for word, value in values.items() if len(word) >= _INFLECTED
        }
        bare = {word[:-1]: value for word, value in long.items() if word[-1] in VOWELS}
        self._stems = {**bare, **long}

    def get(self, word: str) -> Value | None:
        """Return the value of a folded word; None for one that is not known."""
        if (value := self._values.get(word)) is not None:
            return value
        for cut in range(len(word) - 1, max(_INFLECTED, len(word) - _ENDING) - 1, -1):
            if word[cut:] in self._endings and word[:cut] in self._stems:
                return self._stems[word[:cut]]
        return None

    def __contains__(self, word: str) -> bool:
        return self.get(word) is not None


class Tables:
    """A language's words, with English behind them; lists by their key in the YAML files.

    A list comes from up to three files: the user's own, the bundled one of the language, and the
    English one, which alone is sure to have all keys.
    """

    def __init__(self, language: str, own: Path | None = None) -> None:
        codes = list(dict.fromkeys([language, _BASE]))
        files = _files(codes, own)
        *files_of_language, english = files
        locales = _locales(codes)
        light_words = _words_under(_LIGHT, files_of_language)

        self.words: dict[str, frozenset[str]] = {}
        for key, value in english.items():
            if isinstance(value, str):
                self.words[key] = _words_under([key], files)
        # The English article "a" is "and" in Czech and Polish, and Bulgarian "а" folds to it.
        of_language = _words_under(["articles"], files_of_language)
        self.words["articles"] -= light_words - of_language
        self.words["idle"] = (
            self.words["function"] | self.words["openers"] | self.words["contrasts"]
        )
        self.endings = self.words["endings"] | {""}

        phrases: dict[str, Phrases] = {}
        for key, value in english.items():
            if not isinstance(value, list):
                continue
            texts = _phrases_under(key, files_of_language)
            for phrase in value:
                # Bulgarian "но" (but) folds to "no", and denies nothing.
                if not light_words.issuperset(_words(phrase)):
                    texts.append(phrase)
            phrases[key] = Phrases(texts)
        self.phrases: Mapping[str, Phrases] = phrases

        self.family_first = language in _FAMILY_FIRST
        """Whether the family name comes before the given ones."""
        self.decimal = str(locales[0]["number_symbols"]["latn"]["decimal"])
        """The decimal mark of the language, of English for one that CLDR does not know."""
        self.countries = _countries(locales[0])
        """The names of all countries in the language, as folded words."""

        small = self.words["function"] | self.words["articles"] | self.words["joiners"]
        self.months = Inflected(_months(locales, small), self.endings)
        self.weekdays = Inflected(_weekdays(locales), self.endings)
        self.numbers = Inflected(_numbers(files, small), self.endings)
        self.scales = Inflected(_scales(locales), self.endings)
        """Words that multiply what is before them: thousand, mln."""
        self.units = Inflected(_units(locales, small), self.endings)
        """Unit words with CLDR's name of the unit: "km" is length-kilometer."""

    def any_of(self, key: str, words: Iterable[str]) -> bool:
        """Return whether one of the words is in a list."""
        return not self.words[key].isdisjoint(words)


@cache
def _words(text: str) -> tuple[str, ...]:
    return read(text).words  # English stands behind every language


def _files(codes: Sequence[str], own: Path | None) -> list[WordFile]:
    """Return the word lists of these languages, behind the user's own file."""
    files = []
    if own is not None:
        files.append(_own_file(own))
    for code in codes:
        if Path(FOLDER, f"{code}.yaml").is_file():
            files.append(table(code))
    return files


def _words_under(keys: Iterable[str], files: Iterable[WordFile]) -> frozenset[str]:
    """Return the folded words that stand under any of the keys in any of the files."""
    words: set[str] = set()
    for file in files:
        for key in keys:
            words.update(fold(file.get(key, "")).split())
    return frozenset(words)


def _phrases_under(key: str, files: Iterable[WordFile]) -> list[str]:
    phrases: list[str] = []
    for file in files:
        phrases += file.get(key, [])
    return phrases


def _numbers(files: Sequence[WordFile], small: frozenset[str]) -> dict[str, int]:
    """Return number words, or what they begin with, with their numbers."""
    numbers: dict[str, int] = {}
    for file in reversed(files):  # where two files have a word, the earlier one counts
        for number, words in file.get("numbers", {}).items():
            for word in words.split():
                numbers[fold(word)] = int(number)
    return {word: number for word, number in numbers.items() if word not in small}


def _locales(codes: Iterable[str]) -> list[Locale]:
    """Return CLDR's data of those languages that it knows."""
    locales = []
    for code in codes:
        locale = _locale(code)
        if locale is not None:
            locales.append(locale)
    return locales


def _countries(locale: Locale) -> frozenset[tuple[str, ...]]:
    names = set()
    for code, name in locale["territories"].items():
        if code.isalpha():  # 150, in digits, is Europe
            names.add(_words(name))
    return frozenset(names)


def _weekdays(locales: Iterable[Locale]) -> dict[str, bool]:
    weekdays = {}
    for locale in locales:
        for name in locale["days"]["format"]["wide"].values():
            weekdays["".join(_words(name))] = True
    return weekdays


def _months(locales: Sequence[Locale], small: frozenset[str]) -> dict[str, int]:
    names: dict[str, int] = {}
    widths, contexts = ("abbreviated", "wide"), ("stand-alone", "format")
    for locale, width, context in product(reversed(locales), widths, contexts):
        for number, name in locale["months"].get(context, {}).get(width, {}).items():
            word = "".join(_words(name))
            if (
                len(word) > 2
                and not word.isdecimal()
                and (width == "wide" or word not in small)
            ):
                names[word] = number
    return names


def _scales(locales: Sequence[Locale]) -> dict[str, int]:
    scales: dict[str, int] = {}
    for locale, width in product(reversed(locales), ("short", "long")):
        for rows in locale["compact_decimal_formats"].get(width, {}).values():
            for power, pattern in rows.items():
                word = "".join(_words(pattern.pattern.strip("0")))
                scales[word] = int(power) // 10 ** (pattern.pattern.count("0") - 1)
    return {word: value for word, value in scales.items() if word and value > 1}


def _units(locales: Sequence[Locale], small: frozenset[str]) -> dict[str, str]:
    units: dict[str, str] = {}
    british = _locale("en-GB") or {}  # metres, per cent
    rows = (row for one in (*locales, british) for row in one["unit_patterns"].items())
    for (name, widths), width in product(rows, ("short", "long")):
        for plural, pattern in (
            widths.get(width, {}).items() if _UNITS.match(name) else ()
        ):
            words = " ".join(_words(pattern.replace("{0}", "")))
            known = (
                words and words not in small and (len(words) > 1 or words in _LETTERS)
            )
            if known and plural != "per":
                units.setdefault(
                    words, name
                )  # "m" is a metre before it is a solar mass
    return units


def has_tables(language: str) -> bool:
    """Return whether there is a word list of this very language."""
    return (
        language in _own_paths(Path.cwd()) or Path(FOLDER, f"{language}.yaml").is_file()
    )


def tables(language: str) -> Tables:
    """Return what is known of a language; of one that is not known, what English gives."""
    return _tables(language, _own_paths(Path.cwd()).get(language))


_tables = cache(Tables)


def own_files() -> Mapping[str, Path]:
    """Return the files in the folder ``[tool.qagate] words`` by language. Raises UsageError."""
    found = _own_paths(Path.cwd())
    list(map(_own_file, found.values()))
    return found


@cache
def _own_paths(here: Path) -> Mapping[str, Path]:
    settings = project_settings(here)
    if not (name := settings.text("words")):
        return {}
    if not (folder := settings.path.parent / name).is_dir():
        what = f"no folder {folder}; it holds a file for each language, such as de.yaml"
        raise settings.problem("words", what)
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


@cache
def _own_file(path: Path) -> Mapping[str, Any]:
    """Return a word list with keys and values as in ``en.yaml``. Raises UsageError."""
    settings, base = load_settings(path), table(_BASE)
    settings.check_keys(base)
    wanted = {
        "str": "words in one text",
        "Seq": "a list of phrases",
        "Map": "a table of numbers",
    }
    for key, value in settings.values.items():
        if not isinstance(value, kind := type(base[key])):
            raise settings.problem(
                key, f"want {wanted[kind.__name__]}, got {shown(value)}"
            )
        if isinstance(value, Seq):
            settings.words(key)
    for number in (numbers := settings.part("numbers")).values:
        numbers.text(number)
        if not number.isdecimal():
            raise numbers.problem(number, "want a number in digits")
    return settings.values


def _locale(language: str) -> Locale | None:
    from babel.localedata import LocaleDataDict, exists, load  # noqa: PLC0415  # 30 ms

    name = language.replace("-", "_")
    return LocaleDataDict(cast("Any", load(name))) if exists(name) else None
