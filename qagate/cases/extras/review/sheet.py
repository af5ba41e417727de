"""What people are shown: items, who sees what, the words of forms, and a sheet's CSV twin.

The form itself, an offline page, is made in ``page.py``.
"""

import hashlib
import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from qagate.cases.extras.review.goals import Draw, Goal
from qagate.evaluators import output
from qagate.evaluators.core import UsageError
from qagate.evaluators.languages.look_alikes import mixed_words
from qagate.evaluators.reading import load_entries, load_settings, problem
from qagate.evaluators.text import INVISIBLE, digest, mask, shown

UNCLEAR = "UNCLEAR"
"""The verdict of a reviewer who cannot decide."""
LONGEST_NAME = 60  # characters of a criterion's name
HIGHEST, MOST_POINTS = 10, 10
"""Each point of a scale is given by one digit, 10 by the 0."""
_SCALE = re.compile(r"(\d{1,2})\s*(?:\.\.|-|–)\s*(\d{1,2})", re.ASCII)
_CRITERION_KEYS = ("name", "question", "scale", "low", "high")
FOLDER = Path(__file__).parent
FALLBACK = "en"
RATE = "rate: "
"""What the column of a criterion begins with, before its name."""


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
    drawn: Draw | None = None
    """How it was drawn, where the sheet has goals."""

    @property
    def asked(self) -> Iterator[tuple[str, Question]]:
        """Yield each question with its id: the item's, or ``ITEM#CRITERION``."""
        for one in self.questions:
            yield f"{self.id}#{one.name}" if one.name else self.id, one


@dataclass(frozen=True, slots=True, kw_only=True)
class Sheet:
    """Items for one or more reviewers."""

    name: str
    """The name of the sheet's files, without ending."""
    items: tuple[SheetItem, ...]
    reviewer: str = ""
    """Who it is made out to; empty if anyone may fill it in."""
    goals: Mapping[str, tuple[Goal, ...]] = field(default_factory=dict)
    """How many verdicts of each class it is to collect, by slice; empty for one on each item."""
    command: str = ""
    """The command that takes in what the form saves, where the form is to say it."""

    @property
    def digest(self) -> str:
        """Identify this sheet by a hash of its items, to 16 digits."""
        asked = [(item.edit, *pair) for item in self.items for pair in item.asked]
        rows = [
            [id_, edit, *([q.text, *q.keys] if q.text else [])]
            for edit, id_, q in asked
        ]
        return digest(rows)[:16]

    @property
    def allowed(self) -> Mapping[str, tuple[str, ...]]:
        """The answers that each question may be given, by its id."""
        return {id_: tuple(one.keys) for item in self.items for id_, one in item.asked}


def verdict_question(kind: str) -> Question:
    """Return a choice set of ``choices.yaml`` as a question: grade, rating, yes_no or question."""
    keys = load_settings(FOLDER / "choices.yaml").part(kind).values
    return Question(kind=kind, keys={value: str(key) for value, key in keys.items()})


def load_criteria(path: Path) -> tuple[Question, ...]:
    """Return a file's criteria as questions. Raises UsageError naming file, line and key."""
    found = dict[str, Question]()
    for settings in load_entries(
        path, "criteria", _CRITERION_KEYS, _CRITERION_KEYS[:2]
    ):
        name, scale = settings.text("name"), settings.text("scale", "1..7")
        if not name.isprintable() or name != name.strip() or len(name) > LONGEST_NAME:
            what = f"one line of 1 to {LONGEST_NAME} characters is needed, not {shown(name)}"
            raise settings.problem("name", what)
        match = _SCALE.fullmatch(scale.strip())
        low, high = map(int, match.groups()) if match else (0, 0)
        if not low < high <= min(HIGHEST, low + MOST_POINTS - 1):
            what = f"a scale such as 1..7 is needed, of 2 to {MOST_POINTS} whole numbers from 0"
            raise settings.problem("scale", f"{what} to {HIGHEST}, not {shown(scale)}")
        ends = ((low, settings.text("low")), (high, settings.text("high")))
        words = " · ".join(f"{point} = {word}" for point, word in ends if word)
        text = "\n".join(filter(None, (settings.text("question"), words)))
        keys = {str(point): str(point % 10) for point in range(low, high + 1)}
        one = Question(name=name, text=text, keys=keys)
        if found.setdefault(name.casefold(), one) is not one:
            what = f"name {shown(name)} stands twice; names must differ"
            raise problem(path, settings.values.line, what)
    if not found:
        raise problem(
            path, 1, "a YAML list of criteria is needed: each begins with '- name: '"
        )
    return tuple(found.values())


def name_fault(name: str) -> str:
    """Return what makes a reviewer's name look like another one; empty if nothing does."""
    plain = unicodedata.normalize("NFC", name)
    is_odd = INVISIBLE.search(plain) or not plain.isprintable()
    if is_odd or unicodedata.normalize("NFKC", plain) != plain:
        return f"{shown(name)} has hidden or odd characters; type it again"
    mixed = next(mixed_words(plain, "Latin"), None)
    if mixed is None:
        return ""
    letter = f"U+{ord(mixed.odd[0]):04X}"
    return f"{shown(mixed.word)} mixes scripts ({letter}); type it on one keyboard"


