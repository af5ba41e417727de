"""The items of ``report.html`` as one compact JSON block, which the page's script draws."""

import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from hashlib import sha256

from reports.run import clean
from reports.run.evidence import Change
from reports.run.record import Record, in_order
from reports.run.report import Report

_CODED = (
    *("dataset", "language", "outcome", "grade", "flip", "kind"),
    *("model", "judge", "label", "person"),
)
_PLAIN = ("key", "row", "repeat", "score", "calls", "tokens", "cost", "seconds")
_TEXTS = ("question", "context", "expected", "answer", "reason", "error")
_LISTS = ("votes", "measures", "metadata", "before")
COLUMNS = (*_CODED, *_PLAIN, *_TEXTS, *_LISTS)
_JSON = json.JSONEncoder(ensure_ascii=False, default=str)
_MARKUP = (("<", "\\u003c"), (">", "\\u003e"), ("&", "\\u0026"))

Show = Callable[[str], str]


LISTED = 50_000  # items that a page can list, and still open and search quickly
DRAWN = 2_500  # of each kind, where there are more


def listed(report: Report) -> list[Record]:
    """Return the records that the page lists: all, or where these are too many those that matter.

    Then so many, drawn by a hash, of each: what flipped, has no grade, missed, and of the rest.
    """
    records = in_order(report.records)
    if len(records) <= LISTED:
        return records
    changes = report.comparison.changes if report.comparison else ()
    flips = {one.key for one in changes if one.flip in ("broke", "fixed")}
    kinds: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        is_miss = "missed" if record.outcome == "failed" else "right"
        kind = "flipped" if record.key in flips else is_miss if record.is_graded else "ungraded"
        kinds[kind].append(record)
    drawn = (sorted(some, key=_draw)[:DRAWN] for some in kinds.values())
    return in_order(record for some in drawn for record in some)


def _draw(record: Record) -> bytes:
    return sha256(record.key.encode("utf-8", "surrogatepass")).digest()


def block(report: Report, records: Iterable[Record], limit: int) -> str:
    """Return these items as JSON in which no character means anything to HTML.

    ``limit`` is the number of characters shown of one text. What repeats from item to item is an
    index into ``words``.
    """
    show = shower(limit)

    changes = {one.key: one for one in report.comparison.changes} if report.comparison else {}
    same = "same" if report.comparison else ""
    coder = _Coder(show)
    rows = [
        [
            *coder.codes(record, change := changes.get(record.key), same),
            *_rest(record, show),
            _before(change, show),
        ]
        for record in records
    ]
    return inert({"columns": COLUMNS, "words": coder.words(), "rows": rows})


def inert(data: object) -> str:
    """Return data as JSON in which no character means anything to HTML."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    for character, written in _MARKUP:
        text = text.replace(character, written)
    return text


def mark(grade: str | None, rating: int | None) -> str:
    """Return what the page shows and filters by: a grade, a rating, or ``not graded``."""
    return f"rating {rating}" if rating is not None else grade or "not graded"


class _Coder:
    """Numbers for words, column by column, in the order in which they come."""

    def __init__(self, show: Show) -> None:
        self._show = show
        self._known: tuple[dict[str, int], ...] = tuple({} for _ in _CODED)

    def codes(self, record: Record, change: Change | None, same: str) -> list[int]:
        """Return the number of each coded column of an item."""
        values = (
            record.dataset,
            record.language,
            record.outcome,
            mark(record.grade, record.rating),
            change.flip if change else same,
            record.error_kind,
            record.model,
            record.judge,
            record.label or "",
            record.adjudicated_by,
        )
        pairs = zip(self._known, values, strict=True)
        return [known.setdefault(value, len(known)) for known, value in pairs]

    def words(self) -> dict[str, list[str]]:
        """Return the words of each column, each at the place that is its number."""
        named = zip(_CODED, self._known, strict=True)
        return {name: [self._show(word) for word in known] for name, known in named}


def _rest(record: Record, show: Show) -> Iterable[object]:
    """Yield the other columns but the last."""
    score = record.rating if record.score is None else record.score
    yield from (show(record.key), record.row, record.repeat, _finite(score), len(record.calls))
    yield from (record.tokens, _finite(record.cost), round(record.seconds, 3))
    yield from (show(record.question), show(record.context), show(record.expected))
    yield None if record.answer is None else show(record.answer)
    yield from (show(record.reason), show(record.error))
    yield [
        [show(one.judge), show(one.label), show(one.reason or one.error)] for one in record.votes
    ]
    yield [[show(name), _finite(value)] for name, value in record.measures.items()]
    yield [
        [show(name), show(v) if isinstance(v, str) else show(_JSON.encode(v))]
        for name, v in sorted(record.metadata.items())
    ]


def _before(change: Change | None, show: Show) -> list[str | None] | None:
    """Return the baseline's answer, grade and reason; None where it had none or the same came."""
    if change is None or change.flip in ("new", "changed"):
        return None
    answer = None if change.answer is None else show(change.answer)
    return [answer, show(mark(change.grade, change.rating)), show(change.reason)]


def _finite(number: float | None) -> float | None:
    return number if number is None or math.isfinite(number) else None


def shower(limit: int) -> Show:
    """Return what makes a text harmless and cuts it; every text is read once, however often met."""

    @cache
    def show(text: str) -> str:
        left = f" […cut: {len(text):,} characters in all; the exact text is in records.jsonl]"
        return clean.cut(clean.visible(text), limit, left)

    return show
