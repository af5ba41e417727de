"""Prompts and rubrics: templates of one language, read from YAML and filled in one pass.

Values are never searched for places: ``{target}`` in a file's or a model's text stays unchanged.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import ascii_uppercase
from typing import Literal, cast, get_args

from qagate.bundled import EVALUATORS
from qagate.evaluators.core import CORRECT, GRADES, Message, UsageError
from qagate.evaluators.reading import Map, Settings, load_settings, read_text
from qagate.evaluators.text import UNSAFE, digest, escaped, sendable

RUBRICS = EVALUATORS / "rubrics"
ANSWER_BYTES = 32_000
"""The most of an answer that a judge is shown, in bytes of UTF-8."""

_SYNONYMS = {
    "question": "question input",
    "context": "context passage paragraph",
    "target": "target expected answer gold",
    "predicted_answer": "predicted_answer prediction output submission",
    "examples": "examples",
}
_NAMES = {word: name for name, words in _SYNONYMS.items() for word in words.split()}
_NAME = "|".join(_NAMES)
_CHAT_TOKEN = re.compile(
    r"<|\[(?=/?(?:[A-Z]|[a-z]MASK\]"
    r"|(?i:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]))"
)
"""What may begin a token of a chat template: every ``<``, and every ``[`` before a capital."""
_PLACE = re.compile(rf"\{{\{{ ?({_NAME}) ?\}}\}}|\{{({_NAME})\}}")


def canonical_places(text: str) -> str:
    """Return a template in which other common names of places are replaced by ours.

    ``{input}``, ``{{input}}`` become ``{question}``; ``{expected}``, ``{answer}`` become
    ``{target}``; ``{output}``, ``{prediction}`` become ``{predicted_answer}``. Other braces stay.
    """
    return _PLACE.sub(lambda match: f"{{{_NAMES[match[1] or match[2]]}}}", text)


def places(text: str) -> list[str]:
    """Return the names of a canonical template's places, in order and with repetitions."""
    return [match[2] for match in _PLACE.finditer(text) if match[2]]


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return a canonical template with each place of ``values`` filled, in one pass."""
    return _PLACE.sub(lambda match: values.get(match[2] or "", match[0]), template)


def encode(value: str | list[str]) -> str:
    """Return a value as JSON on one line, readable and without hidden characters.

    Letters stay; control, bidi, zero-width and tag characters, line and paragraph separators,
    spaces but the plain one and lone surrogates are escaped. So is the start of chat templates'
    tokens such as ``<|im_end|>``, ``</s>`` and ``[INST]``, which some servers read anywhere.
    """
    return _CHAT_TOKEN.sub(
        escaped, UNSAFE.sub(escaped, json.dumps(value, ensure_ascii=False))
    )


def encode_fixed(value: str) -> str:
    """Return ``encode(value)`` without places, for text that becomes part of a template."""
    return _PLACE.sub(lambda match: match[0].replace("{", "\\u007b"), encode(value))


def shortened(answer: str, limit: int = ANSWER_BYTES) -> str:
    """Return the answer, or its first ``limit`` bytes of UTF-8 with a note of the cut."""
    raw = answer.encode("utf-8", "surrogatepass")
    if len(raw) <= limit:
        return answer
    end = next(
        end for end in range(limit, 0, -1) if raw[end] & 0xC0 != 0x80
    )  # of a character
    return f"{raw[:end].decode('utf-8', 'surrogatepass')} [... cut: {len(raw):,} bytes in all]"


def chat_messages(system: str, user: str) -> tuple[Message, ...]:
    """Return filled texts as chat messages; a blank system text is left out."""
    question = Message(role="user", content=sendable(user))
    own = (Message(role="system", content=sendable(system)),) if system.strip() else ()
    return (*own, question)


Caps = Mapping[str, tuple[int, ...]]
"""By part, in order: for each score from 0 up, the highest rating that it allows; the last 10."""

BEST = 10
_PART_NAME = re.compile(r"(?!(?:reason|rating)\Z)[a-z][a-z_]{1,39}")
_CAP = re.compile(r"[1-9]|10")


def combined(caps: Caps, scores: Mapping[str, int]) -> int:
    """Return the rating of all scores: the lowest cap, less 1 for each other part below its top."""
    left = [levels[scores[name]] for name, levels in caps.items()]
    faults = sum(cap < BEST for cap in left)
    return max(1, min(left) - max(0, faults - 1))


def read_caps(settings: Settings) -> dict[str, tuple[int, ...]]:
    """Return the table under ``parts``, empty without the key. Raises UsageError."""
    parts, table = settings.part("parts"), {}
    for name in parts.values:
        if not _PART_NAME.fullmatch(name):
            what = "want a name of small letters and _, neither 'reason' nor 'rating'"
            raise parts.problem(name, what)
        words = parts.words(name)
        caps = tuple(int(word) for word in words if _CAP.fullmatch(word))
        if (
            len(caps) < max(2, len(words))
            or list(caps) != sorted(caps)
            or caps[-1] != BEST
        ):
            what = "want a rating for each score from 0 up, none below the one before, the last 10"
            raise parts.problem(name, f"{what}; got {', '.join(words)!r:.60}")
        table[name] = caps
    return table


Protocol = Literal["tool", "letter", "json", "rate"]
CALLED: tuple[Protocol, ...] = ("tool", "rate")
"""The protocols by which the judge must call a function."""
Style = Literal["graded", "rated"]
"""Whether a judge gives grades or ratings of 1 to 10."""
PASS_BAR = 6
"""The lowest rating that passes by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """An answer prompt, or that of a judge."""

    name: str
    language: str
    system: str
    user: str
    version: str
    """Name, language, version and content hash."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric(Prompt):
    """How a judge is asked, and what its reply means."""

    protocol: Protocol
    scores: Mapping[str, float] = field(default_factory=dict)
    """From 0 to 1 by grade; empty if the rubric gives none."""
    labels: tuple[str, ...] = GRADES
    """The grades that the judge may give."""
    passing: tuple[str, ...] = (CORRECT,)
    """The grades that pass."""
    parts: Caps = field(default_factory=dict)
    """The table of a rating in parts; empty if the judge gives the rating itself."""
    pass_bar: int = PASS_BAR
    """The lowest rating that passes, unless a data set has its own."""
    bare: bool = False
    """Whether the function that the judge must call has no field for a reason."""
    function: str = ""
    """How that function is described to the judge; empty for our own words."""

    @property
    def style(self) -> Style:
        """``graded`` or ``rated``."""
        return "rated" if self.protocol == "rate" else "graded"


MOST_LABELS = 26  # each has a letter
_LABEL = re.compile(r"[^\W\d_][^\n\r\t\"]{0,39}")


_HEAD = ("name", "language", "version")
_PROMPT_KEYS = (*_HEAD, "user")
YAML_SUFFIXES = (".yaml", ".yml")
_RATED_KEYS = ("parts", "pass_bar")
_SLOTS = ("question", "context", "target", "predicted_answer")
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")
_PROTOCOLS = "|".join(get_args(Protocol))
_BARE = "-bare"  # after a protocol: the function has no field for a reason
_TEMPLATE_NAME = re.compile(
    rf"(?P<name>.+)\.(?P<language>{_LANGUAGE.pattern})"
    rf"(?:\.(?P<how>(?P<protocol>{_PROTOCOLS})(?:{_BARE})?))?\.txt"
)


def load_prompt(path: Path, language: str = "") -> Prompt:
    """Return the answer prompt of a YAML file, or of a text file, which has only the user message.

    ``language`` is that of the slice, for a text file. Raises UsageError naming file, line and key.
    """
    if language and path.suffix not in YAML_SUFFIXES:
        values = {"name": path.stem, "language": language, "version": "text"}
        settings = Settings(path, "", Map(1, {**values, "user": read_text(path)}))
    else:
        settings = load_settings(path)
        settings.check_keys((*_PROMPT_KEYS, "system"), _PROMPT_KEYS)
    system, user = _messages(settings)
    if "question" not in places(user):
        raise settings.problem(
            "user", "has no place {question}; put it where the question goes"
        )
    for name in places(system + user):
        if name not in ("question", "context"):
            raise settings.problem(
                "user", f"place {{{name}}} is not known in an answer prompt"
            )
    head = _head(settings)
    return Prompt(
        name=head.name,
        language=head.language,
        system=system,
        user=user,
        version=head.version,
    )


def load_rubric(path: Path) -> Rubric:
    """Return the rubric of a YAML file, its examples filled in. Raises UsageError."""
    optional = ("system", "examples", "scores", "labels", "passing", *_RATED_KEYS)
    settings = load_settings(path)
    required = (*_HEAD, "protocol", "user")
    settings.check_keys((*required, *optional), required)
    protocol: Protocol = settings.one_of("protocol", get_args(Protocol))
    system, user = _messages(settings)
    _check_places(settings, system, user)
    labels, passing = _labels(settings, protocol)
    for key in _RATED_KEYS:
        if key in settings.values and protocol != "rate":
            raise settings.problem(key, "only with protocol 'rate'; take it out")
    if settings.values.keys() >= {"parts", "examples"}:
        what = (
            "an example shows a rating, and a judge of parts gives scores; take one out"
        )
        raise settings.problem(key="examples", what=what)
    rendered = {"examples": _examples(settings, protocol, labels)}
    head = _head(settings)
    rubric = Rubric(
        name=head.name,
        language=head.language,
        system=fill(system, rendered),
        user=fill(user, rendered),
        version=head.version,
        protocol=protocol,
        labels=labels,
        passing=passing,
        parts=read_caps(settings),
        pass_bar=settings.whole("pass_bar", 1, 10) or PASS_BAR,
    )
    return replace(rubric, scores=read_scores(settings, "scores", rubric))


def load_template(path: Path, language: str, protocol: Protocol = "letter") -> Rubric:
    """Return a user's own grading template as a rubric for this language.

    A text file has only the user message, and its language in its name, perhaps with a protocol in
    place of ``protocol``: ``mine.bg.txt``, ``mine.bg.tool.txt``, ``mine.bg.tool-bare.txt`` without
    a reason. Raises UsageError, also if the template declares another language or none.
    """
    if path.suffix in YAML_SUFFIXES:
        rubric = load_rubric(path)
        check_language(rubric, language, f"{path}")
        return rubric
    named = _TEMPLATE_NAME.fullmatch(path.name)
    if named is None:
        raise UsageError(
            f"{path}: language not declared; name the file like 'mine.bg.txt' (got {path.name!r})"
        )
    user = canonical_places(read_text(path))
    _check_places(Settings(path, "", Map(1, {"user": user})), "", user)
    name, code, how = named["name"], named["language"], named["how"] or ""
    kind = f"template-{how}" if how else "template"
    rubric = Rubric(
        name=name,
        language=code,
        protocol=cast("Protocol", named["protocol"] or protocol),
        system="",
        user=user,
        version=f"{name}.{code}@{kind}#{digest(user)[:12]}",
        bare=how.endswith(_BARE),
    )
    check_language(rubric, language, f"{path}")
    return rubric


def check_language(prompt: Prompt, language: str, where: str) -> None:
    """Raise UsageError, naming ``where`` it was named, if it is not in ``language``."""
    if prompt.language != language:
        raise UsageError(
            f"{where}: {prompt.name!r} is written for language {prompt.language!r}, got a slice "
            f"in {language!r}; give a template of that language"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Head:
    """How a file names itself."""

    name: str
    language: str
    version: str
    """Name, language, the file's own version and a hash of its content."""


def _head(settings: Settings) -> _Head:
    name = settings.text("name")
    language = settings.text("language")
    version = settings.text("version")
    if not _LANGUAGE.fullmatch(language):
        raise settings.problem(
            "language", f"want a code such as 'en' or 'bg', got {language!r}"
        )
    full = f"{name}.{language}@{version}#{digest(settings.values)[:12]}"
    return _Head(name=name, language=language, version=full)


def _messages(settings: Settings) -> tuple[str, str]:
    system = settings.text("system") if settings.values.get("system") else ""
    return canonical_places(system), canonical_places(settings.text("user"))


def _check_places(settings: Settings, system: str, user: str) -> None:
    stray = [name for name in places(system) if name in _SLOTS]
    if stray:
        raise settings.problem(
            key="system", what=f"place {{{stray[0]}}} belongs into 'user'"
        )
    found = places(user)
    needed = ("question", "target", "predicted_answer")
    for name in needed[-1:] if "labels" in settings.values else needed:
        if name not in found:
            raise settings.problem(
                "user", f"has no place {{{name}}}; put it where that text goes"
            )
    if found.count("predicted_answer") > 1:
        raise settings.problem(
            "user", "place {predicted_answer} stands more than once; keep one"
        )
    if ("examples" in places(system + user)) != ("examples" in settings.values):
        what = "the key and the place {examples} go together; one is missing"
        raise settings.problem(key="examples", what=what)


def _labels(
    settings: Settings, protocol: Protocol
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the grades that a rubric names, and those that pass; by default the usual ones."""
    labels, passing = settings.words("labels"), settings.words("passing")
    key, problem, is_own = "labels", "", "labels" in settings.values
    if is_own and protocol == "rate":
        problem = "want a list of grades, and no protocol 'rate'"
    elif wrong := next((label for label in labels if not _LABEL.fullmatch(label)), ""):
        problem = f"want words of at most 40 characters, got {wrong!r:.60}"
    elif is_own and not 2 <= len(labels) <= MOST_LABELS:
        problem = f"want 2 to {MOST_LABELS} labels, got {len(labels)}"
    elif len({label.casefold() for label in labels}) < len(labels):
        problem = "a label stands twice; keep one"
    elif bool(passing) != is_own:
        key, problem = (
            "passing",
            "the keys 'labels' and 'passing' go together; one is missing",
        )
    elif wrong := next((label for label in passing if label not in labels), ""):
        key, problem = "passing", f"want one of {', '.join(labels)}, got {wrong!r:.60}"
    if problem:
        raise settings.problem(key, problem)
    return labels or GRADES, passing or (CORRECT,)


def read_scores(holder: Settings, key: str, rubric: Rubric) -> dict[str, float]:
    """Return the scores, 0 to 1, by grade or the letter of a grade. Raises UsageError."""
    if key in holder.values and rubric.protocol == "rate":
        raise holder.problem(
            key, "want a mapping of grades to numbers, and no protocol 'rate'"
        )
    given = holder.part(key).values
    scores, found = Settings(holder.path, "", given), dict[str, float]()
    letters = dict(zip(ascii_uppercase, rubric.labels, strict=False))
    for name, value in given.items():
        grade = name if name in rubric.labels else letters.get(name, "")
        if not grade or grade in found:
            what = "stands twice" if grade else "not a grade"
            raise scores.problem(name, f"{what}; known: {', '.join(rubric.labels)}")
        if not re.fullmatch(r"[01]|0?\.[0-9]{1,6}|[01]\.0{1,6}", str(value), re.ASCII):
            raise scores.problem(name, f"want a number from 0 to 1, got {str(value)!r}")
        found[grade] = float(str(value))
    return found


def described(rubric: Rubric, function: str) -> Rubric:
    """Return the rubric with a description of the judge's function; its version tells."""
    version = f"{rubric.version}+{digest(function)[:12]}"
    return replace(rubric, function=function, version=version)


def _examples(settings: Settings, protocol: Protocol, labels: Sequence[str]) -> str:
    """Return the worked examples: the slots as a judge sees them, then the expected reply."""
    key = "rating" if protocol == "rate" else "grade"
    allowed = (
        [str(rating) for rating in range(1, 11)] if protocol == "rate" else list(labels)
    )
    needed = ("question", "target", "predicted_answer", key)
    examples = []
    for example in settings.parts("examples"):
        example.check_keys((*needed, "why", "context"), needed)
        verdict = example.one_of(key, allowed)
        slots = [name for name in _SLOTS if name in example.values]
        values = ", ".join(
            f'"{name}": {encode_fixed(example.text(name))}' for name in slots
        )
        why = encode_fixed(example.text("why") if example.values.get("why") else "")
        reply = f'{{"reason": {why}, "grade": "{verdict}"}}'
        if protocol in ("letter", "rate"):
            letter = ascii_uppercase[allowed.index(verdict)]
            last = f'{{"rating": {verdict}}}' if protocol == "rate" else letter
            reply = "\n".join(filter(None, (why[1:-1], last)))
        examples.append(f"{{{values}}}\n{reply}")
    return "\n\n".join(examples)
