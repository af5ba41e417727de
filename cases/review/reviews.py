"""What reviewers sent back, JSON or CSV; the outcome of each item; how far they agree."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from cases.review.sheet_files import BETWEEN, from_cell
from cases.tables import read_csv
from evaluators.core import UsageError
from evaluators.reading import parse_json, read_text
from evaluators.statistics.agreement import PairAgreement, alpha_of, kappas, raw_agreement
from evaluators.statistics.intervals import Estimate
from evaluators.text import encodable, hint, shown

Allowed = Mapping[str, Sequence[str]]
LONGEST_NAME = 100
GIVEN = ("verdict", "edited", "comment")
COLUMNS = ("item", *GIVEN)

State = Literal["agreed", "conflict", "unreviewed"]
AGREED: State = "agreed"
CONFLICT: State = "conflict"
UNREVIEWED: State = "unreviewed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What one reviewer said of one item; ``verdict`` is empty where there is only a comment.

    ``edited`` is empty where the text was left as it is. ``source`` is the file and row, ``sheet``
    the digest of the form's sheet, empty in a CSV.
    """

    item: str
    reviewer: str
    verdict: str
    edited: str = ""
    comment: str = ""
    source: str = ""
    sheet: str = ""


def read_sheets(paths: Iterable[Path], allowed: Allowed | None = None) -> tuple[Review, ...]:
    """Return the reviews in these files; rows left empty are none.

    ``allowed`` (``Sheet.allowed``) names the verdicts of each item; a CSV names its own. The same
    review in two files counts once. Raises UsageError naming file, row and column for whatever
    cannot be read, an item or verdict that is not allowed, or a reviewer who contradicts himself.
    """
    readers = {".json": _from_json, ".csv": _from_csv}
    found: dict[tuple[str, str], Review] = {}
    for path in paths:
        read = readers.get(path.suffix.lower())
        if read is None:
            raise UsageError(
                f"{path}: a review ends in .json (saved by the form) or .csv; give one of these"
            )
        for review in read(path, allowed):
            before = found.setdefault((review.item, review.reviewer.casefold()), review)
            if (before.verdict, before.edited) != (review.verdict, review.edited):
                raise UsageError(
                    f"{review.source}: {shown(review.reviewer)} said otherwise of item "
                    f"{shown(review.item)} in {before.source}; keep one of the two"
                )
    return tuple(found.values())


def _from_csv(path: Path, allowed: Allowed | None) -> Iterator[Review]:
    table = read_csv(path, read_text(path))
    for column in (*COLUMNS, "reviewer"):
        if column not in table.names:
            raise UsageError(
                f"{path}:1: no column {column!r}; keep the columns of the sheet as they are"
            )
    for record in table.records:
        cells = {name: from_cell(str(value)).strip() for name, value in record.values.items()}
        values = {name: cells[name] for name in (*COLUMNS, "reviewer")}
        if not any(values[name] for name in GIVEN):
            continue
        if not values["reviewer"]:
            raise table.problem(record, "reviewer", "empty; who gave this verdict?")
        choices = cells.get("choices", "").split(BETWEEN.strip())
        own = [choice.strip() for choice in choices if choice]
        source = f"{path}:{record.line}: row {record.row}"
        yield _review(values, source, own if allowed is None else allowed)


def _from_json(path: Path, allowed: Allowed | None) -> Iterator[Review]:
    try:
        value: Any = parse_json(read_text(path))
    except ValueError as error:
        raise UsageError(f"{path}: {error}; give the file that the form saved") from None
    types = {"sheet": str, "reviewer": object, "rows": list}
    known = isinstance(value, dict) and value.keys() == types.keys()
    if not known or not all(isinstance(value[key], one) for key, one in types.items()):
        raise UsageError(f"{path}: not what the form saves (sheet, reviewer, rows); give that file")
    for number, row in enumerate(value["rows"], 1):
        source = f"{path}: row {number}"
        if not isinstance(row, dict) or row.keys() != set(COLUMNS):
            raise UsageError(
                f"{source}: not {', '.join(COLUMNS)}; give the file as the form saved it"
            )
        values = {**row, "reviewer": value["reviewer"]}
        for column, text in values.items():
            if not isinstance(text, str):
                raise UsageError(f"{source}, column {column!r}: text is needed, not {shown(text)}")
        values = {name: text.strip() for name, text in values.items()}
        review = _review(values, source, () if allowed is None else allowed)
        if any(values[name] for name in GIVEN):
            yield replace(review, sheet=value["sheet"])


