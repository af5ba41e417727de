"""A recipe: what a language brings to the building of a dataset, and the settings of one build."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from qagate.cases.labels import yes_or_no
from qagate.evaluators.core import NO, YES, UsageError
from qagate.evaluators.reading import Settings, load_settings, read_text
from qagate.evaluators.text import digest

DATASET = "boolq"
COUNT = 500  # items of a source group
FOLDER = Path(__file__).parent / "recipes"
PLACES = ("{count}", "{texts}")
OTHER = "other"
KEYS = (
    *(
        "language",
        "labels",
        "paragraph",
        "spelling",
        "question",
        "types",
        "system",
        "user",
    ),
    *("probe", "templates", "sources", "build"),
)
_WRITTEN = ("labels", "question", "system", "user")  # what every language needs
PARAGRAPHS = tuple(f"paragraph_{number}" for number in range(1, 6))
"""The places of a user's own template of generation."""
PROPOSED = ("paragraph", "question", "answer")
"""The places of a user's own template of validation."""
OWN_PLACE = re.compile(r"\{\{ ?(\w+) ?\}\}")
Patterns = tuple[re.Pattern[str], ...]
_GROUP = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
# The keys of each part that has only such ones.
_PARAGRAPH_KEYS = ("shortest", "longest", "sentences", "media")
_SPELLING_KEYS = ("foreign", "other_script", "expected", "respelt", "also")
_QUESTION_KEYS = (
    "shortest",
    "longest",
    "similar",
    "copied",
    "forms",
    "open",
    "negative",
    "negations",
)
_BUILD_KEYS = (
    "seed",
    "oversample",
    "generator",
    "validator",
    "plain",
    "blind",
    "same_provider",
    "probe",
    "reviewers",
    "share",
    "overlap",
    "to",
    "splits",
)
MOST_CHARACTERS_OF_PARAGRAPH = 100_000
MOST_CHARACTERS_OF_QUESTION = 10_000
LARGEST_SEED = 1_000_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ParagraphRules:
    """What a paragraph must be like."""

    shortest: int = 200
    """Characters; ``longest`` too."""
    longest: int = 1000
    sentences: int = 1
    """The least number of them."""
    media: tuple[str, ...] = ()
    """Prefixes of wiki links that show a picture or a category, in any case."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpellingRules:
    """Which shares (0 to 1) of a text's letters or words still count as the language."""

    foreign: float = 1.0
    """The most letters of its script that are not in its alphabet."""
    other_script: float = 1.0
    """The most letters of another script."""
    expected: float = 0.0
    """The fewest letters that only this language has."""
    respelt: float = 1.0
    """The most words in another spelling."""
    also: Patterns = ()
    """Words of another spelling, in addition to the patterns of ``qagate check``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRules:
    """What a yes/no question looks like. Patterns are searched in it and ignore case."""

    shortest: int = 10
    """Characters; ``longest`` too."""
    longest: int = 300
    similar: float = 90.0
    """Percentage of similarity from which two questions count as the same."""
    copied: float = 90.0
    """Percentage of similarity from which a question is a copied sentence."""
    forms: Patterns = ()
    open: Patterns = ()
    negative: Patterns = ()
    """Forms such as "Isn't it …?", to which yes and no may mean the same; they are refused."""
    negations: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceGroup:
    """Texts of one kind, such as news, and how many items to make of them."""

    name: str
    files: tuple[Path, ...]
    licence: str = ""
    """The licence of articles that name none themselves."""
    count: int = COUNT


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSettings:
    """The recipe's key ``build``: how this dataset is made."""

    seed: int = 1
    oversample: float = 1.3
    """How many times more paragraphs are sampled than items wanted, since some are dropped."""
    generator: str = ""
    """The model that writes questions; ``validator`` confirms their answers."""
    validator: str = ""
    plain: bool = False
    """Ask the generator for JSON text, not for a function call."""
    blind: bool = True
    """The validator first answers by itself; where it disagrees, people decide."""
    same_provider: bool = False
    """Allow a validator of the generator's provider."""
    probe: bool = True
    """Drop what both models answer without the paragraph."""
    reviewers: tuple[str, ...] = ()
    share: float = 1.0
    """The share of items that people review."""
    overlap: float | None = None
    """The share of reviewed items that two people see; None means 0.2 if there are two."""
    to: str = ""
    """The folder of the frozen dataset."""
    splits: Mapping[str, float] = field(default_factory=dict)
    """The share of each split; together they make 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """All of a recipe file. A ``…_version`` is a hash of what the step of that name uses."""

    path: Path
    language: str
    labels: Mapping[str, str]
    """The language's words for YES and NO."""
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
    """The prompt of the closed-book probe, empty if the recipe has none."""
    unknown: str = ""
    """The probe's word for not knowing."""
    probe_version: str = ""
    generation: str = ""
    """The user's own template for generation or ``validation``, empty if there is none."""
    validation: str = ""
    sources: Sequence[SourceGroup] = ()
    build: BuildSettings = field(default_factory=BuildSettings)

    def type_of(self, question: str) -> str:
        """Return the first type whose pattern is found in a question, else ``other``."""
        return next(
            (name for name, one in self.types.items() if one.search(question)), OTHER
        )


