"""``criteria.yaml``: separate questions by which people rate answers, each on its own scale."""

import re
from dataclasses import dataclass
from pathlib import Path

from cases.review.sheet import Choice
from evaluators.reading import Map, Seq, Settings, load_yaml, problem
from evaluators.text import shown

_KEYS = ("name", "question", "scale", "low", "high")
_SCALE = re.compile(r"(\d{1,2})\s*(?:\.\.|-|–)\s*(\d{1,2})", re.ASCII)
LONGEST = 60  # characters of a name
HIGHEST = 10
STEPS = 10
"""The most points of a scale: every one is given by a digit of its own, 10 by the 0."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Criterion:
    """One question on a scale of whole numbers; ``low`` and ``high`` say what its ends mean."""

    name: str
    question: str
    lowest: int = 1
    highest: int = 7
    low: str = ""
    high: str = ""

    @property
    def choices(self) -> tuple[Choice, ...]:
        """The points of the scale, each with the digit that gives it."""
        points = range(self.lowest, self.highest + 1)
        return tuple(Choice(value=str(one), key=str(one % 10)) for one in points)

    @property
    def text(self) -> str:
        """What the reviewer is asked: the question, and below it the words for the scale's ends."""
        ends = ((self.lowest, self.low), (self.highest, self.high))
        words = " · ".join(f"{point} = {word}" for point, word in ends if word)
        return f"{self.question}\n{words}" if words else self.question


def load_criteria(path: Path) -> tuple[Criterion, ...]:
    """Return the criteria of a file, in its order.

    Raises UsageError naming file, line and key for what cannot be read, or a name that stands
    twice.
    """
    document = load_yaml(path)
    if not isinstance(document, Seq) or not document:
        raise problem(path, 1, "a YAML list of criteria is needed: each begins with '- name: '")
    found: dict[str, Criterion] = {}
    for entry, line in zip(document, document.lines, strict=True):
        if not isinstance(entry, Map):
            raise problem(path, line, f"a mapping of {', '.join(_KEYS)} is needed")
        settings = Settings(path, "", entry)
        one = _criterion(settings)
        if found.setdefault(one.name.casefold(), one) is not one:
            raise problem(path, line, f"name {shown(one.name)} stands twice; names must differ")
    return tuple(found.values())


def _criterion(settings: Settings) -> Criterion:
    settings.check_keys(_KEYS, ("name", "question"))
    key = "name"
    name = settings.text(key)
    if not name.isprintable() or name != name.strip() or len(name) > LONGEST:
        what = f"one line of 1 to {LONGEST} characters is needed, not {shown(name)}"
        raise settings.problem(key, what)
    lowest, highest = _scale(settings)
    return Criterion(
        name=name,
        question=settings.text("question"),
        lowest=lowest,
        highest=highest,
        low=settings.text("low"),
        high=settings.text("high"),
    )


def _scale(settings: Settings) -> tuple[int, int]:
    key = "scale"
    text = settings.text(key, "1..7")
    match = _SCALE.fullmatch(text.strip())
    lowest, highest = map(int, match.groups()) if match else (0, 0)
    if not lowest < highest <= min(HIGHEST, lowest + STEPS - 1):
        what = f"a scale such as 1..7 is needed, of 2 to {STEPS} whole numbers from 0 to {HIGHEST}"
        raise settings.problem(key, f"{what}, not {shown(text)}")
    return lowest, highest