def _review(values: Mapping[str, str], source: str, allowed: Allowed | Sequence[str]) -> Review:
    """Return the review in a row. ``allowed`` holds verdicts by item, or those of this very row."""
    for column, text in values.items():
        if not encodable(text) or "\0" in text:
            raise UsageError(
                f"{source}, column {column!r}: holds half a character or a NUL; type it again"
            )
    if not values["reviewer"] or len(values["reviewer"]) > LONGEST_NAME:
        raise UsageError(
            f"{source}, column 'reviewer': a name of 1 to {LONGEST_NAME} characters is needed"
        )
    item, verdict = values["item"], values["verdict"]
    if isinstance(allowed, Mapping):
        if item not in allowed:
            raise UsageError(
                f"{source}, column 'item': {shown(item)} is no item of the sheet; was it changed?"
            )
        allowed = allowed[item]
    spelled = {one.casefold(): one for one in allowed}  # people write it in any letter case
    if verdict and spelled and verdict.casefold() not in spelled:
        raise UsageError(
            f"{source}, column 'verdict': {shown(verdict)} is no choice; {hint(verdict, allowed)}"
        )
    return Review(
        item=item,
        reviewer=" ".join(values["reviewer"].split()),
        verdict=spelled.get(verdict.casefold(), verdict),
        edited=values["edited"],
        comment=values["comment"],
        source=source,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The outcome of one item.

    ``verdict`` is empty unless agreed. ``edited`` is the text that takes the place of the old one,
    empty where nobody changed it. ``reviews`` are those that gave a verdict, by reviewer.
    """

    item: str
    state: State
    verdict: str = ""
    edited: str = ""
    reviews: tuple[Review, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Who gave the verdict that was agreed on."""
        return tuple(one.reviewer for one in self.reviews if one.verdict == self.verdict)

    @property
    def comments(self) -> tuple[str, ...]:
        """What those who gave the verdict that was agreed on wrote beside it."""
        said = (one.comment for one in self.reviews if one.verdict == self.verdict)
        return tuple(dict.fromkeys(filter(None, said)))


def settle(items: Iterable[str], reviews: Iterable[Review]) -> dict[str, Settled]:
    """Return the outcome of each item, in the order of ``items``.

    A verdict holds when more than half of those who gave one gave it: two who differ are a
    conflict, which a third decides by agreeing with one of them. Edits are settled in the same way
    among those who gave that verdict and changed the text; edits that differ without a majority
    are a conflict too.
    """
    given: dict[str, list[Review]] = defaultdict(list)
    for review in sorted(reviews, key=lambda one: one.reviewer.casefold()):
        if review.verdict:
            given[review.item].append(review)
    return {item: _settled(item, tuple(given[item])) for item in items}


def _settled(item: str, reviews: tuple[Review, ...]) -> Settled:
    if not reviews:
        return Settled(item=item, state=UNREVIEWED)
    verdict = _majority([one.verdict for one in reviews])
    edits = [one.edited for one in reviews if one.verdict == verdict and one.edited]
    edited = _majority(edits)
    if not verdict or (edits and not edited):
        return Settled(item=item, state=CONFLICT, reviews=reviews)
    return Settled(item=item, state=AGREED, verdict=verdict, edited=edited, reviews=reviews)


def _majority(values: Sequence[str]) -> str:
    """Return the value that more than half of them are, empty where there is none."""
    first = Counter(values).most_common(1)
    return first[0][0] if first and 2 * first[0][1] > len(values) else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How far reviewers agree on one group of items.

    ``items`` counts those with two verdicts or more, ``raw`` is the share of pairs of verdicts
    that are equal. ``pairs`` are the reviewers who saw items in common.
    """

    group: str
    items: int
    raw: Estimate
    alpha: Estimate
    pairs: tuple[PairAgreement, ...]


def agreement(
    reviews: Iterable[Review], groups: Mapping[str, str] | None = None
) -> tuple[Agreement, ...]:
    """Return the agreement on all items first (group ``""``), then on each group of them by name.

    ``groups`` maps items to the names of their groups, such as a question's type.
    """
    given: dict[str, dict[str, str]] = defaultdict(dict)
    for review in reviews:
        if review.verdict:
            given[review.item][review.reviewer] = review.verdict
    group_of = {item: (groups or {}).get(item, "") for item in given}
    found = []
    for group in sorted({"", *group_of.values()}):
        verdicts = [one for item, one in given.items() if group in ("", group_of[item])]
        units = [list(one.values()) for one in verdicts if len(one) > 1]
        reviewers = sorted({name for one in verdicts for name in one})
        pairs = kappas(reviewers, [[one.get(name, "") for name in reviewers] for one in verdicts])
        found.append(
            Agreement(
                group=group,
                items=len(units),
                raw=raw_agreement(units),
                alpha=alpha_of(units),
                pairs=tuple(pair for pair in pairs if pair.kappa.n),
            )
        )
    return tuple(found)
