"""Paragraphs of an article: stripped of markup, cleaned, bounded, and checked for their language.

Also how texts are compared for being nearly the same, by rapidfuzz.
"""

import contextlib
import re
import unicodedata
from collections.abc import Iterator, Sequence

from rapidfuzz import fuzz, process, utils

from cases.builder.recipe import ParagraphRules, SpellingRules
from cases.check.alphabets import Language, has, known, language_of, words
from evaluators.core import UsageError
from evaluators.text import sendable, without_invisible

Fault = tuple[str, str]
"""Why a text is refused: the reason that is counted, and a detail."""

FEW = 40  # letters of a text; in a shorter one the absence of a letter says nothing
CLEAR = 2  # by how many frequent words another language must lead

_BREAK = re.compile(r"\n[^\S\n]*\n")
_SPACE = re.compile(r"\s+")
_NOTE = re.compile(r"\[(?:\d{1,3}|[a-zа-я]|[^\W\d_]{1,12}\.? ?\d{1,3})\]")
_HOLLOW = re.compile(r" ?\([ ,;:.–—-]*\)")  # after _SPACE: longer runs would be tried anew and anew
_BEFORE_MARK = re.compile(r" ([,.;:!?…])")
_STRESS = re.compile("[\u0300\u0301]")
# A sentence ends with its mark, and perhaps a closing quotation mark, where a capital or a quote
# follows; initials ("А. Міцкевіч") and abbreviations of one or two letters ("г.") do not end one.
_END = re.compile(
    r"(?:(?<=[.!?…])(?<!\b[^\W\d_]\.)(?<!\b[^\W\d_]{2}\.)|(?<=[.!?…][»”\")]))"
    r"\s+(?=[«„“\"(—–]*\s?[^\W\d_])(?![^\W\d_A-ZА-ЯЁІЎ])"
)
# Tags whose content is no prose of the article.
_TAGS = frozenset(
    {
        *("ref", "references", "gallery", "math", "chem", "table", "timeline", "score", "graph"),
        *("syntaxhighlight", "source", "code", "imagemap", "poem", "nowiki", "pre", "hiero"),
        *("templatestyles", "section", "mapframe", "noinclude", "includeonly"),
    }
)
# Lists, indents, headings, and what is left of tables and templates that are never closed.
_NO_PROSE = re.compile(r"\s*(?:[*#:;=|!{}]|----)")
_LINK = re.compile(r"\[\[|\]\]|\{\{|\}\}|</?[a-z]|__[^\W\d_]+__", re.IGNORECASE)


def plain_paragraphs(text: str) -> Iterator[str]:
    """Yield the cleaned paragraphs of a plain text.

    They are set apart by empty lines; in a text without empty lines each line is one.
    """
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    for part in _BREAK.split(lines) if _BREAK.search(lines.strip()) else lines.split("\n"):
        if cleaned := clean(part):
            yield cleaned


def clean(text: str) -> str:
    """Return a text on one line: composed, without invisible marks, stress marks and footnotes.

    What a removed template left behind, such as empty brackets, goes too.
    """
    composed = _STRESS.sub("", unicodedata.normalize("NFC", without_invisible(sendable(text))))
    bare = _HOLLOW.sub("", _SPACE.sub(" ", _NOTE.sub("", composed)))
    return _BEFORE_MARK.sub(r"\1", _SPACE.sub(" ", bare)).strip()


def sentences(paragraph: str) -> list[str]:
    """Return the sentences of a cleaned paragraph."""
    return _END.split(paragraph)


def bounded(paragraph: str, rules: ParagraphRules) -> str | None:
    """Return a paragraph within the bounds: its first whole sentences where it is too long.

    None where it is too short, has too few sentences, or does not end as a sentence does.
    """
    kept, count = "", 0
    for sentence in sentences(paragraph):
        longer = f"{kept} {sentence}".lstrip()
        if len(longer) > rules.longest:
            break
        kept, count = longer, count + 1
    ended = re.search(r"[.!?…][»”\")]?\Z", kept)
    if len(kept) < rules.shortest or count < rules.sentences or not ended:
        return None
    return kept


