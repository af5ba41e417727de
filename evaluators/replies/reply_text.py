"""A reply's text without thoughts and markup, and the words that verdicts are read by.

The words are in ``labels.yaml``: all languages at once.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from string import ascii_uppercase

from evaluators.core import GRADES, UsageError
from evaluators.reading import Map, load_yaml
from evaluators.text import without_invisible

COMPLETE = frozenset(
    ("stop", "tool_calls", "tool_use", "function_call", "end_turn", "stop_sequence", "eos")
)
"""The finish words of a reply that nobody cut; whatever else a provider says leaves doubt."""
LABELS_FILE = Path(__file__).parents[1] / "labels.yaml"
_THOUGHTS = "think|thinking|thought|thoughts|reasoning|analysis|reflection|scratchpad"
_THOUGHT_TAG = re.compile(rf"(</?(?:{_THOUGHTS})>)", re.IGNORECASE)
_WIDE = re.compile("[\uff01-\uff5e\U0001d400-\U0001d7ff]+")
_LINE_END = re.compile("\r\n?|[\x0b\x0c\x1c-\x1e\x85\u2028\u2029]")
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,})[\w+-]*[ \t]*$", re.MULTILINE)
_CHAT_TOKEN = re.compile(r"<\|\w{1,30}\|>|</?s>")
_LATEX = re.compile(r"\\(?:boxed|text|textbf|mathrm|mathbf)\b")
_TAGS = "grade|verdict|evaluation|final|answer|output|label|result|b|i|em|strong|p|br|code|span|div"
_TAG = re.compile(rf"</?(?:{_TAGS}) ?/?>", re.IGNORECASE)
_WORD = re.compile(r"[^\W_]+|[✅✔✓☑❌✗✘]")
_JOINER = re.compile(r"[\s_\-\u2010\u2011]{1,4}")
_LONGEST_PHRASE = 6
_KINDS = (
    *("markers", "colon_markers", "leads", "copulas", "blockers", "corrections", "hedges"),
    *("because", "conjunctions", "fields", "empty_answers"),
)
_LOOK_ALIKES = str.maketrans("АВЕЅІЈКМНОРСТХΑΒΕΖΗΙΚΜΝΟΡΤΥΧ", "ABESIJKMHOPCTXABEZHIKMNOPTYX")


def spoken(text: str) -> str | None:
    """Return what is outside ``<think>`` blocks; None where a block is never closed.

    A closing tag without an opening one ends thoughts that began in the chat template.
    """
    depth = 0
    parts: list[str] = []
    for index, part in enumerate(_THOUGHT_TAG.split(text)):
        if index % 2 == 0:  # between the tags
            parts += [part] if depth == 0 else []
        elif not part.startswith("</"):
            depth += 1
        elif depth == 0:
            parts = []
        else:
            depth -= 1
    return None if depth else "".join(parts)


def plain(text: str) -> str:
    """Return a text without invisible marks, in plain width, composed, its lines ended alike."""
    text = without_invisible(text)
    text = _WIDE.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text)
    return _LINE_END.sub("\n", unicodedata.normalize("NFC", text))


def without_markup(text: str) -> str:
    """Return a text with fence lines emptied, and without tags, chat tokens and LaTeX frames.

    Emphasis and quotes stay: they may stand around a label, and a quoted verdict is not one.
    """
    text = _FENCE.sub("", _CHAT_TOKEN.sub("", text))
    return _TAG.sub(" ", _LATEX.sub("", text)).strip()


@dataclass(frozen=True, slots=True)
class Invalid:
    """Says in a few words why a reply is no verdict."""

    reason: str


def unfinished(finish: str) -> Invalid | None:
    """Return why a reply may be cut or filtered; None for a complete one."""
    return None if finish in COMPLETE else Invalid(f"the reply ended with {finish[:40]!r}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Lexicon:
    """Phrases as ``folded`` writes them; ``letters`` and ``hints`` by the exact character.

    ``exact`` are the labels as they are written, but for case.
    """

    exact: Mapping[str, str]
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


def folded(entry: str) -> str:
    """Return the phrase key of a text, whatever is between its words."""
    spaced = (character if character.isalnum() else " " for character in entry)
    return phrase_key("".join(spaced).split())


@cache
def lexicon(labels: tuple[str, ...] = GRADES) -> Lexicon:
    """Return the words of all languages, for verdicts with these labels.

    A label is read by its own words and by its letter, A for the first; the three grades by their
    words in every language too. Raises UsageError for a wrong file.
    """
    return read_lexicon(LABELS_FILE, labels)


def read_lexicon(path: Path, labels: tuple[str, ...] = GRADES) -> Lexicon:
    """Return the words of a labels file; one word may not mean two labels."""
    data = load_yaml(path)
    if not isinstance(data, Map) or not {"letters", "hints"} <= data.keys():
        raise UsageError(f"{path}:1: want a mapping with 'letters', 'hints' and one key a language")
    languages = [data[key] for key in data if key not in ("letters", "hints")]
    keys = Counter(map(folded, labels))
    names: dict[str, list[str]] = {}
    letters: dict[str, list[str]] = {}
    hints: dict[str, list[str]] = {}
    for place, label in enumerate(labels):
        letter, grade = ascii_uppercase[place], "".join(GRADES[place : place + 1])
        alone = [label] if keys[folded(label)] == 1 else []  # others differ from it in signs only
        names[label] = [*_words(path, languages, label)] if label in GRADES else alone
        own = [letter, letter.lower()]
        letters[label] = [*_words(path, [data["letters"]], grade)] if grade else own
        hints[label] = [*_words(path, [data["hints"]], label)] if label == grade else []
    return Lexicon(
        exact={label.casefold(): label for label in labels},
        labels=_by_label(path, names, folded),
        letters=_by_label(path, letters, str),
        hints=_by_label(path, hints, str),
        **{kind: frozenset(map(folded, _words(path, languages, kind))) for kind in _KINDS},
    )


def _words(path: Path, blocks: Iterable[object], kind: str) -> Iterator[str]:
    for block in blocks:
        words = block.get(kind, []) if isinstance(block, Map) else None
        if not isinstance(words, list):
            raise UsageError(
                f"{path}: key {kind!r}: want a list of words in each block, got {words!r:.60}"
            )
        yield from map(str, words)


def _by_label(
    path: Path, words: Mapping[str, list[str]], key: Callable[[str], str]
) -> Mapping[str, str]:
    table: dict[str, str] = {}
    for label in words:
        for word in words[label]:
            if table.setdefault(key(word), label) != label:
                raise UsageError(
                    f"{path}: {word!r} stands for {table[key(word)]} and for {label}; keep one"
                )
    return table


class Words:
    """A short text cut into words (letters and digits, ticks, crosses) and the gaps around them."""

    def __init__(self, text: str, lexicon: Lexicon) -> None:
        self.text, self.lexicon = text, lexicon
        self.found = [*_WORD.finditer(text)]

    def gap(self, index: int) -> str:
        """Return what is before word ``index``; after the last word for ``len(found)``."""
        start = self.found[index - 1].end() if index else 0
        end = self.found[index].start() if index < len(self.found) else len(self.text)
        return self.text[start:end]

    def phrase(self, index: int, table: Collection[str]) -> int:
        """Return how many words from ``index`` on are the table's longest phrase; 0 for none."""
        if index >= len(self.found):
            return 0
        count = 1
        while count < _LONGEST_PHRASE and index + count < len(self.found):
            if not _JOINER.fullmatch(self.gap(index + count)):
                break
            count += 1
        while count > 0 and self.key(index, count) not in table:
            count -= 1
        return count

    def key(self, index: int, count: int) -> str:
        """Return the phrase key of ``count`` words from ``index`` on."""
        return phrase_key(match[0] for match in self.found[index : index + count])

    def places(self, table: Collection[str]) -> Iterator[int]:
        """Yield the words with which a phrase of the table begins."""
        return (index for index in range(len(self.found)) if self.phrase(index, table))


