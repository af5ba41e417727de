"""Prompts and rubrics: templates of one language, read from YAML and filled in one pass."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, NoReturn, cast, get_args

from evaluators.core import CORRECT, GRADES, UsageError
from evaluators.reading import Map, Seq, load_yaml, read_text
from evaluators.template import canonical_places, encode_fixed, fill, places
from evaluators.text import digest

Protocol = Literal["tool", "letter", "json", "rate"]
Style = Literal["graded", "rated"]
"""Whether a judge gives grades or ratings of 1 to 10."""


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
    """How a judge is asked. ``labels`` are the grades it may give, ``passing`` those that pass.

    ``scores`` maps grades to 0..1 where the rubric gives them.
    """

    name: str
    language: str
    protocol: Protocol
    system: str
    user: str
    version: str
    scores: Mapping[str, float] = field(default_factory=dict)
    labels: tuple[str, ...] = GRADES
    passing: tuple[str, ...] = (CORRECT,)

    @property
    def style(self) -> Style:
        """Whether it asks for grades or for ratings."""
        return "rated" if self.protocol == "rate" else "graded"

    @property
    def has_own_labels(self) -> bool:
        """Whether it asks for other grades than CORRECT, INCORRECT and NOT_ATTEMPTED."""
        return self.labels != GRADES


MOST_LABELS = 26  # each has a letter
_LABEL = re.compile(r"[^\W\d_][^\n\r\t\"]{0,39}")


_HEAD = ("name", "language", "version")
_SLOTS = ("question", "context", "target", "predicted_answer")
_LANGUAGE = re.compile(r"[a-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")
_TEMPLATE_NAME = re.compile(rf"(?P<name>.+)\.(?P<language>{_LANGUAGE.pattern})\.txt")


def load_prompt(path: Path) -> Prompt:
    """Return the answer prompt of a YAML file. Raises UsageError naming file, line and key."""
    entry = _Entry.of_file(path, (*_HEAD, "user"), ("system",))
    system, user = entry.messages()
    if "question" not in places(user):
        entry.refuse("user", "has no place {question}; put it where the question goes")
    for name in places(system + user):
        if name not in ("question", "context"):
            entry.refuse("user", f"place {{{name}}} is not known in an answer prompt")
    return Prompt(**entry.head(), system=system, user=user)


def load_rubric(path: Path) -> Rubric:
    """Return the rubric of a YAML file, its examples rendered into their place.

    Raises UsageError naming file, line and key.
    """
    optional = ("system", "examples", "scores", "labels", "passing")
    entry = _Entry.of_file(path, (*_HEAD, "protocol", "user"), optional)
    protocol = entry.data["protocol"]
    if protocol not in get_args(Protocol):
        known = ", ".join(get_args(Protocol))
        entry.refuse("protocol", f"want one of {known}, got {protocol!r}")
    labels = _labels(entry)
    system, user = entry.messages()
    _check_places(entry, system, user)
    rendered = {"examples": _examples(entry, labels)}
    return Rubric(
        **entry.head(),
        protocol=cast("Protocol", protocol),
        system=fill(system, rendered),
        user=fill(user, rendered),
        scores=_scores(entry, labels),
        labels=labels,
        passing=_passing(entry, labels),
    )


def load_template(path: Path, language: str, protocol: Protocol = "letter") -> Rubric:
    """Return a user's own grading template as a rubric for this language.

    A YAML file is a rubric. A text file is the user message alone; its language stands in its
    name (``mine.bg.txt``), and ``protocol`` says how its replies are read. Raises UsageError,
    also where the template declares another language or none.
    """
    if path.suffix in (".yaml", ".yml"):
        rubric = load_rubric(path)
        check_language(rubric, language, f"{path}")
        return rubric
    named = _TEMPLATE_NAME.fullmatch(path.name)
    if named is None:
        msg = f"{path}: language not declared; name the file like 'mine.bg.txt' (got {path.name!r})"
        raise UsageError(msg)
    user = canonical_places(read_text(path))
    data = Map(1)
    data["user"] = user
    _check_places(_Entry(path, data), "", user)
    name, code = named["name"], named["language"]
    version = f"{name}.{code}@template#{digest(user)[:12]}"
    rubric = Rubric(
        name=name, language=code, protocol=protocol, system="", user=user, version=version
    )
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


@dataclass(frozen=True, slots=True)
class _Entry:
    """A mapping of a file, whose errors name file, line and key."""

    path: Path
    data: Map

    @classmethod
    def of_file(cls, path: Path, required: Sequence[str], optional: Sequence[str]) -> "_Entry":
        """Return the whole file's mapping, its keys checked."""
        data = load_yaml(path)
        if not isinstance(data, Map):
            msg = f"{path}:1: want a mapping with keys {', '.join(required)}"
            raise UsageError(msg)
        entry = cls(path, data)
        entry.check_keys(required, optional)
        return entry

    def refuse(self, key: str, problem: str) -> NoReturn:
        """Raise the error about one key."""
        line = self.data.lines.get(key, self.data.line)
        msg = f"{self.path}:{line}: key {key!r}: {problem}"
        raise UsageError(msg)

    def check_keys(self, required: Sequence[str], optional: Sequence[str]) -> None:
        """Raise UsageError for a key that is not known, or a missing one."""
        for key in self.data:
            if key not in (*required, *optional):
                self.refuse(key, f"not known; known: {', '.join((*required, *optional))}")
        for key in required:
            if not self.data.get(key):
                self.refuse(key, "missing or empty")

    def text(self, key: str) -> str:
        """Return a value that is text, empty where the key is absent."""
        value = self.data.get(key, "")
        if not isinstance(value, str):
            self.refuse(key, "want text")
        return value

    def listed(self, key: str, problem: str) -> Seq:
        """Return a value that is a list, an empty one where the key is absent."""
        value = self.data.get(key, Seq(self.data.line))
        if not isinstance(value, Seq):
            self.refuse(key, problem)
        return value

    def messages(self) -> tuple[str, str]:
        """Return the system and the user message with the canonical names of places."""
        return canonical_places(self.text("system")), canonical_places(self.text("user"))

    def head(self) -> dict[str, str]:
        """Return name, language and full version of the whole file."""
        name, language, version = (self.text(key) for key in _HEAD)
        if not _LANGUAGE.fullmatch(language):
            self.refuse("language", f"want a code such as 'en' or 'bg', got {language!r}")
        full = f"{name}.{language}@{version}#{digest(self.data)[:12]}"
        return {"name": name, "language": language, "version": full}

    @property
    def rates(self) -> bool:
        """Whether it is a rubric that asks for ratings."""
        return self.data.get("protocol") == "rate"