def wiki_paragraphs(text: str, media: tuple[str, ...]) -> Iterator[str]:
    """Yield the cleaned paragraphs of an article's markup: what a reader sees as running text.

    ``media`` are the prefixes, in small letters, of links that show something or sort the page.
    """
    import mwparserfromhell  # noqa: PLC0415  # of the extra `builder`

    code = mwparserfromhell.parse(text)
    unwanted = [
        *code.filter_templates(),
        *code.filter_comments(),
        *code.filter_headings(),
        *code.filter_tags(matches=lambda tag: str(tag.tag).lower() in _TAGS),
        *code.filter_wikilinks(matches=lambda link: _has_prefix(str(link.title), media)),
    ]
    for node in unwanted:
        with contextlib.suppress(ValueError):  # it went with what it stood in
            code.remove(node)
    for block in re.split(r"\n\s*\n", str(code)):
        lines = [line for line in block.split("\n") if not _NO_PROSE.match(line)]
        cleaned = clean(mwparserfromhell.parse("\n".join(lines)).strip_code())
        # What the parser could not make sense of is not running text.
        if cleaned and not _LINK.search(cleaned):
            yield cleaned


def _has_prefix(title: str, prefixes: tuple[str, ...]) -> bool:
    prefix, colon, _ = title.partition(":")
    return bool(colon) and prefix.strip().casefold() in prefixes


def known_language(code: str) -> Language:
    """Return what is known of a language. Raises UsageError where nothing is."""
    found = language_of(code)
    if found is None:
        raise UsageError(
            f"language {code!r}: add its alphabet and frequent words to cases/check/languages.yaml"
        )
    return found


def language_fault(text: str, language: Language, rules: SpellingRules) -> Fault | None:
    """Return the reason and detail why a text is refused, None where it is fine.

    Reasons: ``script``, ``letters``, ``language``, ``spelling``.
    """
    letters = [letter for letter in text.casefold() if letter.isalpha()]
    if not letters:
        return "script", "no letters"
    other = [letter for letter in letters if not has(language.script, letter)]
    if len(other) > rules.other_script * len(letters):
        return "script", f"{len(other)} of {len(letters)} letters are not {language.script}"
    found = words(text)
    if detail := _wrong_letters(letters, language, rules):
        return "letters", detail
    if detail := _other_language([word.casefold() for word in found], language):
        return "language", detail
    patterns = [rules.also, language.respelling and language.respelling.pattern]
    hits = [word for word in found if any(one and one.search(word) for one in patterns)]
    if len(hits) > rules.respelt * len(found):
        name = language.respelling.name if language.respelling else "another spelling"
        return "spelling", f"{name}: {', '.join(hits[:5])}"
    return None


def _wrong_letters(letters: list[str], language: Language, rules: SpellingRules) -> str:
    own = language.letters
    foreign = [one for one in letters if own and one not in own and has(language.script, one)]
    if len(foreign) > rules.foreign * len(letters):
        return f"letters of another language: {' '.join(sorted(set(foreign)))}"
    expected = sum(letter in language.expected for letter in letters)
    if len(letters) >= FEW and expected < rules.expected * len(letters):
        return f"too few of {' '.join(sorted(language.expected))}"
    return ""


def _other_language(found: Sequence[str], own: Language) -> str:
    """Compare, for each other language, the frequent words that only one of the two has."""
    counts = {
        code: (
            sum(word in own.stops and word not in other.stops for word in found),
            sum(word in other.stops and word not in own.stops for word in found),
        )
        for code, other in sorted(known().items())
    }
    code = max(counts, key=lambda one: counts[one][1] - counts[one][0])
    mine, theirs = counts[code]
    if theirs < mine + CLEAR:
        return ""
    return f"{theirs} frequent words of {code!r} alone, {mine} of {own.code!r}"


def nearest(text: str, others: Sequence[str], least: float) -> int | None:
    """Return the index of the most similar of some texts, None where all are below ``least``.

    ``least`` is a percentage: 100 minus the share of letters and places to be inserted or deleted
    (normalised Indel similarity). Letter case and punctuation do not count.
    """
    found = process.extractOne(text, others, scorer=fuzz.ratio, score_cutoff=least)
    return None if found is None else int(found[2])


def comparable(text: str) -> str:
    """Return a text in the form in which texts are compared: no case, no punctuation."""
    return " ".join(utils.default_process(text).split())


def contained(text: str, longer: str) -> float:
    """Return how much of a text is in a longer one in one piece, in percent."""
    return float(fuzz.partial_ratio(text, longer)) if len(text) <= len(longer) else 0.0
