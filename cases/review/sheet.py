"""What is put before reviewers: items with their texts, verdicts to choose from, who sees what."""

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from evaluators.core import UsageError
from evaluators.settings import load_settings
from evaluators.text import digest

UNCLEAR = "UNCLEAR"
"""The verdict of a reviewer who cannot decide."""

CHOICES = Path(__file__).with_name("choices.yaml")
TAKEN_KEYS = frozenset("em")
_KEY = re.compile(r"[a-z0-9]", re.ASCII)
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One verdict: the ``value`` that is kept and the one key that gives it.

    ``label`` is what the reviewer reads; left out, it is looked up in the item's language.
    """

    value: str
    key: str
    label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Field:
    """One text of an item. ``title`` is a key of the language's titles, or the title itself."""

    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetItem:
    """One item to be reviewed: its texts in order and why it is there (``reasons``).

    A reason is a key of the language's reasons, or the reason itself. ``choices`` names one of
    the sheet's choice sets. ``edit`` is a text that the reviewer may change, None where nothing
    may be changed. ``group`` is the stratum for assignment and for agreement, such as a
    question's type. ``rubric`` is what the judge was told, empty where nothing is to be shown.
    ``question`` is what is asked where that is not the verdict. Items that follow one another with
    the same ``page`` are shown as one, with the texts of the first and all their questions.
    """

    id: str
    language: str
    fields: tuple[Field, ...]
    choices: str
    edit: str | None = None
    reasons: tuple[str, ...] = ()
    group: str = ""
    rubric: str = ""
    question: str = ""
    page: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Items for one or more reviewers. ``name`` becomes the name of the files.

    ``reviewer`` is who it is made out to, empty where anyone may fill it in. Raises UsageError
    where an id occurs twice, a choice set is not given, or keys collide.
    """

    name: str
    items: tuple[SheetItem, ...]
    choices: Mapping[str, tuple[Choice, ...]]
    reviewer: str = ""

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            _refuse(f"{self.name!r} cannot name a file; use letters, digits, '.', '_' and '-'")
        seen: set[str] = set()
        for item in self.items:
            if item.id in seen:
                _refuse(f"{self.name}: item {item.id!r} stands twice; ids must differ")
            if item.choices not in self.choices:
                _refuse(f"{self.name}: item {item.id!r} needs choices {item.choices!r}; give them")
            seen.add(item.id)
        for name, choices in self.choices.items():
            _check_choices(name, choices)

    @property
    def digest(self) -> str:
        """What tells this sheet from any other: a hash of its items, to 16 digits."""
        allowed = self.allowed
        asked = {one.id: [one.question, *allowed[one.id]] for one in self.items if one.question}
        return digest([[one.id, one.edit, *asked.get(one.id, [])] for one in self.items])[:16]

    @property
    def allowed(self) -> Mapping[str, tuple[str, ...]]:
        """The verdicts that each item may be given, by its id."""
        values = {name: tuple(one.value for one in some) for name, some in self.choices.items()}
        return {item.id: values[item.choices] for item in self.items}


def _check_choices(name: str, choices: tuple[Choice, ...]) -> None:
    keys = [one.key for one in choices]
    if not choices or len(set(keys)) < len(keys) or len({c.value for c in choices}) < len(keys):
        _refuse(f"choices {name!r}: there must be some, with different values and keys")
    for key in keys:
        if not _KEY.fullmatch(key) or key in TAKEN_KEYS:
            _refuse(f"choices {name!r}: key {key!r}: one letter a-z (not e, m) or digit is needed")


def _refuse(what: str) -> None:
    raise UsageError(f"review sheet: {what}")


def choice_set(name: str) -> tuple[Choice, ...]:
    """Return a choice set of ``choices.yaml``: grade, rating, yes_no or question.

    Raises UsageError for another name.
    """
    known = load_settings(CHOICES)
    if name not in known.values:
        _refuse(f"no choices {name!r}; there are {', '.join(known.values)}")
    values = known.part(name).values
    return tuple(Choice(value=value, key=str(key)) for value, key in values.items())


@dataclass(frozen=True, slots=True, kw_only=True)
class Duty:
    """How items are shared out. ``overlap`` is the share (0 to 1) that ``together`` people see.

    Every other item is seen by one. The same seed shares out the same items alike.
    """

    reviewers: tuple[str, ...]
    overlap: float = 0.2
    together: int = 2
    seed: int = 0

    def __post_init__(self) -> None:
        names = {name.casefold() for name in self.reviewers}
        msg = ""
        if not names or len(names) < len(self.reviewers):
            got = ", ".join(self.reviewers) or "none"
            msg = f"reviewers: different names are needed, got {got}"
        elif not 0 <= self.overlap <= 1:
            msg = f"overlap: a share from 0 to 1 is needed, got {self.overlap:g}"
        elif self.overlap and not 2 <= self.together <= len(self.reviewers):
            msg = (
                f"overlap: {self.together} of {len(self.reviewers)} reviewers cannot see an item "
                "together; name more reviewers, or no overlap"
            )
        if msg:
            raise UsageError(msg)


def draw(groups: Mapping[str, str], count: int, seed: int) -> frozenset[str]:
    """Return ``count`` items (all where there are fewer), from each group in proportion.

    ``groups`` maps items to their groups. What a proportion leaves over goes to the groups with
    the largest remainders.
    """
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
    """Return each reviewer's items, in the order of ``groups``, which maps items to their groups.

    The overlap is drawn from each group in proportion. An item goes to those who have the fewest
    so far, so that no two reviewers differ by more than one item.
    """
    shared = draw(groups, round(duty.overlap * len(groups)), duty.seed)
    given: dict[str, set[str]] = {name: set() for name in duty.reviewers}
    for item in sorted(groups, key=lambda item: (groups[item], _rank(duty.seed, "assign", item))):
        by_load = sorted(given, key=lambda name: (len(given[name]), _rank(duty.seed, item, name)))
        for name in by_load[: duty.together if item in shared else 1]:
            given[name].add(item)
    return {name: tuple(item for item in groups if item in given[name]) for name in given}


def sheets_for(sheet: Sheet, assignment: Mapping[str, Sequence[str]]) -> tuple[Sheet, ...]:
    """Return one sheet a reviewer, made out to them; their files are numbered."""
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
