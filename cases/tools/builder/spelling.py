"""Whether a text is in the language and spelling that the dataset is made in."""

from collections.abc import Sequence

from cases.tools.builder.recipe import SpellingRules
from cases.tools.check.languages import Language, known, language_of
from cases.tools.check.scripts import has, words
from evaluators.core import UsageError

FEW = 40  # letters of a text; in a shorter one the absence of a letter says nothing
CLEAR = 2  # by how many frequent words another language must lead


def known_language(code: str) -> Language:
    """Return what is known of a language. Raises UsageError where nothing is."""
    found = language_of(code)
    if found is None:
        msg = (
            f"language {code!r}: add its alphabet and frequent words to "
            "cases/tools/check/languages.yaml"
        )
        raise UsageError(msg)
    return found


def fault(text: str, language: Language, rules: SpellingRules) -> tuple[str, str]:
    """Return the reason and detail why a text is refused; two empty texts where it is fine.

    Reasons: ``script``, ``letters``, ``language``, ``spelling``.
    """
    letters = [letter for letter in text.casefold() if letter.isalpha()]
    if not letters:
        return "script", "no letters"
    other = [letter for letter in letters if not has(language.script, letter)]
    if len(other) > rules.other_script * len(letters):
        return "script", f"{len(other)} of {len(letters)} letters are not {language.script}"
    return (
        _letters(letters, language, rules)
        or _other_language(text, language)
        or _respelt(text, language, rules)
        or ("", "")
    )


def _letters(
    letters: list[str], language: Language, rules: SpellingRules
) -> tuple[str, str] | None:
    own = language.letters
    if own:
        foreign = [one for one in letters if one not in own and has(language.script, one)]
        if len(foreign) > rules.foreign * len(letters):
            return "letters", f"letters of another language: {' '.join(sorted(set(foreign)))}"
    expected = sum(letter in language.expected for letter in letters)
    if len(letters) >= FEW and expected < rules.expected * len(letters):
        return "letters", f"too few of {' '.join(sorted(language.expected))}"
    return None


def _other_language(text: str, own: Language) -> tuple[str, str] | None:
    """Compare frequent words that only one of two languages has."""
    found = [word.casefold() for word in words(text)]
    told = {code: _telling(found, own, other) for code, other in sorted(known().items())}
    code = max(told, key=lambda one: told[one][1] - told[one][0])
    mine, theirs = told[code]
    if theirs < mine + CLEAR:
        return None
    return "language", f"{theirs} frequent words of {code!r} alone, {mine} of {own.code!r}"


def _telling(found: Sequence[str], own: Language, other: Language) -> tuple[int, int]:
    """Return how many words are frequent in one of the two languages and not in the other."""
    mine = sum(word in own.stops and word not in other.stops for word in found)
    theirs = sum(word in other.stops and word not in own.stops for word in found)
    return mine, theirs


def _respelt(text: str, language: Language, rules: SpellingRules) -> tuple[str, str] | None:
    patterns = [rules.also, language.respelling and language.respelling.pattern]
    found = words(text)
    hits = [word for word in found if any(one and one.search(word) for one in patterns)]
    if len(hits) <= rules.respelt * len(found):
        return None
    name = language.respelling.name if language.respelling else "another spelling"
    return "spelling", f"{name}: {', '.join(hits[:5])}"
