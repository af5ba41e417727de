"""``sheet.json``: what the sheets that were issued asked; no other answer is taken for a verdict.

It stays with whoever gives the sheets out: it holds what the judge said.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cases.tools.review.reviews import Review
from cases.tools.review.sheet import Sheet
from evaluators.core import UsageError
from evaluators.output import write_texts
from evaluators.reading import parse_json, read_text
from evaluators.text import listed, shown

FILE = "sheet.json"
_KEYS = ("choices", "upgrades")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What was asked of one item: ``choices`` are the verdicts that a person may give.

    ``judged`` is the judge's own, empty where it gave none; ``upgrades`` are the choices that would
    make an answer pass that it let fail. ``about`` says in words what was asked, line by line.
    """

    choices: tuple[str, ...]
    judged: str = ""
    upgrades: tuple[str, ...] = ()
    about: tuple[str, ...] = ()


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
            msg = f"made from sheets that were not issued: {listed(sorted(sheets))}"
            raise self._refusal(msg)
        others = dict.fromkeys(one.item for one in reviews if one.item not in self.items)
        if others:
            msg = f"verdicts on items that no sheet asked: {listed(others)}"
            raise self._refusal(msg)
        for one in reviews:
            if one.verdict and one.verdict not in self.items[one.item].choices:
                choices = ", ".join(self.items[one.item].choices)
                msg = f"{one.source}: {shown(one.verdict)} is no choice; there are {choices}"
                raise UsageError(msg)

    def _refusal(self, what: str) -> UsageError:
        advice = "nothing is taken; name the form's own sheet.json as --sheet"
        return UsageError(f"{self.path}: {what}; {advice}")


def issue(sheet: Sheet, asked: Mapping[str, Asked], folder: Path) -> Path:
    """Add a sheet to those issued in a folder and return the path of ``sheet.json``.

    A form that was sent out earlier may still come back. Raises UsageError for a file that cannot
    be read, QAError where it cannot be written.
    """
    path = folder / FILE
    old = load_issued(path) if path.exists() else Issued(path=path)
    value = {
        "sheets": list(dict.fromkeys((*old.sheets, sheet.digest))),
        "items": {
            item: {
                "choices": one.choices,
                "judged": one.judged,
                "upgrades": one.upgrades,
                "about": one.about,
            }
            for item, one in {**old.items, **asked}.items()
        },
    }
    write_texts([(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n")])
    return path


def load_issued(path: Path) -> Issued:
    """Return what ``issue`` wrote. Raises UsageError where there is no such file, or another."""
    if not path.exists():
        msg = f"{path}: no sheet was issued there; name the form's own sheet.json as --sheet"
        raise UsageError(msg)
    try:
        value: Any = parse_json(read_text(path))
        items = {item: _asked(one) for item, one in value["items"].items()}
        return Issued(path=path, sheets=_texts(value["sheets"]), items=items)
    except (ValueError, TypeError, KeyError, AttributeError):
        msg = f"{path}: not what `python -m reports review` writes; write the form again"
        raise UsageError(msg) from None


def _asked(value: Any) -> Asked:
    (judged,) = _texts([value["judged"]])
    choices, upgrades = (_texts(value[key]) for key in _KEYS)
    about = _texts(value.get("about", []))  # a sheet of an earlier version has none
    return Asked(choices=choices, judged=judged, upgrades=upgrades, about=about)


def _texts(values: Sequence[object]) -> tuple[str, ...]:
    if not isinstance(values, list) or not all(isinstance(one, str) for one in values):
        msg = "texts are needed"
        raise TypeError(msg)
    return tuple(map(str, values))