LONGEST = 400
"""Characters: whatever is longer and holds a letter says something."""

_SEGMENT_END = re.compile(r"[.:;!?\n…*#_`\"|]+")


def blank(answer: str) -> bool:
    """Return whether an answer shows nothing at all: white space and invisible characters."""
    return not without_invisible(answer).strip()


def content_free(answer: str, golds: Iterable[str]) -> bool:
    """Return whether an answer is blank, only punctuation, or an empty announcement ("Solution:").

    Such replies have drawn a CORRECT from many judges (Zhao et al. 2025, "One Token to Fool
    LLM-as-a-Judge", arXiv 2507.08794). Where a gold form is such a text itself, only a blank
    answer counts.
    """
    if blank(answer):
        return True
    return _says_nothing(answer) and not any(_says_nothing(gold) for gold in golds)


def _says_nothing(text: str) -> bool:
    visible = without_invisible(text)
    if all(_is_punctuation(character) for character in visible):
        return True
    if len(visible) > LONGEST or any(map(_is_sign, visible)):
        return False
    segments = filter(None, map(folded, _SEGMENT_END.split(visible)))
    return all(segment in lexicon().empty_answers for segment in segments)


def _is_sign(character: str) -> bool:
    """Whether a character may be an answer by itself: ``∞``, an emoji."""
    return unicodedata.category(character) in ("So", "Sm", "Sc") and not character.isascii()


def _is_punctuation(character: str) -> bool:
    """Whether a character is punctuation, white space, or one of ASCII's signs."""
    if character.isascii():
        return not character.isalnum()
    return character.isspace() or unicodedata.category(character).startswith("P")
