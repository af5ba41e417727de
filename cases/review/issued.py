"""``sheet.json``: what the sheets that were issued asked; no other answer is taken for a verdict.

It stays with whoever gives the sheets out: it holds what the judge said.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cases.review.reviews import Review
from cases.review.sheet import Sheet
from evaluators.core import UsageError
from evaluators.output import write_texts
from evaluators.reading import parse_json, read_text
from evaluators.text import listed, shown

FILE = "sheet.json"
_LISTS = ("choices", "upgrades", "about")
_TEXTS = ("judged", "criterion", "question", "part", "run")
_KEYS = ("choices", "judged", "upgrades")
"""What every item says; the rest is left out where it is empty."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked of one item: ``choices`` are the verdicts that a person may give.

    ``judged`` is the judge's own, empty where it gave none; ``upgrades`` are the choices that would
    make an answer pass that it let fail. ``about`` says in words what was asked, line by line.
    Where a rating by a criterion was asked for, ``criterion`` is its name, ``question`` the text,
    ``part`` the answer's slice and ``run`` that which gave the answer.
    """

    choices: tuple[str, ...]
    judged: str = ""
    upgrades: tuple[str, ...] = ()
    about: tuple[str, ...] = ()
    criterion: str = ""
    question: str = ""
    part: str = ""
    run: str = ""

    @property
    def asks(self) -> tuple[object, ...]:
        """What must be the same of all ratings by one criterion."""
        return self.run, self.question, self.choices


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """All sheets issued in one folder: their digests, and their items by id."""

    path: Path
    sheets: tuple[str, ...] = ()
    items: Mapping[str, Asked] = field(default_factory=dict)

    def check(self, reviews: Iterable[Review]) -> None:
        """Raise UsageError, naming them, for reviews of what no sheet asked."""
        reviews = list(reviews)
        sheets = {one.sheet for one in reviews if one.sheet} - {*self.sheets}
        if sheets:
            raise self._refusal(f"made from sheets that were not issued: {listed(sorted(sheets))}")
        others = dict.fromkeys(one.item for one in reviews if one.item not in self.items)
        if others:
            raise self._refusal(f"verdicts on items that no sheet asked: {listed(others)}")
        for one in reviews:
            if one.verdict and one.verdict not in self.items[one.item].choices:
                choices = ", ".join(self.items[one.item].choices)
                raise UsageError(
                    f"{one.source}: {shown(one.verdict)} is no choice; there are {choices}"
                )

    def _refusal(self, what: str) -> UsageError:
        advice = "nothing is taken; name the form's own sheet.json as --sheet"
        return UsageError(f"{self.path}: {what}; {advice}")


def issue(sheet: Sheet, asked: Mapping[str, Asked], folder: Path) -> Path:
    """Add a sheet to those issued in a folder and return the path of ``sheet.json``.

    A form that was sent out earlier may still come back. Raises UsageError for a file that cannot
    be read or where a criterion has another question, scale or run than before, QAError where it
    cannot be written.
    """
    path = folder / FILE
    old = load_issued(path) if path.exists() else Issued(path=path)
    before = {one.criterion: one.asks for one in old.items.values()}
    for one in asked.values():
        if one.criterion and before.get(one.criterion, one.asks) != one.asks:
            what = f"criterion {shown(one.criterion)} was asked otherwise, or of another run"
            raise UsageError(
                f"{path}: {what}, in a form issued there; give the new form another folder (--to)"
            )
    value = {
        "sheets": list(dict.fromkeys((*old.sheets, sheet.digest))),
        "items": {
            item: {name: value for name, value in asdict(one).items() if value or name in _KEYS}
            for item, one in {**old.items, **asked}.items()
        },
    }
    write_texts([(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n")])
    return path


def load_issued(path: Path) -> Issued:
    """Return what ``issue`` wrote. Raises UsageError where there is no such file, or another."""
    if not path.exists():
        raise UsageError(
            f"{path}: no sheet was issued there; name the form's own sheet.json as --sheet"
        )
    try:
        value: Any = parse_json(read_text(path))
        items = {item: _asked(one) for item, one in value["items"].items()}
        return Issued(path=path, sheets=_texts(value["sheets"]), items=items)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise UsageError(
            f"{path}: not what `python -m reports review` writes; write the form again"
        ) from None


def _asked(value: Any) -> Asked:
    if missing := {*_KEYS} - value.keys():
        raise KeyError(*missing)
    choices, upgrades, about = (_texts(value.get(key, [])) for key in _LISTS)
    judged, *asked = _texts([value.get(key, "") for key in _TEXTS])
    criterion, question, part, run = asked
    return Asked(
        choices=choices,
        judged=judged,
        upgrades=upgrades,
        about=about,
        criterion=criterion,
        question=question,
        part=part,
        run=run,
    )


def _texts(values: Sequence[object]) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        raise TypeError("texts are needed")
    return tuple(map(str, values))
