"""What was issued, and what reviewers sent back: reading it, settling it, and their agreement."""

import json
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypedDict

from cases.review.sheet import BETWEEN, RATE, Sheet, name_fault, write_sheet
from cases.tables import read_csv
from evaluators.core import UsageError
from evaluators.output import unguarded, write_texts
from evaluators.reading import parse_json, read_text
from evaluators.statistics.agreement import PairAgreement, alpha_of, kappas, raw_agreement
from evaluators.statistics.intervals import Estimate
from evaluators.text import encodable, hint, listed, shown

Allowed = Mapping[str, Sequence[str]]
ISSUED = "sheet.json"
"""The file of what was asked; it stays with whoever gives the sheets out."""
LONGEST_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What one reviewer answered to one question about an item."""

    item: str
    """The item's id, or ``ITEM#CRITERION``."""
    reviewer: str
    verdict: str
    """The verdict or rating; empty if there is only a comment."""
    edited: str = ""
    """The corrected text; empty if it was left as it is."""
    comment: str = ""
    source: str = ""
    """File and row."""
    sheet: str = ""
    """The digest of the form's sheet; empty in a CSV."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedItem:
    """What a sheet asked about one item, and what the judge said of it."""

    choices: tuple[str, ...]
    """The verdicts or ratings that a person may give."""
    judged: str
    """The judge's own verdict; empty if it gave none."""
    upgrades: tuple[str, ...]
    """Choices that would make an answer pass that the judge failed."""
    about: tuple[str, ...] = ()
    """What was asked, in words, line by line."""
    criterion: str = ""
    """The criterion's name, if a rating was asked for; the next three are empty without it."""
    question: str = ""
    part: str = ""
    """The answer's slice."""
    run: str = ""
    """Which run gave the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Issued:
    """All sheets issued in one folder: their digests, and their questions by id."""

    sheets: tuple[str, ...]
    items: Mapping[str, IssuedItem]
    path: Path = Path(ISSUED)

    def read(self, paths: Iterable[Path]) -> tuple[Review, ...]:
        """Return the reviews in files. Raises UsageError, naming them, for what no sheet asked."""
        reviews = read_sheets(paths)
        sheets = {one.sheet for one in reviews if one.sheet} - {*self.sheets}
        others = dict.fromkeys(one.item for one in reviews if one.item not in self.items)
        what = f"verdicts on items that no sheet asked: {listed(others)}" if others else ""
        if sheets:
            what = f"made from sheets that were not issued: {listed(sorted(sheets))}"
        if what:
            advice = "nothing is taken; name the form's own sheet.json as --sheet"
            raise UsageError(f"{self.path}: {what}; {advice}")
        for one in reviews:
            if one.verdict and one.verdict not in self.items[one.item].choices:
                choices = ", ".join(self.items[one.item].choices)
                what = f"{one.source}: {shown(one.verdict)} is no choice; there are {choices}"
                raise UsageError(what)
        return reviews


def issue(sheet: Sheet, asked: Mapping[str, IssuedItem], folder: Path) -> tuple[Path, ...]:
    """Write a sheet and add it to ``sheet.json``; return three paths. Raises UsageError."""
    path = folder / ISSUED
    old = load_issued(path) if path.exists() else Issued(sheets=(), items={})
    before: dict[str, object] = {}
    for one in (*old.items.values(), *asked.values()):
        form = one.run, one.question, one.choices
        if one.criterion and before.setdefault(one.criterion, form) != form:
            what = f"criterion {shown(one.criterion)} was asked otherwise, or of another run"
            raise UsageError(
                f"{path}: {what}, in a form issued there; give the new form another folder (--to)"
            )
    needed = ("choices", "judged", "upgrades")
    value = {
        "sheets": list(dict.fromkeys((*old.sheets, sheet.digest))),
        "items": {
            item: {name: value for name, value in asdict(one).items() if value or name in needed}
            for item, one in {**old.items, **asked}.items()
        },
    }
    files = write_sheet(sheet, folder)
    write_texts([(path, json.dumps(value, ensure_ascii=False, indent=1) + "\n")])
    return *files, path


def load_issued(path: Path) -> Issued:
    """Return what ``issue`` wrote. Raises UsageError if there is no such file, or another."""
    import msgspec  # noqa: PLC0415

    if not path.exists():
        what = f"{path}: no sheet was issued there; name the form's own sheet.json as --sheet"
        raise UsageError(what)
    try:
        return replace(msgspec.convert(parse_json(read_text(path)), Issued), path=path)
    except ValueError:
        raise UsageError(f"{path}: not what `qagate review` writes; write the form again") from None


def read_sheets(paths: Iterable[Path], allowed: Allowed | None = None) -> tuple[Review, ...]:
    """Return the reviews in these files, each once, without rows that were left empty.

    ``allowed`` (``Sheet.allowed``) names the answers to each question; a CSV names its own. Raises
    UsageError naming file, row and column, also for a reviewer who contradicts himself.
    """
    readers = {".json": _from_json, ".csv": _from_csv}
    found: dict[tuple[str, str], Review] = {}
    for path in paths:
        read = readers.get(path.suffix.lower())
        if read is None:
            what = f"{path}: a review ends in .json (saved by the form) or .csv; give one of these"
            raise UsageError(what)
        for review in read(path, allowed):
            before = found.setdefault((review.item, review.reviewer.casefold()), review)
            if (before.verdict, before.edited) != (review.verdict, review.edited):
                raise UsageError(
                    f"{review.source}: {shown(review.reviewer)} said otherwise of item "
                    f"{shown(review.item)} in {before.source}; keep one of the two"
                )
    return tuple(found.values())


def _from_csv(path: Path, allowed: Allowed | None) -> Iterator[Review]:
    """Yield one review for each question that a row answers; the first has the row's comment."""
    table = read_csv(path, read_text(path))
    rated = {
        column: unguarded(name.removeprefix(RATE.strip()).strip())
        for column, name in table.names.items()
        if name.startswith(RATE.strip())
    }
    verdict = () if rated and "verdict" not in table.names else ("verdict",)
    for column in ("item", *verdict, "edited", "comment", "reviewer"):
        if column not in table.names:
            what = f"{path}:1: no column {column!r}; keep the columns of the sheet as they are"
            raise UsageError(what)
    for record in table.records:
        cells = {name: unguarded(str(value)).strip() for name, value in record.values.items()}
        said = {cells["item"]: cells["verdict"]} if verdict else {}
        said |= {f"{cells['item']}#{name}": cells[column] for column, name in rated.items()}
        if not any((*said.values(), cells["edited"], cells["comment"])):
            continue
        if not cells["reviewer"]:
            raise table.problem(record, "reviewer", "empty; who gave this verdict?")
        choices = cells.get("choices", "").split(BETWEEN.strip())
        own = [choice.strip() for choice in choices if choice] if verdict else []
        source = f"{path}:{record.line}: row {record.row}"
        rest = {name: cells[name] for name in ("edited", "comment", "reviewer")}
        for item in [item for item in said if said[item]] or [*said][:1]:
            values = {"item": item, "verdict": said[item], **rest}
            yield _review(values, source, own if allowed is None else allowed)
            rest |= {"edited": "", "comment": ""}