def find_recipe(language: str) -> Path:
    """Return the bundled recipe. Raises UsageError that lists the languages there are."""
    path = FOLDER / f"{DATASET}.{language}.yaml"
    if path.is_file():
        return path
    known = sorted(one.name.split(".")[1] for one in FOLDER.glob(f"{DATASET}.*.yaml"))
    what = (
        f"--language {language!r}: no recipe for {DATASET}; there is {', '.join(known)}"
    )
    raise UsageError(
        f"{what}; copy one of {FOLDER}, or give your own with --recipe FILE"
    )


def load_recipe(path: Path) -> Recipe:
    """Return a recipe; what it leaves out is the bundled one's. Raises UsageError with its line."""
    own = load_settings(path)
    own.check_keys(KEYS)
    bundled = FOLDER / f"{DATASET}.{_needed(own, 'language')}.yaml"
    base = load_settings(bundled) if bundled.is_file() else own
    if base is own and (lacking := [key for key in _WRITTEN if key not in own.values]):
        raise own.problem(
            "language", f"has no bundled recipe; give {', '.join(lacking)} too"
        )
    top = {key: own if key in own.values else base for key in KEYS}
    value = {key: settings.values.get(key) for key, settings in top.items()}
    templates = top["templates"].part("templates")
    types = top["types"].part("types")
    if OTHER in types.values:
        raise types.problem(
            OTHER, "means the questions of no other type; use another name"
        )
    templates.check_keys(("generate", "validate"))
    generation = _template(templates, "generate", PARAGRAPHS)
    asked_with = [value[key] for key in ("language", "labels", "system", "user")]
    if generation:
        asked_with.append(generation)
    user = _needed(top["user"], "user")
    for place in PLACES:
        if user.count(place) != 1:
            message = f"the place {place} must stand in it once"
            raise top["user"].problem("user", message)
    question_part = top["question"].part("question")
    question = _question_rules(question_part)
    if not question.forms:
        raise question_part.problem(
            "forms", "missing; give patterns of yes/no questions"
        )
    probe = _probe(top["probe"].part("probe"))
    return Recipe(
        path=path,
        language=_needed(own, "language"),
        labels=_labels(top["labels"].part("labels")),
        paragraph=_paragraph_rules(top["paragraph"].part("paragraph")),
        spelling=_spelling_rules(top["spelling"].part("spelling")),
        question=question,
        system=_needed(top["system"], "system"),
        user=user,
        types={name: _patterns(types, name)[0] for name in types.values},
        sample_version=digest([value["paragraph"], value["spelling"]]),
        generate_version=digest(asked_with),
        generation=generation,
        validation=_template(templates, "validate", PROPOSED),
        check_version=digest([value["question"], value["spelling"]]),
        sources=_sources(own.part("sources")),
        build=_build_settings(own.part("build")),
        probe=probe.prompt,
        unknown=probe.unknown,
        probe_version=probe.version,
    )


def _template(templates: Settings, key: str, places: Sequence[str]) -> str:
    if not (name := templates.text(key)):
        return ""
    text = read_text(templates.path.parent / name)
    found = set(OWN_PLACE.findall(text))
    if lacking := [place for place in places if place not in found]:
        raise templates.problem(
            key, f"has no place {{{{{lacking[0]}}}}}; add it to the file"
        )
    return text


def _needed(settings: Settings, key: str) -> str:
    text = settings.text(key)
    if not text:
        raise settings.problem(key, "missing")
    return text


def _labels(part: Settings) -> Mapping[str, str]:
    part.check_keys(("yes", "no"), ("yes", "no"))
    labels = {YES: part.text("yes"), NO: part.text("no")}
    for meaning, word in labels.items():
        if yes_or_no(word, labels[YES], labels[NO]) != meaning:
            raise part.problem(meaning.lower(), f"{word!r} is the other label")
    return labels


def _paragraph_rules(part: Settings) -> ParagraphRules:
    part.check_keys(_PARAGRAPH_KEYS)
    usual = ParagraphRules()
    most = MOST_CHARACTERS_OF_PARAGRAPH
    return ParagraphRules(
        shortest=_whole(part, "shortest", 1, most, usual.shortest),
        longest=_whole(part, "longest", 1, most, usual.longest),
        sentences=_whole(part, "sentences", 1, 100, usual.sentences),
        media=part.words("media"),
    )


