"""What is put before a reviewer: items with their texts, and the verdicts to choose from."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from cases.settings import load_settings
from evaluators.canonical import digest
from evaluators.core import UsageError

UNCLEAR = "UNCLEAR"
"""The verdict of a reviewer who cannot decide."""

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
    """One text of an item. ``title`` is a key of the language's titles, or shown as it stands."""

    title: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetItem:
    """One item to be reviewed: its texts in order and why it is there (``reasons``).

    A reason is a key of the language's reasons, or shown as it stands. ``choices`` names one of
    the sheet's choice sets. ``edit`` is a text that the reviewer may change, None where nothing
    may be changed. ``group`` is the stratum for assignment and for agreement, such as a
    question's type.
    """

    id: str
    language: str
    fields: tuple[Field, ...]
    choices: str
    edit: str | None = None
    reasons: tuple[str, ...] = ()
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Items for one or more reviewers. ``name`` becomes the name of the files.

    ``reviewer`` is who it is made out to, empty where anyone may fill it in. Raises UsageError
    where an id stands twice, a choice set is not given, or keys collide.
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
        return digest([[item.id, item.edit] for item in self.items])[:16]

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
    msg = f"review sheet: {what}"
    raise UsageError(msg)


def choice_set(name: str) -> tuple[Choice, ...]:
    """Return a choice set of ``choices.yaml``: grade, rating, yes_no or question.

    Raises UsageError for another name.
    """
    known = load_settings(Path(str(files("cases.tools.review").joinpath("choices.yaml"))))
    if name not in known.values:
        _refuse(f"no choices {name!r}; there are {', '.join(known.values)}")
    values = known.part(name).values
    return tuple(Choice(value=value, key=str(key)) for value, key in values.items())