class _Row(TypedDict):
    item: str
    verdict: str
    edited: str
    comment: str


class _Saved(TypedDict):
    sheet: str  # its digest
    reviewer: str
    rows: list[_Row]


def _from_json(path: Path, allowed: Allowed | None) -> Iterator[Review]:
    import msgspec  # noqa: PLC0415

    try:
        saved = msgspec.convert(parse_json(read_text(path)), _Saved)
    except ValueError as error:
        raise UsageError(f"{path}: {error}; give the file as the form saved it") from None
    for number, row in enumerate(saved["rows"], 1):
        given = {**row, "reviewer": saved["reviewer"]}
        values = {name: str(text).strip() for name, text in given.items()}
        review = _review(values, f"{path}: row {number}", () if allowed is None else allowed)
        if any((review.verdict, review.edited, review.comment)):
            yield replace(review, sheet=saved["sheet"])


def _review(values: Mapping[str, str], source: str, allowed: Allowed | Sequence[str]) -> Review:
    """Return the review in a row. ``allowed`` holds answers by question, or those of this row."""
    item, verdict, reviewer = (values[name] for name in ("item", "verdict", "reviewer"))
    odd = (name for name, text in values.items() if not encodable(text) or "\0" in text)
    faults = [(name, "holds half a character or a NUL; type it again") for name in odd]
    if not 0 < len(reviewer) <= LONGEST_NAME:
        faults.append(("reviewer", f"a name of 1 to {LONGEST_NAME} characters is needed"))
    elif fault := name_fault(reviewer):
        faults.append(("reviewer", fault))
    if isinstance(allowed, Mapping):
        if item not in allowed:
            faults.append(("item", f"{shown(item)} is no item of the sheet; was it changed?"))
        allowed = allowed.get(item, ())
    spelled = {one.casefold(): one for one in allowed}  # people write it in any letter case
    if verdict and spelled and verdict.casefold() not in spelled:
        faults.append(("verdict", f"{shown(verdict)} is no choice; {hint(verdict, allowed)}"))
    if faults:
        raise UsageError("{}, column {!r}: {}".format(source, *faults[0]))
    return Review(
        item=item,
        reviewer=" ".join(unicodedata.normalize("NFC", reviewer).split()),
        verdict=spelled.get(verdict.casefold(), verdict),
        edited=values["edited"],
        comment=values["comment"],
        source=source,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The outcome of one item: a conflict if there are reviews and no verdict."""

    item: str
    verdict: str
    """What is agreed, empty for nothing."""
    edited: str
    """The text that replaces the old one; empty if nobody changed it."""
    reviews: tuple[Review, ...]
    """Those that gave a verdict, by reviewer."""

    @property
    def names(self) -> tuple[str, ...]:
        """Who gave the agreed verdict."""
        return tuple(one.reviewer for one in self.reviews if one.verdict == self.verdict)

    @property
    def comments(self) -> tuple[str, ...]:
        """The comments of those who gave the agreed verdict."""
        said = (one.comment for one in self.reviews if one.verdict == self.verdict)
        return tuple(dict.fromkeys(filter(None, said)))


def settle(items: Iterable[str], reviews: Iterable[Review]) -> dict[str, Settled]:
    """Return the outcome of each item, in the order of ``items``.

    A verdict holds if more than half of those who gave one gave it: two who differ are a conflict,
    which a third decides by agreeing with one of them. Edits are settled in the same way among
    those who gave that verdict and changed the text; edits without a majority are a conflict too.
    """
    given: dict[str, list[Review]] = defaultdict(list)
    for review in sorted(reviews, key=lambda one: one.reviewer.casefold()):
        if review.verdict:
            given[review.item].append(review)
    found = {}
    for item in items:
        said = tuple(given[item])
        verdict = _majority([one.verdict for one in said])
        edits = [one.edited for one in said if one.verdict == verdict and one.edited]
        edited = _majority(edits)
        verdict = verdict if edited or not edits else ""
        found[item] = Settled(item=item, verdict=verdict, edited=edited, reviews=said)
    return found


def _majority(values: Sequence[str]) -> str:
    first = Counter(values).most_common(1)
    return first[0][0] if first and 2 * first[0][1] > len(values) else ""


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far reviewers agree on one group of items."""

    group: str
    """Empty for all items."""
    items: int
    """Those with two verdicts or more."""
    raw: Estimate
    """The share of pairs of verdicts that are equal."""
    alpha: Estimate
    """Krippendorff's."""
    pairs: tuple[PairAgreement, ...]
    """Cohen's kappa of reviewers who saw items in common."""


def agreement(
    reviews: Iterable[Review], groups: Mapping[str, str] | None = None
) -> tuple[Agreement, ...]:
    """Return the agreement on all items (group ``""``), then on each of ``groups`` by name."""
    given: dict[str, dict[str, str]] = defaultdict(dict)
    for review in reviews:
        if review.verdict:
            given[review.item][review.reviewer] = review.verdict
    group_of = {item: (groups or {}).get(item, "") for item in given}
    found = []
    for group in sorted({"", *group_of.values()}):
        verdicts = [one for item, one in given.items() if group in ("", group_of[item])]
        units = [list(one.values()) for one in verdicts if len(one) > 1]
        names = sorted({name for one in verdicts for name in one})
        pairs = kappas(names, [[one.get(name, "") for name in names] for one in verdicts])
        seen = tuple(pair for pair in pairs if pair.kappa.n)
        found.append(Agreement(group, len(units), raw_agreement(units), alpha_of(units), seen))
    return tuple(found)