def _spelling_rules(part: Settings) -> SpellingRules:
    part.check_keys(_SPELLING_KEYS)
    usual = SpellingRules()
    return SpellingRules(
        foreign=_number(part, "foreign", 0, 1, usual.foreign),
        other_script=_number(part, "other_script", 0, 1, usual.other_script),
        expected=_number(part, "expected", 0, 1, usual.expected),
        respelt=_number(part, "respelt", 0, 1, usual.respelt),
        also=_patterns(part, "also"),
    )


def _question_rules(part: Settings) -> QuestionRules:
    part.check_keys(_QUESTION_KEYS)
    usual = QuestionRules()
    most = MOST_CHARACTERS_OF_QUESTION
    return QuestionRules(
        shortest=_whole(part, "shortest", 1, most, usual.shortest),
        longest=_whole(part, "longest", 1, most, usual.longest),
        similar=_number(part, "similar", 1, 100, usual.similar),
        copied=_number(part, "copied", 1, 100, usual.copied),
        forms=_patterns(part, "forms"),
        open=_patterns(part, "open"),
        negative=_patterns(part, "negative"),
        negations=part.words("negations"),
    )


def _build_settings(part: Settings) -> BuildSettings:
    part.check_keys(_BUILD_KEYS)
    usual = BuildSettings()
    return BuildSettings(
        seed=_whole(part, "seed", -LARGEST_SEED, LARGEST_SEED, usual.seed),
        oversample=_number(part, "oversample", 1, 10, usual.oversample),
        generator=part.text("generator"),
        validator=part.text("validator"),
        plain=_flag(part, "plain", usual.plain),
        blind=_flag(part, "blind", usual.blind),
        same_provider=_flag(part, "same_provider", usual.same_provider),
        probe=_flag(part, "probe", usual.probe),
        reviewers=part.words("reviewers"),
        share=_number(part, "share", 0, 1, usual.share),
        overlap=part.number("overlap", 0, 1),
        to=part.text("to"),
        splits=_splits(part, "splits"),
    )


def _whole(part: Settings, key: str, low: int, high: int, default: int) -> int:
    value = part.whole(key, low, high)
    return default if value is None else value


def _number(part: Settings, key: str, low: float, high: float, default: float) -> float:
    value = part.number(key, low, high)
    return default if value is None else value


def _flag(part: Settings, key: str, default: bool) -> bool:
    return part.flag(key) if key in part.values else default


@dataclass(frozen=True, slots=True, kw_only=True)
class _ClosedBookProbe:
    """A recipe's key ``probe``: how models are asked without the text; all empty without it."""

    prompt: str = ""
    unknown: str = ""
    """The word for not knowing."""
    version: str = ""


def _probe(part: Settings) -> _ClosedBookProbe:
    if not part.values:
        return _ClosedBookProbe()
    part.check_keys(("unknown", "user"), ("unknown", "user"))
    unknown, user = part.text("unknown"), part.text("user")
    for needed in ("{question}", unknown):
        if needed not in user:
            raise part.problem(key="user", message=f"{needed} must stand in it")
    version = digest([unknown, user])
    return _ClosedBookProbe(prompt=user, unknown=unknown, version=version)


def _patterns(part: Settings, key: str) -> Patterns:
    return tuple(part.pattern(key, text) for text in part.words(key))


def _names(part: Settings) -> Sequence[str]:
    if odd := next((name for name in part.values if not _GROUP.fullmatch(name)), ""):
        raise part.problem(odd, "a name of letters, digits, _ and - is needed")
    return list(part.values)


def _sources(part: Settings) -> tuple[SourceGroup, ...]:
    groups = []
    for name in _names(part):
        one = part.part(name)
        one.check_keys(("from", "licence", "count"), ("from",))
        files = tuple(part.path.parent / where for where in one.words("from"))
        licence, count = one.text("licence"), one.whole("count", 1, 1_000_000) or COUNT
        groups.append(SourceGroup(name=name, files=files, licence=licence, count=count))
    return tuple(groups)


def _splits(build: Settings, key: str) -> dict[str, float]:
    part = build.part(key)
    shares = {name: part.number(name, 0.001, 1) or 0.0 for name in _names(part)}
    if shares and not math.isclose(sum(shares.values()), 1, abs_tol=1e-6):
        name = next(iter(shares))
        raise part.problem(
            name, f"the shares make {sum(shares.values()):g} together, not 1"
        )
    return shares
