"""What reviewers are shown: items with texts and questions, their choices, and who sees what."""

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cases.check.item_checks import mixed_words
from evaluators.core import UsageError
from evaluators.reading import Map, Seq, Settings, load_settings, load_yaml, problem
from evaluators.text import INVISIBLE, digest, shown

UNCLEAR = "UNCLEAR"
"""The verdict of a reviewer who cannot decide."""
CHOICES = Path(__file__).with_name("choices.yaml")
LONGEST_NAME = 60  # characters of a criterion's name
HIGHEST, MOST_POINTS = 10, 10
"""Each point of a scale is given by one digit, 10 by the 0."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", re.ASCII)
_SCALE = re.compile(r"(\d{1,2})\s*(?:\.\.|-|–)\s*(\d{1,2})", re.ASCII)
_CRITERION_KEYS = ("name", "question", "scale", "low", "high")


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked of an item: a verdict, or a rating by a criterion."""

    keys: Mapping[str, str]
    """The key that gives each verdict or point of a scale: a-z without e and m, or a digit."""
    kind: str = ""
    """The verdict's choice set, whose rules and labels are in the form's texts."""
    name: str = ""
    """The criterion; empty for a verdict."""
    text: str = ""
    """What is asked by the criterion, with the words for the ends of its scale."""

    @property
    def values(self) -> tuple[str, ...]:
        """The answers that may be given."""
        return tuple(self.keys)


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetItem:
    """One item to be reviewed."""

    id: str
    language: str
    fields: Mapping[str, str]
    """Its texts by title: a key of the language's titles, or the title itself."""
    questions: tuple[Question, ...]
    edit: str | None = None
    """A text that the reviewer may change; None if nothing may be changed."""
    reasons: tuple[str, ...] = ()
    """Why it is here: keys of the language's reasons, or the reasons themselves."""
    rubric: str = ""
    """What the judge was told; empty if it is not shown."""
    pair: str = ""
    """What it shares with the next item if the form shows both on one screen: two answers."""

    @property
    def asked(self) -> Iterator[tuple[str, Question]]:
        """Yield each question with its id: the item's, or ``ITEM#CRITERION``."""
        for one in self.questions:
            yield f"{self.id}#{one.name}" if one.name else self.id, one


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Items for one or more reviewers. Raises UsageError if an id occurs twice."""

    name: str
    """The name of the sheet's files, without ending."""
    items: tuple[SheetItem, ...]
    reviewer: str = ""
    """Who it is made out to; empty if anyone may fill it in."""

    def __post_init__(self) -> None:
        what = ""
        if not _NAME.fullmatch(self.name):
            what = f"{self.name!r} cannot name a file; use letters, digits, '.', '_' and '-'"
        ids = [item.id for item in self.items]
        if twice := next((id_ for id_ in ids if ids.count(id_) > 1), None):
            what = f"{self.name}: item {twice!r} stands twice; ids must differ"
        if what:
            raise UsageError(f"review sheet: {what}")

    @property
    def digest(self) -> str:
        """Identify this sheet by a hash of its items, to 16 digits."""
        asked = [(item.edit, *pair) for item in self.items for pair in item.asked]
        rows = [[id_, edit, *([q.text, *q.values] if q.text else [])] for edit, id_, q in asked]
        return digest(rows)[:16]

    @property
    def allowed(self) -> Mapping[str, tuple[str, ...]]:
        """The answers that each question may be given, by its id."""
        return {id_: one.values for item in self.items for id_, one in item.asked}


def verdict_question(kind: str) -> Question:
    """Return a choice set of ``choices.yaml`` as a question: grade, rating, yes_no or question."""
    keys = load_settings(CHOICES).part(kind).values
    return Question(kind=kind, keys={value: str(key) for value, key in keys.items()})


def load_criteria(path: Path) -> tuple[Question, ...]:
    """Return a file's criteria as questions. Raises UsageError naming file, line and key."""
    document = load_yaml(path)
    if not isinstance(document, Seq) or not document:
        raise problem(path, 1, "a YAML list of criteria is needed: each begins with '- name: '")
    found: dict[str, Question] = {}
    for entry, line in zip(document, document.lines, strict=True):
        if not isinstance(entry, Map):
            raise problem(path, line, f"a mapping of {', '.join(_CRITERION_KEYS)} is needed")
        one = _criterion(Settings(path, "", entry))
        if found.setdefault(one.name.casefold(), one) is not one:
            raise problem(path, line, f"name {shown(one.name)} stands twice; names must differ")
    return tuple(found.values())