def draw(groups: Mapping[str, str], count: int, seed: int) -> frozenset[str]:
    """Return ``count`` items (all if fewer) in proportion from each group: largest remainders."""
    members: dict[str, list[str]] = defaultdict(list)
    for item in sorted(groups, key=lambda item: _rank(seed, "draw", item)):
        members[groups[item]].append(item)
    count = min(count, len(groups))
    whole = {name: count * len(some) // len(groups) for name, some in members.items()}
    rest = sorted(
        members, key=lambda name: (-(count * len(members[name]) % len(groups)), name)
    )
    for name in rest[: count - sum(whole.values())]:
        whole[name] += 1
    return frozenset(
        item for name, some in members.items() for item in some[: whole[name]]
    )


def assign(
    groups: Mapping[str, str], reviewers: Sequence[str], overlap: float, seed: int = 0
) -> dict[str, tuple[str, ...]]:
    """Return each reviewer's items, in order: loads are even, and the same seed gives the same.

    Two people see the ``overlap``, a share (0 to 1) of each group; one sees the others. Raises
    UsageError for names that look alike, and for an overlap that these reviewers cannot have.
    """
    what = ""
    if fault := next(filter(None, map(name_fault, reviewers)), ""):
        what = f"reviewers: {fault}"
    elif not reviewers or len({name.casefold() for name in reviewers}) < len(reviewers):
        what = f"reviewers: different names are needed, got {', '.join(reviewers) or 'none'}"
    elif not 0 <= overlap <= 1:
        what = f"overlap: a share from 0 to 1 is needed, got {overlap:g}"
    elif overlap and len(reviewers) < 2:
        what = "overlap: one reviewer cannot see an item twice; name another, or no overlap"
    if what:
        raise UsageError(what)
    shared = draw(groups, round(overlap * len(groups)), seed)
    given: dict[str, set[str]] = {name: set() for name in reviewers}
    for item in sorted(
        groups, key=lambda item: (groups[item], _rank(seed, "assign", item))
    ):
        by_load = sorted(
            given, key=lambda name: (len(given[name]), _rank(seed, item, name))
        )
        for name in by_load[: 2 if item in shared else 1]:
            given[name].add(item)
    return {
        name: tuple(item for item in groups if item in given[name]) for name in given
    }


def _rank(seed: int, *parts: str) -> bytes:
    """Return a hash that puts things in an order which only the seed decides."""
    return hashlib.sha256("\0".join((str(seed), *parts)).encode()).digest()


@cache
def texts_in(language: str) -> Mapping[str, Mapping[str, str]]:
    """Return the form's words by part, in a language, or in English if it has no file."""
    known = {path.stem for path in (FOLDER / "texts").glob("*.yaml")}
    language = language if language in known else FALLBACK
    settings = load_settings(FOLDER / "texts" / f"{language}.yaml")
    parts = {
        one: settings.part(one)
        for one in ("form", "titles", "verdicts", "reasons", "rules")
    }
    words = {
        name: {key: one.text(key) for key in one.values} for name, one in parts.items()
    }
    return {**words, "form": {"lang": language, **words["form"]}}


def filled_template(path: Path, *, html: bool = False, **values: object) -> str:
    """Return what a Jinja template makes of values, which are escaped for HTML."""
    environment = Environment(
        loader=FileSystemLoader(path.parent),
        autoescape=html,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=not html,
    )
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False}
    return environment.get_template(path.name).render(values)


def csv_twin(sheet: Sheet) -> str:
    """Return the items as CSV, a row each, with empty columns for what reviewers fill in."""
    titles = dict.fromkeys(title for item in sheet.items for title in item.fields)
    questions = [one for item in sheet.items for one in item.questions]
    asked = dict.fromkeys(
        f"{RATE}{one.name}" if one.name else "verdict" for one in questions
    )
    edits = ["to_edit"] if any(item.edit is not None for item in sheet.items) else []
    header = [
        "item",
        "language",
        *(f"shown: {title}" for title in titles),
        "why",
        "rules",
    ]
    rows = [[*header, *edits, "choices", *asked, "edited", "comment", "reviewer"]]
    for item in sheet.items:
        own = texts_in(item.language)
        rules = []
        for one in item.questions:
            low, *_, high = one.keys
            by_criterion = f"{one.name} ({low} to {high}): {one.text}"
            rules.append(by_criterion if one.name else own["rules"][one.kind])
        row = [
            item.id,
            item.language,
            *(item.fields.get(title, "") for title in titles),
        ]
        why = "; ".join(own["reasons"].get(reason, reason) for reason in item.reasons)
        row += [why, "\n".join(rules), *([item.edit or ""] if edits else [])]
        verdicts = (" | ".join(one.keys) for one in item.questions if not one.name)
        rows.append(
            [*row, next(verdicts, ""), *[""] * (len(asked) + 2), sheet.reviewer]
        )
    return spreadsheet_text(rows)


def spreadsheet_text(rows: Iterable[Iterable[str | float]]) -> str:
    """Return rows as the text of a CSV file for a spreadsheet, every text made safe by ``cell``."""
    cells = (
        [mask(one) if isinstance(one, str) else str(one) for one in row] for row in rows
    )
    return output.BOM + "".join(
        output.sheet_lines(map(output.cell, row) for row in cells)
    )


def visible(text: str) -> str:
    """Return the text with keys masked, and hidden characters written out."""
    return output.visible(mask(text))
