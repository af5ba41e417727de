"""What a language brings to the making of a dataset: labels, bounds, spelling, forms, prompts."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cases.builder.own_templates import GENERATE, VALIDATE, check_template
from cases.labels import yes_or_no
from evaluators.core import NO, YES, UsageError
from evaluators.reading import read_text
from evaluators.settings import Settings, load_settings
from evaluators.text import digest

FOLDER = Path(__file__).parent / "recipes"
PLACES = ("{count}", "{texts}")
KEYS = (
    *("language", "labels", "paragraph", "spelling", "question", "types", "system", "user"),
    *("probe", "templates"),
)
QUESTION = "{question}"
OTHER = "other"
_PLACE = re.compile("|".join(map(re.escape, PLACES)))


@dataclass(frozen=True, slots=True, kw_only=True)
class ParagraphRules:
    """Bounds of a paragraph in characters and sentences; ``media`` are prefixes of wiki links."""

    shortest: int
    longest: int
    sentences: int
    media: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SpellingRules:
    """Which shares of a text are still the language.

    ``foreign`` letters are of its script and not of its alphabet; ``expected`` ones it must have.
    ``respelt`` words are in another spelling by the linter's patterns or by ``also``. Shares are of
    letters, or of words for ``respelt``.
    """

    foreign: float
    other_script: float
    expected: float
    respelt: float
    also: re.Pattern[str] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRules:
    """What a yes/no question looks like; patterns ignore case and are searched in the question.

    To ``negative`` ones, such as "Isn't it …?", yes and no mean either; they are refused.
    ``similar`` and ``copied`` are percentages from which two texts count as the same.
    """

    shortest: int
    longest: int
    similar: float
    copied: float
    forms: tuple[re.Pattern[str], ...]
    open: tuple[re.Pattern[str], ...]
    negative: tuple[re.Pattern[str], ...]
    negations: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One language's recipe. The ``…_version`` are hashes of what the step of that name uses.

    ``probe`` is the prompt of the closed-book probe, empty where there is none; ``unknown`` the
    word in it for not knowing. ``generation`` and ``validation`` are templates of the user's own,
    empty where there are none.
    """

    path: Path
    language: str
    labels: Mapping[str, str]
    paragraph: ParagraphRules
    spelling: SpellingRules
    question: QuestionRules
    system: str
    user: str
    types: Mapping[str, re.Pattern[str]]
    sample_version: str
    generate_version: str
    check_version: str
    probe: str = ""
    unknown: str = ""
    probe_version: str = ""
    generation: str = ""
    validation: str = ""

    def type_of(self, question: str) -> str:
        """Return the type of a question: the first whose pattern is found in it, or ``other``."""
        return next((name for name, one in self.types.items() if one.search(question)), OTHER)


def find_recipe(dataset: str, language: str) -> Path:
    """Return the bundled recipe. Raises UsageError that lists the languages there are."""
    path = FOLDER / f"{dataset}.{language}.yaml"
    if path.is_file():
        return path
    known = sorted(one.name.split(".")[1] for one in FOLDER.glob(f"{dataset}.*.yaml"))
    raise UsageError(
        f"--language {language!r}: no recipe for {dataset}; there is {', '.join(known)}; "
        f"copy one of {FOLDER}, or give your own with --recipe FILE"
    )


def load_recipe(path: Path) -> Recipe:
    """Return the recipe of a YAML file. Raises UsageError naming file, line and key."""
    top = load_settings(path)
    top.check_keys(KEYS)
    user = _needed(top, "user")
    for place in PLACES:
        if user.count(place) != 1:
            raise top.problem(key="user", what=f"the place {place} must stand in it once")
    values, templates = top.values, top.part("templates")
    templates.check_keys(("generate", "validate"))
    generation = _template(templates, "generate", GENERATE)
    written = [values.get(key) for key in ("language", "labels", "system", "user")]
    return Recipe(
        path=path,
        language=_needed(top, "language"),
        labels=_labels(top.part("labels")),
        paragraph=_paragraph(top.part("paragraph")),
        spelling=_spelling(top.part("spelling")),
        question=_question(top.part("question")),
        system=_needed(top, "system"),
        user=user,
        types=_types(top.part("types")),
        sample_version=digest([values.get("paragraph"), values.get("spelling")]),
        generate_version=digest([*written, generation] if generation else written),
        generation=generation,
        validation=_template(templates, "validate", VALIDATE),
        check_version=digest([values.get("question"), values.get("spelling")]),
        **_probe(top.part("probe")),
    )