def _criterion(settings: Settings) -> Question:
    settings.check_keys(_CRITERION_KEYS, ("name", "question"))
    name, scale = settings.text("name"), settings.text("scale", "1..7")
    if not name.isprintable() or name != name.strip() or len(name) > LONGEST_NAME:
        what = f"one line of 1 to {LONGEST_NAME} characters is needed, not {shown(name)}"
        raise settings.problem(key="name", what=what)
    match = _SCALE.fullmatch(scale.strip())
    low, high = map(int, match.groups()) if match else (0, 0)
    if not low < high <= min(HIGHEST, low + MOST_POINTS - 1):
        what = f"a scale such as 1..7 is needed, of 2 to {MOST_POINTS} whole numbers from 0 to 10"
        raise settings.problem(key="scale", what=f"{what}, not {shown(scale)}")
    ends = ((low, settings.text("low")), (high, settings.text("high")))
    words = " · ".join(f"{point} = {word}" for point, word in ends if word)
    question = settings.text("question")
    keys = {str(point): str(point % 10) for point in range(low, high + 1)}
    return Question(name=name, text=f"{question}\n{words}" if words else question, keys=keys)


def name_fault(name: str) -> str:
    """Return what makes a reviewer's name look like another one; empty if nothing does."""
    plain = unicodedata.normalize("NFC", name)
    if INVISIBLE.search(plain) or unicodedata.normalize("NFKC", plain) != plain:
        return f"{shown(name)} has hidden or odd characters; type it again"
    word, odd = next(mixed_words(plain, "Latin"), ("", ""))
    if not odd:
        return ""
    return f"{shown(word)} mixes scripts (U+{ord(odd[0]):04X}); type it on one keyboard"


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """How items are shared out; the same seed shares out the same items alike."""

    reviewers: tuple[str, ...]
    overlap: float = 0.2
    """The share (0 to 1) of items that two people see; the others are seen by one."""
    seed: int = 0

    def __post_init__(self) -> None:
        names = {name.casefold() for name in self.reviewers}
        what = next(filter(None, map(name_fault, self.reviewers)), "")
        if what:
            what = f"reviewers: {what}"
        elif not names or len(names) < len(self.reviewers):
            got = ", ".join(self.reviewers) or "none"
            what = f"reviewers: different names are needed, got {got}"
        elif not 0 <= self.overlap <= 1:
            what = f"overlap: a share from 0 to 1 is needed, got {self.overlap:g}"
        elif self.overlap and len(self.reviewers) < 2:
            what = "overlap: one reviewer cannot see an item twice; name another, or no overlap"
        if what:
            raise UsageError(what)


def draw(groups: Mapping[str, str], count: int, seed: int) -> frozenset[str]:
    """Return ``count`` items (all if fewer), in proportion from each group, largest remainders."""
    members: dict[str, list[str]] = defaultdict(list)
    for item in sorted(groups, key=lambda item: _rank(seed, "draw", item)):
        members[groups[item]].append(item)
    count = min(count, len(groups))
    whole = {name: count * len(some) // len(groups) for name, some in members.items()}
    rest = sorted(members, key=lambda name: (-(count * len(members[name]) % len(groups)), name))
    for name in rest[: count - sum(whole.values())]:
        whole[name] += 1
    return frozenset(item for name, some in members.items() for item in some[: whole[name]])


def assign(groups: Mapping[str, str], duty: Duty) -> dict[str, tuple[str, ...]]:
    """Return each reviewer's items, in order; the overlap is of each group, loads are even."""
    shared = draw(groups, round(duty.overlap * len(groups)), duty.seed)
    given: dict[str, set[str]] = {name: set() for name in duty.reviewers}
    for item in sorted(groups, key=lambda item: (groups[item], _rank(duty.seed, "assign", item))):
        by_load = sorted(given, key=lambda name: (len(given[name]), _rank(duty.seed, item, name)))
        for name in by_load[: 2 if item in shared else 1]:
            given[name].add(item)
    return {name: tuple(item for item in groups if item in given[name]) for name in given}


def sheets_for(sheet: Sheet, assignment: Mapping[str, Sequence[str]]) -> tuple[Sheet, ...]:
    """Return one sheet for each reviewer, made out to them; their files are numbered."""
    items = {item.id: item for item in sheet.items}
    return tuple(
        replace(
            sheet,
            name=f"{sheet.name}-{number}",
            reviewer=reviewer,
            items=tuple(items[id_] for id_ in ids),
        )
        for number, (reviewer, ids) in enumerate(assignment.items(), 1)
    )


def _rank(seed: int, *parts: str) -> bytes:
    """Return a hash that puts things in an order which only the seed decides."""
    return hashlib.sha256("\0".join((str(seed), *parts)).encode()).digest()
