"""Prompts and rubrics: templates of one language, read from YAML and filled in one pass."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NoReturn, cast, get_args

from evaluators import strict_yaml
from evaluators.canonical import digest
from evaluators.core import CORRECT, GRADES, INCORRECT, NOT_ATTEMPTED, UsageError
from evaluators.files import read_text
from evaluators.strict_yaml import Map, Seq
from evaluators.template import canonical_places, encode_fixed, fill, places

Protocol = Literal["tool", "letter", "json", "rate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """An answer prompt. ``version`` is its name, language, version and content hash."""

    name: str
    language: str
    system: str
    user: str
    version: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rubric:
    """How a judge is asked. ``scores`` maps grades to 0..1 where the rubric gives them."""

    name: str
    language: str
    protocol: Protocol
    system: str
    user: str
    version: str
    scores: Mapping[str, float] = field(default_factory=dict)


LETTERS: Mapping[str, str] = {CORRECT: "A", INCORRECT: "B", NOT_ATTEMPTED: "C"}
_HEAD = ("name", "language", "version")
_SLOTS = ("question", "context", "target", "predicted_answer")
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")
_TEMPLATE_NAME = re.compile(rf"(?P<name>.+)\.(?P<language>{_LANGUAGE.pattern})\.txt")


def load_prompt(path: Path) -> Prompt:
    """Return the answer prompt of a YAML file. Raises UsageError naming file, line and key."""
    data = _mapping(path, (*_HEAD, "user"), ("system",))
    system, user = (canonical_places(_text(path, data, key)) for key in ("system", "user"))
    if "question" not in places(user):
        _wrong(path, data, "user", "has no place {question}; put it where the question goes")
    for name in places(system + user):
        if name not in ("question", "context"):
            _wrong(path, data, "user", f"place {{{name}}} is not known in an answer prompt")
    head = _head(path, data)
    return Prompt(**head, system=system, user=user)


def load_rubric(path: Path) -> Rubric:
    """Return the rubric of a YAML file, its examples rendered into their place.

    Raises UsageError naming file, line and key.
    """
    data = _mapping(path, (*_HEAD, "protocol", "user"), ("system", "examples", "scores"))
    protocol = _protocol(path, data)
    system, user = (canonical_places(_text(path, data, key)) for key in ("system", "user"))
    _check_places(path, data, system, user)
    rendered = {"examples": _examples(path, data, protocol)}
    return Rubric(
        **_head(path, data),
        protocol=protocol,
        system=fill(system, rendered),
        user=fill(user, rendered),
        scores=_scores(path, data, protocol),
    )


def load_template(path: Path, language: str, protocol: Protocol = "letter") -> Rubric:
    """Return a user's own grading template as a rubric for this language.

    A YAML file is a rubric. A text file is the user message alone; its language stands in its
    name (``mine.bg.txt``), and ``protocol`` says how its replies are read. Raises UsageError,
    also where the template declares another language or none.
    """
    if path.suffix in (".yaml", ".yml"):
        rubric = load_rubric(path)
    else:
        rubric = _plain_template(path, protocol)
    check_language(rubric, language, f"{path}")
    return rubric


def check_language(rubric: Rubric | Prompt, language: str, where: str) -> None:
    """Raise UsageError where a rubric or prompt of one language serves another.

    ``where`` names the file or slice that asked for it.
    """
    if rubric.language != language:
        msg = (
            f"{where}: {rubric.name!r} is written for language {rubric.language!r}, got a slice "
            f"in {language!r}; give a template of that language"
        )
        raise UsageError(msg)


def _plain_template(path: Path, protocol: Protocol) -> Rubric:
    declared = _TEMPLATE_NAME.fullmatch(path.name)
    if declared is None:
        msg = f"{path}: language not declared; name the file like 'mine.bg.txt' (got {path.name!r})"
        raise UsageError(msg)
    user = canonical_places(read_text(path))
    data = Map(1)
    data["user"] = user
    _check_places(path, data, "", user)
    name, language = declared["name"], declared["language"]
    version = f"{name}.{language}@template#{digest(user)[:12]}"
    return Rubric(
        name=name, language=language, protocol=protocol, system="", user=user, version=version
    )


def _wrong(path: Path, data: Map, key: str, problem: str) -> NoReturn:
    line = data.lines.get(key, data.line)
    msg = f"{path}:{line}: key {key!r}: {problem}"
    raise UsageError(msg)


def _mapping(path: Path, required: tuple[str, ...], optional: tuple[str, ...]) -> Map:
    data = strict_yaml.load(path)
    if not isinstance(data, Map):
        msg = f"{path}:1: want a mapping with keys {', '.join(required)}"
        raise UsageError(msg)
    _check_keys(path, data, required, optional)
    return data


def _check_keys(
    path: Path, data: Map, required: tuple[str, ...], optional: tuple[str, ...]
) -> None:
    for key in data:
        if key not in required + optional:
            _wrong(path, data, key, f"not known; known: {', '.join(required + optional)}")
    for key in required:
        if not data.get(key):
            _wrong(path, data, key, "missing or empty")


def _text(path: Path, data: Map, key: str) -> str:
    value = data.get(key, "")
    if not isinstance(value, str):
        _wrong(path, data, key, "want text")
    return value


def _head(path: Path, data: Map) -> dict[str, str]:
    name, language, version = (_text(path, data, key) for key in _HEAD)
    if not _LANGUAGE.fullmatch(language):
        _wrong(path, data, "language", f"want a code such as 'en' or 'bg', got {language!r}")
    full = f"{name}.{language}@{version}#{digest(data)[:12]}"
    return {"name": name, "language": language, "version": full}


def _protocol(path: Path, data: Map) -> Protocol:
    value = data["protocol"]
    if value not in get_args(Protocol):
        _wrong(
            path, data, "protocol", f"want one of {', '.join(get_args(Protocol))}, got {value!r}"
        )
    return cast("Protocol", value)


def _check_places(path: Path, data: Map, system: str, user: str) -> None:
    stray = [name for name in places(system) if name in _SLOTS]
    if stray:
        _wrong(path, data, "system", f"place {{{stray[0]}}} belongs into 'user'")
    found = places(user)
    for name in ("question", "target", "predicted_answer"):
        if name not in found:
            _wrong(path, data, "user", f"has no place {{{name}}}; put it where that text goes")
    if found.count("predicted_answer") > 1:
        _wrong(path, data, "user", "place {predicted_answer} stands more than once; keep one")
    if ("examples" in places(system + user)) != ("examples" in data):
        _wrong(
            path, data, "examples", "the key and the place {examples} go together; one is missing"
        )


def _scores(path: Path, data: Map, protocol: Protocol) -> dict[str, float]:
    given = data.get("scores", Map(data.line))
    if not isinstance(given, Map) or ("scores" in data and protocol == "rate"):
        _wrong(path, data, "scores", "want a mapping of grades to numbers, and no protocol 'rate'")
    return {grade: _score(path, given, grade) for grade in given}


def _score(path: Path, given: Map, grade: str) -> float:
    if grade not in GRADES:
        _wrong(path, given, grade, f"not a grade; known: {', '.join(GRADES)}")
    text = str(given[grade])
    if not re.fullmatch(r"[01]|0?\.[0-9]{1,6}|[01]\.0{1,6}", text, re.ASCII):
        _wrong(path, given, grade, f"want a number from 0 to 1, got {text!r}")
    return float(text)


def _examples(path: Path, data: Map, protocol: Protocol) -> str:
    entries = data.get("examples", Seq(data.line))
    if not isinstance(entries, Seq):
        _wrong(path, data, "examples", "want a list")
    return "\n\n".join(_example(path, data, entry, protocol) for entry in entries)


def _example(path: Path, data: Map, entry: object, protocol: Protocol) -> str:
    if not isinstance(entry, Map):
        _wrong(path, data, "examples", f"want mappings, got {entry!r:.60}")
    label = "rating" if protocol == "rate" else "grade"
    _check_keys(path, entry, ("question", "target", "predicted_answer", label), ("why", "context"))
    allowed = [str(n) for n in range(1, 11)] if protocol == "rate" else list(GRADES)
    if entry[label] not in allowed:
        _wrong(path, entry, label, f"want one of {', '.join(allowed)}, got {entry[label]!r:.60}")
    shown = [name for name in _SLOTS if name in entry]
    asked = ", ".join(f'"{name}": {encode_fixed(_text(path, entry, name))}' for name in shown)
    return f"{{{asked}}}\n{_example_reply(path, entry, protocol)}"


def _example_reply(path: Path, entry: Map, protocol: Protocol) -> str:
    why = encode_fixed(_text(path, entry, "why"))
    if protocol in ("tool", "json"):
        return f'{{"reason": {why}, "grade": "{entry["grade"]}"}}'
    grade = LETTERS.get(str(entry.get("grade")))
    verdict = grade or f'{{"rating": {entry["rating"]}}}'
    return "\n".join(line for line in (why[1:-1], verdict) if line)