def _check_places(entry: _Entry, system: str, user: str) -> None:
    stray = [name for name in places(system) if name in _SLOTS]
    if stray:
        entry.refuse("system", f"place {{{stray[0]}}} belongs into 'user'")
    found = places(user)
    needed = ("question", "target", "predicted_answer")
    for name in needed[-1:] if "labels" in entry.data else needed:
        if name not in found:
            entry.refuse("user", f"has no place {{{name}}}; put it where that text goes")
    if found.count("predicted_answer") > 1:
        entry.refuse("user", "place {predicted_answer} stands more than once; keep one")
    if ("examples" in places(system + user)) != ("examples" in entry.data):
        entry.refuse("examples", "the key and the place {examples} go together; one is missing")


def _labels(entry: _Entry) -> tuple[str, ...]:
    """Return the grades that a rubric names; the usual three where it names none."""
    if "labels" not in entry.data:
        return GRADES
    labels = entry.data["labels"]
    if not isinstance(labels, Seq) or entry.rates:
        entry.refuse("labels", "want a list of grades, and no protocol 'rate'")
    for label in labels:
        if not isinstance(label, str) or not _LABEL.fullmatch(label):
            entry.refuse("labels", f"want words of at most 40 characters, got {label!r:.60}")
    if not 2 <= len(labels) <= MOST_LABELS:
        entry.refuse("labels", f"want 2 to {MOST_LABELS} labels, got {len(labels)}")
    if len({str(label).casefold() for label in labels}) < len(labels):
        entry.refuse("labels", "a label stands twice; keep one")
    return tuple(map(str, labels))


def _passing(entry: _Entry, labels: Sequence[str]) -> tuple[str, ...]:
    """Return the labels of a right answer, which a rubric with labels of its own must name."""
    passing = entry.listed("passing", "want a list of the labels that pass")
    if bool(passing) != ("labels" in entry.data):
        entry.refuse("passing", "the keys 'labels' and 'passing' go together; one is missing")
    for label in passing:
        if label not in labels:
            entry.refuse("passing", f"want one of {', '.join(labels)}, got {label!r:.60}")
    return tuple(map(str, passing)) or (CORRECT,)


def _scores(entry: _Entry, labels: Sequence[str]) -> dict[str, float]:
    given = entry.data.get("scores", Map(entry.data.line))
    if not isinstance(given, Map) or ("scores" in entry.data and entry.rates):
        entry.refuse("scores", "want a mapping of grades to numbers, and no protocol 'rate'")
    scores = _Entry(entry.path, given)
    for grade in given:
        if grade not in labels:
            scores.refuse(grade, f"not a grade; known: {', '.join(labels)}")
        text = str(given[grade])
        if not re.fullmatch(r"[01]|0?\.[0-9]{1,6}|[01]\.0{1,6}", text, re.ASCII):
            scores.refuse(grade, f"want a number from 0 to 1, got {text!r}")
    return {grade: float(str(given[grade])) for grade in given}


def _examples(entry: _Entry, labels: Sequence[str]) -> str:
    examples = []
    for each in entry.listed("examples", "want a list"):
        if not isinstance(each, Map):
            entry.refuse("examples", f"want mappings, got {each!r:.60}")
        examples.append(_example(_Entry(entry.path, each), entry, labels))
    return "\n\n".join(examples)


def _example(example: _Entry, rubric: _Entry, labels: Sequence[str]) -> str:
    """Return a worked example: the slots as a judge sees them, then the reply it should give."""
    key = "rating" if rubric.rates else "grade"
    example.check_keys(("question", "target", "predicted_answer", key), ("why", "context"))
    allowed = [str(rating) for rating in range(1, 11)] if rubric.rates else labels
    verdict = example.data[key]
    if verdict not in allowed:
        example.refuse(key, f"want one of {', '.join(allowed)}, got {verdict!r:.60}")
    slots = [name for name in _SLOTS if name in example.data]
    values = ", ".join(f'"{name}": {encode_fixed(example.text(name))}' for name in slots)
    why = encode_fixed(example.text("why"))
    if rubric.data["protocol"] in ("tool", "json"):
        return f'{{{values}}}\n{{"reason": {why}, "grade": "{verdict}"}}'
    reply = f'{{"rating": {verdict}}}' if rubric.rates else chr(ord("A") + allowed.index(verdict))
    return "\n".join(line for line in (f"{{{values}}}", why[1:-1], reply) if line)
