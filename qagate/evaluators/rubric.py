"""Prompts and rubrics: what a model is told to answer, and a judge to grade or rate by.

Each is a template of one language, read from a YAML or text file. A *place* in it, such as
``{question}``, is filled with a text of the item. All places are filled in one pass, and a text
that was filled in is never searched for places: ``{target}`` in a file's or a model's own text
stays as it is.

A file may write its places in other common ways (``{{input}}``, ``{expected}``). They are brought
to one form as the file is read: a *canonical* template.
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
"""The folder of the bundled rubrics."""

ANSWER_BYTES = 32_000
"""The most of an answer that a judge is shown, in bytes of UTF-8."""

_WAYS_TO_WRITE = {
    "question": ("question", "input"),
    "context": ("context", "passage", "paragraph"),
    "target": ("target", "expected", "answer", "gold"),
    "predicted_answer": ("predicted_answer", "prediction", "output", "submission"),
    "examples": ("examples",),
}
"""How templates may name each place; the first is ours."""

_CANONICAL_NAMES = {
    written: name for name, ways in _WAYS_TO_WRITE.items() for written in ways
}
_ANY_NAME = "|".join(_CANONICAL_NAMES)

_PLACE = re.compile(rf"\{{\{{ ?({_ANY_NAME}) ?\}}\}}|\{{({_ANY_NAME})\}}")
"""A place in two braces (group 1) or in one (group 2), as all canonical ones are."""

_CHAT_TOKEN = re.compile(
    r"<|\[(?=/?(?:[A-Z]|[a-z]MASK\]"
    r"|(?i:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS)\]))"
)
"""What may begin a token of a chat template: every ``<``, and every ``[`` before a capital."""


def canonical_places(text: str) -> str:
    """Return a template in which other common names of places are replaced by ours.

    ``{input}``, ``{{input}}`` become ``{question}``; ``{expected}``, ``{answer}`` become
    ``{target}``; ``{output}``, ``{prediction}`` become ``{predicted_answer}``. Other braces stay.
    """

    def canonical(place: re.Match[str]) -> str:
        written = place[1] or place[2]
        return f"{{{_CANONICAL_NAMES[written]}}}"

    return _PLACE.sub(canonical, text)


def places(text: str) -> list[str]:
    """Return the names of a canonical template's places, in order and with repetitions."""
    return [place[2] for place in _PLACE.finditer(text) if place[2]]


def fill(template: str, values: Mapping[str, str]) -> str:
    """Return a canonical template with each place of ``values`` filled, in one pass."""

    def filled(place: re.Match[str]) -> str:
        name = place[2] or ""
        return values.get(name, place[0])

    return _PLACE.sub(filled, template)


def encode(value: str | list[str]) -> str:
    """Return a value as JSON on one line, readable and without hidden characters.

    Letters stay; control, bidi, zero-width and tag characters, line and paragraph separators,
    spaces but the plain one and lone surrogates are escaped. So is the start of chat templates'
    tokens such as ``<|im_end|>``, ``</s>`` and ``[INST]``, which some servers read anywhere.
    """
    text = json.dumps(value, ensure_ascii=False)
    text = UNSAFE.sub(escaped, text)
    return _CHAT_TOKEN.sub(escaped, text)


def encode_fixed(value: str) -> str:
    """Return ``encode(value)`` without places, for text that becomes part of a template."""
    return _PLACE.sub(
        lambda place: place[0].replace("{", "\\u007b"),
        encode(value),
    )


def shortened(answer: str, limit: int = ANSWER_BYTES) -> str:
    """Return the answer, or the beginning and the end of one with more than ``limit`` bytes.

    What a model says last may be its answer. Each half is cut between two characters, so a few
    bytes less than the limit may be left; a note of the cut stands between the halves.
    """
    raw = answer.encode("utf-8", "surrogatepass")
    if len(raw) <= limit:
        return answer
    end_of_beginning = limit // 2
    while _is_inside_character(raw[end_of_beginning]):
        end_of_beginning -= 1
    start_of_end = len(raw) - limit // 2
    while start_of_end < len(raw) and _is_inside_character(raw[start_of_end]):
        start_of_end += 1
    beginning = raw[:end_of_beginning].decode("utf-8", "surrogatepass")
    end = raw[start_of_end:].decode("utf-8", "surrogatepass")
    return f"{beginning} [... cut: {len(raw):,} bytes in all ...] {end}"


def _is_inside_character(byte: int) -> bool:
    """Return whether a byte of UTF-8 continues a character: its first two bits are 1 and 0."""
    return byte & 0b1100_0000 == 0b1000_0000


def chat_messages(system: str, user: str) -> tuple[Message, ...]:
    """Return filled texts as chat messages; a blank system text is left out."""
    question = Message(role="user", content=sendable(user))
    if not system.strip():
        return (question,)
    return Message(role="system", content=sendable(system)), question


Caps = Mapping[str, tuple[int, ...]]
"""The table of a rating in parts, by part, in order.

A judge scores each part from 0 up. The number at that place is the highest rating that the score
allows; the best score allows 10.
"""

BEST = 10
"""The highest rating."""

_PART_NAME = re.compile(r"(?!(?:reason|rating)\Z)[a-z][a-z_]{1,39}")
_CAP = re.compile(r"[1-9]|10")


def combined(caps: Caps, scores: Mapping[str, int]) -> int:
    """Return the rating, 1 to 10, that the scores of all parts make.

    The worst part caps it, and each further part below its best score takes 1 away.
    """
    allowed = [ratings[scores[part]] for part, ratings in caps.items()]
    faulty_parts = len([rating for rating in allowed if rating < BEST])
    rating = min(allowed)
    if faulty_parts > 1:
        rating -= faulty_parts - 1
    return max(1, rating)


def read_caps(settings: Settings) -> dict[str, tuple[int, ...]]:
    """Return the table under ``parts``, empty without the key. Raises UsageError."""
    parts = settings.part("parts")
    table = {}
    for name in parts.values:
        if not _PART_NAME.fullmatch(name):
            raise parts.problem(
                name,
                "want a name of small letters and _, neither 'reason' nor 'rating'",
            )
        table[name] = _caps_of(parts, name)
    return table


def _caps_of(parts: Settings, name: str) -> tuple[int, ...]:
    words = parts.words(name)
    caps = [int(word) for word in words if _CAP.fullmatch(word)]
    are_ratings = len(words) >= 2 and len(caps) == len(words)
    if not are_ratings or caps != sorted(caps) or caps[-1] != BEST:
        raise parts.problem(
            name,
            "want a rating for each score from 0 up, none below the one before, the last 10; "
            f"got {', '.join(words)!r:.60}",
        )
    return tuple(caps)


Protocol = Literal["tool", "json_schema", "letter", "json", "rate"]
"""How a judge replies.

``tool``: it calls a function with a grade. ``json_schema``: it writes JSON with a grade, by a
schema that its server enforces. ``letter``: it writes the letter of a grade. ``json``: it writes
JSON with a grade. ``rate``: it calls a function with a rating, or with scores of parts.
"""

CALLED: tuple[Protocol, ...] = ("tool", "rate")
"""The protocols by which the judge must call a function."""

WITH_SCHEMA: tuple[Protocol, ...] = (*CALLED, "json_schema")
"""The protocols whose reply has fields that a schema lists."""

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


MOST_LABELS = 26
"""Each label has a letter of the alphabet."""

_LABEL = re.compile(r"[^\W\d_][^\n\r\t\"]{0,39}")
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")

YAML_SUFFIXES = (".yaml", ".yml")

_HEAD_KEYS = ("name", "language", "version")
_PROMPT_KEYS = (*_HEAD_KEYS, "user")
_RUBRIC_KEYS = (*_HEAD_KEYS, "protocol", "user")
_RATED_KEYS = ("parts", "pass_bar")
_OPTIONAL_RUBRIC_KEYS = (
    "system",
    "examples",
    "scores",
    "labels",
    "passing",
    *_RATED_KEYS,
)

_SLOTS = ("question", "context", "target", "predicted_answer")
"""The places that each item fills anew; the system message, the same for all, has none."""

_BARE = "-bare"
"""Follows a protocol in a template's name: the judge's function has no field for a reason."""

_PROTOCOL_NAMES = "|".join(get_args(Protocol))
_TEMPLATE_NAME = re.compile(
    rf"(?P<name>.+)\.(?P<language>{_LANGUAGE.pattern})"
    rf"(?:\.(?P<mode>(?P<protocol>{_PROTOCOL_NAMES})(?:{_BARE})?))?\.txt"
)


def load_prompt(path: Path, language: str = "") -> Prompt:
    """Return the answer prompt of a YAML file, or of a text file, which has only the user message.

    ``language`` is that of the slice, for a text file. Raises UsageError naming file, line and key.
    """
    settings = _prompt_settings(path, language)
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


def _prompt_settings(path: Path, language: str) -> Settings:
    if path.suffix in YAML_SUFFIXES or not language:
        settings = load_settings(path)
        settings.check_keys((*_PROMPT_KEYS, "system"), _PROMPT_KEYS)
        return settings
    values = {
        "name": path.stem,
        "language": language,
        "version": "text",
        "user": read_text(path),
    }
    return Settings(path, "", Map(1, values))


def load_rubric(path: Path) -> Rubric:
    """Return the rubric of a YAML file, its examples filled in. Raises UsageError."""
    settings = load_settings(path)
    settings.check_keys((*_RUBRIC_KEYS, *_OPTIONAL_RUBRIC_KEYS), _RUBRIC_KEYS)
    protocol: Protocol = settings.one_of("protocol", get_args(Protocol))
    system, user = _messages(settings)
    _check_places(settings, system, user)
    labels, passing = _labels(settings, protocol)
    for key in _RATED_KEYS:
        if key in settings.values and protocol != "rate":
            raise settings.problem(key, "only with protocol 'rate'; take it out")
    if "parts" in settings.values and "examples" in settings.values:
        raise settings.problem(
            "examples",
            "an example shows a rating, and a judge of parts gives scores; take one out",
        )
    examples = {"examples": _examples(settings, protocol, labels)}
    head = _head(settings)
    rubric = Rubric(
        name=head.name,
        language=head.language,
        system=fill(system, examples),
        user=fill(user, examples),
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
    is_yaml = path.suffix in YAML_SUFFIXES
    rubric = load_rubric(path) if is_yaml else _text_template(path, protocol)
    check_language(rubric, language, f"{path}")
    return rubric


def _text_template(path: Path, protocol: Protocol) -> Rubric:
    """Return the rubric of a text file, which is the user message; see ``load_template``."""
    named = _TEMPLATE_NAME.fullmatch(path.name)
    if named is None:
        raise UsageError(
            f"{path}: language not declared; name the file like 'mine.bg.txt' (got {path.name!r})"
        )
    name = named["name"]
    language = named["language"]
    mode = named["mode"] or ""  # a protocol, perhaps with '-bare'
    user = canonical_places(read_text(path))
    # Errors are raised by Settings, which a text file has not: the text is made its one key.
    settings = Settings(path, "", Map(1, {"user": user}))
    _check_places(settings, "", user)
    source = f"template-{mode}" if mode else "template"
    return Rubric(
        name=name,
        language=language,
        system="",
        user=user,
        version=f"{name}.{language}@{source}#{digest(user)[:12]}",
        protocol=cast("Protocol", named["protocol"] or protocol),
        bare=mode.endswith(_BARE),  # the judge gives no reason
    )


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
    """Return the canonical templates of the system and the user message."""
    system = ""
    if settings.values.get("system"):
        system = settings.text("system")
    return canonical_places(system), canonical_places(settings.text("user"))


def _check_places(settings: Settings, system: str, user: str) -> None:
    """Raise UsageError for a place that a rubric lacks, has twice, or has in the wrong message."""
    for name in places(system):
        if name in _SLOTS:
            raise settings.problem("system", f"place {{{name}}} belongs into 'user'")
    needed = ["question", "target", "predicted_answer"]
    if "labels" in settings.values:  # such a rubric may judge by the answer alone
        needed = ["predicted_answer"]
    in_user = places(user)
    for name in needed:
        if name not in in_user:
            raise settings.problem(
                "user", f"has no place {{{name}}}; put it where that text goes"
            )
    if in_user.count("predicted_answer") > 1:
        raise settings.problem(
            "user", "place {predicted_answer} stands more than once; keep one"
        )
    shows_examples = "examples" in places(system + user)
    if shows_examples != ("examples" in settings.values):
        raise settings.problem(
            "examples",
            "the key and the place {examples} go together; one is missing",
        )


def _labels(
    settings: Settings, protocol: Protocol
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the grades that a rubric names, and those that pass; by default the usual ones."""
    labels = settings.words("labels")
    passing = settings.words("passing")
    has_labels = "labels" in settings.values
    if has_labels and protocol == "rate":
        raise settings.problem(
            "labels", "want a list of grades, and no protocol 'rate'"
        )
    for label in labels:
        if not _LABEL.fullmatch(label):
            raise settings.problem(
                "labels", f"want words of at most 40 characters, got {label!r:.60}"
            )
    if has_labels and not 2 <= len(labels) <= MOST_LABELS:
        raise settings.problem(
            "labels", f"want 2 to {MOST_LABELS} labels, got {len(labels)}"
        )
    if len({label.casefold() for label in labels}) < len(labels):
        raise settings.problem("labels", "a label stands twice; keep one")
    if bool(passing) != has_labels:
        raise settings.problem(
            "passing",
            "the keys 'labels' and 'passing' go together; one is missing",
        )
    for label in passing:
        if label not in labels:
            raise settings.problem(
                "passing", f"want one of {', '.join(labels)}, got {label!r:.60}"
            )
    if not has_labels:
        return GRADES, (CORRECT,)
    return labels, passing


_SCORE = re.compile(r"[01]|0?\.[0-9]{1,6}|[01]\.0{1,6}")
"""A number from 0 to 1 with at most six decimals."""


def read_scores(holder: Settings, key: str, rubric: Rubric) -> dict[str, float]:
    """Return the scores, 0 to 1, by grade; a file may name the letter of a grade.

    Empty if ``holder`` has no such key. Raises UsageError.
    """
    if key in holder.values and rubric.protocol == "rate":
        raise holder.problem(
            key, "want a mapping of grades to numbers, and no protocol 'rate'"
        )
    entries = Settings(holder.path, "", holder.part(key).values)
    grades = dict(zip(ascii_uppercase, rubric.labels, strict=False))
    grades |= {label: label for label in rubric.labels}
    scores: dict[str, float] = {}
    for name, value in entries.values.items():
        grade = grades.get(name)
        if grade is None:
            raise entries.problem(
                name, f"not a grade; known: {', '.join(rubric.labels)}"
            )
        if grade in scores:
            raise entries.problem(
                name, f"stands twice; known: {', '.join(rubric.labels)}"
            )
        if not _SCORE.fullmatch(str(value)):
            raise entries.problem(
                name, f"want a number from 0 to 1, got {str(value)!r}"
            )
        scores[grade] = float(str(value))
    return scores


def described(rubric: Rubric, function: str) -> Rubric:
    """Return the rubric with a description of the judge's function; its version tells."""
    version = f"{rubric.version}+{digest(function)[:12]}"
    return replace(rubric, function=function, version=version)


def _examples(settings: Settings, protocol: Protocol, labels: Sequence[str]) -> str:
    """Return the worked examples: the slots as a judge sees them, then the expected reply."""
    verdict_key = "rating" if protocol == "rate" else "grade"
    needed = ("question", "target", "predicted_answer", verdict_key)
    examples = []
    for example in settings.parts("examples"):
        example.check_keys((*needed, "why", "context"), needed)
        reply = _example_reply(example, protocol, labels)
        examples.append(f"{_example_slots(example)}\n{reply}")
    return "\n\n".join(examples)


def _example_slots(example: Settings) -> str:
    fields = [
        f'"{slot}": {encode_fixed(example.text(slot))}'
        for slot in _SLOTS
        if slot in example.values
    ]
    return f"{{{', '.join(fields)}}}"


def _example_reply(example: Settings, protocol: Protocol, labels: Sequence[str]) -> str:
    """Return what a judge should reply to an example, in the form of its protocol."""
    why = ""
    if example.values.get("why"):
        why = example.text("why")
    reason = encode_fixed(why)
    if protocol == "rate":
        rating = example.one_of("rating", [str(rating) for rating in range(1, 11)])
        return _below_reason(reason, f'{{"rating": {rating}}}')
    grade = example.one_of("grade", labels)
    if protocol == "letter":
        return _below_reason(reason, ascii_uppercase[labels.index(grade)])
    return f'{{"reason": {reason}, "grade": "{grade}"}}'


def _below_reason(reason: str, verdict: str) -> str:
    """Return a verdict on a line of its own, below the reason, which is JSON, if there is one."""
    unquoted = reason[1:-1]
    if not unquoted:
        return verdict
    return f"{unquoted}\n{verdict}"