def _template(templates: Settings, key: str, places: Sequence[str]) -> str:
    name = templates.text(key)
    if not name:
        return ""
    return check_template(templates, key, read_text(templates.path.parent / name), places)


def filled(template: str, values: Mapping[str, str]) -> str:
    """Return a template with its places filled in one pass; what goes in is not looked at."""
    return _PLACE.sub(lambda match: values[match[0]], template)


def _needed(settings: Settings, key: str) -> str:
    text = settings.text(key)
    if not text:
        raise settings.problem(key, "missing")
    return text


def _labels(part: Settings) -> Mapping[str, str]:
    part.check_keys(("yes", "no"))
    labels = {YES: _needed(part, "yes"), NO: _needed(part, "no")}
    for meaning, word in labels.items():
        if yes_or_no(word, labels[YES], labels[NO]) != meaning:
            raise part.problem(meaning.lower(), f"{word!r} is the other label")
    return labels


def _paragraph(part: Settings) -> ParagraphRules:
    part.check_keys(("shortest", "longest", "sentences", "media"))
    return ParagraphRules(
        shortest=part.whole("shortest", 1, 100_000) or 200,
        longest=part.whole("longest", 1, 100_000) or 1000,
        sentences=part.whole("sentences", 1, 100) or 1,
        media=tuple(word.casefold() for word in part.words("media")),
    )


def _spelling(part: Settings) -> SpellingRules:
    part.check_keys(("foreign", "other_script", "expected", "respelt", "also"))
    also = _patterns(part, "also")
    return SpellingRules(
        foreign=_share(part, "foreign", 1.0),
        other_script=_share(part, "other_script", 1.0),
        expected=_share(part, "expected", 0.0),
        respelt=_share(part, "respelt", 1.0),
        also=re.compile("|".join(one.pattern for one in also), re.IGNORECASE) if also else None,
    )


def _question(part: Settings) -> QuestionRules:
    patterns, bounds = ("forms", "open", "negative"), ("shortest", "longest", "similar", "copied")
    part.check_keys((*bounds, *patterns, "negations"))
    forms = _patterns(part, "forms")
    if not forms:
        raise part.problem(key="forms", what="missing; give patterns of yes/no questions")
    return QuestionRules(
        shortest=part.whole("shortest", 1, 10_000) or 10,
        longest=part.whole("longest", 1, 10_000) or 300,
        similar=part.number("similar", 1, 100) or 90,
        copied=part.number("copied", 1, 100) or 90,
        forms=forms,
        open=_patterns(part, "open"),
        negative=_patterns(part, "negative"),
        negations=frozenset(word.casefold() for word in part.words("negations")),
    )


def _probe(part: Settings) -> dict[str, str]:
    """Return the prompt of the closed-book probe, none where the recipe has no such part."""
    if not part.values:
        return {}
    part.check_keys(("unknown", "user"), ("unknown", "user"))
    unknown, user = part.text("unknown"), part.text("user")
    for needed in (QUESTION, unknown):
        if needed not in user:
            raise part.problem(key="user", what=f"{needed} must stand in it")
    return {"probe": user, "unknown": unknown, "probe_version": digest([unknown, user])}


def _types(part: Settings) -> dict[str, re.Pattern[str]]:
    if OTHER in part.values:
        raise part.problem(OTHER, "means the questions of no other type; name it otherwise")
    return {name: _patterns(part, name)[0] for name in part.values}


def _share(part: Settings, key: str, default: float) -> float:
    value = part.number(key, 0, 1)
    return default if value is None else value


def _patterns(part: Settings, key: str) -> tuple[re.Pattern[str], ...]:
    try:
        return tuple(re.compile(text, re.IGNORECASE) for text in part.words(key))
    except re.error as error:
        raise part.problem(key, f"not a regular expression: {error}") from None
