"""Number words of several parts in figures: "ezernyolcszáznyolcvanhat" is 1886.

Only what figures make plainer is rewritten: words grown together, years, and numbers whose parts a
small word joins ("двайсет и пет"). All other number words are read where quantities are.
"""

import re
from dataclasses import replace
from functools import lru_cache

from evaluators.judges.lexical.folding import Text
from evaluators.judges.lexical.language_tables import Tables

_YEARS = range(1001, 2100)
_LONGEST = 8  # words of one number
_SHORTEST = 6  # letters of two number words grown together


def in_figures(text: Text, tables: Tables) -> Text:
    """Return the text with such number words in figures; all else stays as it is."""
    words: list[str] = []
    gaps = [text.gaps[0]]
    place = 0
    while place < len(text.words):
        end, figures = _read(text, place, tables)
        words.append(figures)
        gaps.append(text.gaps[end])
        place = end
    return replace(text, words=tuple(words), gaps=tuple(gaps))


def spoken(words: tuple[str, ...], tables: Tables) -> float:
    """Return the value of number words in a row: two hundred three thousand, and so on."""
    total = current = 0.0
    for word in words[:_LONGEST]:
        if word in tables.numbers:
            current += tables.numbers[word]
        elif word in tables.scales:
            if tables.scales[word] < 1000:
                current = max(current, 1.0) * tables.scales[word]
            else:
                total += max(current, 1.0) * tables.scales[word]
                current = 0.0
    return total + current


def continues(word: str, following: str, tables: Tables) -> bool:
    """Say whether a number word goes on in the next one, as in twenty-three or three hundred."""
    if following in tables.scales:
        return True
    value = tables.numbers.get(following)
    if value is None or word in tables.scales:
        return value is not None
    own = tables.numbers[word]
    return (own >= 100 > value) or (100 > own >= 20 > value)


def _read(text: Text, place: int, tables: Tables) -> tuple[int, str]:
    """Return where a number that begins here ends, and it in figures; else the word itself."""
    word = text.words[place]
    if word not in tables.numbers and word not in tables.scales:
        grown = _grown_together(word, tables) if tables.number_parts else None
        return place + 1, word if grown is None else str(grown)
    end, joined = place + 1, False
    while end < len(text.words) and end - place < _LONGEST:
        last = text.words[end - 1]
        step = 1
        if text.words[end] in tables.words("number_joiners") and end + 1 < len(text.words):
            step = 2
        following = text.words[end + step - 1]
        if any(gap.strip(" -") for gap in text.gaps[end : end + step]):
            break
        if not continues(last, following, tables) or (step > 1 and following in tables.scales):
            break
        joined, end = joined or step > 1, end + step
    value = spoken(text.words[place:end], tables)
    year = end - place > 1 and value in _YEARS and value % 1000
    return (end, str(int(value))) if year or joined else (place + 1, word)


def _grown_together(word: str, tables: Tables) -> int | None:
    return _compound(word, tables.number_parts, tables.endings) if len(word) >= _SHORTEST else None


@lru_cache(maxsize=4096)
def _compound(word: str, parts: tuple[tuple[str, int], ...], endings: frozenset[str]) -> int | None:
    """Return the value of number words grown into one, a case ending behind them or not."""
    met = _pattern(parts).match(word)
    if not met or word[met.end() :] not in endings:
        return None
    worths = dict(parts)
    pieces = re.findall("|".join(sorted(worths, key=len, reverse=True)), met[0])
    total = current = 0
    for worth in (worths[piece] for piece in pieces):
        if worth == 1000:
            total, current = total + max(current, 1) * worth, 0
        elif worth == 100:
            current = max(current, 1) * worth
        else:
            current += worth
    return total + current if len(pieces) > 1 else None


@lru_cache(maxsize=8)
def _pattern(parts: tuple[tuple[str, int], ...]) -> re.Pattern[str]:
    """Return the pattern of a number below a million: thousands, hundreds, tens, ones."""

    def one_of(low: int, high: int) -> str:
        names = [name for name, worth in parts if low <= worth < high]
        return "(?:" + "|".join(sorted(names, key=len, reverse=True)) + ")"

    ones, tens, hundred, thousand = (
        one_of(1, 10),
        one_of(10, 100),
        one_of(100, 101),
        one_of(1000, 1001),
    )
    below = f"(?:{ones}?{hundred})?{tens}?{ones}?"
    return re.compile(f"(?:(?:{below})?{thousand})?{below}")
